package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"skillmaster/episode"
	"skillmaster/probe"
	"skillmaster/rollout"
	"skillmaster/skill"
)

// play is how probes are played. A probe whose world or policy breaks twice is not measured.
func play(p *rollout.Player) probe.Play {
	return func(ctx context.Context, a probe.Arm) (episode.Trajectory, error) {
		start := rollout.Start{Task: a.Task, Bank: a.Bank, Must: a.Must, Seed: a.Seed}
		t, err := p.Play(ctx, start)
		if rollout.Broke(err) {
			if t, err = p.Play(ctx, start); rollout.Broke(err) {
				err = errors.Join(probe.ErrUnplayable, err)
			}
		}
		return t, err
	}
}

// candidate is the bank with the edit applied, and where to look for its effect: first the given family, then the
// others that retrieve from the edited skill's category. Where skills are retrieved by their condition, only tasks that the edited
// one speaks of come into question. false if the edit does not apply.
func (t *Trainer) candidate(bank skill.Bank, e skill.Edit, permit skill.Permission, family string, panel map[string][]episode.Task) (probe.Candidate, bool) {
	after, outcome := bank.Apply(e, permit)
	if outcome != skill.Added && outcome != skill.Updated {
		return probe.Candidate{}, false
	}
	c := probe.Candidate{Skill: after.Changed(bank)}
	c.Bank, _ = after.Supersede(c.Skill) // what it contradicts steps aside: the arms decide which of them is right
	edited, ok := after.Skill(c.Skill)
	if !ok {
		return probe.Candidate{}, false
	}
	related := func(family string) []episode.Task {
		if t.Config.Rollout.RetrieveBy != skill.Matched {
			return panel[family]
		}
		var out []episode.Task
		for _, task := range panel[family] {
			if edited.Applies(task.Goal) {
				out = append(out, task)
			}
		}
		return out
	}
	c.Tasks = append(c.Tasks, related(family))
	categories := t.Suite.Guide().Categories
	shelves := []string{edited.Category}
	if edited.Category == skill.General {
		shelves = slices.Sorted(maps.Keys(categories))
	}
	for _, shelf := range shelves {
		for _, f := range categories[shelf] {
			if f != family {
				c.Tasks = append(c.Tasks, related(f))
			}
		}
	}
	return c, true
}

// judge gives every edit of the groups a verdict, by group and member.
func (t *Trainer) judge(ctx context.Context, p *rollout.Player, s *state, r *Report, seed episode.Seed) ([][]probe.Verdict, error) {
	cfg := t.Config.Probe
	cfg.Horizon = t.Suite.Guide().Horizon
	panel := byFamily(t.Panels.Probe)
	verdicts := make([][]probe.Verdict, len(r.Groups))
	var candidates []probe.Candidate
	for m := range t.Config.Group { // members in turn, so that a limit on candidates spreads over the groups
		for g, group := range r.Groups {
			if m == 0 {
				verdicts[g] = make([]probe.Verdict, len(group.Trajectories))
			}
			tr := group.Trajectories[m]
			if tr.Review == nil || !changes(tr.Review.Outcome) {
				continue
			}
			c, ok := t.candidate(s.Bank, tr.Review.Edit, rollout.Permit(tr), tr.Task.Family, panel)
			if !ok {
				continue
			}
			c.Source = tr.Task.ID
			candidates = append(candidates, c)
			r.Judgements = append(r.Judgements, Judgement{Group: g, Member: m, Edit: tr.Review.Edit})
		}
	}
	judge := probe.NewJudge(play(p), cfg, t.Workers)
	vs, err := judge.Judge(ctx, s.Bank, candidates, seed.Derive("probes"))
	if err != nil {
		return nil, err
	}
	for i := range r.Judgements {
		j := &r.Judgements[i]
		j.Verdict = vs[i]
		verdicts[j.Group][j.Member] = vs[i]
	}
	probeMetrics(r.Metrics, vs, judge)
	return verdicts, nil
}

