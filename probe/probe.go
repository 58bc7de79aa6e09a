// Package probe judges edits: it plays related tasks with the bank before and after an edit and says what the edit did,
// or why that could not be measured. Source: SkillMaster (arXiv 2605.08693), counterfactual skill utility.
package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"skillmaster/episode"
	"skillmaster/skill"

	"golang.org/x/sync/errgroup"
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
	Horizon    int     `json:"-"`          // T, most steps of a probe
}

// Default is this project's way of judging.
func Default() Config {
	return Config{Tasks: 4, Alpha: 0.3, Efficiency: 1, EditCost: 0.02, Candidates: 16}
}

// Validate reports the first setting that cannot be.
func (c Config) Validate() error {
	switch {
	case c.Tasks < 1:
		return fmt.Errorf("probe.tasks is %d, at least 1 is needed", c.Tasks)
	case c.Candidates < 0:
		return fmt.Errorf("probe.candidates is %d, it cannot be negative", c.Candidates)
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
	Hidden   int     `json:"hidden,omitempty"` // probes in whose prompt the edited skill did not stand
	Broken   int     `json:"broken,omitempty"` // probes of which an arm could not be played
}

// NotMeasured is the verdict that there is none.
func NotMeasured(why string) Verdict { return Verdict{Why: why} }

// Judge plays probes. It remembers the before arms of one policy version; make a new one after an update. Not safe for
// concurrent use.
type Judge struct {
	play    Play
	cfg     Config
	workers int
	before  map[key]played
	Played  int // episodes played
	Reused  int // episodes that a cached arm made unnecessary
}

// key tells before arms apart.
type key struct {
	bank string
	task string
	must string
	seed episode.Seed
}

// beforeArm is the before arm of a candidate's probe. Where the edit changes a skill, the skill as it was has the slot
// that it has after: the arms differ by its words, not by whether it stands in the prompt.
func beforeArm(bank skill.Bank, c Candidate, t episode.Task, s episode.Seed) (Arm, key) {
	a := Arm{Task: t, Bank: bank, Seed: seedOf(s, t.ID)}
	if _, old := bank.Skill(c.Skill); old {
		a.Must = c.Skill
	}
	return a, key{bank.Hash(), t.ID, a.Must, a.Seed}
}

// NewJudge returns a judge that plays at most workers episodes at once. It panics without a horizon: no delta would be a
// number.
func NewJudge(play Play, cfg Config, workers int) *Judge {
	if cfg.Horizon < 1 {
		panic(fmt.Sprintf("probe: a horizon of %d steps", cfg.Horizon))
	}
	return &Judge{play: play, cfg: cfg, workers: max(1, workers), before: map[key]played{}}
}

// Draw chooses k probe tasks, going round the families in their order, so that k families at most are covered. No task
// comes twice, for a second play under the same seed says nothing that the first did not: fewer than k are drawn where
// there are no more. The draw depends on the seed and the lists alone, so that candidates of one family share their probes.
func Draw(families [][]episode.Task, k int, s episode.Seed) []episode.Task {
	var order [][]episode.Task
	longest := 0
	for _, f := range families {
		if len(f) == 0 {
			continue
		}
		perm := s.Derive("probe/" + f[0].Family).Rand().Perm(len(f))
		shuffled := make([]episode.Task, len(f))
		for i, p := range perm {
			shuffled[i] = f[p]
		}
		order = append(order, shuffled)
		longest = max(longest, len(f))
	}
	var out []episode.Task
	drawn := map[string]bool{}
	for i := range longest {
		for _, f := range order {
			if i < len(f) && len(out) < k && !drawn[f[i].ID] {
				drawn[f[i].ID] = true
				out = append(out, f[i])
			}
		}
	}
	return out
}

// Judge gives a verdict on each candidate for the bank they were made from. Both arms of a probe use the same task and
// seed (common random numbers); before arms are played once for all candidates, but for those of a changed skill, which
// has a slot of its own in them; identical candidates are judged once, and all plays of the call run as one batch. The
// seed is the iteration's.
func (j *Judge) Judge(ctx context.Context, bank skill.Bank, cs []Candidate, s episode.Seed) ([]Verdict, error) {
	verdicts := make([]Verdict, len(cs))
	probes := make([][]episode.Task, len(cs))
	first := map[string]int{} // candidate → index of its first appearance
	same := make([]int, len(cs))
	judged := 0
	for i, c := range cs {
		probes[i] = Draw(c.Tasks, j.cfg.Tasks, s)
		name := nameOf(c.Bank, probes[i])
		if k, seen := first[name]; seen {
			same[i] = k
			continue
		}
		first[name], same[i] = i, i
		switch {
		case len(probes[i]) == 0:
			verdicts[i] = NotMeasured("no probe task")
		case j.cfg.Candidates > 0 && judged >= j.cfg.Candidates:
			verdicts[i] = NotMeasured("more candidates than the iteration judges")
		default:
			judged++
		}
	}
	todo := func(i int) bool { return same[i] == i && verdicts[i].Why == "" }
	after, err := j.arms(ctx, bank, cs, probes, todo, s)
	if err != nil {
		return nil, err
	}
	for i := range cs {
		switch {
		case same[i] != i:
			verdicts[i] = verdicts[same[i]]
		case todo(i):
			verdicts[i] = j.verdict(bank, cs[i], probes[i], after[i], s)
		}
	}
	return verdicts, nil
}

// nameOf tells candidates apart: the bank that an edit made, and the tasks it is probed on.
func nameOf(b skill.Bank, probes []episode.Task) string {
	parts := []string{b.Hash()}
	for _, t := range probes {
		parts = append(parts, t.ID)
	}
	return strings.Join(parts, "\n")
}

// seedOf is the decoding seed of a probe: the same in both arms, and for every candidate.
func seedOf(s episode.Seed, task string) episode.Seed { return s.Derive("probe arm " + task) }

// played is what is kept of an arm.
type played struct {
	score  Score
	shown  []string // skills in its prompt
	broken bool     // it could not be played
}

// arms plays what is missing of the before arms and every after arm, as one batch.
func (j *Judge) arms(ctx context.Context, bank skill.Bank, cs []Candidate, probes [][]episode.Task, todo func(int) bool, s episode.Seed) ([][]played, error) {
	type play struct {
		arm Arm
		to  *played
	}
	var plays []play
	wanted := map[key]*played{}
	after := make([][]played, len(cs))
	for i, c := range cs {
		if !todo(i) {
			continue
		}
		after[i] = make([]played, len(probes[i]))
		for k, t := range probes[i] {
			arm, b := beforeArm(bank, c, t, s)
			_, known := j.before[b]
			if wanted[b] != nil || known {
				j.Reused++
			} else {
				wanted[b] = new(played)
				plays = append(plays, play{arm, wanted[b]})
			}
			plays = append(plays, play{Arm{Task: t, Bank: c.Bank, Must: c.Skill, Seed: arm.Seed}, &after[i][k]})
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(j.workers)
	for _, p := range plays {
		g.Go(func() error {
			tr, err := j.play(ctx, p.arm)
			if err != nil && !errors.Is(err, ErrUnplayable) {
				return fmt.Errorf("probe %s: %w", p.arm.Task.ID, err)
			}
			*p.to = played{Score{tr.Success, len(tr.Steps)}, tr.ShownSkills, err != nil}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	j.Played += len(plays)
	for b, p := range wanted {
		j.before[b] = *p
	}
	return after, nil
}

// verdict is U = mean δ + α·(wins − losses)/K − edit cost over the K measured pairs (paper, equation 3, signed).
func (j *Judge) verdict(bank skill.Bank, c Candidate, tasks []episode.Task, after []played, s episode.Seed) Verdict {
	var v Verdict
	for k, t := range tasks {
		arm, b := beforeArm(bank, c, t, s)
		switch {
		case after[k].broken || j.before[b].broken:
			v.Broken++
			continue
		case !slices.Contains(after[k].shown, c.Skill):
			v.Hidden++
			continue
		}
		p := Pair{Task: t.ID, Seed: arm.Seed, Before: j.before[b].score, After: after[k].score}
		p.Delta = j.cfg.Value(p.After) - j.cfg.Value(p.Before)
		v.add(p)
	}
	if len(v.Pairs) == 0 {
		v.Why = "the edited skill stood in no probe's prompt"
		if v.Broken > 0 {
			v.Why = "no probe could be played with the edited skill in its prompt"
		}
		return v
	}
	v.Measured = true
	k := float64(len(v.Pairs))
	v.Utility = v.Mean + j.cfg.Alpha*float64(v.Wins-v.Losses)/k
	if j.cfg.ClipAtZero {
		v.Utility = math.Max(0, v.Utility)
	}
	v.Utility -= j.cfg.EditCost
	return v
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
