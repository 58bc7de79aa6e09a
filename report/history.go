// Package report tells what runs came to: curves, panel scores with intervals, paired tests between runs, and what
// needs attention; as values, and as pages (HTML, Markdown) that stand alone.
package report

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"skillmaster/episode"
	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/train"
)

// History is what a run has recorded, but for its trajectories and judgements, as it was at one moment. Nobody changes
// one after it was made.
type History struct {
	Name        string
	Manifest    store.Manifest
	Train       train.Config // from the manifest's config
	Rounds      []store.Numbers
	Families    []store.Tally
	Uses        []store.Tally
	Evaluations []store.Evaluated
	Tests       []store.Tested // of edits at the gate
	Commits     []store.Entry
	Head        string // hash of the current bank

	learning int // index in Rounds of the first iteration
}

// Source is a run's records; a *store.Run is one.
type Source interface {
	Manifest(ctx context.Context) (store.Manifest, error)
	Numbers(ctx context.Context, after int) ([]store.Numbers, error)
	Families(ctx context.Context, after int) ([]store.Tally, error)
	Uses(ctx context.Context, after int) ([]store.Tally, error)
	Tests(ctx context.Context, after int) ([]store.Tested, error)
	EvaluationsAfter(ctx context.Context, id int) ([]store.Evaluated, error)
	Commits(ctx context.Context) ([]store.Entry, error)
	Head(ctx context.Context) (string, error)
}

// Read reads a run's history; name is what it is called in pages.
func Read(ctx context.Context, run Source, name string) (*History, error) {
	h := &History{Name: name}
	var err error
	if h.Manifest, err = run.Manifest(ctx); err != nil {
		return nil, err
	}
	config := struct {
		Train *train.Config `json:"train"`
	}{&h.Train}
	if err := json.Unmarshal(h.Manifest.Config, &config); err != nil {
		return nil, fmt.Errorf("settings of %s: %w", name, err)
	}
	h.Head = h.Manifest.Bank.Hash()
	return h.Follow(ctx, run)
}

// Follow returns the history with what was recorded since; h itself if nothing was. Rounds that were taken back are
// noticed, and everything is read again.
func (h *History) Follow(ctx context.Context, run Source) (*History, error) {
	last, lastRound := 0, store.Numbers{}
	if n := len(h.Rounds); n > 0 {
		lastRound = h.Rounds[n-1]
		last = lastRound.Report
	}
	rounds, err := run.Numbers(ctx, last-1)
	if err != nil {
		return nil, err
	}
	next := *h
	switch {
	case last > 0 && (len(rounds) == 0 || rounds[0].Kept != lastRound.Kept):
		next.Rounds, next.Families, next.Uses, next.Tests, next.Evaluations, last = nil, nil, nil, nil, nil, 0
		if rounds, err = run.Numbers(ctx, 0); err != nil {
			return nil, err
		}
	case last > 0:
		rounds = rounds[1:]
	}
	return next.extend(ctx, run, rounds, last, h)
}

// extend appends what came after the report last to a copy of the history before.
func (h History) extend(ctx context.Context, run Source, rounds []store.Numbers, last int, before *History) (*History, error) {
	lastEvaluation := 0
	if n := len(h.Evaluations); n > 0 {
		lastEvaluation = h.Evaluations[n-1].ID
	}
	evaluations, err := run.EvaluationsAfter(ctx, lastEvaluation)
	if err != nil {
		return nil, err
	}
	head, err := run.Head(ctx)
	if err != nil {
		return nil, err
	}
	if len(rounds) == 0 && len(evaluations) == 0 && head == before.Head && len(h.Rounds) == len(before.Rounds) {
		return before, nil
	}
	families, err := run.Families(ctx, last)
	if err != nil {
		return nil, err
	}
	uses, err := run.Uses(ctx, last)
	if err != nil {
		return nil, err
	}
	tests, err := run.Tests(ctx, last)
	if err != nil {
		return nil, err
	}
	if h.Commits, err = run.Commits(ctx); err != nil {
		return nil, err
	}
	h.Head = head
	h.Rounds = append(slices.Clip(h.Rounds), rounds...)
	if n := len(h.Rounds); n > 0 {
		last = h.Rounds[n-1].Report
	}
	later := func(t store.Tally) bool { return t.Report > last } // kept between two of the queries above: next time
	h.Families = append(slices.Clip(h.Families), slices.DeleteFunc(families, later)...)
	h.Uses = append(slices.Clip(h.Uses), slices.DeleteFunc(uses, later)...)
	h.Tests = append(slices.Clip(h.Tests), slices.DeleteFunc(tests, func(t store.Tested) bool { return t.Report > last })...)
	h.Evaluations = append(slices.Clip(h.Evaluations), evaluations...)
	h.learning = len(h.Rounds)
	for i, r := range h.Rounds {
		if r.Phase != train.WarmStart {
			h.learning = i
			break
		}
	}
	return &h, nil
}

// Warm are the rounds of the warm start.
func (h *History) Warm() []store.Numbers { return h.Rounds[:h.learning] }

