package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skillmaster/episode"
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

// Who brings a bank is told which of its skills no task would show.
func TestUnseenSkills(t *testing.T) {
	b, err := skill.New([]skill.Skill{
		{ID: "a_001", Category: skill.General, Title: "Eggs", Principle: "Look for an egg first.", When: "the task names an egg"},
		{ID: "a_002", Category: skill.General, Title: "Always", Principle: "Look around.", When: "always"},
		{ID: "a_003", Category: skill.General, Title: "Doors", Principle: "Open doors."},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tasks := []episode.Task{{Goal: "put a mug in the sink"}, {Goal: "put a hot egg on the table"}}
	if got := unseen(b, skill.Matched, tasks); !slices.Equal(got, []string{"a_002"}) {
		t.Errorf("unseen are %v", got)
	}
	if got := unseen(b, skill.Ranked, tasks); len(got) > 0 {
		t.Errorf("ranked heeds no condition: %v", got)
	}
	run := filepath.Join(t.TempDir(), "run")
	if _, errs := must(t, 0, append(tiny(t, run), "--iterations", "0", "--set", "train.warm.updates=2", "--set", "train.rollout.retrieve_by=matched")...); !strings.Contains(errs, "gen_001") {
		t.Errorf("nothing warns of gen_001:\n%s", errs)
	}
}
