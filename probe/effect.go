package probe

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"skillmaster/skill"
)

// Effect is what skill dropout has shown of one skill so far. An episode under dropout withholds each skill that was
// retrieved with chance p, by a coin of its own. With score y, and c the mean score of the other episodes of its group,
//
//	x = (y − c)/(1 − p) if the skill was shown,   x = −(y − c)/p if it was withheld
//
// has the skill's effect as its expectation (Horvitz and Thompson 1952), whatever else the episode is about: the coin
// knows nothing of it. c takes out how hard the task is, and is no source of bias, for the episode is not in it.
type Effect struct {
	Skill    string         `json:"skill"`
	Families []FamilyEffect `json:"families"` // by name
	// Harm is the wealth of those who bet the shares (k + ½)/len(Harm) of it, of the largest loss there can be, on x < 0
	// in every episode. Its mean is the e-value of "the skill does harm".
	Harm []float64 `json:"harm"`
}

// FamilyEffect is the same for the tasks of one family.
type FamilyEffect struct {
	Family   string  `json:"family"`
	Shown    int     `json:"shown"`    // episodes under dropout in which it was
	Withheld int     `json:"withheld"` // and in which it was not
	Sum      float64 `json:"sum"`      // of x
	Squares  float64 `json:"squares"`
}

// bettors is the length of Effect.Harm.
const bettors = 16

// Met is one meeting of an episode under dropout with a skill.
type Met struct {
	Skill, Family string
	Shown         bool
	Chance        float64 // p, at which it was withheld; between 0 and 1
	Score         float64 // of the episode
	Others        float64 // mean score of the other episodes of its group
	Largest       float64 // no score is above this; none is below 0
}

// x is the episode's estimate of the effect.
func (m Met) x() float64 {
	if m.Shown {
		return (m.Score - m.Others) / (1 - m.Chance)
	}
	return -(m.Score - m.Others) / m.Chance
}

// Effects are those of a bank's skills, by id. Nobody changes one after it was made.
type Effects []Effect

// Add returns the effects with one more meeting. It panics on a chance at which nothing is left to chance.
func (es Effects) Add(m Met) Effects {
	if !(m.Chance > 0 && m.Chance < 1) || !(m.Largest > 0) {
		panic(fmt.Sprintf("probe: skill %s was withheld with chance %v, the largest score is %v", m.Skill, m.Chance, m.Largest))
	}
	out := slices.Clone(es)
	i, found := slices.BinarySearchFunc(out, m.Skill, func(e Effect, id string) int { return strings.Compare(e.Skill, id) })
	if !found {
		out = slices.Insert(out, i, Effect{Skill: m.Skill, Harm: slices.Repeat([]float64{1}, bettors)})
	}
	out[i] = out[i].add(m)
	return out
}

func (e Effect) add(m Met) Effect {
	x := m.x()
	e.Families = slices.Clone(e.Families)
	i, found := slices.BinarySearchFunc(e.Families, m.Family, func(f FamilyEffect, name string) int { return strings.Compare(f.Family, name) })
	if !found {
		e.Families = slices.Insert(e.Families, i, FamilyEffect{Family: m.Family})
	}
	f := &e.Families[i]
	f.Sum, f.Squares = f.Sum+x, f.Squares+x*x
	if m.Shown {
		f.Shown++
	} else {
		f.Withheld++
	}
	largest := m.Largest / min(m.Chance, 1-m.Chance) // of |x|
	e.Harm = slices.Clone(e.Harm)
	for k := range e.Harm {
		e.Harm[k] *= 1 - (float64(k)+0.5)/bettors*x/largest
	}
	return e
}

// Of returns the effect of a skill; false if it was met in no episode under dropout.
func (es Effects) Of(id string) (Effect, bool) {
	i, found := slices.BinarySearchFunc(es, id, func(e Effect, id string) int { return strings.Compare(e.Skill, id) })
	if !found {
		return Effect{}, false
	}
	return es[i], true
}

// Forget returns the effects without those of a skill: it has other words now, or has gone.
func (es Effects) Forget(id string) Effects {
	return slices.DeleteFunc(slices.Clone(es), func(e Effect) bool { return e.Skill == id })
}

