package report

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	texttemplate "text/template"
	"time"

	"skillmaster/plot"
	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/train"
)

//go:embed templates
var templates embed.FS

// Document is what one or several runs came to, to be read and printed. Fill in the exported fields.
type Document struct {
	Made    time.Time
	Program string
	Command []string
	Runs    []*History
	Digests []string // hashes over the records of the runs, by run
}

// Setting is a setting with its value in each run, as JSON; empty where a run does not have it.
type Setting struct {
	Key    string
	Values []string
}

// Scored is the newest evaluation of a panel in one cell by one run.
type Scored struct {
	Run string
	store.Evaluated
	train.Summary
	Cell string
}

// Seeds is the mean of a panel's score over runs that differ by their seed alone.
type Seeds struct {
	Runs            []string
	Panel, Cell     string
	Mean, Low, High float64
}

// Versus are the paired tests of a run against the first one.
type Versus struct {
	A, B  string
	Tests []Paired
}

// Figure is a drawing with its title.
type Figure struct {
	Title string
	File  string // name beside a Markdown document
	SVG   string
}

// Several tells whether runs are set side by side.
func (d Document) Several() bool { return len(d.Runs) > 1 }

// Title names the document.
func (d Document) Title() string {
	names := make([]string, len(d.Runs))
	for i, h := range d.Runs {
		names[i] = h.Name
	}
	return "Report: " + strings.Join(names, ", ")
}

// Scores are the newest evaluations, by panel, cell and run.
func (d Document) Scores() []Scored {
	var out []Scored
	for _, h := range d.Runs {
		newest := map[string]store.Evaluated{}
		var order []string
		for _, e := range h.Evaluations {
			key := fmt.Sprint(e.Panel, e.PanelHash, Cell(e.Evaluation), e.Constrained)
			if _, seen := newest[key]; !seen {
				order = append(order, key)
			}
			newest[key] = e
		}
		for _, key := range order {
			e := newest[key]
			out = append(out, Scored{h.Name, e, e.Summary(), Cell(e.Evaluation)})
		}
	}
	slices.SortStableFunc(out, func(a, b Scored) int {
		return strings.Compare(a.Panel+a.PanelHash+a.Cell, b.Panel+b.PanelHash+b.Cell)
	})
	return out
}

// Families are the scores by family of each newest evaluation.
func (s Scored) Families() []train.Summary {
	if all := s.Summaries(); len(all) > 2 {
		return all[1:]
	}
	return nil // one family is the whole
}

// Figures are the curves, and the scores with their intervals.
func (d Document) Figures() []Figure {
	var charts []plot.Chart
	switch len(d.Runs) {
	case 0:
	case 1:
		charts = d.Runs[0].Charts()
	default:
		charts = Overlay(d.Runs)
	}
	out := make([]Figure, 0, len(charts)+1)
	add := func(title, svg string) {
		out = append(out, Figure{title, fmt.Sprintf("%02d-%s.svg", len(out)+1, slug(title)), svg})
	}
	for _, g := range d.intervals() {
		add(g.title, plot.Intervals(g.title, g.rows))
	}
	for _, c := range charts {
		add(c.Title, c.SVG())
	}
	return out
}

// scores are intervals of one drawing.
type scores struct {
	title string
	rows  []plot.Interval
}

// intervals are the panel scores: of one run in one drawing, of several in one for each panel and cell, where names of
// runs have room.
func (d Document) intervals() []scores {
	var out []scores
	class := map[string]int{}
	for i, h := range d.Runs {
		class[h.Name] = i
	}
	panel := ""
	for _, s := range d.Scores() {
		title, name := "Panel scores, 95 % intervals", s.Panel+", "+strings.TrimSuffix(s.Cell, ", frozen bank")
		if d.Several() {
			title, name = fmt.Sprintf("Panel %s: %s, 95 %% intervals", s.Panel, s.Cell), s.Run
		}
		if len(out) == 0 || out[len(out)-1].title != title {
			out = append(out, scores{title: title})
		}
		g := &out[len(out)-1]
		g.rows = append(g.rows, plot.Interval{
			Name: name, Value: s.Rate, Low: s.Low, High: s.High, Class: class[s.Run], Note: fmt.Sprintf("%d of %d", s.Summary.Success, s.Tasks),
			Apart: len(g.rows) > 0 && panel != s.Panel,
		})
		panel = s.Panel
	}
	return out
}

// slug is a title as part of a file name.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}

// Against are the paired tests of every further run against the first.
func (d Document) Against() []Versus {
	var out []Versus
	for i := 1; i < len(d.Runs); i++ {
		if tests := Compare(d.Runs[0], d.Runs[i]); len(tests) > 0 {
			out = append(out, Versus{d.Runs[0].Name, d.Runs[i].Name, tests})
		}
	}
	return out
}

// OverSeeds are the means over runs that differ by their seed alone, with Student's interval between runs.
func (d Document) OverSeeds() ([]Seeds, error) {
	groups := map[string][]string{}
	for _, h := range d.Runs {
		flat, err := settings(h)
		if err != nil {
			return nil, err
		}
		delete(flat, "train.seed")
		key, err := json.Marshal(flat)
		if err != nil {
			return nil, err
		}
		groups[string(key)] = append(groups[string(key)], h.Name)
	}
	var out []Seeds
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		names := groups[key]
		if len(names) < 2 {
			continue
		}
		rates := map[string][]float64{}
		var order []Scored
		for _, s := range d.Scores() {
			if slices.Contains(names, s.Run) {
				id := s.Panel + s.PanelHash + s.Cell
				if rates[id] == nil {
					order = append(order, s)
				}
				rates[id] = append(rates[id], s.Rate)
			}
		}
		for _, s := range order {
			if r := rates[s.Panel+s.PanelHash+s.Cell]; len(r) == len(names) {
				mean, low, high := MeanInterval(r)
				out = append(out, Seeds{names, s.Panel, s.Cell, mean, low, high})
			}
		}
	}
	return out, nil
}

