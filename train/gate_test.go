package train

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"skillmaster/chat"
	"skillmaster/env/envtest"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/policy/policytest"
	"skillmaster/probe"
	"skillmaster/rollout"
	"skillmaster/skill"
)

// reader is a policy that opens the doors of the colour a skill names for the animal on the wall, or else always
// those of its favourite colour, and takes what it finds.
func reader(favourite string) *policytest.Script {
	return &policytest.Script{Say: func(_ context.Context, r policy.Request) (string, error) {
		var told, hall string
		tries := 0
		for _, m := range r.Messages {
			switch {
			case m.Role == chat.System:
				told = m.Text
			case m.Role == chat.User && strings.Contains(m.Text, "On the wall"):
				hall = m.Text
			case m.Role == chat.Assistant && strings.Contains(m.Text, "open"):
				tries++
			}
		}
		if last := r.Messages[len(r.Messages)-1].Text; strings.Contains(last, "is a gem") {
			return "<action>take gem</action>", nil
		}
		colour := favourite
		for _, animal := range []string{"bear", "crow", "fox", "owl"} {
			if _, rest, ok := strings.Cut(told, "shows a "+animal+", open a "); ok && strings.Contains(hall, "a "+animal+".") {
				colour, _, _ = strings.Cut(rest, " ")
			}
		}
		return fmt.Sprintf("<action>open %s door %d</action>", colour, 1+tries%2), nil
	}}
}

// proposal is a group whose one trajectory proposed the skill, right or wrong, about the gem halls of the task's animal.
func proposal(t *testing.T, task episode.Task, helpful bool) (episode.Group, skill.Skill) {
	t.Helper()
	k, ok := envtest.World{}.Advice(task, helpful, episode.Seed(1).Rand())
	if !ok {
		t.Fatal("no advice")
	}
	e := skill.Edit{Op: skill.Propose, Category: k.Category, Title: k.Title, Principle: k.Principle, When: k.When}
	tr := episode.Trajectory{Task: task, Review: &episode.Review{Edit: e, Outcome: skill.Added}}
	return episode.Group{Task: task, Trajectories: []episode.Trajectory{tr}}, k
}

// keepNothing is a Keeper for tests that look at a part of an iteration.
type keepNothing struct{}

func (keepNothing) Keep(context.Context, Report, *Checkpoint, func(io.Writer) error) error {
	return nil
}

