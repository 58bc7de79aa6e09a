package main

import (
	"encoding/json"
	"testing"

	"skillmaster/grpo"
	"skillmaster/probe"
)

// Presets are what docs/reference.md says of them.
func TestPresets(t *testing.T) {
	of := func(args ...string) runConfig {
		t.Helper()
		out, _ := must(t, 0, append([]string{"train", "--print-config"}, args...)...)
		var c runConfig
		if err := json.Unmarshal([]byte(out), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	ours, paper, release := of(), of("--preset", "paper"), of("--preset", "release")
	shop, releaseShop := of("--preset", "paper", "--env", madeShop), of("--preset", "release", "--env", madeShop)
	p, r := paper.Train, release.Train
	for claim, holds := range map[string]bool{
		"here: 24 tasks of 8 episodes":      ours.Train.Tasks == 24 && ours.Train.Group == 8,
		"here: another size by setting":     of("--set", "model.width=64", "--set", "model.layers=1").Model.Width == 64 && ours.Model.Width != 64,
		"paper: 8 tasks of 8 episodes":      p.Tasks == 8 && p.Group == 8,
		"paper: every edit judged whole":    p.Probe.Candidates == 0 && p.Probe.Stop == 0,
		"paper: signed, 0.3, no cost":       !p.Probe.ClipAtZero && p.Probe.Alpha == 0.3 && p.Probe.EditCost == 0,
		"paper: no dropout":                 p.Retire.Dropout == 0 && r.Retire.Dropout == 0,
		"both: λ 0.2, here 0.05":            p.Learn.Lambda == 0.2 && r.Learn.Lambda == 0.2 && ours.Train.Learn.Lambda == 0.05,
		"both: KL 0.01, in the shop 0.05":   p.Learn.KL == 0.01 && r.Learn.KL == 0.01 && shop.Train.Learn.KL == 0.05 && releaseShop.Train.Learn.KL == 0.05,
		"release: 0.2, cut at 0":            r.Probe.Alpha == 0.2 && r.Probe.ClipAtZero,
		"release: independent and replayed": r.Probe.Independent && r.Probe.Replay && r.Probe.Fixed,
		"release: the bank stays":           r.Gate.Rule == probe.Never,
		"release: turns":                    r.Learn.PoolTurns && r.Learn.Aggregation == grpo.RowMix && r.Learn.RawSingleton && r.Learn.StdFloor == 1e-6,
		"release: entropy bonus":            r.Learn.Entropy == 0.001,
		"release: 13 skills, in the shop 6": r.Rollout.MaxSkills == 13 && releaseShop.Train.Rollout.MaxSkills == 6,
		"release: a not found edit is paid": r.Prices.NotFound > 0 && ours.Train.Prices.NotFound < 0,
	} {
		if !holds {
			t.Errorf("not so: %s", claim)
		}
	}
}
