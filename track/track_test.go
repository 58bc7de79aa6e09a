package track

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"skillmaster/report"
	"skillmaster/store"
	"skillmaster/store/storetest"
	"skillmaster/train"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 250e6, time.UTC)

// kept is a round that was kept so long after the start.
func kept(report int, p train.Phase, round int, after time.Duration, metrics map[string]float64) store.Numbers {
	return store.Numbers{Kept: store.Kept{Round: store.Round{Report: report, Phase: p, Round: round}, Kept: start.Add(after)}, Metrics: metrics}
}

// small is a history of two rounds, by hand. The second was measured, and came to no number, in one key.
func small() *report.History {
	h := &report.History{Name: "small", Manifest: store.Manifest{Created: start}}
	first := kept(1, train.WarmStart, 0, 60250*time.Millisecond, map[string]float64{"learn/loss": 4})
	first.Seconds = map[string]float64{"time/update_seconds": 10}
	second := kept(2, train.Learning, 0, 120250*time.Millisecond, map[string]float64{"action/success": 0.1, "learn/loss": 1e39})
	second.NotFinite = []string{"learn/kl_k3"}
	h.Rounds = []store.Numbers{first, second}
	return h
}

// again is small with its second round done again, a minute later, and another number.
func again() *report.History {
	h := small()
	h.Rounds[1] = kept(2, train.Learning, 0, 180250*time.Millisecond, map[string]float64{"action/success": 0.75})
	return h
}

// made is a run made up from a seed.
func made(t *testing.T, shape storetest.Shape) *store.Run {
	t.Helper()
	shape.Start = start
	run, err := storetest.Make(t.Context(), t.TempDir(), shape)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	return run
}

func read(t *testing.T, run *store.Run) *report.History {
	t.Helper()
	h, err := report.Read(t.Context(), run, "made")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Panel scores stand at the round that played them; evaluations made apart are not there.
func TestRoundsHavePanelScores(t *testing.T) {
	h := read(t, made(t, storetest.Shape{Seed: 3, Iterations: 4, Tasks: 1, Group: 1, Evaluate: 2, Panel: 8}))
	scores := map[int]float64{}
	for _, e := range h.Valid() {
		won := 0
		for _, x := range e.Results {
			if x.Success {
				won++
			}
		}
		scores[e.Report] = float64(won) / 8
	}
	rounds := Rounds(h)
	if len(rounds) != 7 || len(scores) != 2 || len(h.Evaluations) != 3 {
		t.Fatalf("%d rounds, %d scores, %d evaluations", len(rounds), len(scores), len(h.Evaluations))
	}
	for _, r := range rounds {
		got, is := r.Values["panel/valid_success"]
		want, should := scores[r.Report]
		if is != should || got != want {
			t.Errorf("report %d has panel score %v (%v), want %v (%v)", r.Report, got, is, want, should)
		}
		if _, is := r.Values["panel/report_success"]; is {
			t.Errorf("report %d has the score of a panel played apart", r.Report)
		}
	}
	if _, leaked := h.Rounds[4].Metrics["panel/valid_success"]; leaked {
		t.Error("the history was changed")
	}
}

func TestJSONL(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSONL(&b, Rounds(small())); err != nil {
		t.Fatal(err)
	}
	want := `{"step":1,"phase":"warm start","round":0,"policy_version":0,"bank":"","time":"2026-01-02T03:05:05.5Z","learn/loss":4,"time/update_seconds":10}
{"step":2,"phase":"learning","round":0,"policy_version":0,"bank":"","time":"2026-01-02T03:06:05.5Z","action/success":0.1,"learn/kl_k3":null,"learn/loss":1e+39}
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	if err := WriteJSONL(&b, []Round{{}}); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("a round without numbers: %v, %s", err, b.String())
	}
}

// Every line is an object that gives the numbers back exactly, and as many lines as rounds.
func TestJSONLKeepsNumbers(t *testing.T) {
	rounds := Rounds(read(t, made(t, storetest.Shape{Seed: 4, Iterations: 5, Tasks: 2, Group: 2, Evaluate: 2, Panel: 4, Text: "\"\n\u2028"})))
	var b bytes.Buffer
	if err := WriteJSONL(&b, rounds); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != len(rounds) {
		t.Fatalf("%d lines of %d rounds", len(lines), len(rounds))
	}
	for i, line := range lines {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		numbers := map[string]float64{}
		for k, v := range got {
			if strings.Contains(k, "/") {
				numbers[k] = v.(float64)
			}
		}
		if !maps.Equal(numbers, rounds[i].Values) || !slices.IsSorted(rounds[i].Keys()) {
			t.Errorf("line %d has %v, want %v", i, numbers, rounds[i].Values)
		}
	}
}
