package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"skillmaster/grpo"
	"skillmaster/probe"
	"skillmaster/train"
)

// Runs of one seed share a warm start, are trained to their end and played; what each came to is kept, and the same command
// then does nothing more and prints the same, even when the runs are gone. One result taken away is made again.
func TestBenchMethod(t *testing.T) {
	dir, keep := t.TempDir(), filepath.Join(t.TempDir(), "kept")
	args := []string{
		"bench", "method", "--dir", dir, "--keep", keep, "--preset", "smoke", "--seeds", "1", "--rows", "cloned,full,joint,no-skills", "--iterations", "1",
		"--set", "train.warm.updates=10", "--set", "train.warm.round=5", "--set", `world.sizes={"train":16,"probe":12,"gate":12,"valid":6,"report":6}`,
	}
	out, errs := must(t, 0, args...)
	if n := strings.Count(errs, "skillmaster train"); n != 4 {
		t.Errorf("%d runs were trained, want a warm start and three:\n%s", n, errs)
	}
	if n := strings.Count(errs, "skillmaster eval"); n != 6 {
		t.Errorf("%d times the panel was played, want 6:\n%s", n, errs)
	}
	with, without, _ := strings.Cut(out, "without skills in the prompts\n")
	for _, row := range []string{"| cloned | 1 | 6 |", "| full | 1 | 6 |", "| joint | 1 | 6 |", "| no-skills | 1 | 6 |"} {
		if !strings.Contains(with, row) || !strings.Contains(without, row) {
			t.Errorf("row %q is not in both tables:\n%s", row, out)
		}
	}
	for _, head := range []string{"### Cost", "### Reviews", "### Run by run"} {
		if !strings.Contains(out, head) {
			t.Errorf("there is no %q", head)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "seed-1", "full")); err != nil {
		t.Fatal(err)
	}
	again, errs := must(t, 0, args...)
	if strings.Contains(errs, "skillmaster ") || again != out {
		t.Errorf("the second time it did %s and said\n%s", errs, again)
	}
	table, _ := must(t, 0, append(args, "--table")...)
	if rest(t, table) != rest(t, out) {
		t.Errorf("the table alone is another:\n%s", table)
	}
	if err := os.Remove(filepath.Join(keep, "joint-1.json")); err != nil {
		t.Fatal(err)
	}
	if _, errs := must(t, 0, args...); strings.Contains(errs, "skillmaster ") {
		t.Errorf("the run of joint was there, and yet it did %s", errs)
	}
	askedLater(t, args, keep, out)
	must(t, 1, append(args, "--set", "train.tasks=3")...) // other settings than those kept
	must(t, 2, "bench", "method", "--rows", "everything")
	must(t, 2, "bench", "method", "--cells", "everywhere")
	must(t, 1, "bench", "method", "--table", "--keep", filepath.Join(dir, "nothing"))
	for _, broken := range []string{"", "{", `{"row":"full","seed":1,"cells":[{"won":"01","steps":[1]}]}`, `{"row":"other","seed":1}`} {
		if err := os.WriteFile(filepath.Join(keep, "full-1.json"), []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, 1, append(args, "--table")...)
	}
}

