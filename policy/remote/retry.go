package remote

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"skillmaster/policy"
)

// ErrFinal marks errors that another try will not mend.
var ErrFinal = errors.New("final")

// final is such an error.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

func (f final) Is(target error) bool { return target == ErrFinal }

// Final marks an error as ErrFinal. It goes on being what it was for errors.Is and errors.As.
func Final(err error) error { return final{err} }

// Retries says how often something is tried.
type Retries struct {
	Tries  int           // most; at least 1
	Pause  time.Duration // longest wait between tries, whatever the server asks for
	Notice func(text string)
	Count  func() // called before every try but the first; nil: nobody counts
}

// Do calls try until there is no error that another try may mend. Errors that stay are policy.ErrUnavailable. salt tells
// what is tried from other things, so that clients that failed together do not come back together.
func (r Retries) Do(ctx context.Context, salt []byte, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrFinal) {
			return err
		}
		var refused *StatusError
		if errors.As(err, &refused) && !refused.Passing() {
			return err
		}
		if n >= r.Tries {
			return fmt.Errorf("%w at each of %d tries, the last time: %w", policy.ErrUnavailable, n, err)
		}
		if refused != nil && refused.Wait > r.Pause {
			return fmt.Errorf("%w and wants to be left alone for %v, which is more than %v: %w", policy.ErrUnavailable, refused.Wait, r.Pause, err)
		}
		if r.Notice != nil {
			r.Notice(err.Error() + ", trying again")
		}
		if r.Count != nil {
			r.Count()
		}
		if err := Sleep(ctx, r.wait(n, refused, salt)); err != nil {
			return err
		}
	}
}

// wait is as long as the server asks for, else 0.5, 1, 2 … s, cut by up to a half.
func (r Retries) wait(n int, refused *StatusError, salt []byte) time.Duration {
	d := min(500*time.Millisecond<<min(n-1, 20), r.Pause)
	d -= time.Duration(jitter(salt, n) * float64(d) / 2)
	if refused != nil && refused.Wait > 0 {
		d = refused.Wait + min(d, refused.Wait/10)
	}
	return d
}

// Sleep waits for d, or returns the context's error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

var jitterSeed = maphash.MakeSeed()

// jitter is a number in 0…1 of a request and a try, another one in every process. It changes when a request is sent, and
// nothing else.
func jitter(body []byte, try int) float64 {
	var h maphash.Hash
	h.SetSeed(jitterSeed)
	_, _ = h.Write(body)
	_ = h.WriteByte(byte(try))
	return float64(h.Sum64()>>11) / (1 << 53)
}
