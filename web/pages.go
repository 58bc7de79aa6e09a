package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"skillmaster/plot"
	"skillmaster/report"
	"skillmaster/store"
	"skillmaster/train"
)

// look opens the run that an address names.
func (s *Server) look(r *http.Request) (*runView, *store.Run, error) {
	w, err := s.runs.get(r.PathValue("run"))
	if err != nil {
		return nil, nil, err
	}
	h, run, err := w.follow(r.Context())
	if err != nil {
		return nil, nil, err
	}
	return s.viewOf(w.name, h), run, nil
}

func (s *Server) viewOf(name string, h *report.History) *runView {
	v := &runView{Name: name, History: h, State: "training"}
	if h.Finished() {
		v.State = "finished"
	}
	for _, f := range h.Findings(s.now()) {
		if f.Severity > report.Note {
			v.Findings++
		}
		if strings.HasPrefix(f.Title, "The run is not finished") {
			v.State = "stopped"
		}
	}
	return v
}

// homeRow is a run on the first page.
type homeRow struct {
	*runView
	Name      string
	Trouble   string // it cannot be read, and why
	Done, All int
	Success   float64
	Known     bool // Success is
	Curve     []float64
	Score     *train.Summary // of the last held-out panel
}

func (s *Server) home(r *http.Request) (view, error) {
	var rows []homeRow
	for _, w := range s.runs.all() {
		h, _, err := w.follow(r.Context())
		if err != nil {
			rows = append(rows, homeRow{Name: w.name, Trouble: err.Error()})
			continue
		}
		row := homeRow{runView: s.viewOf(w.name, h), Name: w.name, Done: len(h.Learning()), All: h.Train.Iterations}
		row.Success, row.Known = h.Recent("action/success", 5)
		row.Curve = h.Curve("action/success")
		if v := h.Valid(); len(v) > 0 {
			score := v[len(v)-1].Summary()
			row.Score = &score
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b homeRow) int { // newest first, unreadable last
		switch {
		case a.runView == nil || b.runView == nil:
			return len(a.Trouble) - len(b.Trouble)
		default:
			return b.Manifest.Created.Compare(a.Manifest.Created)
		}
	})
	return view{page: "home", Title: "Runs", Body: rows}, nil
}

type comparison struct {
	Runs     []*runView
	Others   []string // runs that could be compared, too
	Charts   []plot.Chart
	Settings []report.Setting // those that differ
	Tests    []pairOfRuns
}

type pairOfRuns struct {
	A, B  string
	Tests []report.Paired // none: there is nothing to pair
}

func (s *Server) compare(r *http.Request) (view, error) {
	names := r.URL.Query()["run"]
	c := comparison{}
	var hs []*report.History
	for _, w := range s.runs.all() {
		h, _, err := w.follow(r.Context())
		if !slices.Contains(names, w.name) {
			if err == nil {
				c.Others = append(c.Others, w.name)
			}
			continue
		}
		if err != nil {
			return view{}, err
		}
		c.Runs, hs = append(c.Runs, s.viewOf(w.name, h)), append(hs, h)
	}
	if len(hs) > 8 {
		return view{}, fmt.Errorf("%w: at most eight runs can be told apart in one picture", errNotFound)
	}
	if len(hs) > 0 {
		c.Charts = report.Overlay(hs)
		var err error
		if c.Settings, err = report.Differences(hs); err != nil {
			return view{}, err
		}
		for i := 1; i < len(hs); i++ {
			c.Tests = append(c.Tests, pairOfRuns{hs[0].Name, hs[i].Name, s.pairs.of(hs[0], hs[i])})
		}
	}
	return view{page: "compare", Title: "Compare runs", Body: c}, nil
}

// pairs keeps the tests of two runs for as long as neither is evaluated again: resampling takes longer than a page may.
type pairs struct {
	mu   sync.Mutex
	kept map[[2]string]tested
}

type tested struct {
	of    [2][]store.Evaluated
	tests []report.Paired
}

func (p *pairs) of(a, b *report.History) []report.Paired {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := [2]string{a.Name, b.Name}
	if k, ok := p.kept[key]; ok && same(k.of[0], a.Evaluations) && same(k.of[1], b.Evaluations) {
		return k.tests
	}
	tests := report.Compare(a, b)
	if p.kept == nil {
		p.kept = map[[2]string]tested{}
	}
	p.kept[key] = tested{[2][]store.Evaluated{a.Evaluations, b.Evaluations}, tests}
	return tests
}

// same says whether two slices are one: a history that goes on with nothing new keeps the slice that it had.
func same(a, b []store.Evaluated) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