// askedLater asks for one more cell where the run of "full" is gone: it is made again and comes to the same weights, what was
// played stays, and only what is new is played. What was kept of other weights or other tasks is played again.
func askedLater(t *testing.T, args []string, keep, page string) {
	t.Helper()
	more := append(args, "--cells", "off,constrained")
	kept := map[string]string{}
	for _, row := range []string{"cloned", "full", "joint", "no-skills"} {
		kept[row] = fileText(t, filepath.Join(keep, row+"-1.json"))
	}
	// joint as files were before they named their weights; no-skills of other tasks
	spoil(t, filepath.Join(keep, "joint-1.json"), `"weights":"[0-9a-f]+",`, "")
	spoil(t, filepath.Join(keep, "no-skills-1.json"), `"panel_hash":"[0-9a-f]+"`, `"panel_hash":"0"`)
	_, errs := must(t, 0, more...)
	if n, m := strings.Count(errs, "skillmaster train"), strings.Count(errs, "skillmaster eval"); n != 1 || m != 4 {
		t.Errorf("%d runs were trained and %d panels played, want 1 and 4:\n%s", n, m, errs)
	}
	if !strings.Contains(errs, "other tasks") {
		t.Errorf("nothing says that a panel's tasks are others:\n%s", errs)
	}
	for row, before := range kept {
		after := fileText(t, filepath.Join(keep, row+"-1.json"))
		head := strings.TrimSuffix(before, "]}\n") // all but the end of the cells
		if !strings.HasPrefix(after, head) || !strings.Contains(after, `"cell":"constrained`) {
			t.Errorf("%s was\n%s\nand is\n%s", row, before, after)
		}
	}
	if again, errs := must(t, 0, args...); again != page || strings.Contains(errs, "skillmaster ") {
		t.Errorf("the first cells are others now, or were played again:\n%s%s", errs, again)
	}
	spoil(t, filepath.Join(keep, "full-1.json"), `"weights":"[0-9a-f]+"`, `"weights":"0"`)
	_, errs = must(t, 0, append(args, "--cells", "constrained-off")...)
	if !strings.Contains(errs, "other weights") || strings.Contains(errs, "skillmaster train") {
		t.Errorf("nothing says that the weights are others:\n%s", errs)
	}
	if again, _ := must(t, 0, args...); again != page {
		t.Errorf("played again it is\n%s", again)
	}
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// spoil replaces what a pattern finds in a file.
func spoil(t *testing.T, path, pattern, by string) {
	t.Helper()
	before := fileText(t, path)
	after := regexp.MustCompile(pattern).ReplaceAllString(before, by)
	if after == before {
		t.Fatalf("%s has no %s", path, pattern)
	}
	if err := os.WriteFile(path, []byte(after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What make quick runs, with less of everything, gives all rows in all cells.
func TestQuick(t *testing.T) {
	_, line, ok := strings.Cut(fileText(t, filepath.Join("..", "..", "Makefile")), "\nQUICK = ")
	if !ok {
		t.Fatal("the Makefile has no QUICK")
	}
	line, _, _ = strings.Cut(line, "\nquick:")
	dir := t.TempDir()
	args := append([]string{"bench", "method"}, strings.Fields(strings.ReplaceAll(line, "\\\n", " "))...)
	args = append(args, "--dir", dir, "--keep", filepath.Join(dir, "kept"), "--iterations", "1")
	for _, s := range []string{
		"model.layers=1", "corpus=50", "train.warm.updates=4", "train.warm.round=4", "train.warm.tokens=500", "train.tasks=1", "train.group=2",
		"train.probe.tasks=1", "train.gate.tasks=1", `world.sizes={"train":12,"probe":12,"gate":12,"valid":6,"report":6}`,
	} {
		args = append(args, "--set", s)
	}
	out, _ := must(t, 0, args...)
	for _, cell := range []string{"on", "off", "constrained", "online"} {
		_, table, ok := strings.Cut(out, "### Panel report, "+cellTitles[cell]+"\n")
		if !ok {
			t.Errorf("there is no table of %q:\n%s", cell, out)
		}
		table, _, _ = strings.Cut(table, "\n#")
		for _, row := range []string{"cloned", "full", "paper", "no-skills", "no-review", "no-utility", "joint", "clip-zero"} {
			if skillless(row) && without[cell] == "" {
				continue
			}
			if !strings.Contains(table, "| "+row+" | 1 | 6 |") {
				t.Errorf("%s is not in the table of %q:\n%s", row, cell, table)
			}
		}
	}
}

// rest is a page without its head, which names the command.
func rest(t *testing.T, page string) string {
	t.Helper()
	_, after, ok := strings.Cut(page, "Every run of a seed")
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
	laid, _ := must(t, 0, "train", "--print-config", "--ablation", "paper")
	if preset, _ := must(t, 0, "train", "--print-config", "--preset", "paper"); laid != preset {
		t.Error("--ablation paper and --preset paper are not the same over the default")
	}
	_, errs := must(t, 2, "train", "--ablation", "nothing")
	for name := range ablations {
		if !strings.Contains(errs, name) {
			t.Errorf("the answer to a wrong name does not list %s", name)
		}
	}
	must(t, 2, "train", "--resume", "--run", t.TempDir(), "--ablation", "joint")
}

// Two seeds of four tasks: differences of +50 and 0 points; mean 25, sd 35.36, half 12.706 · 35.36/√2 = 317.65. Tasks:
// the second is lost in one seed, c and d are gained, so the mean over tasks is 0.25 for two seeds and its bootstrap lies
// between 0 and 50 points.
func TestDifferencesByHand(t *testing.T) {
	base := seen{seeds: []uint64{1, 2}, results: []*panelResult{{Won: "1000"}, {Won: "1100"}}}
	other := seen{seeds: []uint64{2, 1, 3}, results: []*panelResult{{Won: "1100"}, {Won: "1011"}, {Won: "1111"}}}
	seeds, tasks := differences(other, base)
	if seeds != "+25.0 [-292.6, +342.6]" || tasks != "[+0.0, +50.0]" {
		t.Errorf("got %s and %s", seeds, tasks)
	}
	if s, _ := differences(seen{}, base); s != "–" {
		t.Errorf("a row without runs differs by %s", s)
	}
	same, none := differences(base, base)
	if same != "+0.0 [+0.0, +0.0]" || none != "[+0.0, +0.0]" {
		t.Errorf("a row differs from itself: %s %s", same, none)
	}
	elsewhere := seen{seeds: []uint64{1}, results: []*panelResult{{Won: "1111", PanelHash: "another"}}}
	if s, _ := differences(elsewhere, base); s != "–" {
		t.Errorf("two panels were compared: %s", s)
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
