package probe

import (
	"encoding/json"
	"math"
	"testing"

	"skillmaster/episode"
	"skillmaster/skill"

	"github.com/google/go-cmp/cmp"
)

// Withheld with chance ¼: shown with a score 0.6 above the others counts 0.8, withheld with 0.5 below counts +2.
func TestEffectByHand(t *testing.T) {
	var es Effects
	es = es.Add(Met{Skill: "b", Family: "heat", Shown: true, Chance: 0.25, Score: 1.2, Others: 0.6, Largest: 2})
	es = es.Add(Met{Skill: "b", Family: "cool", Shown: false, Chance: 0.25, Score: 0, Others: 0.5, Largest: 2})
	es = es.Add(Met{Skill: "a", Family: "heat", Shown: false, Chance: 0.5, Score: 1, Others: 0, Largest: 2})
	b, ok := es.Of("b")
	if !ok || len(es) != 2 || es[0].Skill != "a" {
		t.Fatalf("effects %+v", es)
	}
	all := b.All()
	if all.Met() != 2 || math.Abs(all.Mean()-1.4) > 1e-12 || math.Abs(all.Error()-0.6) > 1e-12 {
		t.Errorf("mean %v ± %v of %d, want 1.4 ± 0.6 of 2", all.Mean(), all.Error(), all.Met())
	}
	if f := b.Families[0]; f.Family != "cool" || f.Shown != 0 || f.Withheld != 1 || f.Mean() != 2 {
		t.Errorf("first family %+v", f)
	}
	if !math.IsNaN(b.Families[0].Error()) {
		t.Error("one episode has a standard error")
	}
	// The largest |x| is 2/¼ = 8: who bets share s has (1 − s·0.8/8)(1 − s·2/8).
	want := 0.0
	for k := range 16 {
		s := (float64(k) + 0.5) / 16
		want += (1 - s*0.1) * (1 - s*0.25) / 16
	}
	if got := b.HarmEValue(); math.Abs(got-want) > 1e-12 {
		t.Errorf("e-value of harm %v, want %v", got, want)
	}
	if a, _ := es.Of("a"); math.Abs(a.All().Mean()+2) > 1e-12 || a.HarmEValue() <= 1 {
		t.Errorf("who wins without the skill: mean %v, e-value %v", a.All().Mean(), a.HarmEValue())
	}
	if _, ok := es.Forget("b").Of("b"); ok || len(es) != 2 {
		t.Error("forgetting forgets nothing, or changes what it was given")
	}
	text, err := json.Marshal(es)
	var back Effects
	if err != nil || json.Unmarshal(text, &back) != nil || !cmp.Equal(es, back) {
		t.Errorf("%s, %v comes back as %+v", text, err, back)
	}
}

// world of dropout: tasks of very different difficulty, a skill of known effect on one family and none on the other,
// beside a skill that does harm. Estimates meet the truth within their error, and are unbiased over many repetitions.
func simulate(seed episode.Seed, episodes int, p float64, effect func(skill, family string) float64) Effects {
	var es Effects
	r := seed.Rand()
	score := func(base float64) float64 {
		if r.Float64() < base {
			return 1 + r.Float64()
		}
		return 0
	}
	for range episodes {
		family := []string{"cool", "heat"}[r.IntN(2)]
		base := 0.2 + 0.6*r.Float64()
		others := 0.0
		for range 7 {
			others += score(base) / 7
		}
		good, bad := r.Float64() >= p, r.Float64() >= p
		chance := base
		if good {
			chance += effect("good", family)
		}
		if bad {
			chance += effect("bad", family)
		}
		y := score(chance)
		for id, shown := range map[string]bool{"good": good, "bad": bad} {
			es = es.Add(Met{Skill: id, Family: family, Shown: shown, Chance: p, Score: y, Others: others, Largest: 2})
		}
	}
	return es
}

func TestEffectsAreUnbiased(t *testing.T) {
	truth := func(skill, family string) float64 {
		switch {
		case skill == "bad":
			return -0.15
		case family == "heat":
			return 0.2
		}
		return 0
	}
	for _, p := range []float64{0.5, 0.2} {
		sums := map[string]float64{}
		within, n := 0, 0
		const repetitions = 200
		for s := range episode.Seed(repetitions) {
			for _, e := range simulate(s, 200, p, truth) {
				for _, f := range e.Families {
					want := 1.5 * truth(e.Skill, f.Family) // a success is worth 1.5 on average
					sums[e.Skill+" "+f.Family] += f.Mean() / repetitions
					n++
					if math.Abs(f.Mean()-want) < 1.96*f.Error() {
						within++
					}
				}
			}
		}
		for name, want := range map[string]float64{"good heat": 0.3, "good cool": 0, "bad heat": -0.225, "bad cool": -0.225} {
			if math.Abs(sums[name]-want) > 0.05 {
				t.Errorf("p = %v: %s is measured as %.3f on average, it is %.3f", p, name, sums[name], want)
			}
		}
		if share := float64(within) / float64(n); share < 0.92 || share > 0.98 {
			t.Errorf("p = %v: %.3f of the 95 %% intervals hold the truth", p, share)
		}
	}
}

