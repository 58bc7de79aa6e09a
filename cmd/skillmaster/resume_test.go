package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"skillmaster/store"
)

// TestMain lets a test run this binary as the program itself, so that it can be killed like one.
func TestMain(m *testing.M) {
	if os.Getenv("SKILLMASTER_TEST_AS_PROGRAM") == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is the program with arguments, ready to start.
func program(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "SKILLMASTER_TEST_AS_PROGRAM=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// tiny is a run of a few seconds that goes through every phase: warm start, review, probes, gate, update; with a skill in
// its bank that is withheld now and then.
func tiny(t *testing.T, dir string, more ...string) []string {
	t.Helper()
	bank := dir + ".json"
	text := `{"general_skills":[{"skill_id":"gen_001","title":"Look around","principle":"Look at what is near first.","when_to_apply":"always"}],"task_specific_skills":{},"common_mistakes":[]}`
	if err := os.WriteFile(bank, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return append([]string{
		"train", "--run", dir, "--bank", bank, "--preset", "smoke", "--set", "train.evaluate=1", "--set", "train.gate.rule=always",
		"--set", "train.retire.dropout=0.5", "--set", "train.rollout.retrieve_by=ranked", "--set", "train.learn.kl=0.01", "--set", `world.sizes={"train":32,"probe":24,"gate":24,"valid":8,"report":8}`,
	}, more...)
}

func digest(t *testing.T, dir string) string {
	t.Helper()
	run, err := store.View(t.Context(), dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	d, err := run.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The same seed gives the same records, whatever the number of workers; another seed gives others.
func TestSameSeedSameRecords(t *testing.T) {
	dir := t.TempDir()
	digests := map[string]string{}
	for name, more := range map[string][]string{
		"one": {"--workers", "1"}, "two": {"--workers", "2"}, "other": {"--workers", "2", "--seed", "2"},
	} {
		cmd, out := program(t.Context(), tiny(t, filepath.Join(dir, name), more...)...)
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		digests[name] = digest(t, filepath.Join(dir, name))
	}
	if digests["one"] != digests["two"] {
		t.Error("one and two workers left different records")
	}
	if digests["one"] == digests["other"] {
		t.Error("another seed left the same records: the digest sees nothing")
	}
}

// A run that is killed again and again, wherever it happens to be, ends as one that was left alone.
func TestKilledRunResumes(t *testing.T) {
	dir := t.TempDir()
	whole, killed := filepath.Join(dir, "whole"), filepath.Join(dir, "killed")
	cmd, out := program(t.Context(), tiny(t, whole)...)
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("uninterrupted: %v\n%s", err, out)
	}
	took := time.Since(began)
	kills := 0
	for attempt := 0; ; attempt++ {
		args := tiny(t, killed)
		if _, err := os.Stat(filepath.Join(killed, "run.db")); err == nil {
			args = []string{"train", "--run", killed, "--resume"}
		}
		// Each attempt lives a little longer than the one before, so that kills fall all over the run and it still ends.
		ctx, cancel := context.WithTimeout(t.Context(), took/8+took*time.Duration(attempt)/24)
		cmd, out := program(ctx, args...)
		err := cmd.Run()
		dead := ctx.Err() != nil
		cancel()
		if err == nil {
			break
		}
		if !dead {
			t.Fatalf("attempt %d: %v\n%s", attempt, err, out)
		}
		kills++
	}
	if kills == 0 {
		t.Fatal("the run was never killed: the test tests nothing")
	}
	t.Logf("killed %d times", kills)
	if err := withRun(t.Context(), whole, func(run *store.Run) error {
		saved, _, err := run.Latest(t.Context())
		if err == nil && len(saved.Checkpoint.Effects) == 0 {
			t.Error("no skill was withheld: the test sees nothing of skill dropout")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := digest(t, killed), digest(t, whole); got != want {
		t.Errorf("records differ after %d kills: %s, want %s", kills, got, want)
	}
}

// What a user gets wrong is answered with what to do, exit code 2 for usage and 1 for the rest, and changes nothing.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte(`{"train":{"iterationz":3}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign, set := filepath.Join(dir, "foreign"), filepath.Join(dir, "set aside")
	for _, d := range []string{foreign, set} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "run.db"), []byte("not a database"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"wrong key":          {[]string{"train", "--config", broken}, 2, "iterationz"},
		"wrong setting":      {[]string{"train", "--set", "train.groop=4"}, 2, "groop"},
		"impossible setting": {[]string{"train", "--set", "train.group=1"}, 2, "group is 1"},
		"no such model":      {[]string{"train", "--set", "model.heads=3", "--run", filepath.Join(dir, "y")}, 2, "heads"},
		"no context":         {[]string{"train", "--set", "model.context=0"}, 2, "model.context"},
		"no vocabulary":      {[]string{"train", "--set", "vocabulary=100"}, 2, "vocabulary is 100"},
		"no corpus":          {[]string{"train", "--set", "corpus=0"}, 2, "corpus is 0"},
		"no such panel":      {[]string{"train", "--set", `world.sizes={"trian":8}`}, 2, "trian"},
		"no such world":      {[]string{"train", "--set", "world.name=kitchen"}, 2, "kitchen"},
		"made, not real":     {[]string{"train", "--env", "alfworld", "--set", "world.difficulty=0.5"}, 2, "generated games"},
		"house, not real":    {[]string{"train", "--env", "alfworld", "--set", "world.custom=0.5"}, 2, "generated games"},
		"wrong type":         {[]string{"train", "--set", "train.group=many"}, 2, "train.group"},
		"unknown preset":     {[]string{"train", "--preset", "fast"}, 2, "smoke"},
		"no data":            {[]string{"train", "--env", "alfworld", "--data", dir, "--run", filepath.Join(dir, "x")}, 1, dir},
		"resume of nothing":  {[]string{"train", "--run", filepath.Join(dir, "none"), "--resume"}, 1, "no run"},
		"resume without run": {[]string{"train", "--resume"}, 2, "--run"},
		"resume otherwise":   {[]string{"train", "--run", foreign, "--resume", "--iterations", "9"}, 2, "--iterations"},
		"foreign directory":  {[]string{"train", "--run", set, "--resume"}, 1, "run.db"},
		"eval of no run":     {[]string{"eval", "--run", filepath.Join(dir, "none")}, 1, "no run"},
		"unknown command":    {[]string{"trane"}, 2, "trane"},
		"serve to all":       {[]string{"serve", "--listen", "0.0.0.0:0"}, 2, "SSH"},
		"run over a run":     {[]string{"train", "--run", foreign}, 1, "run.db"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, out := program(t.Context(), c.args...)
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != c.code {
				t.Fatalf("%v, want exit code %d\n%s", err, c.code, out)
			}
			if !bytes.Contains(out.Bytes(), []byte(c.says)) {
				t.Errorf("the answer does not say %q:\n%s", c.says, out)
			}
		})
	}
	for _, name := range []string{"x", "y"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a run directory was made of settings that cannot be: %v", err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(foreign, "run.db")); err != nil || string(b) != "not a database" {
		t.Errorf("the foreign file was changed: %q, %v", b, err)
	}
	// What cannot be opened is set aside as it is.
	aside, err := filepath.Glob(filepath.Join(set, "run.db?*"))
	if err != nil || len(aside) != 1 {
		t.Fatalf("%v, %v lie beside the foreign file", aside, err)
	}
	if b, err := os.ReadFile(aside[0]); err != nil || string(b) != "not a database" {
		t.Errorf("the foreign file was changed: %q, %v", b, err)
	}
}