// Learning are the iterations.
func (h *History) Learning() []store.Numbers { return h.Rounds[h.learning:] }

// Finished tells whether every iteration that was asked for is done.
func (h *History) Finished() bool {
	l := h.Learning()
	return h.Train.Iterations > 0 && len(l) > 0 && l[len(l)-1].Round.Round+1 >= h.Train.Iterations
}

// Last is when the run last recorded anything; its making if nothing yet.
func (h *History) Last() time.Time {
	if n := len(h.Rounds); n > 0 {
		return h.Rounds[n-1].Kept.Kept
	}
	return h.Manifest.Created
}

// Left is how long the rest of the current phase takes at the pace of its last rounds; false if that cannot be told.
func (h *History) Left() (time.Duration, bool) {
	rounds, todo := h.Learning(), h.Train.Iterations
	done := len(rounds)
	if done == 0 {
		rounds = h.Warm()
		done = len(rounds)
		if h.Train.Warm.Round > 0 {
			todo = (h.Train.Warm.Updates + h.Train.Warm.Round - 1) / h.Train.Warm.Round
		}
	} else {
		done = rounds[done-1].Round.Round + 1
	}
	recent := rounds[max(0, len(rounds)-10):]
	if len(recent) == 0 || done >= todo {
		return 0, false
	}
	var seconds float64
	for _, r := range recent {
		for _, s := range r.Seconds {
			seconds += s
		}
	}
	return time.Duration(seconds / float64(len(recent)) * float64(todo-done) * float64(time.Second)), true
}

// Recent is the mean of a metric over the last n iterations that have it; false if none has.
func (h *History) Recent(key string, n int) (float64, bool) {
	l := h.Learning()
	sum, count := 0.0, 0.0
	for _, r := range l[max(0, len(l)-n):] {
		if v, ok := r.Metrics[key]; ok {
			sum += v
			count++
		}
	}
	return sum / count, count > 0
}

// Valid are the evaluations made while training, of the panel that chooses the best checkpoint.
func (h *History) Valid() []store.Evaluated {
	var out []store.Evaluated
	for _, e := range h.Evaluations {
		if e.Report > 0 {
			out = append(out, e)
		}
	}
	return out
}

// Iteration is the iteration of a report, and whether it is one.
func (h *History) Iteration(report int) (int, bool) {
	i, found := slices.BinarySearchFunc(h.Rounds, report, func(r store.Numbers, seq int) int { return r.Report - seq })
	if !found || i < h.learning {
		return 0, false
	}
	return h.Rounds[i].Round.Round, true
}

// ReportOf is the report of an iteration, 0 if there is none.
func (h *History) ReportOf(iteration int) int {
	for _, r := range h.Learning() {
		if r.Round.Round == iteration {
			return r.Report
		}
	}
	return 0
}

// Bank is a version of the bank: the one the run began with (Commit nil) or one that was committed.
func (h *History) Bank(hash string) (skill.Bank, bool) {
	if h.Manifest.Bank.Hash() == hash {
		return h.Manifest.Bank, true
	}
	for _, c := range h.Commits {
		if c.Hash == hash {
			return c.Commit.Bank, true
		}
	}
	return skill.Bank{}, false
}

// TestsOf are the tests of the edit that the review of the episode with this iteration and seed wrote.
func (h *History) TestsOf(iteration int, seed episode.Seed) []store.Tested {
	var out []store.Tested
	for _, t := range h.Tests {
		if from := t.Pending.Provenance; from.Iteration == iteration && from.Seed == uint64(seed) {
			out = append(out, t)
		}
	}
	return out
}

// Use is how often a skill stood in prompts, and how its episodes ended, beside those without it in the same rounds and
// families. Seen, not caused: which tasks show a skill is no accident.
type Use struct {
	Episodes, Success         int
	OthersEpisodes, OthersWon int
}

// UseBySkill sums uses up over all rounds.
func (h *History) UseBySkill() map[string]Use {
	type cell struct {
		report int
		family string
	}
	all := make(map[cell]store.Tally, len(h.Families))
	for _, t := range h.Families {
		all[cell{t.Report, t.Family}] = t
	}
	out := map[string]Use{}
	for _, t := range h.Uses {
		u := out[t.Skill]
		u.Episodes += t.Episodes
		u.Success += t.Success
		whole := all[cell{t.Report, t.Family}]
		u.OthersEpisodes += whole.Episodes - t.Episodes
		u.OthersWon += whole.Success - t.Success
		out[t.Skill] = u
	}
	return out
}

// Cell names how an evaluation was made.
func Cell(e train.Evaluation) string {
	retrieval, bank := "no retrieval", "frozen bank"
	if e.Retrieval {
		retrieval = "retrieval"
	}
	if e.Online {
		bank = "online bank"
	}
	return retrieval + ", " + bank
}

// seedOf is the seed of what is drawn for a page about a run.
func seedOf(hs ...*History) episode.Seed {
	s := episode.Seed(0)
	for _, h := range hs {
		s = s.Derive("report", uint64(h.Manifest.Seed))
	}
	return s
}
