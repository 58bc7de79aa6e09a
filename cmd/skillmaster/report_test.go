package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skillmaster/store/storetest"
)

func TestReport(t *testing.T) {
	parent := t.TempDir()
	var dirs []string
	for i, name := range []string{"first", "second"} {
		dir := filepath.Join(parent, name)
		run, err := storetest.Make(context.Background(), dir, storetest.Shape{Seed: 7, Iterations: 4 + 3*i, Tasks: 2, Group: 2, Evaluate: 2, Panel: 12})
		if err != nil {
			t.Fatal(err)
		}
		run.Close()
		dirs = append(dirs, dir)
	}
	page, text := filepath.Join(parent, "r.html"), filepath.Join(parent, "r.md")
	must(t, 0, "report", dirs[0], dirs[1], "--html", page, "--markdown", text)
	for _, f := range []string{page, text} {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), "second against first") {
			t.Errorf("%s has no comparison", f)
		}
	}
	plots, err := filepath.Glob(filepath.Join(parent, "r.md.plots", "*.svg"))
	if err != nil || len(plots) < 5 {
		t.Errorf("%d plots, %v", len(plots), err)
	}
	if out, _ := must(t, 0, "report", dirs[0], "--no-digest"); !strings.HasPrefix(out, "# Report: first") || strings.Contains(out, "records:") {
		t.Errorf("it prints %s", out)
	}
	if out, _ := must(t, 0, "report", "compare", dirs[0], dirs[1]); !strings.Contains(out, "valid") || !strings.Contains(out, "95 % interval") ||
		!strings.Contains(out, "\ntrain.iterations      4      7\n") {
		t.Errorf("it prints %s", out)
	}
	if out, _ := must(t, 0, "report", "compare", dirs[0], dirs[0]); !strings.Contains(out, "first and first-2 have the same settings") {
		t.Errorf("it prints %s", out)
	}
	var found compared
	out, _ := must(t, 0, "report", "compare", dirs[0], dirs[1], "--json")
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found.Tests) == 0 || len(found.Settings) != 1 || found.Settings[0].Values[1] != "7" {
		t.Errorf("%v of %s", err, out)
	}
	bare, _ := bankRun(t)
	if _, errs := must(t, 1, "report", "compare", dirs[0], bare); !strings.Contains(errs, "skillmaster eval") {
		t.Errorf("it says %s", errs)
	}
}
