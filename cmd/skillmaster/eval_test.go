package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/train"
)

func TestEvaluationWithoutSuccessIsPrintedSo(t *testing.T) {
	e := train.Evaluation{Panel: "report", Results: []train.Result{{Task: "t", Family: "f", Steps: 50}}}
	var out strings.Builder
	if err := (&evalCmd{}).print(&out, []scored{{Evaluation: e, Summaries: e.Summaries()}}); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[2:] {
		if !strings.HasSuffix(strings.TrimSpace(line), "–") {
			t.Errorf("%q: steps of no success are a number", line)
		}
	}
}

// A damaged checkpoint is not passed over in silence, and one that there is not yet is answered with what to do.
func TestCheckpointToEvaluate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	run, err := store.Create(t.Context(), dir, store.Manifest{Program: version, Config: json.RawMessage("{}")}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	find := func(which string) (store.Saved, string, error) {
		var told strings.Builder
		saved, err := checkpointOf(t.Context(), run, dir, which, &told)
		return saved, told.String(), err
	}
	if _, _, err := find("latest"); !errors.Is(err, store.ErrNoCheckpoint) || !strings.Contains(err.Error(), "let the run train") {
		t.Errorf("no checkpoint yet: %v", err)
	}
	for round := range 2 {
		r := train.Report{Phase: train.Learning, Round: round, Bank: skill.Bank{}.Hash()}
		err := run.Keep(t.Context(), r, &train.Checkpoint{Phase: train.Learning}, func(w io.Writer) error {
			_, err := io.WriteString(w, "weights")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, which := range []string{"best", "warm"} {
		if _, _, err := find(which); !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "--checkpoint latest") {
			t.Errorf("no %s checkpoint: %v", which, err)
		}
	}
	newest, told, err := find("latest")
	if err != nil || newest.Number != 2 || told != "" {
		t.Fatalf("checkpoint %d, %v, %q", newest.Number, err, told)
	}
	if err := os.WriteFile(newest.Path, []byte("weighty"), 0o600); err != nil {
		t.Fatal(err)
	}
	if saved, told, err := find("latest"); err != nil || saved.Number != 1 || !strings.Contains(told, "damaged") {
		t.Errorf("checkpoint %d, %v, %q: want the one before, and a warning", saved.Number, err, told)
	}
}

// Retrieval on and off, bank frozen and online: four questions, told apart wherever an answer stands. Each plays every
// task once, none changes the run's bank, and a frozen bank stays what it was throughout.
func TestFourCells(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	must(t, 0, "train", "--preset", "smoke", "--run", dir, "--iterations", "1", "--set", smallHouse)
	list := func() string {
		out, _ := must(t, 0, "bank", "log", "--run", dir, "--json")
		return out
	}
	before := list()
	seen := map[[2]bool]bool{}
	for _, flags := range [][]string{{}, {"--retrieval", "off"}, {"--bank", "online"}, {"--retrieval", "off", "--bank", "online"}} {
		out, _ := must(t, 0, append([]string{"eval", "--run", dir, "--json"}, flags...)...)
		var got []scored
		if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 1 {
			t.Fatalf("%v: %.300s", err, out)
		}
		e := got[0]
		seen[[2]bool{e.Retrieval, e.Online}] = true
		if !e.Online && e.BankAfter != e.Bank {
			t.Errorf("%v: the frozen bank was %s and is %s", flags, e.Bank, e.BankAfter)
		}
		tasks := map[string]bool{}
		for _, r := range e.Results {
			tasks[r.Task] = true
		}
		if len(tasks) != 8 || len(e.Results) != 8 {
			t.Errorf("%v: %d plays of %d tasks, want each of 8 once", flags, len(e.Results), len(tasks))
		}
	}
	if len(seen) != 4 {
		t.Errorf("the records tell %d cells apart: %v", len(seen), seen)
	}
	if after := list(); after != before {
		t.Errorf("evaluating changed the bank: %s, before %s", after, before)
	}
	out, _ := must(t, 0, "report", dir, "--no-digest")
	for _, cell := range []string{"retrieval, frozen bank", "no retrieval, frozen bank", "retrieval, online bank", "no retrieval, online bank"} {
		if !strings.Contains(out, cell) {
			t.Errorf("the report does not say %q", cell)
		}
	}
}
