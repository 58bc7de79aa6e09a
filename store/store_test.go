package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"skillmaster/episode"
	"skillmaster/probe"
	"skillmaster/skill"
	"skillmaster/train"
)

// clock is a time that moves on by a second each time it is asked for.
func clock() func() time.Time {
	t := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time { t = t.Add(time.Second); return t }
}

// grown returns a bank with n skills.
func grown(t testing.TB, n int) skill.Bank {
	t.Helper()
	var b skill.Bank
	for i := range n {
		next, outcome := b.Apply(proposal(i), skill.Permission{Category: skill.General})
		if outcome != skill.Added {
			t.Fatalf("edit %d: %v", i, outcome)
		}
		b = next
	}
	return b
}

// proposals say different things, so that none is a duplicate of another.
func proposal(i int) skill.Edit {
	words := []string{"open closed drawers first", "carry apples straight home", "wash greasy plates before leaving", "look behind tall lamps", "count every saucer twice"}
	w := words[i%len(words)]
	return skill.Edit{Op: skill.Propose, Category: skill.General, Title: fmt.Sprintf("Advice %d: %s", i, w), Principle: fmt.Sprintf("Rule number %d says to %s.", i, w), When: "always"}
}

func manifest() Manifest {
	return Manifest{
		Program: "test 1", Config: json.RawMessage(`{"a":1}`), Seed: math.MaxUint64 - 3, World: "a tiny world",
		Command: []string{"skillmaster", "train"},
		Panels:  []Panel{PanelOf(episode.Panel{Name: "train", Tasks: []episode.Task{{ID: "t1"}, {ID: "t2"}}})},
	}
}

func newRun(t testing.TB) *Run {
	t.Helper()
	r, err := Create(t.Context(), filepath.Join(t.TempDir(), "run"), manifest(), clock())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func reopen(t testing.TB, dir string) *Run {
	t.Helper()
	r, err := Open(t.Context(), dir, 0, clock())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// round is what a tiny run reports in round i: two warm-start rounds, then learning with a commit each.
func round(t testing.TB, i int) (train.Report, *train.Checkpoint, func(io.Writer) error) {
	t.Helper()
	r := train.Report{
		Phase: train.WarmStart, Round: i, PolicyVersion: i + 1,
		Metrics: map[string]float64{"learn/loss": 1 / float64(i+1)},
		Seconds: map[string]float64{"time/update_seconds": float64(time.Now().Nanosecond())},
	}
	c := &train.Checkpoint{Phase: train.WarmStart, Round: i + 1, PolicyVersion: i + 1, Tokens: int64(100 * i)}
	if i == 1 {
		c.Phase, c.Round = train.Learning, 0
	}
	bank := grown(t, 0)
	if i >= 2 {
		before := grown(t, i-2)
		bank = grown(t, i-1)
		tr := episode.Trajectory{
			Task: episode.Task{ID: "t1", Family: "place"}, Seed: episode.Seed(math.MaxUint64 - uint64(i)), BankHash: before.Hash(), PolicyVersion: i,
			Turns:  []episode.Turn{{Prompt: []int32{1, 2}, Completion: []int32{3}, LogProbs: []float32{-0.5}, Text: "go"}},
			Steps:  []episode.Step{{Action: "go", Observation: "you go", Reward: 10}},
			Review: &episode.Review{Edit: proposal(i - 2), Outcome: skill.Added}, EnvReturn: 10, Success: true, Stop: episode.Succeeded,
			ShownSkills: []string{"dyn_001"},
		}
		r.Phase, r.Round = train.Learning, i-2
		r.Groups = []episode.Group{{Task: tr.Task, Trajectories: []episode.Trajectory{tr, tr}}}
		r.Credits = [][]train.Credit{{{Action: 10, Review: 0.5, Measured: true, ActionAdvantage: -0.25}, {Action: 9, ReviewAdvantage: 0.125}}}
		r.Tests = []train.Test{
			{Pending: probe.Pending{Edit: proposal(i), Provenance: skill.Provenance{Iteration: 3, Seed: math.MaxUint64}, Pairs: 4 * i, Wins: i}, Verdict: probe.NotMeasured("no probe task"), Decision: probe.Undecided},
			{Pending: probe.Pending{Edit: proposal(i - 2)}, Decision: probe.Reject, Why: "it does harm"},
		}
		r.Judgements = []train.Judgement{
			{Group: 0, Member: 1, Edit: proposal(i - 2), Verdict: probe.Verdict{Measured: true, Utility: 0.5, Wins: 1, Pairs: []probe.Pair{{Task: "t2", Delta: 0.5}}}},
			{Group: 0, Member: 0, Edit: proposal(i - 2), Verdict: probe.NotMeasured("no probe task")},
		}
		r.Commits = []skill.Commit{{Parent: before.Hash(), Hash: bank.Hash(), Edit: proposal(i - 2), Outcome: skill.Added, Reason: "passed", Bank: bank}}
		r.Evaluations = []train.Evaluation{{Panel: "valid", Seed: math.MaxUint64, Constrained: true, Results: []train.Result{{Task: "t2", Family: "look", Success: true, Steps: 3, Stop: episode.Succeeded, Actions: []episode.Action{"a", "b"}}}}}
		c.Phase, c.Round, c.Best = train.Learning, i-1, []float64{0.5, 0.7, 0.7, 0.7, 0.7, 0.7}[i-2]
	}
	r.Bank, c.Bank = bank.Hash(), bank
	return r, c, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("weights "+strconv.Itoa(i), 1000))
		return err
	}
}

