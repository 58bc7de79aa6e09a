package rollout

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skillmaster/episode"
	"skillmaster/policy"
)

// takes is an episode of number i that takes d.
func takes(ctx context.Context, i int, d time.Duration) (episode.Trajectory, error) {
	select {
	case <-ctx.Done():
		return episode.Trajectory{}, ctx.Err()
	case <-time.After(d):
		return episode.Trajectory{Seed: episode.Seed(i)}, nil
	}
}

func TestCrowdPlaysAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, peak atomic.Int32
		began := time.Now()
		p, err := Crowd{Episodes: 10, Tries: 2}.Play(t.Context(), 95, func(ctx context.Context, i, _ int) (episode.Trajectory, error) {
			if n := now.Add(1); n > peak.Load() {
				peak.Store(n)
			}
			defer now.Add(-1)
			return takes(ctx, i, time.Second)
		})
		if err != nil || p.Losses() != nil || p.Retried != 0 || p.Cut != 0 || peak.Load() != 10 || time.Since(began) != 10*time.Second {
			t.Errorf("%v, %v, %d retried, %d cut, %d at once, %v", err, p.Losses(), p.Retried, p.Cut, peak.Load(), time.Since(began))
		}
		for i, tr := range p.Trajectories {
			if tr.Seed != episode.Seed(i) {
				t.Errorf("episode %d is that of %d", i, tr.Seed)
			}
		}
	})
}

// What breaks is begun again, with the number of the try, and lost if it breaks each time; what is lost has no trajectory.
func TestCrowdLosesWhatBreaks(t *testing.T) {
	for _, broken := range []error{ErrWorld, policy.ErrUnavailable, policy.ErrVersion} {
		p, err := Crowd{Episodes: 4, Tries: 3}.Play(t.Context(), 6, func(_ context.Context, i, try int) (episode.Trajectory, error) {
			if try < i {
				return episode.Trajectory{Success: true, EnvReturn: 1}, fmt.Errorf("episode %d: %w", i, broken)
			}
			return episode.Trajectory{Seed: episode.Seed(10*i + try)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if p.Retried != 1+2+2+2+2 {
			t.Errorf("%d tries after the first, want 9", p.Retried)
		}
		for i := range 6 {
			if i < 3 && (p.Lost[i] != nil || p.Trajectories[i].Seed != episode.Seed(11*i)) {
				t.Errorf("episode %d: %+v, %v", i, p.Trajectories[i], p.Lost[i])
			}
			if i >= 3 && (!errors.Is(p.Lost[i], broken) || p.Trajectories[i].Success || p.Trajectories[i].Seed != 0) {
				t.Errorf("episode %d is not lost: %+v, %v", i, p.Trajectories[i], p.Lost[i])
			}
		}
	}
}

// What is no break stops all, and so does the context.
func TestCrowdStops(t *testing.T) {
	wrong := errors.New("the programmer erred")
	for name, fails := range map[string]func(cancel func()) error{
		"error":     func(func()) error { return wrong },
		"cancelled": func(cancel func()) error { cancel(); return context.Canceled },
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			began := time.Now()
			_, err := Crowd{Episodes: 8, Tries: 2}.Play(ctx, 100, func(ctx context.Context, i, _ int) (episode.Trajectory, error) {
				if i == 3 {
					return episode.Trajectory{}, fails(cancel)
				}
				return takes(ctx, i, time.Hour)
			})
			if !errors.Is(err, wrong) && !errors.Is(err, context.Canceled) || time.Since(began) > time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
		})
	}
}

// Stragglers are cut by the rule: 100 episodes take 1 s to 1.99 s, but some that take an hour. As soon as 90 have ended, at
// most 1.9 s after they began, nobody may take longer than twice as long as the longest of them.
func TestStragglersAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := map[int]bool{7: true, 33: true, 98: true}
		began := time.Now()
		p, err := Crowd{Episodes: 50, Tries: 3, CutShare: 0.9, CutFactor: 2, Now: time.Now}.Play(t.Context(), 100, func(ctx context.Context, i, try int) (episode.Trajectory, error) {
			if try > 0 {
				t.Errorf("episode %d is begun again", i)
			}
			if slow[i] {
				return takes(ctx, i, time.Hour)
			}
			return takes(ctx, i, time.Second+time.Duration(i)*10*time.Millisecond)
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if slow[i] != errors.Is(p.Lost[i], ErrCut) || !slow[i] && p.Lost[i] != nil {
				t.Errorf("episode %d: %v", i, p.Lost[i])
			}
		}
		if took := time.Since(began); p.Cut != 3 || p.Retried != 0 || took > 8*time.Second {
			t.Errorf("%d cut, %d begun again, %v", p.Cut, p.Retried, took)
		}
	})
}

// An episode that begins after the rule is known has as long as the others.
func TestLateEpisodesHaveTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := Crowd{Episodes: 1, Tries: 1, CutShare: 0.2, CutFactor: 3, Now: time.Now}.Play(t.Context(), 10, func(ctx context.Context, i, _ int) (episode.Trajectory, error) {
			d := 2 * time.Second
			if i == 5 {
				d = 7 * time.Second
			}
			return takes(ctx, i, d)
		})
		if err != nil || p.Cut != 1 || !errors.Is(p.Lost[5], ErrCut) {
			t.Errorf("%v, %d cut: %v", err, p.Cut, p.Losses())
		}
	})
}

// Without the rule, and with it where nobody is slow, nobody is cut.
func TestNobodyIsCutWithoutReason(t *testing.T) {
	for _, share := range []float64{0, 0.5, 1} {
		synctest.Test(t, func(t *testing.T) {
			p, err := Crowd{Episodes: 20, Tries: 1, CutShare: share, CutFactor: 2, Now: time.Now}.Play(t.Context(), 40, func(ctx context.Context, i, _ int) (episode.Trajectory, error) {
				if share == 0 && i == 0 {
					return takes(ctx, i, time.Hour)
				}
				return takes(ctx, i, time.Second)
			})
			if err != nil || p.Cut != 0 || p.Losses() != nil {
				t.Errorf("share %v: %v, %d cut", share, err, p.Cut)
			}
		})
	}
}
