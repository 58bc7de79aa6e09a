package main

import (
	"context"
	"strings"
	"testing"
)

// Every command explains itself with an example.
func TestHelp(t *testing.T) {
	out, _ := must(t, 0, "--help")
	for _, want := range []string{"Exit codes", "130", "train", "eval", "play", "replay", "bank", "model", "data", "bench", "report", "serve"} {
		if !strings.Contains(out, want) {
			t.Errorf("--help does not speak of %s:\n%s", want, out)
		}
	}
	for _, c := range []string{
		"train", "eval", "play", "replay", "report", "report compare", "serve", "bench env", "bench engine", "bench probe", "data get", "data import", "data list", "data verify", "data pack",
		"model info", "model export", "model merge", "bank list", "bank show", "bank diff", "bank log", "bank rollback", "bank check", "bank judge", "bank edit", "bank export", "bank import", "bank salvage",
	} {
		out, _ := must(t, 0, append(strings.Fields(c), "--help")...)
		if !strings.Contains(out, "skillmaster "+c) || !strings.Contains(out, "Example") {
			t.Errorf("%s --help has no example:\n%s", c, out)
		}
	}
	if out, _ := must(t, 0, "--version"); !strings.Contains(out, version) {
		t.Errorf("--version prints %q", out)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	if code := execute(ctx, []string{"bench", "probe"}, nil, &out, &out); code != exitInterrupted {
		t.Errorf("exit code %d after an interrupt, want %d\n%s", code, exitInterrupted, out.String())
	}
}