func keep(t testing.TB, r *Run, rounds ...int) {
	t.Helper()
	for _, i := range rounds {
		rep, c, w := round(t, i)
		if err := r.Keep(t.Context(), rep, c, w); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
}

func digestOf(t testing.TB, r *Run) string {
	t.Helper()
	d, err := r.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestReadsWhatWasKept(t *testing.T) {
	r := newRun(t)
	keep(t, r, 0, 1, 2, 3)
	dir := r.Dir()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	v, err := View(t.Context(), dir, clock())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	m, err := v.Manifest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := manifest()
	want.Created = m.Created
	if m.Created.IsZero() || m.Bank.Hash() != want.Bank.Hash() {
		t.Errorf("manifest has created %v and bank %s", m.Created, m.Bank.Hash())
	}
	m.Bank, want.Bank = skill.Bank{}, skill.Bank{}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("manifest is %+v, want %+v", m, want)
	}
	rep, _, _ := round(t, 3)
	tr, err := v.Trajectory(t.Context(), 4, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Recorded{rep.Groups[0].Trajectories[1], &rep.Credits[0][1]}); !reflect.DeepEqual(tr, want) {
		t.Errorf("trajectory is %+v, want %+v", tr, want)
	}
	tests, err := v.Tests(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Tested{rep.Tests[0], Round{Report: 4, Phase: train.Learning, Round: 1}}); len(tests) != 2 || !reflect.DeepEqual(tests[0], want) {
		t.Errorf("tests of the last report are %+v, want %+v first", tests, want)
	}
	if all, err := v.Tests(t.Context(), 0); err != nil || len(all) != 4 {
		t.Errorf("all tests are %+v, %v", all, err)
	}
	families, err := v.Families(t.Context(), 3)
	if want := []Tally{{Report: 4, Family: "place", Episodes: 2, Success: 2}}; err != nil || !reflect.DeepEqual(families, want) {
		t.Errorf("families are %+v, %v, want %+v", families, err, want)
	}
	uses, err := v.Uses(t.Context(), 0)
	if want := (Tally{Report: 3, Skill: "dyn_001", Family: "place", Episodes: 2, Success: 2}); err != nil || len(uses) != 2 || uses[0] != want {
		t.Errorf("uses are %+v, %v, want %+v first", uses, err, want)
	}
	js, err := v.Judgements(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(js, rep.Judgements) {
		t.Errorf("judgements are %+v, want %+v", js, rep.Judgements)
	}
	es, err := v.Evaluations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(es) != 2 || es[1].Report != 4 || !reflect.DeepEqual(es[1].Evaluation, rep.Evaluations[0]) {
		t.Errorf("evaluations are %+v, want %+v last", es, rep.Evaluations[0])
	}
	cs, err := v.Commits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(cs) != 2 || cs[1].Hash != rep.Bank || cs[1].Commit.Bank.Hash() != rep.Bank || cs[1].Kind != Edited || cs[1].Edit != rep.Commits[0].Edit {
		t.Errorf("commits are %+v", cs)
	}
	ps, err := v.Metrics(t.Context(), "learn/loss")
	if err != nil {
		t.Fatal(err)
	}
	if len(ps) != 4 || ps[3].Value != 0.25 || ps[3].Phase != train.Learning || ps[3].Round.Round != 1 || ps[1].Phase != train.WarmStart {
		t.Errorf("series is %+v", ps)
	}
	heads, err := v.Trajectories(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	if len(heads) != 2 || heads[1].Stop != episode.Succeeded || heads[1].Tokens != 3 || heads[1].Outcome != skill.Added.String() {
		t.Errorf("trajectory heads are %+v", heads)
	}
}

func TestRefusals(t *testing.T) {
	t.Run("no run", func(t *testing.T) {
		for name, open := range opens {
			if err := open(t, t.TempDir()); !errors.Is(err, ErrNoRun) {
				t.Errorf("%s: %v, want ErrNoRun", name, err)
			}
		}
	})
	t.Run("a run already", func(t *testing.T) {
		r := newRun(t)
		keep(t, r, 0)
		before := digestOf(t, r)
		r.Close()
		if _, err := Create(t.Context(), r.Dir(), manifest(), clock()); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "resume") {
			t.Errorf("%v, want ErrExists with what to do", err)
		}
		if got := digestOf(t, reopen(t, r.Dir())); got != before {
			t.Error("the run was changed")
		}
	})
	t.Run("checkpoints without a database", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "checkpoints"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Create(t.Context(), dir, manifest(), clock()); !errors.Is(err, ErrExists) {
			t.Errorf("%v, want ErrExists", err)
		}
	})
	t.Run("another format", func(t *testing.T) {
		r := newRun(t)
		if _, err := r.db.ExecContext(t.Context(), "PRAGMA user_version = 99"); err != nil {
			t.Fatal(err)
		}
		r.Close()
		for name, open := range opens {
			err := open(t, r.Dir())
			if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "format 99") || !strings.Contains(err.Error(), "test 1") {
				t.Errorf("%s: %v, want ErrVersion with both versions", name, err)
			}
		}
	})
	t.Run("read only", func(t *testing.T) {
		r := newRun(t)
		v, err := View(t.Context(), r.Dir(), clock())
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		rep, c, w := round(t, 0)
		if err := v.Keep(t.Context(), rep, c, w); !errors.Is(err, ErrReadOnly) {
			t.Errorf("keep: %v, want ErrReadOnly", err)
		}
		if _, err := v.Rewind(t.Context(), Saved{}); !errors.Is(err, ErrReadOnly) {
			t.Errorf("rewind: %v, want ErrReadOnly", err)
		}
		if err := v.Record(t.Context(), train.Evaluation{Panel: "report"}, []string{"eval"}); err != nil {
			t.Errorf("a reader's evaluation beside a writer: %v", err)
		}
	})
}

