package web

import (
	"context"
	"net/http"
	"slices"

	"skillmaster/plot"
	"skillmaster/probe"
	"skillmaster/report"
	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/train"
)

// skillCard is a skill of a bank with what is known of it.
type skillCard struct {
	skill.Skill
	Commits  []store.Entry // that made or changed it, the newest first
	Use      report.Use
	Dropout  *probe.FamilyEffect // what leaving it out now and then has shown; nil: nothing yet
	Heard    heard
	Pinned   bool
	Archived bool
}

// heard is what others say came of a skill.
type heard struct{ Uses, Known, Success int }

// Low is the lower end of the 95 % interval of the effect by dropout.
func (c skillCard) Low() float64 { return c.Dropout.Mean() - 1.96*c.Dropout.Error() }

// High is the upper end.
func (c skillCard) High() float64 { return c.Dropout.Mean() + 1.96*c.Dropout.Error() }

// Effect is the evidence of the newest commit of the skill that has some.
func (c skillCard) Effect() *skill.Evidence {
	for _, e := range c.Commits {
		if e.Provenance.Evidence.Pairs > 0 {
			return &e.Provenance.Evidence
		}
	}
	return nil
}

// shelf is a category of the bank.
type shelf struct {
	Category string
	Skills   []skillCard
}

// moment is a commit in the timeline.
type moment struct {
	store.Entry
	Changes []change
	Current bool
	Shown   bool // it is the bank that the page shows
}

type bankBody struct {
	Hash      string
	Current   bool
	Skills    int
	Shelves   []shelf
	Mistakes  []skill.Mistake
	Timeline  []moment // the newest first
	First     string   // hash of the bank the run began with
	FirstSize int
	Dir       string        // run directory, for commands
	Guests    []store.Guest // edits from outside, the newest first
}

// Rollback is the command that goes back to a bank.
func (b bankBody) Rollback(hash string) string {
	return report.CommandLine([]string{"skillmaster", "bank", "rollback", "--run", b.Dir, hash[:min(10, len(hash))]})
}

func (s *Server) bank(r *http.Request) (view, error) {
	v, run, err := s.look(r)
	if err != nil {
		return view{}, err
	}
	hash := r.URL.Query().Get("at")
	if hash == "" {
		hash = v.Head
	}
	bank, ok := v.Bank(hash)
	if !ok {
		return view{}, errNotFound
	}
	b := bankBody{
		Hash: hash, Current: hash == v.Head, Skills: bank.Len(), Mistakes: bank.Mistakes(), First: v.Manifest.Bank.Hash(),
		FirstSize: v.Manifest.Bank.Len(), Dir: run.Dir(),
	}
	effects, said, err := b.outside(r.Context(), run)
	if err != nil {
		return view{}, err
	}
	uses := v.UseBySkill()
	for _, x := range append(bank.Skills(), bank.Archived()...) {
		card := skillCard{Skill: x, Use: uses[x.ID], Heard: said[x.ID], Pinned: bank.Pinned(x.ID), Archived: !slices.Contains(bank.IDs(), x.ID)}
		if e, ok := effects.Of(x.ID); ok && e.All().Met() > 1 {
			all := e.All()
			card.Dropout = &all
		}
		name := x.Category
		if card.Archived {
			name = "archive"
		}
		for _, c := range slices.Backward(v.Commits) {
			if v.Touches(c, x.ID) {
				card.Commits = append(card.Commits, c)
			}
		}
		if n := len(b.Shelves); n == 0 || b.Shelves[n-1].Category != name {
			b.Shelves = append(b.Shelves, shelf{Category: name})
		}
		last := &b.Shelves[len(b.Shelves)-1]
		last.Skills = append(last.Skills, card)
	}
	for _, c := range slices.Backward(v.Commits) {
		before, _ := v.Bank(c.Parent)
		b.Timeline = append(b.Timeline, moment{c, changes(before, c.Commit.Bank), c.Hash == v.Head, c.Hash == hash})
	}
	return view{page: "bank", Title: "Bank", Run: v, Tab: "bank", Body: b}, nil
}