type overviewBody struct {
	Charts   []plot.Chart
	Left     string
	Speed    float64
	HasSpeed bool
	Success  float64
	Known    bool
	Score    *train.Summary
	Best     *train.Summary
	Findings []report.Finding
	Rounds   []store.Numbers // the newest first
	Doing    string
}

func (s *Server) overview(r *http.Request) (view, error) {
	v, _, err := s.look(r)
	if err != nil {
		return view{}, err
	}
	b := overviewBody{Charts: v.Charts(), Doing: s.runs.progress(v.Name)}
	for _, f := range v.History.Findings(s.now()) {
		if f.Severity > report.Note {
			b.Findings = append(b.Findings, f)
		}
	}
	if d, ok := v.Left(); ok && v.State == "training" {
		b.Left = duration(d)
	}
	b.Speed, b.HasSpeed = v.Speed()
	b.Success, b.Known = v.Recent("action/success", 5)
	for _, e := range v.Valid() {
		x := e.Summary()
		b.Score = &x
		if b.Best == nil || x.Rate > b.Best.Rate {
			b.Best = &x
		}
	}
	rounds := v.Learning()
	if len(rounds) == 0 {
		rounds = v.Warm()
	}
	b.Rounds = slices.Clone(rounds[max(0, len(rounds)-12):])
	slices.Reverse(b.Rounds)
	return view{page: "overview", Title: v.Name, Run: v, Tab: "overview", Body: b}, nil
}

func (s *Server) health(r *http.Request) (view, error) {
	v, _, err := s.look(r)
	if err != nil {
		return view{}, err
	}
	return view{page: "health", Title: "Health", Run: v, Tab: "health", Body: v.History.Findings(s.now())}, nil
}

// pager is an iteration that is looked at, and those beside it.
type pager struct {
	Iteration, Report int // counted from 0; the report that has it
	First, Last       int
	base              string
}

// Address is that of the page of an iteration; empty if there is none.
func (p pager) Address(iteration int) string {
	if iteration < p.First || iteration > p.Last {
		return ""
	}
	return p.base + "?iteration=" + strconv.Itoa(iteration+1)
}

// Back is the address of the iteration before.
func (p pager) Back() string { return p.Address(p.Iteration - 1) }

// Forth is the address of the iteration after.
func (p pager) Forth() string { return p.Address(p.Iteration + 1) }

// turn finds the iteration that an address asks for: the last one if it asks for none.
func turn(r *http.Request, v *runView, base string) (pager, error) {
	p := pager{base: base}
	l := v.Learning()
	if len(l) == 0 {
		return p, nil
	}
	p.First, p.Last = l[0].Round.Round, l[len(l)-1].Round.Round
	n, err := asked(r, "iteration", p.Last+1)
	if err != nil {
		return p, err
	}
	p.Iteration = n - 1
	if p.Report = v.ReportOf(p.Iteration); p.Report == 0 {
		return p, fmt.Errorf("%w: the run has iterations %d to %d", errNotFound, p.First+1, p.Last+1)
	}
	return p, nil
}

// groupRow is a group of trajectories of one task.
type groupRow struct {
	Group   int
	Task    string
	Goal    string
	Family  string
	Members []store.Played
}

// Won counts the successes.
func (g groupRow) Won() int {
	n := 0
	for _, m := range g.Members {
		if m.Success {
			n++
		}
	}
	return n
}

type trajectoriesBody struct {
	pager
	Groups           []groupRow
	Families         []string
	Family, Show     string // what is shown: every group, or those with some episodes won and some lost
	Episodes, Winner int
}

func (s *Server) trajectories(r *http.Request) (view, error) {
	v, run, err := s.look(r)
	if err != nil {
		return view{}, err
	}
	b := trajectoriesBody{Family: r.URL.Query().Get("family"), Show: r.URL.Query().Get("show")}
	if b.pager, err = turn(r, v, address(v.Name, "trajectories")); err != nil {
		return view{}, err
	}
	if b.Report > 0 {
		played, err := run.Trajectories(r.Context(), b.Report)
		if err != nil {
			return view{}, err
		}
		b.group(played)
		for i, g := range b.Groups { // goals stand in the records alone
			t, err := run.Trajectory(r.Context(), b.Report, g.Group, g.Members[0].Member)
			if err != nil {
				return view{}, err
			}
			b.Groups[i].Goal = t.Task.Goal
		}
	}
	return view{page: "trajectories", Title: "Trajectories", Run: v, Tab: "trajectories", Prev: b.Back(), Next: b.Forth(), Body: b}, nil
}