var opens = map[string]func(*testing.T, string) error{
	"open": func(t *testing.T, dir string) error {
		r, err := Open(t.Context(), dir, 0, clock())
		if err == nil {
			r.Close()
		}
		return err
	},
	"view": func(t *testing.T, dir string) error {
		r, err := View(t.Context(), dir, clock())
		if err == nil {
			r.Close()
		}
		return err
	},
}

// A damaged database is reported, set aside under another name with all its bytes, and never written to nor taken for a
// run that has not begun.
func TestDamagedDatabaseIsSetAside(t *testing.T) {
	for name, harm := range map[string]func([]byte) []byte{
		"text": func([]byte) []byte {
			return []byte("not a database at all, but long enough to have a header, says somebody who wrote it by hand")
		},
		"empty":         func([]byte) []byte { return nil },
		"half":          func(b []byte) []byte { return b[:len(b)/2] },
		"zeroed middle": func(b []byte) []byte { clear(b[8192:16384]); return b },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			keep(t, r, 0, 1, 2)
			r.Close()
			path := filepath.Join(r.Dir(), "run.db")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			harmed := harm(slices.Clone(b))
			if err := os.WriteFile(path, harmed, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := opens["view"](t, r.Dir()); err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("a reader got %v", err)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != string(harmed) {
				t.Errorf("a reader changed the file (%v)", err)
			}
			if err := opens["open"](t, r.Dir()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "run.db.damaged") {
				t.Errorf("%v, want ErrDamaged with where it is now", err)
			}
			if after, err := os.ReadFile(path + ".damaged"); err != nil || string(after) != string(harmed) {
				t.Errorf("the file was changed (%v)", err)
			}
			for how, open := range opens {
				if err := open(t, r.Dir()); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoRun) {
					t.Errorf("%s later: %v, want ErrDamaged", how, err)
				}
			}
			if _, err := Create(t.Context(), r.Dir(), manifest(), clock()); !errors.Is(err, ErrExists) {
				t.Errorf("create over it: %v, want ErrExists", err)
			}
			if err := os.WriteFile(path, b, 0o600); err != nil { // a copy is put back, and damaged again
				t.Fatal(err)
			}
			reopen(t, r.Dir()).Close()
			if err := os.WriteFile(path, harmed, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := opens["open"](t, r.Dir()); !errors.Is(err, ErrDamaged) {
				t.Errorf("damaged again: %v", err)
			}
			if _, err := os.Stat(path + ".damaged2"); err != nil {
				t.Errorf("the second one: %v", err)
			}
		})
	}
}