// gate tests edits on the gate panel and commits those that pass.
func (t *Trainer) gate(ctx context.Context, p *rollout.Player, s *state, r *Report, seed episode.Seed) error {
	r.Metrics["gate/admitted"] = float64(t.admit(s, r))
	r.Metrics["gate/pending"] = float64(len(s.Gate.Pending))
	r.Metrics["gate/spent"] = s.Gate.Spent
	if len(s.Gate.Pending) == 0 {
		return nil
	}
	cfg := t.Config.Probe
	// Evidence is paired and takes every pair, however edits are rewarded.
	cfg.Horizon, cfg.Tasks, cfg.Candidates, cfg.Stop = t.Suite.Guide().Horizon, t.Config.Gate.Tasks, 0, 0
	cfg.Independent, cfg.Replay, cfg.Fixed = false, false, false
	judge := probe.NewJudge(play(p), cfg, t.Workers)
	panel := byFamily(t.Panels.Gate)
	var candidates []probe.Candidate
	var tested []probe.Pending
	for _, q := range s.Gate.Pending {
		permit := skill.Permission{Shown: s.Bank.IDs(), Category: q.Provenance.Category}
		c, ok := t.candidate(s.Bank, q.Edit, permit, q.Provenance.Family, panel)
		if !ok {
			r.Tests = append(r.Tests, Test{Pending: q, Verdict: probe.NotMeasured("the edit no longer applies"), Decision: probe.Reject, Why: "another commit has made it meaningless"})
			continue
		}
		candidates, tested = append(candidates, c), append(tested, q)
	}
	vs, err := judge.Judge(ctx, s.Bank, candidates, seed.Derive("gate"))
	if err != nil {
		return err
	}
	var left []probe.Pending
	for i, q := range tested {
		test := t.decide(s, r, q.Add(vs[i]), vs[i])
		if test.Decision == probe.Undecided {
			left = append(left, test.Pending)
		}
		r.Tests = append(r.Tests, test)
	}
	rejected := 0
	for _, test := range r.Tests {
		if test.Decision == probe.Reject {
			rejected++
		}
	}
	s.Gate.Pending = left
	r.Metrics["gate/played"] = float64(judge.Played)
	r.Metrics["gate/rejected"] = float64(rejected)
	r.Metrics["gate/committed"] = float64(len(r.Commits))
	return nil
}

// decide says what becomes of a pending edit after this iteration's pairs, and commits it if it passes.
func (t *Trainer) decide(s *state, r *Report, q probe.Pending, v probe.Verdict) Test {
	test := Test{Pending: q, Verdict: v, Decision: t.Config.Gate.Decide(q)}
	switch test.Decision {
	case probe.Undecided:
		if !v.Measured { // nothing on the gate panel tells: it would be in the way of others for good
			test.Decision, test.Why = probe.Reject, "no gate task could measure it: "+v.Why
		}
	case probe.Reject:
		test.Why = "it does harm"
		if q.Pairs >= t.Config.Gate.Pairs {
			test.Why = "it has not passed after all its pairs"
		}
	case probe.Commit:
		if !t.commit(s, r, q) {
			test.Decision, test.Why = probe.Reject, "another commit has made it meaningless"
		}
	default:
		panic(fmt.Sprintf("train: gate decided %v", test.Decision))
	}
	return test
}

// admit puts the best judged edits under test, as room and budget allow, and says how many.
func (t *Trainer) admit(s *state, r *Report) (admitted int) {
	best := slices.Clone(r.Judgements)
	slices.SortStableFunc(best, func(a, b Judgement) int {
		switch x, y := a.Verdict.Utility, b.Verdict.Utility; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	for _, j := range best {
		if !j.Verdict.Measured || j.Verdict.Mean <= 0 || j.Verdict.Wins <= j.Verdict.Losses {
			continue
		}
		if j.Edit.Op == skill.Propose && t.full(s) {
			continue
		}
		tr, v := r.Groups[j.Group].Trajectories[j.Member], j.Verdict
		var ok bool
		s.Gate, ok = s.Gate.Admit(t.Config.Gate, probe.Pending{Edit: j.Edit, Provenance: skill.Provenance{
			Iteration: s.Round, Task: tr.Task.ID, Family: tr.Task.Family, Category: tr.Task.Category,
			Seed: uint64(tr.Seed), Group: j.Group, Member: j.Member, PolicyVersion: tr.PolicyVersion,
			Verdict: skill.Verdict{Pairs: len(v.Pairs), Wins: v.Wins, Losses: v.Losses, MeanDelta: v.Mean, Utility: v.Utility},
		}})
		if ok {
			admitted++
		}
	}
	return admitted
}

// commit makes a tested edit part of the bank. An edit that the commits before it have made meaningless is not.
func (t *Trainer) commit(s *state, r *Report, q probe.Pending) bool {
	after, outcome := s.Bank.Apply(q.Edit, skill.Permission{Shown: s.Bank.IDs(), Category: q.Provenance.Category})
	if !changes(outcome) {
		return false
	}
	changed := after.Changed(s.Bank)
	after, gone := after.Supersede(changed)
	p := q.Provenance
	if q.Pairs > 0 {
		p.Evidence = skill.Evidence{Pairs: q.Pairs, Wins: q.Wins, Losses: q.Losses, MeanDelta: q.Mean(), EValue: probe.EValue(q.Wins, q.Losses)}
	}
	r.Commits = append(r.Commits, skill.Commit{
		Parent: s.Bank.Hash(), Hash: after.Hash(), Edit: q.Edit, Outcome: outcome, Superseded: gone, Provenance: p,
		Reason: fmt.Sprintf("gate %s", t.Config.Gate.Rule), Bank: after,
	})
	for _, id := range append(gone, changed) { // effects of old words, or of skills that are no longer there
		s.Effects = s.Effects.Forget(id)
	}
	s.Bank = after
	return true
}
