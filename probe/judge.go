package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skillmaster/episode"
	"skillmaster/skill"

	"golang.org/x/sync/errgroup"
)

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

// NewJudge returns a judge that plays at most workers episodes at once. It panics without a horizon: no delta would be a
// number.
func NewJudge(play Play, cfg Config, workers int) *Judge {
	if cfg.Horizon < 1 {
		panic(fmt.Sprintf("probe: a horizon of %d steps", cfg.Horizon))
	}
	return &Judge{play: play, cfg: cfg, workers: max(1, workers), before: map[key]played{}}
}

// Value is what a play is worth to the judge.
func (j *Judge) Value(s Score) float64 { return j.cfg.Value(s) }

// Draw chooses k probe tasks, going round the families: the first one first, the others in an order that the seed gives, so
// that where there are more than k of them, each has its turn over the iterations. No task comes twice, for a second play
// under the same seed says nothing that the first did not: fewer than k are drawn where there are no more. The draw depends
// on the seed and the lists alone, and goes round families alike for all, so that candidates share their probes.
func Draw(families [][]episode.Task, k int, s episode.Seed) []episode.Task {
	var order [][]episode.Task
	longest, own := 0, 0
	for i, f := range families {
		if len(f) == 0 {
			continue
		}
		if i == 0 {
			own = 1
		}
		perm := s.Derive("probe/" + f[0].Family).Rand().Perm(len(f))
		shuffled := make([]episode.Task, len(f))
		for i, p := range perm {
			shuffled[i] = f[p]
		}
		order = append(order, shuffled)
		longest = max(longest, len(f))
	}
	turn := func(f []episode.Task) episode.Seed { return s.Derive("probe turn/" + f[0].Family) }
	slices.SortStableFunc(order[own:], func(a, b []episode.Task) int { return cmp.Compare(turn(a), turn(b)) })
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

// played is what is kept of an arm.
type played struct {
	score  Score
	shown  []string // skills in its prompt
	broken bool     // it could not be played
}

// trial is a candidate under judgement.
type trial struct {
	Candidate
	number uint64 // among the candidates of the call
	tasks  []episode.Task
	done   int // tasks of which both arms are known
	after  []played
	Verdict
}

// open tells whether there is more to play.
func (t *trial) open(c Config) bool {
	return t.Why == "" && t.done < len(t.tasks) && !c.clear(t.Wins, t.Losses)
}

// Judge gives a verdict on each candidate for the bank they were made from. Both arms of a probe use the same task and
// seed (common random numbers); before arms are played once for all candidates, but for those of a changed skill, which
// has a slot of its own in them; identical candidates are judged once. All plays of the call run as one batch; with
// Config.Stop, as one batch for each look, and what a stopped candidate has left is not played. The seed is the
// iteration's.
func (j *Judge) Judge(ctx context.Context, bank skill.Bank, cs []Candidate, s episode.Seed) ([]Verdict, error) {
	trials, same := j.enter(cs, s)
	for {
		var open []*trial
		for _, t := range trials {
			if t.open(j.cfg) {
				open = append(open, t)
			}
		}
		if len(open) == 0 {
			break
		}
		if err := j.wave(ctx, bank, open, s); err != nil {
			return nil, err
		}
	}
	verdicts := make([]Verdict, len(cs))
	for i := range cs {
		verdicts[i] = j.verdict(trials[same[i]])
	}
	return verdicts, nil
}

// enter makes a trial of each candidate that differs from those before it, and says which one is whose.
func (j *Judge) enter(cs []Candidate, s episode.Seed) (trials []*trial, same []int) {
	first := map[string]int{} // candidate → its trial
	judged := 0
	for i, c := range cs {
		t := &trial{Candidate: c, number: uint64(i), tasks: j.draw(c, s)}
		name := nameOf(c.Bank, t.tasks)
		if k, seen := first[name]; seen && !j.cfg.Replay {
			same = append(same, k)
			continue
		}
		switch {
		case len(t.tasks) == 0:
			t.Verdict = NotMeasured("no probe task")
		case j.cfg.Candidates > 0 && judged >= j.cfg.Candidates:
			t.Verdict = NotMeasured("more candidates than the iteration judges")
		default:
			judged++
		}
		first[name] = len(trials)
		same = append(same, len(trials))
		trials = append(trials, t)
	}
	return trials, same
}

// draw chooses a candidate's probes.
func (j *Judge) draw(c Candidate, s episode.Seed) []episode.Task {
	if j.cfg.Fixed {
		return Draw(c.Tasks[:min(1, len(c.Tasks))], j.cfg.Tasks, episode.Seed(0).Derive("probes of "+c.Source))
	}
	return Draw(c.Tasks, j.cfg.Tasks, s)
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

// beforeArm is the before arm of a trial's probe. Where the edit changes a skill, the skill as it was has the slot that it
// has after: the arms differ by its words, not by whether it stands in the prompt.
func (j *Judge) beforeArm(bank skill.Bank, t *trial, task episode.Task, s episode.Seed) (Arm, key) {
	a := Arm{Task: task, Bank: bank, Seed: seedOf(s, task.ID)}
	if j.cfg.Replay {
		a.Seed = a.Seed.Derive("played for", t.number)
	}
	if _, old := bank.Skill(t.Skill); old {
		a.Must = t.Skill
	}
	return a, key{bank.Hash(), task.ID, a.Must, a.Seed}
}

// afterArm is the other one.
func (j *Judge) afterArm(before Arm, t *trial) Arm {
	a := Arm{Task: before.Task, Bank: t.Bank, Must: t.Skill, Seed: before.Seed}
	if j.cfg.Independent {
		a.Seed = a.Seed.Derive("after", t.number)
	}
	return a
}

// wave plays the next probes of the given trials, as one batch: what is missing of the before arms, and the after arms.
func (j *Judge) wave(ctx context.Context, bank skill.Bank, trials []*trial, s episode.Seed) error {
	type play struct {
		arm Arm
		to  *played
	}
	var plays []play
	wanted := map[key]*played{}
	for _, t := range trials {
		tasks := t.tasks[t.done:min(len(t.tasks), t.done+j.cfg.wave())]
		t.after = make([]played, len(tasks))
		for k, task := range tasks {
			arm, b := j.beforeArm(bank, t, task, s)
			_, known := j.before[b]
			if wanted[b] != nil || known {
				j.Reused++
			} else {
				wanted[b] = new(played)
				plays = append(plays, play{arm, wanted[b]})
			}
			plays = append(plays, play{j.afterArm(arm, t), &t.after[k]})
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
		return err
	}
	j.Played += len(plays)
	for b, p := range wanted {
		j.before[b] = *p
	}
	for _, t := range trials {
		j.count(bank, t, s)
	}
	return nil
}

// count adds what the wave showed to a trial's evidence.
func (j *Judge) count(bank skill.Bank, t *trial, s episode.Seed) {
	for k, after := range t.after {
		task := t.tasks[t.done+k]
		arm, b := j.beforeArm(bank, t, task, s)
		before := j.before[b]
		switch {
		case after.broken || before.broken:
			t.Broken++
			continue
		case !slices.Contains(after.shown, t.Skill):
			t.Hidden++
			continue
		}
		p := Pair{Task: task.ID, Seed: arm.Seed, Before: before.score, After: after.score}
		if other := j.afterArm(arm, t).Seed; other != arm.Seed {
			p.Other = other
		}
		p.Delta = j.cfg.Value(p.After) - j.cfg.Value(p.Before)
		t.add(p)
	}
	t.done += len(t.after)
}

// verdict is what became of a trial.
func (j *Judge) verdict(t *trial) Verdict {
	v := t.Verdict
	switch {
	case v.Why != "":
		return v
	case len(v.Pairs) > 0:
		v.Measured, v.Unplayed = true, len(t.tasks)-t.done
		v.Utility = j.cfg.utility(v)
	case v.Broken > 0:
		v.Why = "no probe could be played with the edited skill in its prompt"
	default:
		v.Why = "the edited skill stood in no probe's prompt"
	}
	return v
}
