package track

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"skillmaster/report"
	"skillmaster/store/storetest"
	"skillmaster/train"
)

func exposed(t *testing.T, runs []*report.History, unreadable ...string) string {
	t.Helper()
	var b bytes.Buffer
	if err := WritePrometheus(&b, runs, unreadable); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPrometheus(t *testing.T) {
	h := small()
	h.Train.Iterations = 2 // one is done
	want := `# HELP skillmaster_action_success The newest round's action/success.
# TYPE skillmaster_action_success gauge
skillmaster_action_success{run="small",key="action/success"} 0.1
# HELP skillmaster_learn_loss The newest round's learn/loss.
# TYPE skillmaster_learn_loss gauge
skillmaster_learn_loss{run="small",key="learn/loss"} 1e+39
# HELP skillmaster_run_finished Whether every iteration that was asked for is done.
# TYPE skillmaster_run_finished gauge
skillmaster_run_finished{run="small"} 0
# HELP skillmaster_run_kept_timestamp_seconds When the newest round was recorded.
# TYPE skillmaster_run_kept_timestamp_seconds gauge
skillmaster_run_kept_timestamp_seconds{run="small"} 1.7673231655e+09
# HELP skillmaster_run_readable Whether the records of the run can be read.
# TYPE skillmaster_run_readable gauge
skillmaster_run_readable{run="broken"} 0
skillmaster_run_readable{run="small"} 1
# HELP skillmaster_run_rounds Rounds that the run has recorded, the warm start's among them.
# TYPE skillmaster_run_rounds gauge
skillmaster_run_rounds{run="small"} 2
`
	if got := exposed(t, []*report.History{h}, "broken"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := exposed(t, nil); got != "" {
		t.Errorf("without runs it says %q", got)
	}
	h.Rounds = nil
	if got := exposed(t, []*report.History{h}); strings.Contains(got, "timestamp") || !strings.Contains(got, `skillmaster_run_rounds{run="small"} 0`) {
		t.Errorf("without rounds it says\n%s", got)
	}
}

// Whatever runs and keys are called, the format's rules hold, and every number is there once.
func TestPrometheusFormat(t *testing.T) {
	names := []string{"plain", `quote " and \ slash`, "line\nend", "bytes \xff\xfe", "", "Ümlaut"}
	var runs []*report.History
	for i, name := range names {
		h := read(t, made(t, storetest.Shape{Seed: 6, Iterations: 3, Tasks: 1, Group: 1, Evaluate: 2, Panel: 4, Text: name}))
		h.Name = name
		last := h.Rounds[len(h.Rounds)-1].Metrics
		last["rollout/stop_context full"], last["rollout/stop_context_full"] = float64(i), float64(i)
		last["rollout/skills_used_"+name] = 1
		last["9/starts with a digit"] = 1
		runs = append(runs, h)
	}
	numbers := parseExposition(t, exposed(t, runs, names[1]+" too"))
	for _, h := range runs {
		last := h.Rounds[len(h.Rounds)-1]
		want := len(last.Metrics) + len(last.Seconds) + 6 // of the run four, of its panel two
		run := strings.ToValidUTF8(h.Name, "\ufffd")
		got := 0
		for series := range numbers {
			if strings.Contains(series, fmt.Sprintf(`run="%s"`, escapeLabel.Replace(run))) {
				got++
			}
		}
		if got != want {
			t.Errorf("run %q has %d samples, want %d", h.Name, got, want)
		}
	}
}

// The panel's score is the newest of those that training played, with the round's other numbers or not.
func TestPrometheusPanel(t *testing.T) {
	h := read(t, made(t, storetest.Shape{Seed: 6, Iterations: 3, Tasks: 1, Group: 1, Evaluate: 1, Panel: 40}))
	valid := h.Valid()
	want := valid[len(valid)-1].Summary().Rate
	if valid[0].Summary().Rate == want {
		t.Fatal("all scores are the same: the test sees nothing")
	}
	h.Rounds = append(h.Rounds, kept(99, train.Learning, 3, 0, nil)) // measured nothing
	numbers := parseExposition(t, exposed(t, []*report.History{h}))
	if got := numbers[`skillmaster_panel_success{run="made",panel="valid"}`]; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	for series := range numbers {
		if strings.Contains(series, "action") || strings.Contains(series, `"report"`) {
			t.Errorf("%s was not measured in the newest round, or not by training", series)
		}
	}
}

var (
	comment = regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	sample  = regexp.MustCompile(`^(([a-zA-Z_:][a-zA-Z0-9_:]*)\{[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*")*\}) (\S+)$`)
)

// parseExposition reads the text format strictly (prometheus.io/docs/instrumenting/exposition_formats): UTF-8, every line
// ended; for each name HELP and TYPE once, before its samples, all of them together; no series twice.
func parseExposition(t *testing.T, text string) map[string]float64 {
	t.Helper()
	if !utf8.ValidString(text) || !strings.HasSuffix(text, "\n") {
		t.Fatal("not UTF-8, or the last line has no end")
	}
	series, done := map[string]float64{}, map[string]bool{}
	state := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := comment.FindStringSubmatch(line); m != nil {
			name := m[2]
			switch {
			case m[1] == "HELP" && !done[name]:
				done[name], state = true, "help "+name
			case m[1] == "TYPE" && state == "help "+name && m[3] == "gauge":
				state = name
			default:
				t.Fatalf("out of place: %s", line)
			}
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil || m[2] != state {
			t.Fatalf("not a sample of %s: %q", state, line)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if _, twice := series[m[1]]; twice || err != nil {
			t.Fatalf("twice, or not a number: %s", line)
		}
		series[m[1]] = v
	}
	if names := slices.Collect(maps.Keys(done)); len(names) == 0 {
		t.Fatal("nothing was read")
	}
	return series
}