// outside reads what dropout has shown of the skills, what others say of them, and what they propose.
func (b *bankBody) outside(ctx context.Context, run *store.Run) (effects probe.Effects, said map[string]heard, err error) {
	saved, err := run.Checkpoints(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(saved) > 0 {
		effects = saved[0].Effects
	}
	if b.Guests, err = run.Guests(ctx); err != nil {
		return nil, nil, err
	}
	slices.Reverse(b.Guests)
	reports, err := run.Heard(ctx)
	if err != nil {
		return nil, nil, err
	}
	said = map[string]heard{}
	for _, f := range reports {
		for _, id := range f.Skills {
			h := said[id]
			h.Uses++
			if f.Success != nil {
				h.Known++
				if *f.Success {
					h.Success++
				}
			}
			said[id] = h
		}
	}
	return effects, said, nil
}

// editRow is an edit with its fate.
type editRow struct {
	train.Judgement
	Fate     report.Fate
	Task     string
	Family   string
	Category string
}

// testedRow is an edit that was put under test.
type testedRow struct {
	Pending   probe.Pending // the newest
	Fate      report.Fate
	Iteration int // in which it was written
	Address   string
	Curve     []float64 // evidence over its tests, logarithm
	E         float64
}

type editsBody struct {
	pager
	Rows   []editRow
	Tested []testedRow // the newest first
	Alpha  float64
}

func (s *Server) edits(r *http.Request) (view, error) {
	v, run, err := s.look(r)
	if err != nil {
		return view{}, err
	}
	b := editsBody{Alpha: v.Train.Gate.Alpha}
	if b.pager, err = turn(r, v, address(v.Name, "edits")); err != nil {
		return view{}, err
	}
	if b.Report > 0 {
		if b.Rows, err = editRows(r.Context(), run, v, b.pager); err != nil {
			return view{}, err
		}
	}
	if b.Tested, err = testedRows(r.Context(), run, v); err != nil {
		return view{}, err
	}
	return view{page: "edits", Title: "Edits", Run: v, Tab: "edits", Prev: b.Back(), Next: b.Forth(), Body: b}, nil
}

// editRows are the edits of an iteration.
func editRows(ctx context.Context, run *store.Run, v *runView, at pager) ([]editRow, error) {
	judgements, err := run.Judgements(ctx, at.Report)
	if err != nil {
		return nil, err
	}
	played, err := run.Trajectories(ctx, at.Report)
	if err != nil {
		return nil, err
	}
	by := map[place]store.Played{}
	for _, p := range played {
		by[place{at.Report, p.Group, p.Member}] = p
	}
	var out []editRow
	for _, j := range judgements {
		p := by[place{at.Report, j.Group, j.Member}]
		out = append(out, editRow{Judgement: j, Fate: report.FateOf(j, v.TestsOf(at.Iteration, p.Seed)), Task: p.Task, Family: p.Family})
	}
	slices.SortStableFunc(out, func(a, b editRow) int { // the most useful first, not measured last
		switch x, y := a.Verdict, b.Verdict; {
		case x.Measured != y.Measured && x.Measured, x.Measured && x.Utility > y.Utility:
			return -1
		case x.Measured != y.Measured, x.Utility < y.Utility:
			return 1
		}
		return 0
	})
	return out, nil
}

// testedRows are the edits that were ever under test.
func testedRows(ctx context.Context, run *store.Run, v *runView) ([]testedRow, error) {
	type name struct {
		iteration int
		seed      uint64
	}
	by := map[name][]store.Tested{}
	var order []name
	for _, t := range v.Tests {
		n := name{t.Pending.Provenance.Iteration, t.Pending.Provenance.Seed}
		if by[n] == nil {
			order = append(order, n)
		}
		by[n] = append(by[n], t)
	}
	var out []testedRow
	for _, n := range slices.Backward(order) {
		of := by[n]
		last := of[len(of)-1]
		row := testedRow{Pending: last.Pending, Fate: report.FateOfTests(of), Iteration: n.iteration, E: probe.EValue(last.Pending.Wins, last.Pending.Losses)}
		for _, t := range of {
			row.Curve = append(row.Curve, logarithm(probe.EValue(t.Pending.Wins, t.Pending.Losses)))
		}
		g, m, err := run.Seeded(ctx, v.ReportOf(n.iteration), n.seed)
		switch {
		case err == nil:
			row.Address = address(v.Name, "edits", v.ReportOf(n.iteration), g, m)
		case !missing(err):
			return nil, err
		}
		out = append(out, row)
	}
	return out, nil
}

type editBody struct {
	Judgement       train.Judgement
	Iteration       int
	Report          int
	Trajectory      store.Recorded
	Old             *skill.Skill // that it changes
	Changes         []change
	Fate            report.Fate
	Why             string
	Tests           []store.Tested
	Charts          []plot.Chart
	Alpha, EditCost float64
	Gate            probe.GateConfig
}

func (s *Server) edit(r *http.Request) (view, error) {
	v, run, err := s.look(r)
	if err != nil {
		return view{}, err
	}
	at, err := spot(r)
	if err != nil {
		return view{}, err
	}
	ctx := r.Context()
	judgements, err := run.Judgements(ctx, at.Report)
	if err != nil {
		return view{}, err
	}
	i := slices.IndexFunc(judgements, func(j train.Judgement) bool { return j.Group == at.Group && j.Member == at.Member })
	if i < 0 {
		return view{}, errNotFound
	}
	b := editBody{Judgement: judgements[i], Report: at.Report, Alpha: v.Train.Probe.Alpha, EditCost: v.Train.Probe.EditCost, Gate: v.Train.Gate}
	b.Iteration, _ = v.Iteration(at.Report)
	if b.Trajectory, err = run.Trajectory(ctx, at.Report, at.Group, at.Member); err != nil {
		return view{}, err
	}
	b.Tests = v.TestsOf(b.Iteration, b.Trajectory.Seed)
	if err := b.compare(ctx, run); err != nil {
		return view{}, err
	}
	b.Fate, b.Why = report.FateOf(b.Judgement, b.Tests), v.Why(b.Judgement, b.Tests)
	if len(b.Tests) > 0 {
		b.Charts = v.Evidence(b.Tests)
	}
	out := view{page: "edit", Title: "Edit: " + b.Judgement.Edit.Title, Run: v, Tab: "edits", Body: b}
	if i > 0 {
		out.Prev = address(v.Name, "edits", at.Report, judgements[i-1].Group, judgements[i-1].Member)
	}
	if i+1 < len(judgements) {
		out.Next = address(v.Name, "edits", at.Report, judgements[i+1].Group, judgements[i+1].Member)
	}
	return out, nil
}

// compare finds what the edit changes in the bank of its episode.
func (b *editBody) compare(ctx context.Context, run *store.Run) error {
	bank, err := run.Bank(ctx, b.Trajectory.BankHash)
	if missing(err) {
		return nil // a bank nobody committed: the words of the edit have to do
	}
	if err != nil {
		return err
	}
	permit := skill.Permission{Shown: bank.IDs(), Category: b.Trajectory.Task.Category}
	after, _ := bank.Apply(b.Judgement.Edit, permit)
	if old, ok := bank.Skill(after.Changed(bank)); ok {
		b.Old = &old
	}
	b.Changes = changes(bank, after)
	return nil
}

// place of a trajectory.
type place struct{ Report, Group, Member int }

func spot(r *http.Request) (p place, err error) {
	for _, f := range []struct {
		name string
		to   *int
	}{{"report", &p.Report}, {"group", &p.Group}, {"member", &p.Member}} {
		if *f.to, err = number(r, f.name); err != nil {
			return p, err
		}
	}
	return p, nil
}
