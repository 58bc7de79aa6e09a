package main

import (
	"encoding/json"
	"math"
	"runtime"
	"strings"
	"testing"
)

// What the issue of paying for luck comes to: the release's rule against ours, on edits of known effect. The figures
// of the release, and of its rule without the cut at 0, are those that others found by simulation (null edits paid 0.14 to
// 0.25, edits above keeps whatever they do); ours pays an edit without effect its cost, a harmful one less, at little more
// than half of the episodes.
func TestBenchProbe(t *testing.T) {
	out, _ := must(t, 0, "bench", "probe", "--rounds", "20", "--shared", "1,0", "--json")
	var b probeBench
	if err := json.Unmarshal([]byte(out), &b); err != nil {
		t.Fatal(err)
	}
	cost := map[string]probeCost{}
	for _, r := range b.Cost {
		cost[r.Preset] = r
	}
	if r := cost["release"]; r.Before != 256 || r.After != 256 {
		t.Errorf("the release plays 64 × 8 episodes: %+v", r)
	}
	if r := cost["default"]; r.Before > 32 || r.After > 256 || r.Release > 0.6 {
		t.Errorf("the default plays at most 32 before and 256 after: %+v", r)
	}
	released := map[float64]float64{0.2: 0.19, 0.5: 0.25, 0.8: 0.21, 0.95: 0.14}
	spread := map[float64]float64{0.2: 0.50, 0.5: 0.63, 0.8: 0.53, 0.95: 0.35}
	for _, r := range b.NoEffect {
		switch {
		case r.NotMeasured != 0 || r.Edits != 20*64:
			t.Errorf("%+v: want all edits measured", r)
		case r.Preset == "release" && math.Abs(r.Mean-released[r.Success]) > 0.035:
			t.Errorf("the release pays nothing %.3f at %v, want %v", r.Mean, r.Success, released[r.Success])
		case r.Preset == "release" && (r.Positive < 0.37 || r.Positive > 0.54):
			t.Errorf("the release pays %.0f %% of edits without effect, want 41 to 50", 100*r.Positive)
		case r.Preset == signed && (math.Abs(r.Mean) > 4*r.Error || math.Abs(r.SD-spread[r.Success]) > 0.04):
			t.Errorf("without the cut nothing is paid %.3f ± %.3f at %v, want 0 ± %v", r.Mean, r.SD, r.Success, spread[r.Success])
		case r.Preset == "default" && r.Shared == 1 && (math.Abs(r.Mean+0.02) > 1e-12 || r.SD > 1e-9):
			t.Errorf("with the same luck in both arms an edit without effect is paid %v ± %v, want its cost", r.Mean, r.SD)
		case r.Preset != "release" && math.Abs(r.Mean+0.02) > 0.02+4*r.Error:
			t.Errorf("%s pays nothing %.3f, error %.3f", r.Preset, r.Mean, r.Error)
		}
	}
	edits := map[string]map[float64]float64{"release": {0: 0.46, -0.2: 0.29, 0.1: 0.53}, signed: {0: 0, -0.2: -0.40, 0.1: 0.2}}
	for _, r := range b.Advantage {
		if want, known := edits[r.Preset]; known && (math.Abs(r.Edit-want[r.Effect]) > 0.1 || math.Abs(r.Edit+r.Keep) > 1e-9) {
			t.Errorf("%s: edits of effect %v have the advantage %+.2f and keeps %+.2f, want %+.2f", r.Preset, r.Effect, r.Edit, r.Keep, want[r.Effect])
		}
		if r.Preset != "release" && r.Effect < 0 && (r.Edit > -0.2 || r.Mean > -0.2) {
			t.Errorf("%s prefers harm: %+v", r.Preset, r)
		}
	}
	equal := 0
	for _, r := range b.Signal {
		if r.Preset == "default*" {
			equal++
			if r.Ratio < 1.5 || r.Episodes > 8 || r.Tasks < 6 {
				t.Errorf("at the release's episodes: %+v, want 1.5 times its signal-to-noise", r)
			}
		}
	}
	if equal != 2 {
		t.Errorf("%d rows at equal episodes, want one for each share of luck", equal)
	}
	must(t, 2, "bench", "probe", "--success", "1.5")
	must(t, 2, "bench", "probe", "--shared", "2")
}

// Every figure of a world is measured, the generated one's and, where they are at hand, the real games'.
func TestBenchEnv(t *testing.T) {
	out, _ := must(t, 0, "bench", "env", "--episodes", "40", "--rounds", "2", "--workers", "3")
	var b envBench
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		t.Fatal(err)
	}
	if b.Episodes != 40 || b.Rounds != 2 || b.Tasks == 0 || b.One.Workers != 1 || b.All.Workers != 3 || b.Steps < 40 || b.Steps > 40*50 {
		t.Errorf("%+v", b)
	}
	if b.Machine.CPU == "" || b.Machine.Cores < 1 || b.Machine.Go == "" {
		t.Errorf("machine: %+v", b.Machine)
	}
	for name, x := range map[string]float64{
		"one": b.One.Steps, "one's resets": b.One.Resets, "all": b.All.Steps, "all's resets": b.All.Resets, "scaling": b.Scaling, "load": b.Load,
		"first": b.First, "reset": b.Reset, "bytes": b.Held, "heap": b.Heap, "played": b.Played, "allocations": b.Allocs, "allocated": b.Bytes,
	} {
		if !(x > 0) || math.IsInf(x, 1) {
			t.Errorf("%s: %v", name, x)
		}
	}
	if b.Fork == nil || b.ForkedBytes == nil || *b.Fork <= 0 || *b.ForkedBytes < 100 {
		t.Errorf("forks are not measured: %+v", b)
	}
	must(t, 2, "bench", "env", "--rounds", "0")
	must(t, 2, "bench", "env", "--split", "nothing", "--episodes", "1")
}

