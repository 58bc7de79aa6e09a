// Package train is the loop: play, review, judge, learn, commit.
package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"skillmaster/chat"
	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/grpo"
	"skillmaster/policy"
	"skillmaster/probe"
	"skillmaster/rollout"
	"skillmaster/skill"
)

// Trainer trains one policy on one suite. Set the fields, then call Run once. Not safe for concurrent use.
type Trainer struct {
	Config    Config
	Suite     env.Suite
	Panels    Panels
	Learner   policy.Learner
	Context   int // most ids of a sequence the learner takes
	Tokenizer *chat.Tokenizer
	Template  chat.Template
	Bank      skill.Bank // to start with
	Workers   int        // most episodes played at once
	Keeper    Keeper
	Observers []Observer
	Progress  func(Progress) // told often, from one goroutine at a time; nil: nobody
	Log       *slog.Logger
	Now       func() time.Time
}

// Progress says where a run is.
type Progress struct {
	Phase Phase
	Round int
	Part  string // what is being done: rollout, probe, gate, update, evaluate
	Done  int    // of Total; updates in the warm start, iterations in learning
	Total int
}

// state is what changes from round to round.
type state struct {
	Checkpoint
	sampler policy.Sampler
}

// Run goes on from a checkpoint (the zero Checkpoint: from the start, with Trainer.Bank) to the end of the run. The
// Learner must be in the checkpoint's state. When ctx ends, Run returns its error; what was kept can be resumed.
func (t *Trainer) Run(ctx context.Context, from Checkpoint) error {
	if err := t.Config.Validate(); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if err := t.Panels.Validate(); err != nil {
		return err
	}
	s := &state{Checkpoint: from}
	defer s.closeSampler()
	if from.Phase == WarmStart && from.Round == 0 {
		s.Bank = t.Bank
	}
	if s.Phase == WarmStart {
		if err := t.warmStart(ctx, s); err != nil {
			return fmt.Errorf("warm start: %w", err)
		}
	}
	for s.Phase == Learning {
		if err := t.iterate(ctx, s); err != nil {
			return fmt.Errorf("iteration %d: %w", s.Round, err)
		}
	}
	return nil
}

func (t *Trainer) seed() episode.Seed { return episode.Seed(t.Config.Seed) }

func (t *Trainer) progress(s *state, part string, done, total int) {
	if t.Progress != nil {
		t.Progress(Progress{Phase: s.Phase, Round: s.Round, Part: part, Done: done, Total: total})
	}
}

// player is the policy as it is now, with its learner's newest weights.
func (t *Trainer) player(ctx context.Context, s *state) (*rollout.Player, error) {
	sampler, err := t.Learner.Sampler(ctx)
	if err != nil {
		return nil, err
	}
	s.closeSampler()
	s.sampler = sampler
	return &rollout.Player{Suite: t.Suite, Policy: policy.NewChat(sampler, t.Tokenizer, t.Template), Config: t.Config.Rollout}, nil
}

// closeSampler frees the caches of the sampler in use, if it has any; nothing is asked of it any more.
func (s *state) closeSampler() {
	if c, ok := s.sampler.(interface{ Close() error }); ok {
		_ = c.Close() // nothing is lost by a sampler that does not close
	}
	s.sampler = nil
}

// keep stores a report with its checkpoint and tells the observers.
func (t *Trainer) keep(ctx context.Context, s *state, r Report) error {
	r.PolicyVersion, r.Bank = s.PolicyVersion, s.Bank.Hash()
	if err := t.Keeper.Keep(ctx, r, &s.Checkpoint, func(w io.Writer) error { return t.Learner.Save(ctx, w) }); err != nil {
		return fmt.Errorf("keep the run: %w", err)
	}
	var errs []error
	for _, o := range t.Observers {
		errs = append(errs, o.Observe(ctx, r))
	}
	return errors.Join(errs...)
}

// timer adds the wall time of parts to a report.
type timer struct {
	now  func() time.Time
	last time.Time
	into map[string]float64
}

func (t *Trainer) timer(r *Report) *timer {
	r.Seconds = map[string]float64{}
	return &timer{now: t.Now, last: t.Now(), into: r.Seconds}
}

func (t *timer) lap(part string) {
	n := t.now()
	t.into["time/"+part+"_seconds"] += n.Sub(t.last).Seconds()
	t.last = n
}