func TestForeignDatabaseStays(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run.db")
	db, err := sql.Open("sqlite", dsn(path, "rwc", 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE other (x)"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if err := opens["open"](t, dir); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("somebody else's database was moved: %v", err)
	}
}

func TestSalvage(t *testing.T) {
	r := newRun(t)
	keep(t, r, 0, 1, 2, 3)
	var want []string
	for _, b := range []skill.Bank{{}, grown(t, 1), grown(t, 2)} {
		want = append(want, b.Hash())
	}
	r.Close()
	path := filepath.Join(r.Dir(), "run.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hashes := func(banks []skill.Bank) (out []string) {
		for _, b := range banks {
			out = append(out, b.Hash())
		}
		return out
	}
	banks, lost, err := Salvage(t.Context(), path)
	if err != nil || len(lost) > 0 || !slices.Equal(hashes(banks), want) {
		t.Errorf("of a whole file: %v, lost %v, %v; want %v", hashes(banks), lost, err, want)
	}
	rotten := bytes.ReplaceAll(slices.Clone(whole), []byte("Rule number 1"), []byte("Rule number I"))
	if err := os.WriteFile(path, rotten, 0o600); err != nil {
		t.Fatal(err)
	}
	banks, lost, err = Salvage(t.Context(), path)
	if err != nil || len(lost) != 1 || !slices.Equal(hashes(banks), want[:2]) {
		t.Errorf("of a rotten bank: %v, lost %v, %v", hashes(banks), lost, err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, rotten) {
		t.Errorf("the file was changed (%v)", err)
	}
	for name, content := range map[string][]byte{"text": []byte(strings.Repeat("no database ", 100)), "nothing": nil} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Salvage(t.Context(), path); !errors.Is(err, ErrDamaged) {
			t.Errorf("of %s: %v, want ErrDamaged", name, err)
		}
	}
	if _, _, err := Salvage(t.Context(), filepath.Join(r.Dir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
}

func TestOneWriterManyReaders(t *testing.T) {
	r := newRun(t)
	keep(t, r, 0)
	if _, err := Open(t.Context(), r.Dir(), 0, clock()); !errors.Is(err, ErrLocked) {
		t.Fatalf("a second writer got %v, want ErrLocked", err)
	}
	v, err := View(t.Context(), r.Dir(), clock())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	keep(t, r, 1)
	if reps, err := v.Reports(t.Context(), 0); err != nil || len(reps) != 2 {
		t.Fatalf("the reader sees %v (%v), want two reports", reps, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatalf("closing twice: %v", err)
	}
	reopen(t, r.Dir())
}

func TestCancelled(t *testing.T) {
	r := newRun(t)
	before := digestOf(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rep, c, w := round(t, 0)
	if err := r.Keep(ctx, rep, c, w); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if digestOf(t, r) != before {
		t.Error("a cancelled report left something")
	}
	keep(t, r, 0)
}

func TestNotANumber(t *testing.T) {
	r := newRun(t)
	rep, c, w := round(t, 0)
	rep.Metrics["learn/kl_k3"], rep.Metrics["learn/norm"] = math.NaN(), math.Inf(1)
	if err := r.Keep(t.Context(), rep, c, w); err != nil {
		t.Fatal(err)
	}
	ps, err := r.Metrics(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(ps) != 1 || ps[0].Key != "learn/loss" {
		t.Errorf("metrics read as %+v, want the finite one alone", ps)
	}
	ns, err := r.Numbers(t.Context(), 0)
	if err != nil || len(ns) != 1 {
		t.Fatalf("%d reports, %v", len(ns), err)
	}
	if got, want := ns[0].NotFinite, []string{"learn/kl_k3", "learn/norm"}; !slices.Equal(got, want) || len(ns[0].Metrics) != 1 {
		t.Errorf("not finite: %q among %v, want %q", got, ns[0].Metrics, want)
	}
	for name, spoil := range map[string]func(*train.Report, *train.Checkpoint){
		"return":  func(r *train.Report, _ *train.Checkpoint) { r.Groups[0].Trajectories[1].EnvReturn = math.NaN() },
		"verdict": func(r *train.Report, _ *train.Checkpoint) { r.Judgements[0].Verdict.Utility = math.Inf(-1) },
		"result":  func(r *train.Report, _ *train.Checkpoint) { r.Evaluations[0].Results[0].Return = math.NaN() },
		"best":    func(_ *train.Report, c *train.Checkpoint) { c.Best = math.NaN() },
	} {
		before := digestOf(t, r)
		rep, c, w := round(t, 2)
		spoil(&rep, c)
		if err := r.Keep(t.Context(), rep, c, w); err == nil {
			t.Errorf("%s: a number that is none was taken", name)
		}
		if digestOf(t, r) != before {
			t.Errorf("%s: something of the refused report was stored", name)
		}
	}
}

func TestDigest(t *testing.T) {
	a, b := newRun(t), newRun(t)
	keep(t, a, 0, 1, 2)
	keep(t, b, 0, 1, 2)
	if digestOf(t, a) != digestOf(t, b) {
		t.Fatal("equal runs at different times have different digests")
	}
	for name, change := range map[string]func(*train.Report, *train.Checkpoint){
		"metric": func(r *train.Report, _ *train.Checkpoint) {
			r.Metrics["learn/loss"] = math.Nextafter(r.Metrics["learn/loss"], 2)
		},
		"absent":     func(r *train.Report, _ *train.Checkpoint) { delete(r.Metrics, "learn/loss") },
		"trajectory": func(r *train.Report, _ *train.Checkpoint) { r.Groups[0].Trajectories[0].Turns[0].Completion[0]++ },
		"judgement":  func(r *train.Report, _ *train.Checkpoint) { r.Judgements[0].Verdict.Mean = 3 },
		"commit":     func(r *train.Report, _ *train.Checkpoint) { r.Commits[0].Reason = "another" },
		"result":     func(r *train.Report, _ *train.Checkpoint) { r.Evaluations[0].Results[0].Actions[1] = "c" },
		"checkpoint": func(_ *train.Report, c *train.Checkpoint) { c.Tokens++ },
	} {
		x := newRun(t)
		keep(t, x, 0, 1)
		rep, c, w := round(t, 2)
		change(&rep, c)
		if err := x.Keep(t.Context(), rep, c, w); err != nil {
			t.Fatal(err)
		}
		if digestOf(t, x) == digestOf(t, a) {
			t.Errorf("%s: the digest does not see it", name)
		}
	}
}

func TestDocument(t *testing.T) {
	r := newRun(t)
	if _, err := r.Document(t.Context(), "tokenizer.json"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("%v, want ErrNotFound", err)
	}
	if err := r.KeepDocument(t.Context(), "tokenizer.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() ([]byte, error){
		"record": func() ([]byte, error) { return r.Document(t.Context(), "tokenizer.json") },
		"copy":   func() ([]byte, error) { return os.ReadFile(filepath.Join(r.Dir(), "tokenizer.json")) },
	} {
		if b, err := read(); err != nil || string(b) != "{}" {
			t.Errorf("%s reads %q, %v", name, b, err)
		}
	}
}
