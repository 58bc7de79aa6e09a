package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skillmaster/report"
	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/store/storetest"
	"skillmaster/track"
	"skillmaster/train"

	"github.com/parquet-go/parquet-go"
)

// madeUp is the directory of a run of three rounds and five iterations that was made up.
func madeUp(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "first")
	run, err := storetest.Make(t.Context(), dir, storetest.Shape{Seed: 7, Iterations: 5, Tasks: 2, Group: 2, Evaluate: 2, Panel: 4, Start: time.Unix(1e9, 0)})
	if err != nil {
		t.Fatal(err)
	}
	run.Close()
	return dir
}

func TestExportTensorBoard(t *testing.T) {
	dir, to := madeUp(t), filepath.Join(t.TempDir(), "tb")
	for _, want := range []string{"8 of 8 rounds were new", "0 of 8 rounds were new"} {
		if _, errs := must(t, 0, "export", "tensorboard", "--run", dir, "--to", to); !strings.Contains(errs, want) {
			t.Errorf("it says %q, want %q", errs, want)
		}
	}
	var said written
	if out, _ := must(t, 0, "export", "tensorboard", "--run", dir, "--to", to, "--json"); json.Unmarshal([]byte(out), &said) != nil || *said.Rounds != 8 || *said.New != 0 {
		t.Errorf("as JSON it says %s", out)
	}
	if _, err := os.Stat(filepath.Join(to, "first", "events.out.tfevents.1000000000.skillmaster")); err != nil {
		t.Error(err)
	}
	must(t, 2, "export", "tensorboard", "--run", dir)
}

