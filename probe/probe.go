// Package probe judges edits: it plays related tasks with the bank before and after an edit and says what the edit did,
// or why that could not be measured. Source: SkillMaster (arXiv 2605.08693), counterfactual skill utility.
package probe

import (
	"context"
	"errors"
	"fmt"
	"math"

	"skillmaster/episode"
	"skillmaster/skill"
)

// Play plays the action turns of one episode. Safe for concurrent use; the same arm gives the same trajectory until the
// policy changes.
type Play func(ctx context.Context, a Arm) (episode.Trajectory, error)

// ErrUnplayable is what a Play returns, wrapped, where the world broke: that probe is not measured, the others are.
var ErrUnplayable = errors.New("the probe could not be played")

// Arm is one side of a probe.
type Arm struct {
	Task episode.Task
	Bank skill.Bank
	Must string // id of a skill that must stand in the prompt if the task's category retrieves it at all; empty: none
	Seed episode.Seed
}

// Config says how edits are judged.
type Config struct {
	Tasks      int     `json:"tasks"`      // K, probes of one edit; fewer where the panel has no more
	Alpha      float64 `json:"alpha"`      // weight of wins minus losses
	Efficiency float64 `json:"efficiency"` // w_eff, weight of steps saved
	EditCost   float64 `json:"edit_cost"`  // taken from every measured utility, so that an edit without effect is worth less than none
	ClipAtZero bool    `json:"clip_at_zero"`
	Candidates int     `json:"candidates"` // most candidates judged in an iteration, the rest are not measured; 0: no limit
	// Stop is the e-value of wins against losses at which an edit's sign is clear, so that its other probes are not played; 0:
	// all are played.
	Stop float64 `json:"stop"`

	// The ways of the public release, to compare with.
	Independent bool `json:"independent"` // each arm has luck of its own: no common random numbers
	Replay      bool `json:"replay"`      // every candidate is judged by itself, before arm included
	Fixed       bool `json:"fixed"`       // a source task has the same probes, of its own family, all run

	Horizon int `json:"-"` // T, most steps of a probe
}

// Default is this project's way of judging.
func Default() Config {
	return Config{Tasks: 4, Alpha: 0.3, Efficiency: 1, EditCost: 0.02, Candidates: 16, Stop: 3.5}
}

// Validate reports the first setting that cannot be.
func (c Config) Validate() error {
	switch {
	case c.Tasks < 1:
		return fmt.Errorf("probe.tasks is %d, at least 1 is needed", c.Tasks)
	case c.Candidates < 0:
		return fmt.Errorf("probe.candidates is %d, it cannot be negative", c.Candidates)
	case c.Stop != 0 && !(c.Stop > 1):
		return fmt.Errorf("probe.stop is %v: it is above 1, the e-value of no evidence, or 0 to play every probe", c.Stop)
	case c.Alpha < 0 || c.Efficiency < 0 || c.EditCost < 0:
		return errors.New("probe.alpha, probe.efficiency and probe.edit_cost cannot be negative")
	}
	return nil
}

// Candidate is the bank with one edit applied, and the tasks that may tell what the edit does.
type Candidate struct {
	Bank  skill.Bank       // after the edit
	Skill string           // id of the skill the edit added or changed; its presence in a prompt is what is measured
	Tasks [][]episode.Task // one list for each family to be covered, the episode's own first

	Source string // id of that episode's task; read with Config.Fixed alone
}

// Score is what one play is worth.
type Score struct {
	Success bool `json:"success"`
	Steps   int  `json:"steps"`
}

// Value is s = won + w_eff·won·(T − L)/T for horizon T and length L.
func (c Config) Value(s Score) float64 {
	if !s.Success {
		return 0
	}
	return 1 + c.Efficiency*float64(c.Horizon-s.Steps)/float64(c.Horizon)
}

// Pair is one probe: the same task under the same seed with the bank before and after the edit.
type Pair struct {
	Task   string       `json:"task"`
	Seed   episode.Seed `json:"seed"`
	Other  episode.Seed `json:"after_seed,omitempty"` // of the after arm, if it had luck of its own
	Before Score        `json:"before"`
	After  Score        `json:"after"`
	Delta  float64      `json:"delta"`
}

// Verdict is the utility of an edit with its evidence, or why it has none.
type Verdict struct {
	Measured bool    `json:"measured"`
	Why      string  `json:"why,omitempty"` // it was not measured
	Utility  float64 `json:"utility"`       // without meaning unless Measured
	Mean     float64 `json:"mean"`          // of the deltas
	Wins     int     `json:"wins"`          // pairs with a positive delta
	Losses   int     `json:"losses"`
	Pairs    []Pair  `json:"pairs,omitempty"`
	Hidden   int     `json:"hidden,omitempty"`   // probes in whose prompt the edited skill did not stand
	Broken   int     `json:"broken,omitempty"`   // probes of which an arm could not be played
	Unplayed int     `json:"unplayed,omitempty"` // probes that were not needed: the sign was clear without them
}

// NotMeasured is the verdict that there is none.
func NotMeasured(why string) Verdict { return Verdict{Why: why} }

// utility is U = mean δ + α·(wins − losses)/K − edit cost (paper, equation 3, signed) over the K probes of v that were
// measured or not needed. Probes that were not needed count as δ = 0: the mean of the pairs up to a stop would exaggerate,
// for it is extreme pairs that stop early.
func (c Config) utility(v Verdict) float64 {
	n, k := float64(len(v.Pairs)), float64(len(v.Pairs)+v.Unplayed)
	u := (v.Mean*n + c.Alpha*float64(v.Wins-v.Losses)) / k
	if c.ClipAtZero {
		u = math.Max(0, u)
	}
	return u - c.EditCost
}

// clear tells whether the sign of an edit with so many wins and losses needs no further probe.
func (c Config) clear(wins, losses int) bool {
	return c.Stop > 0 && EValue(max(wins, losses), min(wins, losses)) >= c.Stop
}

// wave is how many probes of a candidate are played between two looks at it: the fewest that can make its sign clear.
func (c Config) wave() int {
	n := 1
	for n < c.Tasks && !c.clear(n, 0) {
		n++
	}
	return n
}

// add appends a pair and keeps mean, wins and losses true.
func (v *Verdict) add(p Pair) {
	n := float64(len(v.Pairs))
	v.Mean = (v.Mean*n + p.Delta) / (n + 1)
	v.Pairs = append(v.Pairs, p)
	switch {
	case p.Delta > 0:
		v.Wins++
	case p.Delta < 0:
		v.Losses++
	}
}