// A skill that tells the truth is worth something, is committed with its evidence, and stands in the bank; one that lies
// is worth less than nothing and never gets there. The journal says which episode wrote it and what it was paid for.
func TestUsefulEditsAreCommittedAndHarmfulOnesAreNot(t *testing.T) {
	cfg := hallConfig()
	cfg.Group, cfg.Probe.Tasks, cfg.Gate = 2, 12, probe.DefaultGate()
	cfg.Gate.Tasks = 12
	trainer := halls(t, cfg, 2, keepNothing{})
	var gems []episode.Task
	for _, x := range trainer.Panels.Train.Tasks {
		if x.Category == "gems" {
			gems = append(gems, x)
		}
	}
	// The first hall bears an owl, whose door is blue: the truth helps who prefers red, a lie harms who prefers blue.
	for helpful, favourite := range map[bool]string{true: "red", false: "blue"} {
		player := &rollout.Player{Suite: envtest.World{}, Policy: reader(favourite), Config: cfg.Rollout}
		s := &state{}
		committed := 0
		idle := episode.Trajectory{Task: gems[0]}
		for round := range 12 {
			s.Round = round
			group, k := proposal(t, gems[0], helpful)
			group.Trajectories = append([]episode.Trajectory{idle}, group.Trajectories...)
			r := &Report{Round: round, Metrics: map[string]float64{}, Groups: []episode.Group{{Task: gems[0], Trajectories: []episode.Trajectory{idle, idle}}, group}}
			seed := episode.Seed(3).Derive("iteration", uint64(round))
			if committed == 0 {
				verdicts, err := trainer.judge(t.Context(), player, s, r, seed)
				if err != nil {
					t.Fatal(err)
				}
				if v := verdicts[1][1]; !v.Measured || (helpful && v.Utility <= 0) || (!helpful && v.Utility >= -cfg.Probe.EditCost) {
					t.Fatalf("helpful %v: the verdict on %q is %+v", helpful, k.Principle, v)
				}
			}
			if err := trainer.gate(t.Context(), player, s, r, seed); err != nil {
				t.Fatal(err)
			}
			for _, c := range r.Commits {
				committed++
				if m := r.Metrics; m["gate/committed"] != 1 || m["gate/played"] < 2*float64(cfg.Gate.Tasks) {
					t.Errorf("the metrics of a commit are %v", m)
				}
				e := c.Provenance.Evidence
				if c.Hash != s.Bank.Hash() || c.Parent == c.Hash || e.Wins < 7 || e.EValue < 20 || c.Provenance.Task != gems[0].ID {
					t.Errorf("commit %+v", c)
				}
				if p := c.Provenance; p.Group != 1 || p.Member != 1 || p.Verdict.Pairs < 1 || p.Verdict.Wins <= p.Verdict.Losses || p.Verdict.MeanDelta <= 0 || p.Verdict.Utility <= 0 {
					t.Errorf("the journal does not say what the edit was paid for, and whose it was: %+v", p)
				}
			}
		}
		if want := map[bool]int{true: 1, false: 0}[helpful]; committed != want || s.Bank.Len() != want {
			t.Errorf("helpful %v: %d commits, %d skills, want %d", helpful, committed, s.Bank.Len(), want)
		}
	}
}

// An edit about which the gate panel can say nothing is committed without evidence by the rule that asks for none, and
// leaves its place under the others.
func TestEditThatTheGateCannotMeasure(t *testing.T) {
	for rule, want := range map[probe.Rule]int{probe.Always: 1, probe.EProcess: 0, probe.LowerBound: 0} {
		cfg := hallConfig()
		cfg.Gate.Rule = rule
		trainer := halls(t, cfg, 1, keepNothing{})
		var coins []episode.Task
		for _, x := range trainer.Panels.Gate.Tasks {
			if x.Category == "coins" {
				coins = append(coins, x)
			}
		}
		trainer.Panels.Gate.Tasks = coins
		group, k := proposal(t, trainer.Panels.Train.Tasks[0], true)
		if k.Category != "gems" {
			t.Fatalf("the edit is about %s", k.Category)
		}
		r := &Report{Metrics: map[string]float64{}, Groups: []episode.Group{group}, Judgements: []Judgement{{
			Edit: group.Trajectories[0].Review.Edit, Verdict: probe.Verdict{Measured: true, Utility: 1, Mean: 1, Wins: 1},
		}}}
		s := &state{}
		player := &rollout.Player{Suite: envtest.World{}, Policy: reader("red"), Config: cfg.Rollout}
		if err := trainer.gate(t.Context(), player, s, r, 1); err != nil {
			t.Fatal(err)
		}
		if m := r.Metrics; m["gate/admitted"] != 1 || m["gate/spent"] != cfg.Gate.Alpha ||
			m["gate/committed"] != float64(want) || m["gate/rejected"] != float64(1-want) {
			t.Errorf("%s: the metrics are %v", rule, m)
		}
		if len(r.Commits) != want || len(s.Gate.Pending) != 0 {
			t.Errorf("%s: %d commits and %d pending, want %d and none", rule, len(r.Commits), len(s.Gate.Pending), want)
		}
		for _, c := range r.Commits {
			if _, err := json.Marshal(c); err != nil || c.Provenance.Evidence != (skill.Evidence{}) {
				t.Errorf("%s: evidence %+v, %v", rule, c.Provenance.Evidence, err)
			}
		}
	}
}
