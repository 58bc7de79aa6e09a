package main

import (
	"encoding/json"
	"math"
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
