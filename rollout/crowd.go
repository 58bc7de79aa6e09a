package rollout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"skillmaster/episode"

	"golang.org/x/sync/errgroup"
)

// Crowd says how many episodes are played at once, and what becomes of those that break or take too long.
type Crowd struct {
	Episodes int // most at once; at least 1
	Tries    int // most times an episode is begun, where it breaks; at least 1
	// CutShare and CutFactor are the rule for stragglers: as soon as CutShare of the episodes have ended, no episode may
	// take longer than CutFactor times the longest of those; who does is cut off and lost. CutShare 0: nobody is. What is
	// cut depends on the clock, so that a run with this rule cannot be repeated.
	CutShare, CutFactor float64
	Now                 func() time.Time // needed by the rule alone
}

// ErrCut marks an episode that was cut off because it took too long.
var ErrCut = errors.New("a straggler, cut off")

// Played is what came of a crowd.
type Played struct {
	Trajectories []episode.Trajectory // by index; the zero one where it was lost
	Lost         []error              // by index, what it was lost with; nil: it was played
	Retried, Cut int                  // episodes begun anew; cut off
}

// Losses is an error that counts what was lost and says why the first was; nil if nothing was.
func (p Played) Losses() error {
	var first error
	n := 0
	for _, err := range p.Lost {
		if err == nil {
			continue
		}
		if n++; first == nil {
			first = err
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d episodes were lost, the first: %w", n, len(p.Lost), first)
}

// Play calls play for 0…n−1 with the number of the try, from 0, and a context that ends when the episode is cut off. An
// episode that breaks (see Broke) is begun again, and lost if it breaks at every try: there is no trajectory of it, and so
// nothing that could be taken for a failure of the policy. Any other error stops all.
func (c Crowd) Play(ctx context.Context, n int, play func(ctx context.Context, i, try int) (episode.Trajectory, error)) (Played, error) {
	out := Played{Trajectories: make([]episode.Trajectory, n), Lost: make([]error, n)}
	rule := newTail(c, n)
	tries := make([]int, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, c.Episodes))
	for i := range n {
		g.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			out.Trajectories[i], out.Lost[i], tries[i], err = c.one(ctx, rule, i, play)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Played{}, err
	}
	for i, t := range tries {
		out.Retried += t - 1
		if errors.Is(out.Lost[i], ErrCut) {
			out.Cut++
		}
	}
	return out, nil
}

// one plays an episode until it is whole or lost.
func (c Crowd) one(ctx context.Context, rule *tail, i int, play func(ctx context.Context, i, try int) (episode.Trajectory, error)) (t episode.Trajectory, lost error, tries int, err error) {
	for try := 0; ; try++ {
		one, end := rule.begin(ctx)
		t, err := play(one, i, try)
		cut := context.Cause(one)
		end(err == nil)
		switch {
		case err == nil:
			return t, nil, try + 1, nil
		case ctx.Err() != nil:
			return episode.Trajectory{}, nil, try + 1, ctx.Err()
		case errors.Is(cut, ErrCut):
			return episode.Trajectory{}, cut, try + 1, nil
		case !Broke(err):
			return episode.Trajectory{}, nil, try + 1, err
		case try+1 >= c.Tries:
			return episode.Trajectory{}, err, try + 1, nil
		}
	}
}

// tail cuts stragglers off.
type tail struct {
	now    func() time.Time
	factor float64
	need   int // episodes that have to end first; 0: the rule is off

	mu      sync.Mutex
	ended   int
	longest time.Duration // of those
	limit   time.Duration // 0: not known yet
	running map[*straggler]bool
}

// straggler is an episode under way.
type straggler struct {
	began time.Time
	cut   context.CancelCauseFunc
	timer *time.Timer // that cuts it; nil: none was set
}

func newTail(c Crowd, n int) *tail {
	t := &tail{now: c.Now, factor: c.CutFactor, running: map[*straggler]bool{}}
	if c.CutShare > 0 {
		t.need = max(1, int(math.Ceil(c.CutShare*float64(n))))
	}
	return t
}

// begin notes that an episode begins; what it returns, that it has ended, and whether it was played to its end.
func (t *tail) begin(ctx context.Context) (context.Context, func(played bool)) {
	if t.need == 0 {
		return ctx, func(bool) {}
	}
	ctx, cut := context.WithCancelCause(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &straggler{began: t.now(), cut: cut}
	t.running[s] = true
	if t.limit > 0 {
		s.cutAfter(t.limit, t.limit)
	}
	return ctx, func(played bool) { t.end(s, played) }
}

func (s *straggler) cutAfter(wait, limit time.Duration) {
	s.timer = time.AfterFunc(wait, func() { s.cut(fmt.Errorf("%w after %v", ErrCut, limit)) })
}

func (t *tail) end(s *straggler, played bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, s)
	if s.timer != nil {
		s.timer.Stop()
	}
	s.cut(nil)
	if t.limit > 0 || !played {
		return
	}
	now := t.now()
	t.ended++
	t.longest = max(t.longest, now.Sub(s.began))
	if t.ended < t.need {
		return
	}
	t.limit = max(1, time.Duration(t.factor*float64(t.longest)))
	for other := range t.running {
		other.cutAfter(max(0, t.limit-now.Sub(other.began)), t.limit)
	}
}
