// Package storetest makes runs for tests of what shows them: recorded like real ones, made up from a seed.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"skillmaster/episode"
	"skillmaster/probe"
	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/train"
)

// Shape says how large a made-up run is, and what its texts hold.
type Shape struct {
	Seed       episode.Seed
	Iterations int
	Tasks      int    // groups in an iteration
	Group      int    // episodes of a group
	Evaluate   int    // iterations between evaluations; 0: only at the end
	Panel      int    // tasks of an evaluation
	Text       string // put into every text that a policy, a world or a person can write
	Start      time.Time
}

// Families of the made-up world.
var Families = []string{"clean", "cool", "examine", "heat", "pick", "pick_two"}

// maker makes one run.
type maker struct {
	Shape
	rng  *rand.Rand
	bank skill.Bank
	gate probe.GateState
	now  time.Time
}

// Make records a run in dir and returns it, open for reading. Success rises over its iterations; now and then an edit
// is tested at the gate and committed.
func Make(ctx context.Context, dir string, s Shape) (*store.Run, error) {
	m := &maker{Shape: s, rng: s.Seed.Derive("storetest").Rand(), now: s.Start}
	config := train.Default()
	config.Iterations, config.Tasks, config.Group, config.Evaluate = s.Iterations, s.Tasks, s.Group, s.Evaluate
	body, err := json.Marshal(map[string]any{"note": s.Text, "train": config})
	if err != nil {
		return nil, err
	}
	run, err := store.Create(ctx, dir, store.Manifest{
		Program: "storetest" + s.Text, Config: body, Seed: s.Seed, World: "made up" + s.Text, Command: []string{"skillmaster", "train", s.Text},
		Panels: []store.Panel{store.PanelOf(episode.Panel{Name: "valid", Tasks: []episode.Task{{ID: "valid 1"}}})},
	}, m.clock)
	if err != nil {
		return nil, err
	}
	if err := m.rounds(ctx, run); err != nil {
		return nil, err
	}
	if err := run.Close(); err != nil {
		return nil, err
	}
	return store.View(ctx, dir, m.clock)
}

func (m *maker) clock() time.Time { return m.now }

func (m *maker) rounds(ctx context.Context, run *store.Run) error {
	for i := range 3 {
		m.now = m.now.Add(time.Minute)
		r := train.Report{Phase: train.WarmStart, Round: i, PolicyVersion: i, Bank: m.bank.Hash(), Metrics: map[string]float64{"learn/loss": 4 / float64(i+1), "learn/tokens": 1000, "warm/expert_success": 0.9}, Seconds: map[string]float64{"time/update_seconds": 10}}
		if err := run.Keep(ctx, r, nil, nil); err != nil {
			return err
		}
	}
	for i := range m.Iterations {
		m.now = m.now.Add(time.Minute)
		if err := run.Keep(ctx, m.iteration(i), m.checkpoint(i), func(w io.Writer) error { _, err := io.WriteString(w, "weights"); return err }); err != nil {
			return fmt.Errorf("iteration %d: %w", i, err)
		}
	}
	guest := proposal(9999, m.Text)
	guest.Category = skill.General
	if _, err := run.Propose(ctx, guest, "another agent"+m.Text); err != nil {
		return err
	}
	yes := true
	for _, f := range []store.Feedback{{Skills: []string{"dyn_001"}, Success: &yes, Note: m.Text}, {Skills: []string{"dyn_001"}, Author: m.Text}} {
		if err := run.Hear(ctx, f); err != nil {
			return err
		}
	}
	return run.Record(ctx, m.evaluation("report", m.Iterations, true), []string{"skillmaster", "eval", m.Text})
}

// checkpoint is the run's only one, at its end.
func (m *maker) checkpoint(i int) *train.Checkpoint {
	if i < m.Iterations-1 {
		return nil
	}
	return &train.Checkpoint{Phase: train.Learning, Round: i + 1, PolicyVersion: 3 + i, Bank: m.bank, Gate: m.gate}
}

// skillful is how likely an episode succeeds in an iteration.
func (m *maker) skillful(i int) float64 { return 0.2 + 0.7*float64(i)/float64(max(1, m.Iterations)) }

