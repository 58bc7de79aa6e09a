package report

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"skillmaster/episode"
	"skillmaster/plot"
	"skillmaster/store"
	"skillmaster/store/storetest"
	"skillmaster/train"
)

func made(t testing.TB, name string, shape storetest.Shape) (*History, *store.Run) {
	t.Helper()
	root, err := os.MkdirTemp("/dev/shm", "skillmaster-") //nolint:usetesting // TempDir would be on the disk
	if err != nil {
		root = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	shape.Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run, err := storetest.Make(t.Context(), filepath.Join(root, name), shape)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	h, err := Read(t.Context(), run, name)
	if err != nil {
		t.Fatal(err)
	}
	return h, run
}

func small(seed episode.Seed) storetest.Shape {
	return storetest.Shape{Seed: seed, Iterations: 12, Tasks: 6, Group: 4, Evaluate: 4, Panel: 24}
}

// A history that follows its run equals one that is read anew, also after rounds were taken back.
func TestFollow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	run, err := store.Create(t.Context(), dir, store.Manifest{Config: []byte(`{"train":{"iterations":3}}`)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	h, err := Read(t.Context(), run, "run")
	if err != nil {
		t.Fatal(err)
	}
	keep := func(round int, success bool) {
		t.Helper()
		tr := episode.Trajectory{Task: episode.Task{ID: "t", Family: "f"}, Success: success, ShownSkills: []string{"s"}}
		r := train.Report{
			Phase: train.Learning, Round: round, Bank: h.Head, Metrics: map[string]float64{"action/success": 0.5}, Seconds: map[string]float64{"time/rollout_seconds": 2},
			Groups: []episode.Group{{Trajectories: []episode.Trajectory{tr}}}, Tests: []train.Test{{}},
			Evaluations: []train.Evaluation{{Panel: "valid", Results: []train.Result{{Task: "t", Success: success}}}},
		}
		if err := run.Keep(t.Context(), r, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	follow := func(rounds, won int) {
		t.Helper()
		before := h
		if h, err = h.Follow(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		fresh, err := Read(t.Context(), run, "run")
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Rounds) != rounds || len(h.Families) != rounds || len(h.Uses) != rounds || len(h.Tests) != rounds || len(h.Evaluations) != rounds || len(fresh.Rounds) != rounds {
			t.Errorf("%d rounds, %d families, %d uses, %d tests, %d evaluations, want %d of each", len(h.Rounds), len(h.Families), len(h.Uses), len(h.Tests), len(h.Evaluations), rounds)
		}
		if u := h.UseBySkill()["s"]; u.Success != won || u.Episodes != rounds {
			t.Errorf("uses are %+v, want %d won of %d", u, won, rounds)
		}
		if same, err := h.Follow(t.Context(), run); err != nil || same != h {
			t.Errorf("nothing is new, and another history comes: %v", err)
		}
		_ = before
	}
	keep(0, true)
	follow(1, 1)
	keep(1, false)
	keep(2, true)
	follow(3, 2)
	if !h.Finished() {
		t.Error("all iterations are done, and it is not finished")
	}
	if _, err := run.Rewind(t.Context(), store.Saved{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Millisecond) // rounds are told apart by when they were kept
	keep(0, false)
	follow(1, 0)
	if left, ok := h.Left(); !ok || left != 4*time.Second {
		t.Errorf("%v left (%v), want 4 s: two iterations of 2 s", left, ok)
	}
}

// Both forms of the document have what was promised, stand alone, and keep hostile text as text.
func TestDocument(t *testing.T) {
	a, _ := made(t, "first", small(1))
	hostile := small(2)
	hostile.Text = ` <xss>|"&` + "`" + `[x](http://evil)`
	b, _ := made(t, "second", hostile)
	for name, d := range map[string]Document{
		"one":  {Made: a.Last(), Program: "1", Command: []string{"skillmaster", "report", "a b"}, Runs: []*History{a}, Digests: []string{"abc"}},
		"two":  {Made: a.Last(), Program: "1", Runs: []*History{a, b}, Digests: []string{"abc", ""}},
		"none": {Made: a.Last()},
	} {
		t.Run(name, func(t *testing.T) {
			var page, text strings.Builder
			if err := d.HTML(&page); err != nil {
				t.Fatal(err)
			}
			if err := d.Markdown(&text, "plots"); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(page.String(), "<xss") || regexp.MustCompile(`(?i)<script|src=|href=|url\(`).MatchString(page.String()) {
				t.Error("the page has a tag of the text, or needs something else")
			}
			for _, line := range strings.Split(text.String(), "\n") {
				outside := regexp.MustCompile("``.*?``|`[^`]*`|\\\\.").ReplaceAllString(line, "")
				if strings.Contains(outside, "<xss") || strings.Contains(outside, "](http") {
					t.Errorf("Markdown has markup of the text: %s", line)
				}
			}
			if name == "none" {
				return
			}
			for _, want := range []string{"95 % interval", "frozen bank", "Bank of first", "skillmaster train"} {
				if !strings.Contains(page.String(), want) || !strings.Contains(text.String(), want) {
					t.Errorf("it does not say %q", want)
				}
			}
			if n := strings.Count(page.String(), "<svg"); n < 8 {
				t.Errorf("it has %d drawings", n)
			}
			for _, f := range d.Figures() {
				if !strings.Contains(text.String(), "plots/"+f.File) {
					t.Errorf("Markdown has no %s", f.File)
				}
			}
			tables(t, text.String())
			for _, g := range d.intervals() {
				seen := map[string]bool{}
				for _, r := range g.rows {
					if seen[r.Name] {
						t.Errorf("%s: two rows are called %s", g.title, r.Name)
					}
					seen[r.Name] = true
				}
			}
		})
	}
}

// tables checks that every row of a Markdown table has as many cells as its head.
func tables(t *testing.T, text string) {
	t.Helper()
	cells := 0
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if cells > 0 && n != cells {
			t.Errorf("a row of %d cells in a table of %d: %s", n-1, cells-1, line)
		}
		cells = n
	}
}

// Runs that differ by their seed alone are put together.
func TestOverSeeds(t *testing.T) {
	a, _ := made(t, "first", small(1))
	b, _ := made(t, "second", small(2))
	other := small(3)
	other.Group = 2
	c, _ := made(t, "third", other)
	got, err := Document{Runs: []*History{a, b, c}}.OverSeeds()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || len(got[0].Runs) != 2 || got[0].Runs[0] != "first" || got[0].Runs[1] != "second" || !(got[0].Low < got[0].Mean && got[0].Mean < got[0].High) {
		t.Errorf("%+v", got)
	}
	differ, err := Differences([]*History{a, c})
	if err != nil || len(differ) != 1 || differ[0].Key != "train.group" || differ[0].Values[0] != "4" || differ[0].Values[1] != "2" {
		t.Errorf("%+v, %v", differ, err)
	}
}

// Each finding is found where it should be, and a run that is well has none.
func TestFindings(t *testing.T) {
	h, _ := made(t, "first", small(1))
	if f := h.Findings(h.Last()); len(f) != 0 {
		t.Errorf("a run that is well: %+v", f)
	}
	last := h.Rounds[len(h.Rounds)-1]
	for want, set := range map[string]func(m map[string]float64){
		"Nearly all groups are dead":               func(m map[string]float64) { m["action/dead_share"] = 1 },
		"Nothing succeeds":                         func(m map[string]float64) { m["action/success"] = 0 },
		"Groups were left out":                     func(m map[string]float64) { m["rollout/groups_dropped"] = 1 },
		"Sampler and learner disagree":             func(m map[string]float64) { m["learn/drift"] = 1 },
		"An update gave no number":                 func(m map[string]float64) { delete(m, "learn/loss") },
		"The gate's budget is spent":               func(m map[string]float64) { m["gate/spent"] = 4 },
		"Episodes end for lack of room":            func(m map[string]float64) { m["rollout/stop_context full"] = 12 },
		"The policy hardly tries":                  func(m map[string]float64) { m["learn/entropy"] = 0.001 },
		"Edited skills do not stand":               func(m map[string]float64) { m["probe/hidden"] = 2 },
		"Many positions are clipped":               func(m map[string]float64) { m["learn/clip_share"] = 0.5 },
		"Replies without a well-formed action":     func(m map[string]float64) { m["action/malformed_share"] = 0.5 },
		"Most groups have fewer than two measured": func(m map[string]float64) { m["review/lone_share"] = 1 },
	} {
		sick := *h
		sick.Rounds = nil
		for _, r := range h.Rounds {
			m := map[string]float64{}
			for k, v := range r.Metrics {
				m[k] = v
			}
			if r.Phase != train.WarmStart {
				set(m)
			}
			r.Metrics = m
			sick.Rounds = append(sick.Rounds, r)
		}
		found := false
		for _, f := range sick.Findings(last.Kept.Kept) {
			found = found || strings.HasPrefix(f.Title, want)
			if f.Detail == "" || f.Remedy == "" {
				t.Errorf("%s has no detail or remedy", f.Title)
			}
		}
		if !found {
			t.Errorf("not found: %s", want)
		}
	}
	silent := *h
	silent.Train.Iterations = 99
	if f := silent.Findings(h.Last().Add(time.Hour)); len(f) != 1 || !strings.Contains(f[0].Detail, "1h0m0s ago") {
		t.Errorf("a silent run: %+v", f)
	}
	if f := silent.Findings(h.Last().Add(time.Minute)); len(f) != 0 {
		t.Errorf("a run that goes on: %+v", f)
	}
}

// A run that took its warm start from another has no curve of one.
func TestNoCurveOfAnothersWarmStart(t *testing.T) {
	shows := func(h History) bool {
		return slices.ContainsFunc(h.Charts(), func(c plot.Chart) bool { return c.Title == "Warm start: loss" })
	}
	kept := func(p train.Phase) (k store.Kept) { k.Phase = p; return }
	taken := store.Numbers{Kept: kept(train.WarmStart)}
	own := store.Numbers{Kept: kept(train.WarmStart), Metrics: map[string]float64{"learn/loss": 1}}
	round := store.Numbers{Kept: kept(train.Learning)}
	if shows(History{Rounds: []store.Numbers{taken, round}, learning: 1}) || shows(History{Rounds: []store.Numbers{round}}) {
		t.Error("there is an empty chart")
	}
	if !shows(History{}) || !shows(History{Rounds: []store.Numbers{own, round}, learning: 1}) {
		t.Error("the warm start's curve is missing")
	}
}

// What an iteration did not measure is a gap in its curves, never 0: here, the speed of learning where nothing was updated.
func TestCurvesHaveGaps(t *testing.T) {
	h, _ := made(t, "first", small(1))
	idle := *h
	idle.Rounds = slices.Clone(h.Rounds)
	last := &idle.Rounds[len(idle.Rounds)-1]
	last.Metrics = map[string]float64{"rollout/tokens": 600, "learn/tokens": 0}
	last.Seconds = map[string]float64{"time/rollout_seconds": 3, "time/update_seconds": 0.001}
	i := slices.IndexFunc(idle.Charts(), func(c plot.Chart) bool { return c.Title == "Tokens per second" })
	playing, learning := idle.Charts()[i].Series[0].Y, idle.Charts()[i].Series[1].Y
	if n := len(learning) - 1; playing[n] != 200 || !math.IsNaN(learning[n]) || math.IsNaN(learning[n-1]) {
		t.Errorf("playing %v, learning %v", playing, learning)
	}
	if curve := idle.Curve("action/success"); !math.IsNaN(curve[len(curve)-1]) || math.IsNaN(curve[0]) {
		t.Errorf("success is drawn as %v", curve)
	}
}
