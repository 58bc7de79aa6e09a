package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/train"
)

// The summary compares the run's own evaluations; those that a person made in between are of other panels.
func TestSummaryIsOfTheRunsOwnEvaluations(t *testing.T) {
	run, err := store.Create(t.Context(), filepath.Join(t.TempDir(), "run"), store.Manifest{Program: version, Config: json.RawMessage("{}")}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	played := func(panel string, success bool) train.Evaluation {
		return train.Evaluation{Panel: panel, Results: []train.Result{{Task: "t", Family: "f", Success: success, Steps: 9}}}
	}
	keep := func(round int, e train.Evaluation) {
		r := train.Report{Phase: train.Learning, Round: round, Bank: skill.Bank{}.Hash(), Evaluations: []train.Evaluation{e}}
		if err := run.Keep(t.Context(), r, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	byHand := func() {
		if err := run.Record(t.Context(), played("report", false), []string{"skillmaster", "eval"}); err != nil {
			t.Fatal(err)
		}
	}
	byHand()
	keep(0, played("valid", false))
	keep(1, played("valid", true))
	byHand()
	var out strings.Builder
	if err := summarise(t.Context(), run, time.Second, &out); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Contains(s, "report") || !strings.Contains(s, "  0.0 %") || !strings.Contains(s, "100.0 %") {
		t.Errorf("the summary is not of the held-out panel:\n%s", s)
	}
}

func TestRewoundIsTold(t *testing.T) {
	var out strings.Builder
	tellRewound(&out, store.Rewound{})
	if out.Len() > 0 {
		t.Errorf("nothing was taken back, and it says %q", out.String())
	}
	tellRewound(&out, store.Rewound{Reports: 3, ByHand: 2})
	if s := out.String(); !strings.Contains(s, "3 rounds") || !strings.Contains(s, "2 banks") {
		t.Errorf("it says %q", s)
	}
}

// Who stops a run is told how to go on, also if what broke off does not say that it was the context.
func TestStoppedRunSaysHowToGoOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	broken := errors.New("interrupted (9)")
	c := trainCmd{Run: "runs/a", Data: "games"}
	var cfg runConfig
	cfg.World.Name = realGames
	if err := c.stopped(ctx, cfg, broken); !errors.Is(err, broken) || strings.Contains(err.Error(), "stopped") {
		t.Errorf("nobody stopped it: %v", err)
	}
	cancel()
	for _, cause := range []error{broken, context.Canceled} {
		err := c.stopped(ctx, cfg, cause)
		if !errors.Is(err, cause) || exitCode(ctx, err) != exitInterrupted || !strings.Contains(err.Error(), "train --run runs/a --resume --data games") {
			t.Errorf("got %v", err)
		}
	}
}