// The engine is measured in float32, and in bfloat16 where the processor has it; shares of the peak are shares.
func TestBenchEngine(t *testing.T) {
	out, _ := must(t, 0, "bench", "engine", "--width", "32", "--hidden", "64", "--vocab", "300", "--batch", "2", "--length", "40", "--sequences", "3",
		"--prompt", "10", "--sampled", "5", "--rounds", "2", "--seconds", "0.01", "--json")
	var b engineBench
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		t.Fatal(err)
	}
	if b.Machine.CPU == "" || b.Parameters < 1000 || len(b.Precisions) < 1 || len(b.Precisions) > 2 {
		t.Errorf("%+v", b)
	}
	for _, p := range b.Precisions {
		if p.Kernel == "" || !(p.Train > 0) || !(p.Sample > 0) || !(p.Read > p.Sample) || !(p.First > 0) || (p.Peak == nil) != (p.PeakFraction == nil) {
			t.Errorf("%+v", p)
		}
		if p.Memory.Total() < int64(4*b.Parameters) || runtime.GOOS == "linux" && (p.Resident == nil || *p.Resident <= 0) {
			t.Errorf("memory %+v, resident %v", p.Memory, p.Resident)
		}
	}
	must(t, 2, "bench", "engine", "--rounds", "0")
}

// A table has a row for each value, with one worker and with two.
func TestBenchEngineTable(t *testing.T) {
	small := []string{
		"bench", "engine", "--width", "64", "--hidden", "32", "--heads", "2", "--kv-heads", "1", "--layers", "1", "--vocab", "40", "--batch", "2",
		"--length", "8", "--sequences", "2", "--prompt", "3", "--sampled", "2", "--rounds", "1", "--seconds", "0.001", "--workers", "2", "--table",
	}
	out, _ := must(t, 0, append(small, "width", "--json")...)
	var benches []engineBench
	if err := json.Unmarshal([]byte(out), &benches); err != nil {
		t.Fatal(err)
	}
	if len(benches) != 8 || benches[0].Shape.Width != 64 || benches[0].Workers != 1 || benches[7].Shape.Width != 512 || benches[7].Workers != 2 ||
		benches[7].Shape.Heads != 16 || benches[7].Shape.KVHeads != 8 || benches[7].Shape.Hidden != 256 {
		t.Errorf("got %+v", benches)
	}
	out, _ = must(t, 0, append(small, "batch")...)
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) < 2+7 || !strings.HasPrefix(strings.TrimSpace(lines[1]), "batch") {
		t.Errorf("got\n%s", out)
	}
	must(t, 2, append(small, "nothing")...)
}

// The experts win small generated worlds, usual and not; too high a bar is an error, and so is what cannot be.
func TestBenchExpert(t *testing.T) {
	out, _ := must(t, 0, "bench", "expert", "--games", "120", "--difficulty", "0,1", "--json")
	var rows []expertRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 14 {
		t.Fatalf("got %d rows, want those of six families and all, twice", len(rows))
	}
	for i, r := range rows {
		want := 20
		if i%7 == 6 {
			want = 120
		}
		if r.Count != want || r.PlanWon != want || r.SearchWon < want-2 || r.SearchSteps == nil || *r.SearchSteps < *r.PlanSteps {
			t.Errorf("row %+v", r)
		}
	}
	if all, hard := rows[6], rows[13]; *hard.SearchSteps < *all.SearchSteps+1 {
		t.Errorf("a search takes %v steps in usual rooms, %v where things lie anywhere", *all.SearchSteps, *hard.SearchSteps)
	}
	out, errs := must(t, 1, "bench", "expert", "--games", "12", "--difficulty", "0", "--least", "1.1")
	if !strings.Contains(out, "pick_two_obj_and_place") || !strings.Contains(errs, "fewer than 1.1") {
		t.Errorf("a bar that nobody passes: %s%s", out, errs)
	}
	must(t, 2, "bench", "expert", "--games", "0")
	must(t, 2, "bench", "expert", "--difficulty", "2")
	must(t, 2, "bench", "expert", "--split", "train")
	must(t, 2, "bench", "expert", "--env", "alfworld", "--custom", "0.5")
	must(t, 2, "data", "pack", "--env", "alfworld", "--difficulty", "0.5", "--to", t.TempDir())
}
