package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"skillmaster/env/envtest"
	"skillmaster/env/openenv"
	"skillmaster/episode"
)

// The world keeps the contract of all worlds.
func TestContract(t *testing.T) {
	envtest.Run(t, suite{}, envtest.Config{Splits: splits, Seed: 1})
}

// The README says that a world takes so many lines; blank ones and brackets that stand alone are not counted.
func TestLength(t *testing.T) {
	b, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		if strings.Trim(line, " \t\n(){}") != "" {
			n++
		}
	}
	if n > 60 {
		t.Errorf("it takes %d lines, more than 60", n)
	}
}

// Who halves what is left wins every task, over the wire as well.
func TestHalving(t *testing.T) {
	h, err := openenv.NewHandler(openenv.Served{Suite: suite{}, Splits: splits, Name: "guess"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	defer h.Close()
	world, err := openenv.Dial(t.Context(), openenv.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := world.Tasks("report")
	if err != nil || len(tasks) != most/len(splits) {
		t.Fatalf("%d tasks: %v", len(tasks), err)
	}
	for _, task := range tasks {
		e, _, err := world.Open(t.Context(), task, 1)
		if err != nil {
			t.Fatal(err)
		}
		low, high := 1, most
		var r episode.StepResult
		for !r.Done {
			guess := (low + high) / 2
			if r, err = e.Step(t.Context(), episode.Action(fmt.Sprint("guess ", guess))); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(r.Observation.Text, "higher") {
				low = guess + 1
			} else {
				high = guess - 1
			}
		}
		if !r.Success || r.Reward != 1 {
			t.Errorf("%s ends with %+v", task.ID, r)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