// Differences lists the settings in which runs differ.
func Differences(hs []*History) ([]Setting, error) {
	all := map[string][]string{}
	for i, h := range hs {
		flat, err := settings(h)
		if err != nil {
			return nil, err
		}
		for k, v := range flat {
			if all[k] == nil {
				all[k] = make([]string, len(hs))
			}
			all[k][i] = v
		}
	}
	var out []Setting
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if slices.ContainsFunc(all[k], func(v string) bool { return v != all[k][0] }) {
			out = append(out, Setting{k, all[k]})
		}
	}
	return out, nil
}

// Differences lists the settings in which the document's runs differ.
func (d Document) Differences() ([]Setting, error) { return Differences(d.Runs) }

// settings are a run's settings, one for each leaf.
func settings(h *History) (map[string]string, error) {
	var config any
	if err := json.Unmarshal(h.Manifest.Config, &config); err != nil {
		return nil, fmt.Errorf("settings of %s: %w", h.Name, err)
	}
	flat := map[string]string{}
	flatten("", config, flat)
	return flat, nil
}

func flatten(prefix string, v any, to map[string]string) {
	if m, ok := v.(map[string]any); ok {
		for k, x := range m {
			flatten(strings.TrimPrefix(prefix+"."+k, "."), x, to)
		}
		return
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was JSON a moment ago
	}
	to[prefix] = string(b)
}

// Skills are the skills of a run's current bank with the evidence of the commit that last touched each.
func (h *History) Skills() []SkillRow {
	bank, _ := h.Bank(h.Head)
	uses := h.UseBySkill()
	var out []SkillRow
	for _, s := range bank.Skills() {
		row := SkillRow{Skill: s, Use: uses[s.ID]}
		for _, c := range slices.Backward(h.Commits) {
			if h.Touches(c, s.ID) {
				row.Commit = &c
				break
			}
		}
		out = append(out, row)
	}
	return out
}

// SkillRow is a skill with what is known of it.
type SkillRow struct {
	skill.Skill
	Use    Use
	Commit *store.Entry // that last touched it; nil: it was there from the start
}

// Touches tells whether a commit made, changed or removed a skill.
func (h *History) Touches(c store.Entry, id string) bool {
	before, _ := h.Bank(c.Parent)
	old, was := before.Skill(id)
	now, is := c.Commit.Bank.Skill(id)
	return was != is || old != now
}

var shared = map[string]any{
	"percent": func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) },
	"number":  plot.Short,
	"signed":  func(v float64) string { return fmt.Sprintf("%+.3f", v) },
	"points":  func(v float64) string { return fmt.Sprintf("%+.1f", 100*v) },
	"p":       pValue,
	"date":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
	"command": CommandLine,
	"inc":     func(n int) int { return n + 1 },
	"plain":   func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	"share": func(part, all int) string {
		if all == 0 {
			return "–"
		}
		return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(all))
	},
}

func pValue(p float64) string {
	if p < 0.001 {
		return "< 0.001"
	}
	return fmt.Sprintf("%.3f", p)
}

// CommandLine is a command line as a shell takes it.
func CommandLine(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if strings.IndexFunc(w, func(r rune) bool {
			return !strings.ContainsRune("-_=./:,+@%", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) >= 0 || w == "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}

var htmlReport = template.Must(template.New("report.html").Funcs(shared).Funcs(template.FuncMap{
	"svg": func(f Figure) template.HTML { return template.HTML(f.SVG) }, // plot escapes all text
	"css": func() template.CSS { return template.CSS(plot.Style) },
}).ParseFS(templates, "templates/report.html"))

// HTML writes the document as one file that needs no other.
func (d Document) HTML(w io.Writer) error { return htmlReport.Execute(w, d) }

var markdownReport = texttemplate.Must(texttemplate.New("report.md").Funcs(shared).Funcs(texttemplate.FuncMap{"md": markdown, "code": code}).ParseFS(templates, "templates/report.md"))

// Markdown writes the document; figures is the folder in which it finds its Figures, empty for none.
func (d Document) Markdown(w io.Writer, figures string) error {
	return markdownReport.Execute(w, struct {
		Document
		Folder string
	}{d, figures})
}

// markdown makes any text one line that stands for itself, also inside a table.
func markdown(v any) string {
	text := strings.Join(strings.Fields(fmt.Sprint(v)), " ")
	var b strings.Builder
	for _, r := range text {
		switch {
		case strings.ContainsRune("<>&", r):
			b.WriteString("&#" + strconv.Itoa(int(r)) + ";")
		case strings.ContainsRune("\\`*_[]|!#~$", r):
			b.WriteRune('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// code is a text as it is, in code; bars would end a table's cell.
func code(v any) string {
	text := strings.ReplaceAll(strings.Join(strings.Fields(fmt.Sprint(v)), " "), "|", "\\|")
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if fence == "`" {
		return fence + text + fence
	}
	return fence + " " + text + " " + fence
}