func TestExportJSONL(t *testing.T) {
	dir := madeUp(t)
	file := filepath.Join(t.TempDir(), "first.jsonl")
	out, _ := must(t, 0, "export", "jsonl", "--run", dir)
	must(t, 0, "export", "jsonl", "--run", dir, "--to", file)
	kept, err := os.ReadFile(file)
	if err != nil || string(kept) != out {
		t.Errorf("%v: the file is not what stdout is", err)
	}
	var said written
	if out, _ := must(t, 0, "export", "jsonl", "--run", dir, "--to", file, "--json"); json.Unmarshal([]byte(out), &said) != nil || said.To != file || *said.Rounds != 8 || said.New != nil {
		t.Errorf("as JSON it says %s", out)
	}
	must(t, 2, "export", "jsonl", "--run", dir, "--json") // the lines are on stdout already
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last struct {
		Step    int     `json:"step"`
		Success float64 `json:"action/success"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(lines) != 8 || last.Step != 8 || last.Success == 0 {
		t.Errorf("%v: %d lines, the last is %+v", err, len(lines), last)
	}
}

func TestExportParquet(t *testing.T) {
	dir, file := madeUp(t), filepath.Join(t.TempDir(), "first.parquet")
	if _, errs := must(t, 0, "export", "parquet", "--run", dir, "--to", file); !strings.Contains(errs, "20 trajectories") {
		t.Errorf("it says %q", errs)
	}
	var said written
	if out, _ := must(t, 0, "export", "parquet", "--run", dir, "--to", file, "--json"); json.Unmarshal([]byte(out), &said) != nil || *said.Trajectories != 20 || said.Rounds != nil {
		t.Errorf("as JSON it says %s", out)
	}
	rows, err := parquet.ReadFile[track.Row](file)
	if err != nil || len(rows) != 20 || rows[0].Run != "first" {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// The token comes from the environment or a file, goes to the server, and is in no message, even if the server quotes it.
func TestExportMLflowShowsNoToken(t *testing.T) {
	const token = "s3cret-token"
	var shown string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = r.Header.Get("Authorization")
		http.Error(w, "I do not know "+shown, http.StatusForbidden)
	}))
	defer server.Close()
	dir, file := madeUp(t), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	export := []string{"export", "mlflow", "--run", dir, "--to", server.URL}
	for name, args := range map[string][]string{"file": append(export, "--token-file", file), "environment": export} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MLFLOW_TRACKING_USERNAME", "")
			t.Setenv("MLFLOW_TRACKING_TOKEN", map[string]string{"environment": token}[name])
			out, errs := must(t, 1, args...)
			if shown != "Bearer "+token || strings.Contains(out+errs, token) || !strings.Contains(errs, "403") {
				t.Errorf("%q was shown; it says %s%s", shown, out, errs)
			}
		})
	}
}

// An address that cannot be is found before a run directory is made.
func TestTrainRefusesAddress(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if _, errs := must(t, 2, "train", "--run", dir, "--preset", "smoke", "--mlflow", "ftp://host"); !strings.Contains(errs, "--mlflow") {
		t.Errorf("it says %s", errs)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the run directory: %v", err)
	}
}

// A run that is trained with --tensorboard leaves a file to which an export has nothing to add.
func TestTrainWritesTensorBoard(t *testing.T) {
	dir, to := filepath.Join(t.TempDir(), "run"), t.TempDir()
	must(t, 0, tiny(t, dir, "--tensorboard", to)...)
	if _, errs := must(t, 0, "export", "tensorboard", "--run", dir, "--to", to); !strings.Contains(errs, " 0 of ") {
		t.Errorf("it says %q", errs)
	}
}

// tracking is a run that keeps three rounds, and what a tool was given.
type tracking struct {
	mu      sync.Mutex
	fail    func(rounds int) error
	rounds  []int // given at each write that did not fail
	notices []string
	trained bool
}

func (k *tracking) do(ctx context.Context, t *testing.T) error {
	t.Helper()
	run, err := store.Create(t.Context(), filepath.Join(t.TempDir(), "run"), store.Manifest{Program: version, Config: json.RawMessage("{}")}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	fake := newTool("fake", "catch up", func(ctx context.Context, h *report.History) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if err := errors.Join(ctx.Err(), k.fail(len(h.Rounds))); err != nil {
			return err
		}
		k.rounds = append(k.rounds, len(h.Rounds))
		return nil
	})
	trainer := &train.Trainer{}
	notice := func(text string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.notices = append(k.notices, text)
	}
	return tracked(ctx, []tool{fake}, run, trainer, notice, func() error {
		k.trained = true
		for i := range 3 {
			r := train.Report{Phase: train.Learning, Round: i, Bank: skill.Bank{}.Hash()}
			if err := run.Keep(t.Context(), r, nil, nil); err != nil {
				return err
			}
			for _, o := range trainer.Observers {
				if err := o.Observe(ctx, r); err != nil {
					return err
				}
			}
		}
		return ctx.Err()
	})
}

func TestTracked(t *testing.T) {
	broken := errors.New("broken")
	t.Run("the last write has all rounds", func(t *testing.T) {
		k := tracking{fail: func(int) error { return nil }}
		if err := k.do(t.Context(), t); err != nil || k.rounds[0] != 0 || k.rounds[len(k.rounds)-1] != 3 || len(k.notices) > 0 {
			t.Errorf("%v: it was given %v, and said %q", err, k.rounds, k.notices)
		}
	})
	t.Run("what is wrong from the start ends the run", func(t *testing.T) {
		k := tracking{fail: func(int) error { return broken }}
		if err := k.do(t.Context(), t); !errors.Is(err, broken) || !strings.Contains(err.Error(), "--fake") || k.trained {
			t.Errorf("%v, trained: %v", err, k.trained)
		}
	})
	t.Run("what goes wrong later is told and does not end it", func(t *testing.T) {
		k := tracking{fail: func(rounds int) error {
			if rounds > 0 {
				return broken
			}
			return nil
		}}
		err := k.do(t.Context(), t)
		if n := len(k.notices); err != nil || n == 0 || !strings.Contains(k.notices[n-1], "broken") || !strings.Contains(k.notices[n-1], "catch up") {
			t.Errorf("%v: it said %q", err, k.notices)
		}
	})
	t.Run("a run that is stopped gives its last rounds", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		k := tracking{fail: func(int) error { stop(); return nil }} // after the first write
		err := k.do(ctx, t)
		if !errors.Is(err, context.Canceled) || k.rounds[len(k.rounds)-1] != 3 || len(k.notices) > 0 {
			t.Errorf("%v: it was given %v, and said %q", err, k.rounds, k.notices)
		}
	})
}