// warmStart clones demonstrations, in rounds.
func (t *Trainer) warmStart(ctx context.Context, s *state) error {
	cfg := t.Config.Warm
	if cfg.Updates > 0 {
		w, err := newWarm(t.Config, t.Suite, t.Panels.Warm.Tasks, policy.NewChat(nil, t.Tokenizer, t.Template))
		if err != nil {
			return err
		}
		for s.Round*cfg.Round < cfg.Updates {
			if err := t.warmRound(ctx, s, w); err != nil {
				return err
			}
		}
	}
	r := Report{Phase: WarmStart, Round: s.Round}
	watch := t.timer(&r)
	s.Phase, s.Round, s.Restart = Learning, 0, true
	if t.Config.Iterations == 0 {
		s.Phase = Finished
	}
	if err := t.evaluate(ctx, s, &r); err != nil {
		return err
	}
	watch.lap("evaluate")
	return t.keep(ctx, s, r)
}

// warmRound makes some updates and keeps them.
func (t *Trainer) warmRound(ctx context.Context, s *state, w *warm) error {
	cfg := t.Config.Warm
	r := Report{Phase: WarmStart, Round: s.Round, Metrics: map[string]float64{}}
	watch := t.timer(&r)
	from := s.Round * cfg.Round
	to := min(cfg.Updates, from+cfg.Round)
	var tally warmTally
	demos, err := t.demonstrations(ctx, w, from)
	if err != nil {
		return err
	}
	for u := from; u < to; u++ {
		t.progress(s, "update", u, cfg.Updates)
		data, cut := cloneData(demos, cfg.Observation, t.Context)
		var stats policy.Stats
		var next []episode.Trajectory
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() (err error) {
			if stats, err = t.Learner.Update(ctx, data, cfg.optim(u)); err != nil {
				return fmt.Errorf("update %d: %w", u, err)
			}
			return nil
		})
		if u+1 < to { // the next update's, meanwhile
			g.Go(func() (err error) {
				next, err = t.demonstrations(ctx, w, u+1)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		s.PolicyVersion++
		s.Tokens += int64(stats.Tokens)
		tally.add(demos, cut, stats)
		demos = next
	}
	watch.lap("update")
	tally.metrics(r.Metrics)
	s.Round++
	return t.keep(ctx, s, r)
}

// demonstrations are those of update u: as many as make up its tokens.
func (t *Trainer) demonstrations(ctx context.Context, w *warm, u int) ([]episode.Trajectory, error) {
	var out []episode.Trajectory
	for tokens := 0; tokens < w.cfg.Tokens; {
		d, err := w.demonstration(ctx, t.seed().Derive("demonstration", uint64(u), uint64(len(out))))
		if err != nil {
			return nil, err
		}
		if d.Tokens() == 0 {
			return nil, fmt.Errorf("the expert had nothing to show on %s", d.Task.ID)
		}
		tokens += d.Tokens()
		out = append(out, d)
	}
	return out, nil
}

// iterate is one iteration: rollouts, verdicts, gate, update.
func (t *Trainer) iterate(ctx context.Context, s *state) error {
	r := Report{Phase: Learning, Round: s.Round, Metrics: map[string]float64{}}
	watch := t.timer(&r)
	seed := t.seed().Derive("iteration", uint64(s.Round))
	player, err := t.player(ctx, s)
	if err != nil {
		return err
	}
	t.progress(s, "rollout", s.Round, t.Config.Iterations)
	if r.Groups, err = t.rollouts(ctx, player, s, seed, r.Metrics); err != nil {
		return err
	}
	watch.lap("rollout")

	t.progress(s, "probe", s.Round, t.Config.Iterations)
	verdicts, err := t.judge(ctx, player, s, &r, seed)
	if err != nil {
		return err
	}
	watch.lap("probe")
	t.progress(s, "gate", s.Round, t.Config.Iterations)
	if err := t.gate(ctx, player, s, &r, seed); err != nil {
		return err
	}
	watch.lap("gate")

	t.progress(s, "update", s.Round, t.Config.Iterations)
	if err := t.learn(ctx, s, r.Groups, verdicts, r.Metrics); err != nil {
		return err
	}
	watch.lap("update")
	rolloutMetrics(r.Metrics, r.Groups)
	r.Metrics["bank/skills"] = float64(s.Bank.Len())

	s.Round++
	last := s.Round >= t.Config.Iterations
	if last || (t.Config.Evaluate > 0 && s.Round%t.Config.Evaluate == 0) {
		t.progress(s, "evaluate", s.Round, t.Config.Iterations)
		if err := t.evaluate(ctx, s, &r); err != nil {
			return err
		}
		watch.lap("evaluate")
	}
	if last {
		s.Phase = Finished
	}
	return t.keep(ctx, s, r)
}

// rollouts plays the iteration's groups. An episode whose world breaks is played once more, under another seed; if it
// breaks again, its group is left out and counted.
func (t *Trainer) rollouts(ctx context.Context, p *rollout.Player, s *state, seed episode.Seed, m map[string]float64) ([]episode.Group, error) {
	play := p.Play
	if t.Config.Review {
		play = p.PlayAndReview
	}
	n, g := t.Config.Tasks, t.Config.Group
	groups := make([]episode.Group, n)
	for i := range groups {
		task, err := pick(t.Suite, t.Panels.Train.Tasks, t.Config.Vary, seed.Derive("group", uint64(i)))
		if err != nil {
			return nil, err
		}
		groups[i] = episode.Group{Task: task}
	}
	broken := make([]error, n*g)
	attempt := func(ctx context.Context, i int, again uint64) (episode.Trajectory, error) {
		return play(ctx, rollout.Start{
			Task: groups[i/g].Task, Bank: s.Bank, Seed: seed.Derive("episode", uint64(i/g), uint64(i%g), again),
		})
	}
	ts, err := rollout.All(ctx, n*g, t.Workers, func(ctx context.Context, i int) (episode.Trajectory, error) {
		tr, err := attempt(ctx, i, 0)
		if errors.Is(err, rollout.ErrWorld) {
			if tr, err = attempt(ctx, i, 1); errors.Is(err, rollout.ErrWorld) {
				broken[i] = err
				return tr, nil
			}
		}
		return tr, err
	})
	if err != nil {
		return nil, err
	}
	var whole []episode.Group
	for i, group := range groups {
		if err := errors.Join(broken[i*g : (i+1)*g]...); err != nil {
			t.Log.Warn("group left out: its world broke twice", "task", group.Task.ID, "error", err)
			continue
		}
		group.Trajectories = ts[i*g : (i+1)*g]
		whole = append(whole, group)
	}
	m["rollout/groups_dropped"] = float64(n - len(whole))
	if len(whole) == 0 {
		return nil, fmt.Errorf("every group was left out: %w", errors.Join(broken...))
	}
	return whole, nil
}

// play is how probes are played. A probe whose world breaks twice is not measured.
func play(p *rollout.Player) probe.Play {
	return func(ctx context.Context, a probe.Arm) (episode.Trajectory, error) {
		start := rollout.Start{Task: a.Task, Bank: a.Bank, Must: a.Must, Seed: a.Seed}
		t, err := p.Play(ctx, start)
		if errors.Is(err, rollout.ErrWorld) {
			if t, err = p.Play(ctx, start); errors.Is(err, rollout.ErrWorld) {
				err = errors.Join(probe.ErrUnplayable, err)
			}
		}
		return t, err
	}
}

// candidate is the bank with the edit applied, and where to look for its effect: first the given family, then the
// others that retrieve from the edited skill's category. false if the edit does not apply.
func (t *Trainer) candidate(bank skill.Bank, e skill.Edit, permit skill.Permission, family string, panel map[string][]episode.Task) (probe.Candidate, bool) {
	after, outcome := bank.Apply(e, permit)
	if outcome != skill.Added && outcome != skill.Updated {
		return probe.Candidate{}, false
	}
	c := probe.Candidate{Bank: after, Skill: after.Changed(bank), Tasks: [][]episode.Task{panel[family]}}
	edited, ok := after.Skill(c.Skill)
	if !ok {
		return probe.Candidate{}, false
	}
	categories := t.Suite.Guide().Categories
	shelves := []string{edited.Category}
	if edited.Category == skill.General {
		shelves = slices.Sorted(maps.Keys(categories))
	}
	for _, shelf := range shelves {
		for _, f := range categories[shelf] {
			if f != family {
				c.Tasks = append(c.Tasks, panel[f])
			}
		}
	}
	return c, true
}

// judge gives every edit of the groups a verdict, by group and member.
func (t *Trainer) judge(ctx context.Context, p *rollout.Player, s *state, r *Report, seed episode.Seed) ([][]probe.Verdict, error) {
	guide := t.Suite.Guide()
	cfg := t.Config.Probe
	cfg.Horizon = guide.Horizon
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
			c, ok := t.candidate(s.Bank, tr.Review.Edit, rollout.Permit(guide, tr), tr.Task.Family, panel)
			if !ok {
				continue
			}
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
	cfg.Horizon, cfg.Tasks, cfg.Candidates = t.Suite.Guide().Horizon, t.Config.Gate.Tasks, 0
	judge := probe.NewJudge(play(p), cfg, t.Workers)
	panel := byFamily(t.Panels.Gate)
	var candidates []probe.Candidate
	var tested []probe.Pending
	for _, q := range s.Gate.Pending {
		permit := skill.Permission{Shown: s.Bank.IDs(), Category: q.Provenance.Category}
		if c, ok := t.candidate(s.Bank, q.Edit, permit, q.Provenance.Family, panel); ok {
			candidates, tested = append(candidates, c), append(tested, q)
		}
	}
	vs, err := judge.Judge(ctx, s.Bank, candidates, seed.Derive("gate"))
	if err != nil {
		return err
	}
	var left []probe.Pending
	rejected := len(s.Gate.Pending) - len(tested) // the bank has changed so that they no longer apply
	for i, q := range tested {
		q = q.Add(vs[i])
		switch d := t.Config.Gate.Decide(q); d {
		case probe.Undecided:
			if !vs[i].Measured { // nothing on the gate panel tells: it would be in the way of others for good
				rejected++
				continue
			}
			left = append(left, q)
		case probe.Reject:
			rejected++
		case probe.Commit:
			if !t.commit(s, r, q) {
				rejected++
			}
		default:
			panic(fmt.Sprintf("train: gate decided %v", d))
		}
	}
	s.Gate.Pending = left
	r.Metrics["gate/played"] = float64(judge.Played)
	r.Metrics["gate/rejected"] = float64(rejected)
	r.Metrics["gate/committed"] = float64(len(r.Commits))
	return nil
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
		tr := r.Groups[j.Group].Trajectories[j.Member]
		var ok bool
		s.Gate, ok = s.Gate.Admit(t.Config.Gate, probe.Pending{Edit: j.Edit, Provenance: skill.Provenance{
			Iteration: s.Round, Task: tr.Task.ID, Family: tr.Task.Family, Category: tr.Task.Category,
			Seed: uint64(tr.Seed), PolicyVersion: tr.PolicyVersion,
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
	p := q.Provenance
	if q.Pairs > 0 {
		p.Evidence = skill.Evidence{Pairs: q.Pairs, Wins: q.Wins, Losses: q.Losses, MeanDelta: q.Mean(), EValue: probe.EValue(q.Wins, q.Losses)}
	}
	r.Commits = append(r.Commits, skill.Commit{
		Parent: s.Bank.Hash(), Hash: after.Hash(), Edit: q.Edit, Outcome: outcome, Provenance: p,
		Reason: fmt.Sprintf("gate %s", t.Config.Gate.Rule), Bank: after,
	})
	s.Bank = after
	return true
}

// learn turns the groups into advantages and updates the policy.
func (t *Trainer) learn(ctx context.Context, s *state, groups []episode.Group, verdicts [][]probe.Verdict, m map[string]float64) error {
	cfg := t.Config.Learn
	worldSuccess := t.Suite.Guide().SuccessReward
	var streams streamTally
	parts := make([][]grpo.Datum, cfg.Updates)
	for u := range parts {
		var ts []episode.Trajectory
		var adv []grpo.Advantage
		for g := u; g < len(groups); g += cfg.Updates {
			returns := t.Config.Prices.returns(groups[g], verdicts[g], worldSuccess)
			a, stats, err := grpo.Advantages(returns, cfg.Variant, grpo.Options{ActionScale: t.Config.Prices.Success, ReviewScale: 1})
			if err != nil {
				return fmt.Errorf("advantages of %s: %w", groups[g].Task.ID, err)
			}
			streams.add(returns, stats)
			ts, adv = append(ts, groups[g].Trajectories...), append(adv, a...)
		}
		data, err := policyData(ts, adv, cfg.Aggregation, cfg.Lambda)
		if err != nil {
			return err
		}
		if cfg.Entropy == 0 {
			data = live(data)
		}
		parts[u] = data
	}
	streams.metrics(m)
	var tally updateTally
	for _, data := range parts {
		if len(data) == 0 {
			continue
		}
		o := cfg.optim(s.Round)
		o.Restart = s.Restart
		stats, err := t.Learner.Update(ctx, data, o)
		if err != nil {
			return fmt.Errorf("update: %w", err)
		}
		s.Restart = false
		s.PolicyVersion++
		s.Tokens += int64(stats.Tokens)
		tally.add(stats)
	}
	tally.metrics(m)
	return nil
}

// live leaves out rows with nothing to learn but entropy: every advantage is 0. Divisors have counted them already.
func live(data []grpo.Datum) []grpo.Datum {
	return slices.DeleteFunc(data, func(d grpo.Datum) bool {
		return !slices.ContainsFunc(d.Advantage, func(a float32) bool { return a != 0 })
	})
}

// evaluate plays the held-out panel and remembers the best score.
func (t *Trainer) evaluate(ctx context.Context, s *state, r *Report) error {
	player, err := t.player(ctx, s)
	if err != nil {
		return err
	}
	player.Config.Temperature = t.Config.EvaluateTemperature
	e, err := Evaluate(ctx, player, t.Panels.Valid, s.Bank, t.seed().Derive("valid"), t.Workers)
	if err != nil {
		return err
	}
	r.Evaluations = append(r.Evaluations, e)
	s.Best = max(s.Best, e.Summaries()[0].Rate)
	return nil
}
