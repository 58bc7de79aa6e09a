package train

import (
	"context"
	"fmt"
	"math"
	"slices"

	"skillmaster/episode"
	"skillmaster/rollout"
	"skillmaster/skill"
)

// Evaluate plays every task of a panel once under a frozen bank, at most workers at once. Results depend on the panel,
// the bank, the policy and the seed alone.
func Evaluate(ctx context.Context, p *rollout.Player, panel episode.Panel, bank skill.Bank, s episode.Seed, workers int) (Evaluation, error) {
	const tries = 3 // of an episode that breaks; each comes to the same
	played, err := rollout.Crowd{Episodes: workers, Tries: tries}.Play(ctx, len(panel.Tasks), func(ctx context.Context, i, _ int) (episode.Trajectory, error) {
		t := panel.Tasks[i]
		return p.Play(ctx, rollout.Start{Task: t, Bank: bank, Seed: s.Derive("evaluate " + t.ID)})
	})
	if err == nil {
		err = played.Losses() // a score of what is left would be another panel's
	}
	if err != nil {
		return Evaluation{}, fmt.Errorf("evaluate panel %s: %w", panel.Name, err)
	}
	return evaluation(p, panel, bank, s, played.Trajectories, false), nil
}

// EvaluateOnline plays the panel's tasks one after another; each review's edit is in force from the next task on. It
// returns the bank as it is at the end.
func EvaluateOnline(ctx context.Context, p *rollout.Player, panel episode.Panel, bank skill.Bank, s episode.Seed) (Evaluation, skill.Bank, error) {
	first := bank
	ts := make([]episode.Trajectory, len(panel.Tasks))
	for i, t := range panel.Tasks {
		tr, err := p.PlayAndReview(ctx, rollout.Start{Task: t, Bank: bank, Seed: s.Derive("evaluate " + t.ID)})
		if err != nil {
			return Evaluation{}, first, fmt.Errorf("evaluate panel %s: %w", panel.Name, err)
		}
		ts[i] = tr
		if r := tr.Review; r != nil && changes(r.Outcome) {
			bank, _ = bank.Apply(r.Edit, rollout.Permit(tr))
		}
	}
	return evaluation(p, panel, first, s, ts, true), bank, nil
}

// changes reports whether an outcome means that there is another bank.
func changes(o skill.Outcome) bool {
	return o == skill.Added || o == skill.Updated || o == skill.Retired
}

func evaluation(p *rollout.Player, panel episode.Panel, bank skill.Bank, s episode.Seed, ts []episode.Trajectory, online bool) Evaluation {
	e := Evaluation{
		Panel: panel.Name, PanelHash: panel.Hash(), Bank: bank.Hash(), Retrieval: p.Config.Retrieval, Online: online,
		PolicyVersion: -1, Seed: s, Temperature: p.Config.Temperature, Constrained: p.Config.Constrained,
		Results: make([]Result, len(ts)),
	}
	for i, t := range ts {
		e.PolicyVersion = max(e.PolicyVersion, t.PolicyVersion) // an episode without a turn has none
		r := Result{
			Task: t.Task.ID, Family: t.Task.Family, Success: t.Success, Steps: len(t.Steps), Return: t.EnvReturn,
			Inadmissible: t.Inadmissible(), Malformed: t.Malformed(), Stop: t.Stop,
		}
		for _, x := range t.Steps {
			r.Actions = append(r.Actions, x.Action)
		}
		e.Results[i] = r
	}
	e.Uses = uses(ts)
	return e
}

// Summary is a panel score: mean success with a 95 % interval.
type Summary struct {
	Family  string  `json:"family"` // "all": the whole panel
	Tasks   int     `json:"tasks"`
	Success int     `json:"success"`
	Rate    float64 `json:"rate"`
	Low     float64 `json:"low"` // Wilson interval
	High    float64 `json:"high"`
	Steps   float64 `json:"steps"`         // mean over all tasks
	Won     float64 `json:"won,omitempty"` // mean steps of the successful ones; 0, and not in JSON: there is none
	Return  float64 `json:"return"`
}

// Summary is the score over all tasks.
func (e Evaluation) Summary() Summary { return summarise("all", e.Results) }

// Summaries are the scores of an evaluation: all tasks first, then each family by name.
func (e Evaluation) Summaries() []Summary {
	by := map[string][]Result{"": e.Results}
	for _, r := range e.Results {
		by[r.Family] = append(by[r.Family], r)
	}
	families := make([]string, 0, len(by))
	for f := range by {
		families = append(families, f)
	}
	slices.Sort(families)
	var out []Summary
	for _, f := range families {
		out = append(out, summarise(f, by[f]))
	}
	out[0].Family = "all"
	return out
}

func summarise(family string, rs []Result) Summary {
	s := Summary{Family: family, Tasks: len(rs)}
	for _, r := range rs {
		s.Steps += float64(r.Steps)
		s.Return += r.Return
		if r.Success {
			s.Success++
			s.Won += float64(r.Steps)
		}
	}
	if s.Tasks == 0 {
		return s
	}
	n := float64(s.Tasks)
	s.Rate, s.Steps, s.Return = float64(s.Success)/n, s.Steps/n, s.Return/n
	if s.Success > 0 {
		s.Won /= float64(s.Success)
	}
	s.Low, s.High = Wilson(s.Success, s.Tasks)
	return s
}

// Wilson is the 95 % score interval of a share of k among n (Wilson 1927). n = 0: [0, 1].
func Wilson(k, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	p, m := float64(k)/float64(n), float64(n)
	centre := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, centre-half), min(1, centre+half)
}
