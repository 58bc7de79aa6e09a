package train

import (
	"cmp"
	"context"
	"testing"

	"skillmaster/env/envtest"
	"skillmaster/episode"
	"skillmaster/grpo"
	"skillmaster/policy"
	"skillmaster/probe"
)

// student notes what it is asked to learn.
type student struct {
	policy.Learner
	rows     []int
	restarts []bool
}

func (l *student) Update(_ context.Context, batch []grpo.Datum, o policy.Optim) (policy.Stats, error) {
	l.rows, l.restarts = append(l.rows, len(batch)), append(l.restarts, o.Restart)
	return policy.Stats{}, nil
}

// flat gives every id the same log-probability.
type flat struct{}

func (flat) Score(_ context.Context, seqs [][]int32) ([][]float32, error) {
	out := make([][]float32, len(seqs))
	for i, ids := range seqs {
		out[i] = make([]float32, len(ids))
	}
	return out, nil
}

// played is a group of two episodes with the given returns.
func played(returns ...float64) ([]episode.Group, [][]probe.Verdict) {
	g := episode.Group{Task: episode.Task{ID: "t"}}
	for _, r := range returns {
		tr := reviewed()
		tr.Turns = tr.Turns[:2]
		tr.EnvReturn = r
		g.Trajectories = append(g.Trajectories, tr)
	}
	return []episode.Group{g}, [][]probe.Verdict{make([]probe.Verdict, len(returns))}
}

// learns does some iterations with the groups' returns and says what the learner was asked.
func learns(t *testing.T, cfg Config, iterations ...[]float64) *student {
	t.Helper()
	var l student
	trainer := &Trainer{Config: cfg, Suite: envtest.World{}, Learner: &l, Reference: flat{}}
	s := &state{Checkpoint: Checkpoint{Restart: true}}
	for _, returns := range iterations {
		groups, verdicts := played(returns...)
		r := Report{Groups: groups, Metrics: map[string]float64{}}
		if err := trainer.learn(t.Context(), s, &r, verdicts); err != nil {
			t.Fatal(err)
		}
		for i, c := range r.Credits[0] {
			sign := func(v float64) int { return cmp.Compare(v, 0) }
			if mean := (returns[0] + returns[1]) / 2; sign(c.ActionAdvantage) != sign(returns[i]-mean) {
				t.Errorf("an episode worth %v among %v has the advantage %v", c.Action, returns, c.ActionAdvantage)
			}
		}
		s.Round++
	}
	return &l
}

// The moments of the warm start are forgotten once, by the first update after it, even if dead groups put that off.
func TestFirstUpdateRestartsTheOptimiser(t *testing.T) {
	l := learns(t, Default(), []float64{1, 1}, []float64{0, 1}, []float64{1, 0})
	if len(l.restarts) != 2 || !l.restarts[0] || l.restarts[1] {
		t.Errorf("restarts: %v, want true and false", l.restarts)
	}
}

// A dead group teaches nothing, unless entropy is paid for or distance to the reference policy.
func TestDeadGroupsAreLearntFromForEntropyOrKLAlone(t *testing.T) {
	cfg := Default()
	if l := learns(t, cfg, []float64{1, 1}); len(l.rows) != 0 {
		t.Errorf("a dead group made %d updates", len(l.rows))
	}
	cfg.Learn.Entropy = 0.01
	if l := learns(t, cfg, []float64{1, 1}); len(l.rows) != 1 || l.rows[0] != 2 {
		t.Errorf("with an entropy bonus: updates of %v rows, want one of 2", l.rows)
	}
	cfg.Learn.Entropy, cfg.Learn.KL = 0, 0.01
	if l := learns(t, cfg, []float64{1, 1}); len(l.rows) != 1 || l.rows[0] != 2 {
		t.Errorf("with a KL term: updates of %v rows, want one of 2", l.rows)
	}
}
