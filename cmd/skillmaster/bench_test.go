package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// With common random numbers an edit without effect is worth its cost and nothing else, exactly; a useful one more, a
// harmful one less; clipping at zero and independent arms pay for luck.
func TestBenchProbe(t *testing.T) {
	out, _ := must(t, 0, "bench", "probe", "--edits", "320", "--success", "0.6", "--effect", "0.2", "--json")
	var rows []probeRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	of := map[string]map[float64]probeRow{}
	for _, r := range rows {
		if of[r.Preset] == nil {
			of[r.Preset] = map[float64]probeRow{}
		}
		of[r.Preset][math.Round(r.Effect*10)/10] = r
		if r.Edits != 320 || r.NotMeasured != 0 {
			t.Errorf("%+v: want 320 edits measured", r)
		}
	}
	for preset, null := range map[string]float64{"default": -0.02, "paper": 0} {
		if r := of[preset][0]; math.Abs(r.Mean-null) > 1e-12 || r.SD > 1e-12 {
			t.Errorf("%s pays an edit without effect %v ± %v, want %v", preset, r.Mean, r.SD, null)
		}
	}
	for _, preset := range []string{"default", "paper"} {
		if up, down := of[preset][0.2].Mean, of[preset][-0.2].Mean; up < 0.1 || down > -0.1 {
			t.Errorf("%s pays %v for a useful and %v for a harmful edit", preset, up, down)
		}
	}
	if r := of["release"]; r[0].Mean < 0.1 || r[-0.2].Mean < 0 {
		t.Errorf("the release's rule pays %v for nothing and %v for harm; it pays for luck", r[0].Mean, r[-0.2].Mean)
	}
	if e := of["default"][0.2].Episodes; e != 4+4.0/16 {
		t.Errorf("%v episodes an edit, want 4 after and 4 before shared by 16", e)
	}
	must(t, 2, "bench", "probe", "--success", "1.5")
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
		if p.Kernel == "" || !(p.Train > 0) || !(p.Sample > 0) || !(p.Read > p.Sample) || !(p.First > 0) || (p.Peak > 0) != (p.PeakFraction > 0) {
			t.Errorf("%+v", p)
		}
	}
	must(t, 2, "bench", "engine", "--rounds", "0")
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
