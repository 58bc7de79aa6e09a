package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skillmaster/skill"
	"skillmaster/train"
)

// TestMain lets a test run this binary again as a process that kills itself (SIGKILL where there is one) before one
// step of keeping round 4, or of creating the run.
func TestMain(m *testing.M) {
	if dir := os.Getenv("STORE_TEST_DIR"); dir != "" {
		os.Exit(victim(dir, os.Getenv("STORE_TEST_KILL_BEFORE"), os.Getenv("STORE_TEST_CREATE") == "1"))
	}
	os.Exit(m.Run())
}

// heavy is a state that does not fit a buffer.
var heavy = bytes.Repeat([]byte("weights "), 1<<19)

func victim(dir, at string, creating bool) int {
	ctx := context.Background()
	steps := disk{before: func(step string) error {
		fmt.Println("step:" + step)
		if step != at {
			return nil
		}
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			return err
		}
		select {} // until it has happened
	}}
	var r *Run
	var err error
	if creating {
		_, err = create(ctx, dir, manifest(), clock(), steps)
	} else if r, err = Open(ctx, dir, 0, clock()); err == nil {
		r.disk = steps
		rep, c, _ := round(&testing.T{}, 4)
		err = r.Keep(ctx, rep, c, func(w io.Writer) error {
			if _, err := w.Write(heavy[:len(heavy)/2]); err != nil {
				return err
			}
			return steps.do("write the second half of the weights", func() error {
				_, err := w.Write(heavy[len(heavy)/2:])
				return err
			})
		})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// run starts the victim and returns the steps it came to, and whether it was killed.
func runVictim(t *testing.T, dir, at string, creating bool) (steps []string, killed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_TEST_DIR="+dir, "STORE_TEST_KILL_BEFORE="+at, "STORE_TEST_CREATE="+map[bool]string{true: "1"}[creating])
	out, err := cmd.Output()
	for line := range strings.Lines(string(out)) {
		if s, ok := strings.CutPrefix(strings.TrimSpace(line), "step:"); ok {
			steps = append(steps, s)
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		t.Fatalf("kill before %q: the process failed: %s", at, out)
	}
	return steps, err != nil
}

// prepareRun makes a run of the rounds before n in a folder of its own.
func prepareRun(t *testing.T, n int) string {
	t.Helper()
	r := newRun(t)
	for i := range n {
		keep(t, r, i)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return r.Dir()
}

// resume opens a run as training does.
func resume(t *testing.T, dir string) (*Run, Saved, []Damage) {
	t.Helper()
	r := reopen(t, dir)
	s, damage, err := r.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rewind(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return r, s, damage
}

// A process killed before any step of keeping a report leaves all of it or nothing, and going on from there ends like a
// run that was never killed.
func TestKilledAtEveryStep(t *testing.T) {
	keepHeavy := func(r *Run) {
		rep, c, _ := round(t, 4)
		if err := r.Keep(t.Context(), rep, c, bytesWriter(heavy)); err != nil {
			t.Fatal(err)
		}
	}
	whole := newRun(t)
	keep(t, whole, 0, 1, 2, 3)
	keepHeavy(whole)
	want := digestOf(t, whole)
	steps, _ := runVictim(t, prepareRun(t, 4), "", false)
	if len(steps) < 7 {
		t.Fatalf("keeping takes the steps %q: the test would miss some", steps)
	}
	lost := 0
	for _, at := range steps {
		dir := prepareRun(t, 4)
		if _, killed := runVictim(t, dir, at, false); !killed {
			t.Fatalf("%s: the process was not killed", at)
		}
		r, s, damage := resume(t, dir)
		if len(damage) > 0 {
			t.Errorf("%s: %v", at, damage)
		}
		switch s.Number {
		case 4:
			lost++
			keepHeavy(r)
		case 5:
		default:
			t.Errorf("%s: resumes from checkpoint %d", at, s.Number)
		}
		if got := digestOf(t, r); got != want {
			t.Errorf("killed before %q: the records differ from an uninterrupted run's", at)
		}
	}
	if lost != len(steps)-1 { // all but the last step, removing an old file, come before the commit
		t.Errorf("%d of %d kills lost the round", lost, len(steps))
	}
}

func TestKilledWhileCreating(t *testing.T) {
	steps, _ := runVictim(t, filepath.Join(t.TempDir(), "run"), "", true)
	if len(steps) < 4 {
		t.Fatalf("creating takes the steps %q", steps)
	}
	for _, at := range steps {
		dir := filepath.Join(t.TempDir(), "run")
		if _, killed := runVictim(t, dir, at, true); !killed {
			t.Fatalf("%s: the process was not killed", at)
		}
		r, err := Open(t.Context(), dir, 0, clock())
		if errors.Is(err, ErrNoRun) {
			r, err = Create(t.Context(), dir, manifest(), clock())
		}
		if err != nil {
			t.Errorf("killed before %q: %v", at, err)
			continue
		}
		keep(t, r, 0)
		r.Close()
	}
}

// The newest checkpoint file is harmed: it is set aside and reported, the one before takes its place, and what came
// after that is done again.
func TestDamagedCheckpoint(t *testing.T) {
	whole := newRun(t)
	keep(t, whole, 0, 1, 2, 3)
	want := digestOf(t, whole)
	for name, c := range map[string]struct {
		harm func([]byte) []byte
		says string
	}{
		"cut in half": {func(b []byte) []byte { return b[:len(b)/2] }, "4500 bytes of 9000"},
		"one bit":     {func(b []byte) []byte { b[77] ^= 1; return b }, "SHA-256"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := prepareRun(t, 4)
			path := (&Run{dir: dir}).checkpointPath(4)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			harmed := c.harm(b)
			if err := os.WriteFile(path, harmed, 0o600); err != nil {
				t.Fatal(err)
			}
			v, err := View(t.Context(), dir, clock())
			if err != nil {
				t.Fatal(err)
			}
			if s, damage, err := v.Latest(t.Context()); err != nil || s.Number != 3 || len(damage) != 1 || damage[0].Aside != "" {
				t.Errorf("a reader finds checkpoint %d, %v, %v", s.Number, damage, err)
			}
			v.Close()
			r, s, damage := resume(t, dir)
			if s.Number != 3 || len(damage) != 1 || !errors.Is(damage[0].Why, ErrDamaged) || damage[0].Path != path || !strings.Contains(damage[0].String(), c.says) {
				t.Fatalf("resumes from checkpoint %d after %v", s.Number, damage)
			}
			if head, err := r.Head(t.Context()); err != nil || head != s.Bank.Hash() {
				t.Errorf("the bank is %s (%v), the checkpoint has %s", head, err, s.Bank.Hash())
			}
			keep(t, r, 3)
			if digestOf(t, r) != want {
				t.Error("the records differ from an uninterrupted run's")
			}
			if aside, err := os.ReadFile(damage[0].Aside); err != nil || !bytes.Equal(aside, harmed) {
				t.Errorf("the damaged file was overwritten (%v)", err)
			}
		})
	}
}

func TestWriteReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := (disk{}).write(path, bytesWriter([]byte("old"))); err != nil {
		t.Fatal(err)
	}
	_, err := (disk{}).write(path, func(w io.Writer) error {
		if _, err := w.Write(heavy); err != nil {
			return err
		}
		return errors.New("half-way")
	})
	if err == nil {
		t.Error("a failed write is no error")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
		t.Errorf("the file has %d bytes (%v), want the old one", len(b), err)
	}
	if _, err := os.Stat(path + ".tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a file was left: %v", err)
	}
}

func TestNoCheckpoint(t *testing.T) {
	r := newRun(t)
	if _, _, err := r.Latest(t.Context()); !errors.Is(err, ErrNoCheckpoint) {
		t.Errorf("a new run: %v, want ErrNoCheckpoint", err)
	}
	rep, _, _ := round(t, 0)
	if err := r.Keep(t.Context(), rep, nil, nil); err != nil {
		t.Fatal(err)
	}
	if w, err := r.Rewind(t.Context(), Saved{}); err != nil || w.Reports != 1 {
		t.Errorf("took back %+v, %v; want one report", w, err)
	}
	keep(t, r, 0, 1)
	for n := 1; n <= 2; n++ {
		if err := os.WriteFile(r.checkpointPath(n), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, damage, err := r.Latest(t.Context()); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoCheckpoint) || len(damage) != 2 {
		t.Errorf("all damaged: %v, %v; want ErrDamaged, never a first run", damage, err)
	}
}

// Only the newest two checkpoint files stay, besides the end of the warm start and the best.
func TestOldCheckpointFilesGo(t *testing.T) {
	r := newRun(t)
	for i, want := range [][]int{{1}, {1, 2}, {2, 3}, {2, 3, 4}, {2, 4, 5}, {2, 4, 5, 6}, {2, 4, 6, 7}} {
		keep(t, r, i)
		files, err := os.ReadDir(filepath.Join(r.Dir(), "checkpoints"))
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, f := range files {
			n, err := strconv.Atoi(strings.TrimSuffix(f.Name(), ".safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, n)
		}
		if !slices.Equal(got, want) {
			t.Errorf("after round %d files %v are there, want %v", i, got, want)
		}
	}
	// Round 1 ends the warm start; round 3 is the first to reach 0.7.
	if s, err := r.Warm(t.Context()); err != nil || s.Number != 2 {
		t.Errorf("warm is checkpoint %d, %v", s.Number, err)
	}
	best, err := r.Best(t.Context())
	if err != nil || best.Number != 4 {
		t.Errorf("best is checkpoint %d, %v", best.Number, err)
	}
	if w, err := r.Rewind(t.Context(), best); err != nil || w.Reports != 3 {
		t.Errorf("took back %+v, %v", w, err)
	}
	if _, err := os.Stat(r.checkpointPath(7)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a checkpoint that was taken back is still there: %v", err)
	}
}

func TestDiskFull(t *testing.T) {
	full := func(step string) disk {
		return disk{before: func(s string) error {
			if strings.HasPrefix(s, step) {
				return &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
			}
			return nil
		}}
	}
	for name, fill := range map[string]func(r *Run){
		"weights": func(r *Run) { r.disk = full("write") },
		"folder":  func(r *Run) { r.disk = full("sync") },
		"database": func(r *Run) {
			r.db.SetMaxOpenConns(1) // the limit is one of the connection
			if _, err := r.db.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			keep(t, r, 0, 1)
			before := digestOf(t, r)
			fill(r)
			rep, c, w := round(t, 2)
			rep.Groups[0].Trajectories[0].Turns[0].Text = noise()
			if err := r.Keep(t.Context(), rep, c, w); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "free some space") {
				t.Fatalf("%v, want ErrFull and what to do", err)
			}
			r.Close()
			again, s, damage := resume(t, r.Dir())
			if s.Number != 2 || len(damage) > 0 || digestOf(t, again) != before {
				t.Errorf("resumes from checkpoint %d, %v", s.Number, damage)
			}
			keep(t, again, 2)
		})
	}
}

// noise is text that does not compress to nothing.
func noise() string {
	b := make([]byte, 200_000)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = 'a' + byte(x>>27)
	}
	return string(b)
}

func TestConflict(t *testing.T) {
	r := newRun(t)
	keep(t, r, 0, 1, 2)
	before := digestOf(t, r)
	rep, c, w := round(t, 4) // its commit starts from the bank after round 3, which never was
	if err := r.Keep(t.Context(), rep, c, w); !errors.Is(err, ErrConflict) {
		t.Errorf("commit from another bank: %v, want ErrConflict", err)
	}
	rep, c, w = round(t, 3)
	rep.Commits[0].Bank = grown(t, 1)
	if err := r.Keep(t.Context(), rep, c, w); err == nil {
		t.Error("a commit whose bank is not the one it names was taken")
	}
	rep, c, w = round(t, 3)
	rep.Commits = nil
	if err := r.Keep(t.Context(), rep, c, w); !errors.Is(err, ErrConflict) {
		t.Errorf("a bank without a commit: %v, want ErrConflict", err)
	}
	if digestOf(t, r) != before {
		t.Error("a refused report left something")
	}
	keep(t, r, 3)
}

func TestRollbackCarriesIntoTraining(t *testing.T) {
	r := newRun(t)
	keep(t, r, 0, 1, 2, 3)
	head, err := r.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old := grown(t, 1)
	if err := r.Commit(t.Context(), old.Hash(), old, RolledBack, "worse"); !errors.Is(err, ErrConflict) {
		t.Errorf("from another bank: %v, want ErrConflict", err)
	}
	if err := r.Commit(t.Context(), head, old, RolledBack, "worse"); err != nil {
		t.Fatal(err)
	}
	rep, _, _ := round(t, 4)
	rep.Commits, rep.Bank = nil, old.Hash()
	if err := r.Keep(t.Context(), rep, nil, nil); err != nil { // lost with the process: it had no checkpoint
		t.Fatal(err)
	}
	if err := r.Commit(t.Context(), old.Hash(), grown(t, 2), RolledBack, ""); err == nil {
		t.Error("a commit was taken on top of rounds that resuming takes back")
	}
	dir := r.Dir()
	r.Close()
	r, s, _ := resume(t, dir)
	if s.Bank.Hash() != old.Hash() || s.Number != 4 {
		t.Errorf("training goes on from checkpoint %d with bank %s, want %s", s.Number, s.Bank.Hash(), old.Hash())
	}
	cs, err := r.Commits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(cs) != 3 || cs[2].Kind != RolledBack || cs[2].Parent != head || cs[2].Reason != "worse" || cs[2].Report != 4 {
		t.Errorf("journal is %+v", cs)
	}
	wrong, banks, commits, err := r.CheckBanks(t.Context())
	if err != nil || len(wrong) > 0 || commits != 3 || banks != 3 {
		t.Errorf("check: %q, %d banks, %d commits, %v", wrong, banks, commits, err)
	}
}

func TestCheckBanksSeesHarm(t *testing.T) {
	for name, harm := range map[string]string{
		"bank changed":   "UPDATE banks SET content = replace(content, 'Rule number 0', 'Rule number O')",
		"commit missing": "DELETE FROM commits WHERE seq = 1",
		"parent changed": "UPDATE commits SET parent = hash WHERE seq = 2",
		"bank missing":   "PRAGMA foreign_keys = OFF; DELETE FROM banks WHERE hash = (SELECT hash FROM commits WHERE seq = 2)",
	} {
		r := newRun(t)
		keep(t, r, 0, 1, 2, 3)
		r.db.SetMaxOpenConns(1)
		if _, err := r.db.ExecContext(t.Context(), harm); err != nil {
			t.Fatal(err)
		}
		if wrong, _, _, err := r.CheckBanks(t.Context()); err != nil || len(wrong) == 0 {
			t.Errorf("%s: found %q, %v", name, wrong, err)
		}
	}
}

// Many writers, each with a handle of its own, edit one bank: the loser of a race reads again and repeats, and the
// journal has every edit once.
func TestConcurrentCommits(t *testing.T) {
	r := newRun(t)
	dir := r.Dir()
	r.Close()
	const writers, each = 8, 5
	var wg sync.WaitGroup
	var calls atomic.Int32
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := addSkill(t, dir, w*each+i, &calls); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	wg.Wait()
	r = reopen(t, dir)
	cs, err := r.Commits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, c := range cs {
		seen[c.Reason]++
	}
	if len(cs) != writers*each || len(seen) != writers*each {
		t.Errorf("the journal has %d commits of %d edits, want %d", len(cs), len(seen), writers*each)
	}
	if wrong, _, _, err := r.CheckBanks(t.Context()); err != nil || len(wrong) > 0 {
		t.Errorf("check: %q, %v", wrong, err)
	}
	t.Logf("%d conflicts", calls.Load()-writers*each)
}

func addSkill(t *testing.T, dir string, n int, calls *atomic.Int32) error {
	_, err := Amend(t.Context(), dir, time.Minute, clock(), Amended, func(string) {}, func(_ context.Context, _ *Run, cur Current) (skill.Commit, error) {
		calls.Add(1)
		e := proposal(n)
		e.Title, e.Principle = fmt.Sprintf("%s %d", strings.Repeat("x", n+1), n), strings.Repeat(fmt.Sprintf("w%d ", n), 1+n)
		next, outcome := cur.Bank.Apply(e, skill.Permission{Category: skill.General})
		if outcome != skill.Added {
			return skill.Commit{}, fmt.Errorf("outcome %v", outcome)
		}
		return skill.Commit{Bank: next, Edit: e, Outcome: outcome, Reason: fmt.Sprintf("edit %d", n)}, nil
	})
	return err
}

// A change while somebody trains waits, and then says so; one on top of rounds that resuming takes back takes them back.
func TestAmend(t *testing.T) {
	r := newRun(t)
	keep(t, r, 0, 1, 2, 3)
	dir := r.Dir()
	var told []string
	amend := func(next func(Current) (skill.Bank, error)) error {
		told = nil
		_, err := Amend(t.Context(), dir, 0, clock(), RolledBack, func(s string) { told = append(told, s) }, func(_ context.Context, _ *Run, cur Current) (skill.Commit, error) {
			b, err := next(cur)
			return skill.Commit{Bank: b, Reason: "by hand"}, err
		})
		return err
	}
	older := func(cur Current) (skill.Bank, error) { return grown(t, 1).Continue(cur.Bank), cur.Damage }
	if err := amend(older); !errors.Is(err, ErrLocked) {
		t.Errorf("beside a writer: %v, want ErrLocked", err)
	}
	rep, _, _ := round(t, 4)
	rep.Commits, rep.Bank = nil, grown(t, 2).Hash()
	if err := r.Keep(t.Context(), rep, nil, nil); err != nil { // a round without a checkpoint
		t.Fatal(err)
	}
	r.Close()
	stop := errors.New("no")
	if err := amend(func(Current) (skill.Bank, error) { return skill.Bank{}, stop }); !errors.Is(err, stop) {
		t.Errorf("%v, want the change's own error", err)
	}
	if err := amend(older); err != nil || len(told) != 1 || !strings.Contains(told[0], "1 rounds") {
		t.Errorf("%v, told %q", err, told)
	}
	r = reopen(t, dir)
	head, err := r.Head(t.Context())
	if err != nil || head != grown(t, 1).Continue(grown(t, 2)).Hash() {
		t.Errorf("the bank is %s, %v", head, err)
	}
	// A bank that cannot be read stays as it is; another can follow it.
	if _, err := r.db.ExecContext(t.Context(), "UPDATE banks SET content = '{}' WHERE hash = ?", head); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if err := amend(older); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", err)
	}
	if err := amend(func(cur Current) (skill.Bank, error) { return grown(t, 2).Continue(cur.Bank), nil }); err != nil {
		t.Errorf("going on from a damaged bank: %v", err)
	}
	r = reopen(t, dir)
	if head, err = r.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b, err := r.Bank(t.Context(), head); err != nil || b.Len() != 2 {
		t.Errorf("the bank after it: %d skills, %v", b.Len(), err)
	}
}