// group gathers the episodes of an iteration by group and keeps those that are asked for.
func (b *trajectoriesBody) group(played []store.Played) {
	var all []groupRow
	for _, p := range played {
		if len(all) == 0 || all[len(all)-1].Group != p.Group {
			all = append(all, groupRow{Group: p.Group, Task: p.Task, Family: p.Family})
		}
		g := &all[len(all)-1]
		g.Members = append(g.Members, p)
		if !slices.Contains(b.Families, p.Family) {
			b.Families = append(b.Families, p.Family)
		}
	}
	slices.Sort(b.Families)
	for _, g := range all {
		mixed := g.Won() > 0 && g.Won() < len(g.Members)
		if b.Family != "" && g.Family != b.Family || b.Show == "mixed" && !mixed || b.Show == "lost" && g.Won() == len(g.Members) {
			continue
		}
		b.Groups = append(b.Groups, g)
		b.Episodes += len(g.Members)
		b.Winner += g.Won()
	}
}

type evaluationsBody struct {
	Rows  []evaluationRow // the newest first
	Cells []cellRow
	More  string // the command that plays a panel
}

type evaluationRow struct {
	store.Evaluated
	train.Summary
	Cell      string
	Iteration int // 0: before learning; -1: apart from training
}

// cellRow is a panel in its four cells, each by its newest evaluation.
type cellRow struct {
	Panel string
	Cells [2][2]*evaluationRow // retrieval on and off, bank frozen and online
}

func (s *Server) evaluations(r *http.Request) (view, error) {
	v, run, err := s.look(r)
	if err != nil {
		return view{}, err
	}
	b := evaluationsBody{More: report.CommandLine([]string{"skillmaster", "eval", "--run", run.Dir()})}
	for _, e := range slices.Backward(v.Evaluations) {
		row := evaluationRow{Evaluated: e, Summary: e.Summary(), Cell: report.Cell(e.Evaluation), Iteration: -1}
		if e.Report > 0 {
			row.Iteration = 0
			if i, ok := v.Iteration(e.Report); ok {
				row.Iteration = i + 1
			}
		}
		b.Rows = append(b.Rows, row)
		b.cell(row)
	}
	return view{page: "evaluations", Title: "Evaluation", Run: v, Tab: "evaluations", Body: b}, nil
}

func (b *evaluationsBody) cell(row evaluationRow) {
	i := slices.IndexFunc(b.Cells, func(c cellRow) bool { return c.Panel == row.Panel })
	if i < 0 {
		i = len(b.Cells)
		b.Cells = append(b.Cells, cellRow{Panel: row.Panel})
	}
	y, x := 1, 0
	if row.Retrieval {
		y = 0
	}
	if row.Online {
		x = 1
	}
	if c := &b.Cells[i].Cells[y][x]; *c == nil {
		*c = &row
	}
}

type evaluationBody struct {
	evaluationRow
	Families []train.Summary
	Drawing  []plot.Interval
	Results  []train.Result
	Show     string
}

func (s *Server) evaluation(r *http.Request) (view, error) {
	v, _, err := s.look(r)
	if err != nil {
		return view{}, err
	}
	id, err := number(r, "id")
	if err != nil {
		return view{}, err
	}
	i := slices.IndexFunc(v.Evaluations, func(e store.Evaluated) bool { return e.ID == id })
	if i < 0 {
		return view{}, errNotFound
	}
	e := v.Evaluations[i]
	b := evaluationBody{
		evaluationRow: evaluationRow{Evaluated: e, Summary: e.Summary(), Cell: report.Cell(e.Evaluation)},
		Families:      e.Summaries(), Drawing: report.Score(e.Evaluation, 0), Show: r.URL.Query().Get("show"),
	}
	for _, x := range e.Results {
		if b.Show == "lost" && x.Success || b.Show == "won" && !x.Success {
			continue
		}
		b.Results = append(b.Results, x)
	}
	out := view{page: "evaluation", Title: "Evaluation of " + e.Panel, Run: v, Tab: "evaluations", Body: b}
	if i > 0 {
		out.Prev = address(v.Name, "evaluations", v.Evaluations[i-1].ID)
	}
	if i+1 < len(v.Evaluations) {
		out.Next = address(v.Name, "evaluations", v.Evaluations[i+1].ID)
	}
	return out, nil
}

// address is that of a page about a run.
func address(run string, parts ...any) string {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = url.PathEscape(fmt.Sprint(p))
	}
	return "/runs/" + url.PathEscape(run) + "/" + strings.Join(escaped, "/")
}

// missing tells whether an error only says that something is not there.
func missing(err error) bool { return errors.Is(err, store.ErrNotFound) || errors.Is(err, errNotFound) }
