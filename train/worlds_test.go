package train

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"skillmaster/chat"
	"skillmaster/env"
	"skillmaster/env/alfworld"
	"skillmaster/env/webshop"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/policy/policytest"
	"skillmaster/probe"
	"skillmaster/rollout"
	"skillmaster/skill"
)

// follower looks about for ever and says what it was shown first.
func follower(first func(system, observation string)) *policytest.Script {
	return &policytest.Script{Say: func(_ context.Context, r policy.Request) (string, error) {
		told, turns := "", 0
		for _, m := range r.Messages {
			switch m.Role {
			case chat.System:
				told = m.Text
			case chat.User:
				if turns == 0 {
					first(told, m.Text)
				}
				turns++
			case chat.Assistant:
			}
		}
		return "<action>look</action>", nil
	}}
}

// An edit is judged alike in both worlds: both arms open the same task, its goal included; what does nothing has deltas of
// exactly 0; the edited skill stands in the prompt, or the probe is not measured.
func TestProbesInBothWorlds(t *testing.T) {
	household, err := alfworld.NewGenerated(alfworld.GeneratedOptions{Splits: map[string]int{"probe": 24}})
	if err != nil {
		t.Fatal(err)
	}
	catalogue, err := webshop.Generate(t.Context(), webshop.GenerateOptions{Seed: 1, Products: 400})
	if err != nil {
		t.Fatal(err)
	}
	shop, err := webshop.NewShop(catalogue, webshop.GoalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]struct {
		suite env.Suite
		split string
	}{"household": {household, "probe"}, "shop": {webshop.NewSuite(shop, webshop.Options{}), "report"}} {
		t.Run(name, func(t *testing.T) {
			tasks, err := w.suite.Tasks(w.split)
			if err != nil {
				t.Fatal(err)
			}
			cfg := Default()
			cfg.Probe.Tasks, cfg.Probe.Stop = 6, 0
			trainer := &Trainer{Config: cfg, Suite: w.suite, Panels: Panels{Probe: episode.Panel{Name: "probe", Tasks: tasks[:min(len(tasks), 200)]}}, Workers: 1, Log: slog.New(slog.DiscardHandler)}
			panel := byFamily(trainer.Panels.Probe)
			shown := map[string][]string{} // opening → with and without the skill
			player := &rollout.Player{Suite: w.suite, Config: cfg.Rollout, Policy: follower(func(system, observation string) {
				if !slices.Contains(shown[observation], system) {
					shown[observation] = append(shown[observation], system)
				}
			})}
			e := skill.Edit{Op: skill.Propose, Category: tasks[0].Category, Title: "Nothing", Principle: "Think of the sea."}
			c, ok := trainer.candidate(skill.Bank{}, e, skill.Permission{Category: tasks[0].Category}, tasks[0].Family, panel)
			if !ok {
				t.Fatal("the edit does not apply")
			}
			cp := cfg.Probe
			cp.Horizon = w.suite.Guide().Horizon
			vs, err := probe.NewJudge(play(player), cp, 1).Judge(t.Context(), skill.Bank{}, []probe.Candidate{c}, 1)
			if err != nil {
				t.Fatal(err)
			}
			v := vs[0]
			if !v.Measured || len(v.Pairs) != 6 || v.Hidden != 0 || v.Utility != -cfg.Probe.EditCost {
				t.Errorf("what does nothing: %+v", v)
			}
			for _, p := range v.Pairs {
				if p.Before != p.After || p.Delta != 0 {
					t.Errorf("arms differ though nothing does: %+v", p)
				}
			}
			if len(shown) != 6 {
				t.Errorf("%d openings in 6 pairs: arms open different tasks", len(shown))
			}
			for opening, systems := range shown {
				if len(systems) != 2 || strings.Contains(systems[0], "sea") == strings.Contains(systems[1], "sea") {
					t.Errorf("%.60q was shown with %q: want once with the skill and once without", opening, systems)
				}
			}
			player.Config.Retrieval = false
			vs, err = probe.NewJudge(play(player), cp, 1).Judge(t.Context(), skill.Bank{}, []probe.Candidate{c}, 1)
			if err != nil || vs[0].Measured || vs[0].Hidden != 6 {
				t.Errorf("a skill that nobody sees: %+v, %v", vs, err)
			}
		})
	}
}
