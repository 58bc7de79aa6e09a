package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"skillmaster/grpo"
	"skillmaster/probe"
	"skillmaster/train"
)

// Runs of one seed share a warm start, are trained to their end and played; the same command then does nothing more and
// prints the same, and one run taken away is made again.
func TestBenchMethod(t *testing.T) {
	dir := t.TempDir()
	args := []string{
		"bench", "method", "--dir", dir, "--preset", "smoke", "--seeds", "1", "--ablations", "joint,no-skills", "--iterations", "1",
		"--set", "train.warm.updates=10", "--set", "train.warm.round=5", "--set", `world.sizes={"train":16,"probe":12,"gate":12,"valid":6,"report":6}`,
	}
	out, errs := must(t, 0, args...)
	if n := strings.Count(errs, "skillmaster train"); n != 4 {
		t.Errorf("%d runs were trained, want a warm start and three:\n%s", n, errs)
	}
	if n := strings.Count(errs, "skillmaster eval"); n != 5 {
		t.Errorf("%d times the panel was played, want 5:\n%s", n, errs)
	}
	for _, row := range []string{"| cloned | 1 | 6 |", "| full | 1 | 6 |", "| full, tested without skills | 1 | 6 |", "| joint | 1 | 6 |", "| no-skills | 1 | 6 |"} {
		if !strings.Contains(out, row) {
			t.Errorf("there is no row %q:\n%s", row, out)
		}
	}
	again, errs := must(t, 0, args...)
	if strings.Contains(errs, "skillmaster ") || again != out {
		t.Errorf("the second time it did %s and said\n%s", errs, again)
	}
	table, _ := must(t, 0, append(args, "--table")...)
	if rest(t, table) != rest(t, out) {
		t.Errorf("the table alone is another:\n%s", table)
	}
	must(t, 2, "bench", "method", "--ablations", "everything")
	must(t, 1, "bench", "method", "--table", "--dir", filepath.Join(dir, "nothing"))
}

// rest is a page without its head, which names the command.
func rest(t *testing.T, page string) string {
	t.Helper()
	_, after, ok := strings.Cut(page, "An interval with 0")
	if !ok {
		t.Fatalf("a page without its head:\n%s", page)
	}
	return after
}

func TestAblations(t *testing.T) {
	of := func(name string) train.Config {
		out, _ := must(t, 0, "train", "--print-config", "--ablation", name)
		var c runConfig
		if err := json.Unmarshal([]byte(out), &c); err != nil {
			t.Fatal(err)
		}
		return c.Train
	}
	for name, ok := range map[string]bool{
		"no-skills":  !of("no-skills").Rollout.Retrieval && !of("no-skills").Review && of("no-skills").Learn.Variant == grpo.GRPO,
		"no-review":  of("no-review").Rollout.Retrieval && !of("no-review").Review && of("no-review").Gate.Rule == probe.Never,
		"no-utility": of("no-utility").Prices.Utility == 0,
		"joint":      of("joint").Learn.Variant == grpo.Joint,
		"clip-zero":  of("clip-zero").Probe.ClipAtZero,
	} {
		if !ok {
			t.Errorf("--ablation %s does not leave out what it says", name)
		}
	}
	_, errs := must(t, 2, "train", "--ablation", "nothing")
	for name := range ablations {
		if !strings.Contains(errs, name) {
			t.Errorf("the answer to a wrong name does not list %s", name)
		}
	}
	must(t, 2, "train", "--resume", "--run", t.TempDir(), "--ablation", "joint")
}

func methodOf(seed uint64, won ...bool) methodRun {
	x := methodRun{seed: seed}
	for i, w := range won {
		x.evaluation.Results = append(x.evaluation.Results, train.Result{Task: string(rune('a' + i)), Success: w})
	}
	return x
}

// Two seeds of four tasks: differences of +50 and 0 points; mean 25, sd 35.36, half 12.706 · 35.36/√2 = 317.65. Tasks:
// c gains in one seed, d too, so the mean over tasks is 0.25 a seed and its bootstrap lies between 0 and 50 points.
func TestDifferencesByHand(t *testing.T) {
	base := methodRow{runs: []methodRun{methodOf(1, true, false, false, false), methodOf(2, true, true, false, false)}}
	other := methodRow{runs: []methodRun{methodOf(2, true, true, false, false), methodOf(1, true, false, true, true), methodOf(3, true, true, true, true)}}
	seeds, tasks := differences(other, base)
	if seeds != "+25.0 [-292.6, +342.6]" || tasks != "[+0.0, +50.0]" {
		t.Errorf("got %s and %s", seeds, tasks)
	}
	if s, _ := differences(methodRow{}, base); s != "–" {
		t.Errorf("a row without runs differs by %s", s)
	}
	same, none := differences(base, base)
	if same != "+0.0 [+0.0, +0.0]" || none != "[+0.0, +0.0]" {
		t.Errorf("a row differs from itself: %s %s", same, none)
	}
}

// The bootstrap of many fair coins is the normal interval of their mean.
func TestBootstrap(t *testing.T) {
	coins := map[string]float64{}
	for i := range 400 {
		coins[string(rune(i))] = float64(i % 2)
	}
	low, high := bootstrap(coins)
	if math.Abs(low-0.451) > 0.01 || math.Abs(high-0.549) > 0.01 {
		t.Errorf("[%v, %v], want 0.5 ± 1.96 · 0.5/20", low, high)
	}
}
