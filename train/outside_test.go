package train

import (
	"testing"

	"skillmaster/env/envtest"
	"skillmaster/episode"
	"skillmaster/probe"
	"skillmaster/rollout"
	"skillmaster/skill"
)

// An edit from outside is judged as one of the run's own: the truth earns a commit with its evidence, a lie is refused,
// and so is what no gate task can tell. Nothing is judged by a gate that commits nothing.
func TestOutside(t *testing.T) {
	cfg := hallConfig()
	cfg.Gate = probe.DefaultGate()
	cfg.Gate.Tasks = 12
	trainer := halls(t, cfg, 2, keepNothing{})
	var gem episode.Task
	for _, x := range trainer.Panels.Train.Tasks {
		if x.Category == "gems" {
			gem = x
			break
		}
	}
	outside := func(e skill.Edit, favourite string) ([]Test, *skill.Commit) {
		t.Helper()
		player := &rollout.Player{Suite: envtest.World{}, Policy: reader(favourite), Config: cfg.Rollout}
		tests, commit, err := trainer.Outside(t.Context(), player, skill.Bank{}, e, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(tests) == 0 || tests[len(tests)-1].Decision == probe.Undecided {
			t.Fatalf("nothing was decided: %+v", tests)
		}
		return tests, commit
	}
	truth, _ := proposal(t, gem, true)
	tests, commit := outside(truth.Trajectories[0].Review.Edit, "red")
	if commit == nil || commit.Provenance.Evidence.EValue < 20 || commit.Bank.Len() != 1 || commit.Provenance.Iteration != -1 || tests[len(tests)-1].Decision != probe.Commit {
		t.Errorf("the truth: %+v", commit)
	}
	lie, _ := proposal(t, gem, false)
	if tests, commit = outside(lie.Trajectories[0].Review.Edit, "blue"); commit != nil || tests[len(tests)-1].Why == "" {
		t.Errorf("a lie: %+v, %+v", commit, tests[len(tests)-1])
	}
	if tests, commit = outside(skill.Edit{Op: skill.Propose, Category: "nowhere", Title: "T", Principle: "It is of no use."}, "red"); commit != nil || tests[0].Verdict.Measured {
		t.Errorf("of a category without tasks: %+v, %+v", commit, tests)
	}
	trainer.Config.Gate.Rule = probe.Never
	if _, _, err := trainer.Outside(t.Context(), nil, skill.Bank{}, skill.Edit{}, 5); err == nil {
		t.Error("a gate that commits nothing judges")
	}
}
