package tinker

import (
	"strings"
	"testing"
)

// divided makes a server add up otherwise: what it learns from is multiplied beforehand.
func divided(by func(all []row, i int) float32) func([]row) {
	return func(all []row) {
		factors := make([]float32, len(all))
		for i := range all {
			factors[i] = by(all, i)
		}
		for i, r := range all {
			for t := range r.a {
				r.a[t] *= factors[i]
			}
		}
	}
}

func counted(r row) (n float32) {
	for _, w := range r.w {
		if w != 0 {
			n++
		}
	}
	return n
}

// sequenceMeans is what SkyRL with JAX does.
var sequenceMeans = divided(func(all []row, i int) float32 { return 1 / (counted(all[i]) * float32(len(all))) })

// Check lets servers pass that are as the table says of the dialect that was named, and no others.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name    string
		dialect Dialect
		reduce  func([]row)
		refused string // "": passes
	}{
		{"a sum", SkillMaster, nil, ""},
		{"a mean of sequences that is known", SkyRLJAX, sequenceMeans, ""},
		{"a mean of sequences", SkillMaster, sequenceMeans, "the other way than a sum"},
		{"a sum that is corrected", SkyRLJAX, nil, "the other way than a sum"},
		{"centred advantages", SkillMaster, func(all []row) {
			mean := make([]float32, testContext)
			for _, r := range all {
				for t, a := range r.a {
					mean[t] += a / float32(len(all))
				}
			}
			for _, r := range all {
				for t := range r.a {
					r.a[t] -= mean[t]
				}
			}
		}, "the log-probability"}, // what is left of it is rounding
		{"a sign that is turned", SkillMaster, divided(func([]row, int) float32 { return -1 }), "the other way than a sum"},
		{"a mean of the batch", SkillMaster, divided(func(all []row, _ int) float32 { return 1 / float32(len(all)) }), "divides by something"},
		{"no advantages", SkillMaster, divided(func([]row, int) float32 { return 0 }), "nothing can be told"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, o := range []LearnerOptions{{}, {Rank: 2, Seed: 1}, {OnePass: true}} {
				v := serve(t, t.TempDir(), nil)
				v.reduce = c.reduce
				o.Base = "tiny"
				err := client(t, Options{URL: listen(t, v), Dialect: c.dialect}).Check(t.Context(), o)
				if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
					t.Errorf("%+v: got %v, want %q", o, err, c.refused)
				}
				if len(v.models) != 0 {
					t.Errorf("%d models are left over", len(v.models))
				}
			}
		})
	}
}

func TestDialects(t *testing.T) {
	for _, d := range []Dialect{"", "nobody", Twinkle} {
		if c, err := New(Options{URL: "http://127.0.0.1:1", Dialect: d}); err == nil || c != nil {
			t.Errorf("dialect %q: no error", d)
		}
	}
	if names := Dialects(); len(names) != len(dialects)-1 {
		t.Errorf("listed are %v", names)
	}
}