func (m *maker) iteration(i int) train.Report {
	r := train.Report{Phase: train.Learning, Round: i, PolicyVersion: 3 + i}
	for g := range m.Tasks {
		family := Families[g%len(Families)]
		task := episode.Task{ID: fmt.Sprintf("%s %d-%d%s", family, i, g, m.Text), Family: family, Category: "place", Goal: "put some keychain on the sidetable" + m.Text}
		group := episode.Group{Task: task}
		var credits []train.Credit
		for k := range m.Group {
			t := m.trajectory(task, i, g, k)
			group.Trajectories = append(group.Trajectories, t)
			credits = append(credits, train.Credit{Action: 10 * t.EnvReturn, ActionAdvantage: m.rng.NormFloat64(), Review: 0.1, Measured: k%2 == 0, ReviewAdvantage: m.rng.NormFloat64()})
			if t.Review.Outcome == skill.Added {
				r.Judgements = append(r.Judgements, train.Judgement{Group: g, Member: k, Edit: t.Review.Edit, Verdict: m.verdict(k)})
			}
		}
		r.Groups, r.Credits = append(r.Groups, group), append(r.Credits, credits)
	}
	m.test(&r, i)
	if m.Evaluate > 0 && (i+1)%m.Evaluate == 0 {
		r.Evaluations = []train.Evaluation{m.evaluation("valid", i, false)}
	}
	r.Bank = m.bank.Hash()
	m.numbers(&r, i)
	return r
}

func (m *maker) trajectory(task episode.Task, i, g, k int) episode.Trajectory {
	t := episode.Trajectory{
		Task: task, Seed: m.Seed.Derive("episode", uint64(i), uint64(g), uint64(k)), BankHash: m.bank.Hash(), PolicyVersion: 2 + i,
		ShownSkills: m.bank.IDs()[:min(4, m.bank.Len())], Success: m.rng.Float64() < m.skillful(i), Stop: episode.Horizon,
	}
	if t.Success {
		t.EnvReturn, t.Stop = 1, episode.Succeeded
	}
	for s := range 4 + m.rng.IntN(8) {
		said := fmt.Sprintf("<action>go to drawer %d</action>", s) + m.Text
		t.Steps = append(t.Steps, episode.Step{Action: episode.Action(said), Observation: "You arrive at the drawer. It is closed." + m.Text, Admissible: s%5 != 4, Malformed: s%7 == 6})
		t.Turns = append(t.Turns, episode.Turn{Continues: s > 0, Prompt: []int32{1, 2, 3}, Completion: []int32{4, 5, 6, 7}, LogProbs: []float32{-0.1, -1, -3, -0.01}, Shown: "You are in a room." + m.Text, Text: said})
	}
	edit := skill.Edit{Op: skill.Keep}
	outcome := skill.Kept
	if k%4 == 0 {
		edit = proposal(i*m.Tasks+g, m.Text)
		outcome = skill.Added
	}
	t.Turns = append(t.Turns, episode.Turn{Kind: episode.ReviewTurn, Continues: true, Prompt: []int32{8}, Completion: []int32{9, 10}, LogProbs: []float32{-0.2, -0.3}, Shown: "Review." + m.Text, Text: skill.FormatCall(edit) + m.Text})
	t.Review = &episode.Review{Edit: edit, Outcome: outcome, Fault: m.Text}
	return t
}

// proposal is an edit that repeats no other's words.
func proposal(n int, text string) skill.Edit {
	things := []string{"keychain", "apple", "lamp", "saucer", "towel", "mug", "knife", "book", "candle", "plate", "vase", "pencil", "spoon"}
	places := []string{"drawer", "shelf", "cabinet", "sink", "fridge", "desk", "bed", "sofa", "counter", "table", "dresser"}
	a, b := things[n%len(things)], places[n/len(things)%len(places)]
	return skill.Edit{
		Op: skill.Propose, Category: "place", Title: fmt.Sprintf("Number %d: the %s"+text, n, a), Principle: fmt.Sprintf("A %s numbered %d is found near the %s"+text, a, n, b),
		When: "the task names a " + a + text, Reason: "it was there" + text,
	}
}

func (m *maker) verdict(k int) probe.Verdict {
	if k%3 == 2 {
		return probe.NotMeasured("no probe task" + m.Text)
	}
	v := probe.Verdict{Measured: true}
	for p := range 4 {
		pair := probe.Pair{Task: fmt.Sprintf("probe %d%s", p, m.Text), Before: probe.Score{Success: m.rng.IntN(2) == 0, Steps: 5 + m.rng.IntN(20)}, After: probe.Score{Success: m.rng.IntN(3) > 0, Steps: 5 + m.rng.IntN(20)}}
		if pair.Before.Success != pair.After.Success {
			if pair.Delta = 1; pair.Before.Success {
				pair.Delta = -1
			}
		}
		switch {
		case pair.Delta > 0:
			v.Wins++
		case pair.Delta < 0:
			v.Losses++
		}
		v.Mean += pair.Delta / 4
		v.Pairs = append(v.Pairs, pair)
	}
	v.Utility = v.Mean + 0.3*float64(v.Wins-v.Losses)/4
	return v
}

