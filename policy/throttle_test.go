package policy

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skillmaster/chat"
)

// slow answers after a second and knows how many ids were with it at a time.
type slow struct{ now, peak atomic.Int64 }

func (s *slow) Complete(ctx context.Context, r Request) (Completion, error) {
	n := int64(InFlight(r))
	if now := s.now.Add(n); now > s.peak.Load() {
		s.peak.Store(now)
	}
	defer s.now.Add(-n)
	select {
	case <-ctx.Done():
		return Completion{}, ctx.Err()
	case <-time.After(time.Second):
		return Completion{Text: "done"}, nil
	}
}

// asks is a request that is counted with n ids.
func asks(n int) Request {
	return Request{Messages: []chat.Message{{Role: chat.User}}, Prior: make([]int32, n-1), Sampling: Sampling{MaxTokens: 1}}
}

func TestInFlight(t *testing.T) {
	r := Request{
		Messages: []chat.Message{{Text: "a long story that was shown before"}, {Text: "1234567"}}, Seen: 1,
		Prior: make([]int32, 20), Sampling: Sampling{MaxTokens: 5},
	}
	if got := InFlight(r); got != 20+3+5 {
		t.Errorf("got %d, want 28: prior, seven bytes as three ids, and the most that may come", got)
	}
}

func TestThrottleKeepsToItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slow
		th := NewThrottle(&s, 100)
		began := time.Now()
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				if _, err := th.Complete(t.Context(), asks(25)); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if took := time.Since(began); took != 5*time.Second || s.peak.Load() != 100 || th.Peak() != 100 {
			t.Errorf("20 requests of 25 ids took %v with at most %d at a time (%d by its own count), want 5 s and 100", took, s.peak.Load(), th.Peak())
		}
	})
}

// A large request waits no longer for its turn than what came before it takes, however many small ones come after it.
func TestThrottleStarvesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := NewThrottle(&slow{}, 100)
		began := time.Now()
		var wait sync.WaitGroup
		ask := func(n int, within time.Duration) {
			wait.Go(func() {
				if _, err := th.Complete(t.Context(), asks(n)); err != nil || time.Since(began) > within {
					t.Errorf("a request of %d ids was answered after %v: %v", n, time.Since(began), err)
				}
			})
			synctest.Wait()
		}
		ask(60, time.Second)
		ask(500, 2*time.Second) // more than the limit: it goes alone
		for range 10 {
			ask(10, 3*time.Second)
		}
		wait.Wait()
	})
}

func TestThrottledRequestCanBeGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := NewThrottle(&slow{}, 10)
		var wait sync.WaitGroup
		wait.Go(func() {
			if _, err := th.Complete(t.Context(), asks(10)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := th.Complete(ctx, asks(10)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		wait.Wait()
		if _, err := th.Complete(t.Context(), asks(10)); err != nil {
			t.Errorf("a request that was given up has kept its room: %v", err)
		}
	})
}