// A skill without effect is retired as harmful by chance α at most, though one looks after every episode; one that does
// harm is found.
func TestHarmIsFoundAndChanceIsNot(t *testing.T) {
	alarms := func(effect float64, episodes int) int {
		n := 0
		for s := range episode.Seed(300) {
			r := s.Rand()
			var e Effect
			e.Harm = make([]float64, bettors)
			for i := range e.Harm {
				e.Harm[i] = 1
			}
			for range episodes {
				shown, chance := r.Float64() < 0.5, 0.5
				if shown {
					chance += effect
				}
				y := 0.0
				if r.Float64() < chance {
					y = 1.5
				}
				e = e.add(Met{Skill: "s", Family: "f", Shown: shown, Chance: 0.5, Score: y, Others: 0.75, Largest: 2})
				if e.HarmEValue() >= 20 {
					n++
					break
				}
			}
		}
		return n
	}
	if n := alarms(0, 400); n > 300*5/100+8 {
		t.Errorf("%d of 300 skills without effect were called harmful", n)
	}
	if n := alarms(-0.4, 400); n < 270 {
		t.Errorf("%d of 300 harmful skills were found", n)
	}
}

func TestRetirement(t *testing.T) {
	met := func(es Effects, id string, n int, x float64) Effects {
		for range n {
			es = es.Add(Met{Skill: id, Family: "f", Shown: true, Chance: 0.5, Score: 1 + x, Others: 1, Largest: 2})
			es = es.Add(Met{Skill: id, Family: "f", Shown: false, Chance: 0.5, Score: 1, Others: 1, Largest: 2})
		}
		return es
	}
	var es Effects
	es = met(es, "good", 30, 0.5)
	es = met(es, "weak", 30, 0.1)
	es = met(es, "bad", 30, -0.9)
	es = met(es, "pinned", 30, -0.9)
	es = met(es, "new", 10, -0.9)
	bank := func(ids ...string) skill.Bank {
		var skills []skill.Skill
		for _, id := range ids {
			skills = append(skills, skill.Skill{ID: id, Category: "c", Title: id, Principle: id + " things."})
		}
		b, err := skill.New(skills, nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	all, outcome := bank("good", "weak", "bad", "pinned", "new", "unmet").Apply(skill.Edit{Op: skill.Pin, ID: "pinned"}, skill.Permission{Shown: []string{"pinned"}})
	if !all.Pinned("pinned") {
		t.Fatal(outcome)
	}
	r := Retirement{Met: 40, Alpha: 0.05}
	if got := r.Harmful(es, all); len(got) != 1 || got[0].Skill != "bad" {
		t.Errorf("harmful: %+v, want the bad one that was met often enough and is not pinned", got)
	}
	if got := r.Harmful(es, bank("good")); len(got) != 0 {
		t.Errorf("harmful in a bank without them: %+v", got)
	}
	if got := r.Surplus(es, bank("good", "weak", "new", "unmet"), 3); len(got) != 1 || got[0].Skill != "weak" {
		t.Errorf("the least useful are %+v", got)
	}
	if got := r.Surplus(es, bank("new", "unmet"), 1); len(got) != 0 {
		t.Errorf("skills of which little is known may be retired: %+v", got)
	}
	r.Alpha = 0
	if got := r.Harmful(es, all); len(got) != 0 {
		t.Errorf("with α 0: %+v", got)
	}
	if err := DefaultRetirement().Validate(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(r *Retirement){
		func(r *Retirement) { r.Dropout = 2 }, func(r *Retirement) { r.Withhold = 1 }, func(r *Retirement) { r.Withhold = 0 },
		func(r *Retirement) { r.Met = 0 }, func(r *Retirement) { r.Cap = -1 }, func(r *Retirement) { r.Alpha = 1 },
	} {
		r := DefaultRetirement()
		change(&r)
		if r.Validate() == nil {
			t.Errorf("%+v passes", r)
		}
	}
}