// test puts the iteration's first edit under test every tenth iteration, and decides on it five iterations later.
func (m *maker) test(r *train.Report, i int) {
	if i%10 == 0 && len(r.Judgements) > 0 {
		j := r.Judgements[0]
		from := r.Groups[j.Group].Trajectories[j.Member]
		m.gate.Pending = []probe.Pending{{Edit: j.Edit, Provenance: skill.Provenance{Iteration: i, Task: from.Task.ID, Family: from.Task.Family, Category: from.Task.Category, Seed: uint64(from.Seed), PolicyVersion: from.PolicyVersion}}}
	}
	if len(m.gate.Pending) == 0 {
		return
	}
	v := m.verdict(0)
	t := train.Test{Pending: m.gate.Pending[0].Add(v), Verdict: v}
	m.gate.Pending = []probe.Pending{t.Pending}
	if i%10 == 5 {
		m.gate.Pending = nil
		t.Decision, t.Why = probe.Reject, "it has not passed after all its pairs"+m.Text
		permit := skill.Permission{Category: t.Pending.Provenance.Category, Limits: skill.Limits{Title: 1000, Principle: 1000, When: 1000}}
		if after, outcome := m.bank.Apply(t.Pending.Edit, permit); i%20 == 5 && outcome == skill.Added {
			t.Decision, t.Why = probe.Commit, ""
			from := t.Pending.Provenance
			from.Evidence = skill.Evidence{Pairs: t.Pending.Pairs, Wins: t.Pending.Wins, Losses: t.Pending.Losses, MeanDelta: t.Pending.Mean(), EValue: probe.EValue(t.Pending.Wins, t.Pending.Losses)}
			r.Commits = []skill.Commit{{Parent: m.bank.Hash(), Hash: after.Hash(), Edit: t.Pending.Edit, Outcome: outcome, Provenance: from, Reason: "gate e-process" + m.Text, Bank: after}}
			m.bank = after
		}
	}
	r.Tests = []train.Test{t}
}

func (m *maker) evaluation(panel string, i int, online bool) train.Evaluation {
	e := train.Evaluation{Panel: panel, PanelHash: "0123456789abcdef", Bank: m.bank.Hash(), PolicyVersion: 3 + i, Retrieval: true, Online: online, Temperature: 0.4}
	for k := range m.Panel {
		x := train.Result{Task: fmt.Sprintf("%s task %d%s", panel, k, m.Text), Family: Families[k%len(Families)], Success: m.rng.Float64() < m.skillful(i), Steps: 5 + m.rng.IntN(30), Stop: episode.Horizon, Actions: []episode.Action{"look", episode.Action("open drawer 1" + m.Text)}}
		if x.Success {
			x.Return, x.Stop = 1, episode.Succeeded
		}
		e.Results = append(e.Results, x)
	}
	return e
}

func (m *maker) numbers(r *train.Report, i int) {
	n := float64(m.Tasks * m.Group)
	r.Metrics = map[string]float64{
		"action/success": m.skillful(i), "action/return_mean": 10 * m.skillful(i), "action/return_sd": 3, "action/dead_share": 0.2, "action/steps_mean": 20, "action/inadmissible_share": 0.1, "action/malformed_share": 0.01,
		"review/return_mean": 0.1, "review/return_sd": 0.2, "review/dead_share": 0.1, "review/lone_share": 0.3, "review/outcome_kept": n * 3 / 4, "review/outcome_added": n / 4,
		"probe/edits": float64(len(r.Judgements)), "probe/utility_mean": 0.1 * m.rng.NormFloat64(), "probe/delta_mean": 0.1 * m.rng.NormFloat64(), "gate/committed": float64(len(r.Commits)), "gate/spent": 0.05 * float64(1+i/10), "gate/pending": 1,
		"bank/skills": float64(m.bank.Len()), "learn/tokens": 20000, "learn/loss": 0.01 * m.rng.NormFloat64(), "learn/grad_norm": 1, "learn/updates": 1, "learn/entropy": 0.5, "learn/kl_k3": 0.001 * float64(i), "learn/clip_share": 0.01, "learn/drift": 0.001,
		"rollout/episodes": n, "rollout/groups_dropped": 0, "rollout/tokens": 50000, "rollout/tokens_mean": 500, "rollout/stop_succeeded": n / 2, "rollout/stop_horizon": n / 2,
	}
	r.Seconds = map[string]float64{"time/rollout_seconds": 20, "time/probe_seconds": 10, "time/gate_seconds": 5, "time/update_seconds": 15, "time/evaluate_seconds": 1}
}