// All is the effect over all families, whose name is then empty.
func (e Effect) All() FamilyEffect {
	var all FamilyEffect
	for _, f := range e.Families {
		all.Shown += f.Shown
		all.Withheld += f.Withheld
		all.Sum += f.Sum
		all.Squares += f.Squares
	}
	return all
}

// Met is the number of episodes.
func (f FamilyEffect) Met() int { return f.Shown + f.Withheld }

// Mean is the estimate: score with the skill less score without it. NaN before the first episode.
func (f FamilyEffect) Mean() float64 { return f.Sum / float64(f.Met()) }

// Error is the standard error of the mean (divisor n − 1). NaN for fewer than two episodes.
func (f FamilyEffect) Error() float64 {
	n := float64(f.Met())
	if n < 2 {
		return math.NaN()
	}
	return math.Sqrt(max(0, f.Squares-f.Sum*f.Sum/n) / (n - 1) / n)
}

// HarmEValue is the evidence against "the skill does no harm", looked at whenever one likes: if it does none, this ever
// reaches 1/α with chance α at most (Ville).
func (e Effect) HarmEValue() float64 {
	var sum float64
	for _, w := range e.Harm {
		sum += w
	}
	return sum / float64(len(e.Harm))
}

// Retirement says when a skill leaves the bank.
type Retirement struct {
	Dropout  float64 `json:"dropout"`  // share of training episodes under dropout
	Withhold float64 `json:"withhold"` // chance at which each retrieved skill is withheld there
	Met      int     `json:"met"`      // fewer episodes under dropout say nothing about a skill: it stays
	Alpha    float64 `json:"alpha"`    // chance at which a harmless skill may be retired as harmful; 0: none is
	Cap      int     `json:"cap"`      // most skills in the bank; beyond it the least useful one is retired; 0: no limit
}

// DefaultRetirement is this project's.
func DefaultRetirement() Retirement {
	return Retirement{Dropout: 0.1, Withhold: 0.5, Met: 40, Alpha: 0.05, Cap: 64}
}

// Validate reports the first setting that cannot be.
func (r Retirement) Validate() error {
	switch {
	case !(r.Dropout >= 0 && r.Dropout <= 1):
		return fmt.Errorf("retire.dropout is %v, it is a share between 0 and 1", r.Dropout)
	case r.Dropout > 0 && !(r.Withhold > 0 && r.Withhold < 1):
		return fmt.Errorf("retire.withhold is %v: it lies between 0 and 1, both left out, for effects are told from skills that are sometimes shown and sometimes not", r.Withhold)
	case r.Met < 0 || r.Cap < 0 || r.Met == 0 && (r.Cap > 0 || r.Alpha > 0):
		return fmt.Errorf("retire.met is %d and retire.cap %d: at least 1 episode must speak, and the cap cannot be negative", r.Met, r.Cap)
	case !(r.Alpha >= 0 && r.Alpha < 1):
		return fmt.Errorf("retire.alpha is %v, it lies between 0 and 1", r.Alpha)
	}
	return nil
}

// Harmful lists those of a bank's skills that are to be retired because they do harm. Pinned ones never are.
func (r Retirement) Harmful(es Effects, b skill.Bank) (out []Effect) {
	for _, e := range es {
		_, active := b.Skill(e.Skill)
		if active && !b.Pinned(e.Skill) && r.Alpha > 0 && e.All().Met() >= r.Met && e.HarmEValue() >= 1/r.Alpha {
			out = append(out, e)
		}
	}
	return out
}

// Surplus lists those of a bank's skills that are to be retired so that at most limit stay: see [skill.Surplus].
func (r Retirement) Surplus(es Effects, b skill.Bank, limit int) (out []Effect) {
	worth := map[string]skill.Worth{}
	for _, e := range es {
		all := e.All()
		worth[e.Skill] = skill.Worth{Uses: all.Met(), Effect: all.Mean()}
	}
	for _, id := range skill.Surplus(b, limit, r.Met, worth) {
		e, _ := es.Of(id)
		out = append(out, e)
	}
	return out
}