func TestBankByPrefix(t *testing.T) {
	r := newRun(t)
	keep(t, r, 0, 1, 2)
	want := grown(t, 1).Hash()
	if b, err := r.Bank(t.Context(), want[:6]); err != nil || b.Hash() != want {
		t.Errorf("bank %s by its first characters: %v", want, err)
	}
	for _, h := range []string{"", want[:2], "zzzz"} {
		if _, err := r.Bank(t.Context(), h); !errors.Is(err, ErrNotFound) {
			t.Errorf("bank %q: %v, want ErrNotFound", h, err)
		}
	}
}

func TestEvaluationsMadeApartStay(t *testing.T) {
	r := newRun(t)
	keep(t, r, 0, 1)
	before := digestOf(t, r)
	e := train.Evaluation{Panel: "report", Results: []train.Result{{Task: "t", Actions: nil}}}
	if err := r.Record(t.Context(), e, []string{"eval", "--panel", "report"}); err != nil {
		t.Fatal(err)
	}
	if digestOf(t, r) != before {
		t.Error("an evaluation made apart changes the run's digest")
	}
	if _, err := r.Rewind(t.Context(), Saved{}); err != nil {
		t.Fatal(err)
	}
	es, err := r.Evaluations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(es) != 1 || !reflect.DeepEqual(es[0].Evaluation, e) || es[0].Command[2] != "report" {
		t.Errorf("evaluations are %+v", es)
	}
}
