package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/train"
)

// sm runs the program in this process.
func sm(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// must runs the program and wants an exit code.
func must(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	code, out, errs := sm(t, "", args...)
	if code != want {
		t.Fatalf("skillmaster %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errs)
	}
	return out, errs
}

// bankRun is a run directory whose journal has two commits; it returns the banks, the oldest first.
func bankRun(t *testing.T) (dir string, banks []skill.Bank) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	run, err := store.Create(t.Context(), dir, store.Manifest{Program: version, Config: json.RawMessage("{}")}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	banks = []skill.Bank{{}}
	for i, title := range []string{"Open the fridge", "Wash at the sink"} {
		before := banks[i]
		e := skill.Edit{Op: skill.Propose, Category: skill.General, Title: title, Principle: title + " before\ranything else.\u0085"} // as a policy may write it
		after, outcome := before.Apply(e, skill.Permission{})
		if outcome != skill.Added {
			t.Fatal(outcome)
		}
		banks = append(banks, after)
		c := skill.Commit{Parent: before.Hash(), Hash: after.Hash(), Edit: e, Outcome: outcome, Reason: "passed", Bank: after}
		r := train.Report{Phase: train.Learning, Round: i, Bank: after.Hash(), Commits: []skill.Commit{c}}
		if err := run.Keep(t.Context(), r, &train.Checkpoint{Phase: train.Learning, Round: i + 1, Bank: after}, func(w io.Writer) error {
			_, err := io.WriteString(w, "weights")
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return dir, banks
}

func TestBankCommands(t *testing.T) {
	dir, banks := bankRun(t)
	var rows []bankRow
	out, _ := must(t, 0, "bank", "list", "--run", dir, "--json")
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || rows[0].Hash != banks[0].Hash() || rows[1].Current || !rows[2].Current || rows[2].Skills != 2 {
		t.Errorf("list is %+v", rows)
	}
	if out, _ = must(t, 0, "bank", "show", "--run", dir, banks[1].Hash()[:8]); !strings.Contains(out, "Open the fridge") || strings.Contains(out, "Wash") {
		t.Errorf("show prints %q", out)
	}
	if out, _ = must(t, 1, "bank", "diff", "--run", dir, banks[1].Hash()); !strings.HasPrefix(out, "+ dyn_002") || strings.Count(out, "\n") != 1 {
		t.Errorf("diff prints %q", out)
	}
	if out, _ = must(t, 0, "bank", "diff", "--run", dir, "current"); out != "" {
		t.Errorf("diff with itself prints %q", out)
	}
	if out, _ = must(t, 0, "bank", "log", "--run", dir); strings.Count(out, "passed") != 2 || strings.ContainsAny(out, "\r\u0085") || !strings.Contains(out, "added: Wash at the sink") {
		t.Errorf("log prints %q", out)
	}
	must(t, 0, "bank", "check", "--run", dir)
	if _, errs := must(t, 1, "bank", "show", "--run", dir, "ffffffff"); !strings.Contains(errs, "bank list") {
		t.Errorf("an unknown bank is answered with %q", errs)
	}
	must(t, 2, "bank", "show")
	must(t, 1, "bank", "list", "--run", filepath.Join(dir, "none"))
}

func TestRollbackImportExport(t *testing.T) {
	dir, banks := bankRun(t)
	file := filepath.Join(t.TempDir(), "bank.json")
	must(t, 0, "bank", "export", "--run", dir, "--to", file)
	if b, err := readBank(file); err != nil || b.Hash() != banks[2].Hash() {
		t.Errorf("the exported bank is not the run's (%v)", err)
	}
	if _, errs := must(t, 1, "bank", "import", "--run", dir, file); !strings.Contains(errs, "already") {
		t.Errorf("importing the current bank is answered with %q", errs)
	}
	must(t, 0, "bank", "rollback", "--run", dir, banks[1].Hash()[:10], "--reason", "worse")
	must(t, 0, "bank", "check", "--run", dir)
	out, _ := must(t, 0, "bank", "log", "--run", dir, "--json")
	var rows []logRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	last := rows[len(rows)-1]
	if len(rows) != 3 || last.Kind != "rollback" || last.Parent != banks[2].Hash() || !strings.HasSuffix(last.Reason, "worse") {
		t.Errorf("the journal ends with %+v", last)
	}
	run, err := store.Open(t.Context(), dir, 0, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	saved, _, err := run.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s := saved.Bank.Skills(); len(s) != 1 || s[0].Title != "Open the fridge" {
		t.Errorf("training goes on with %+v", s)
	}
	// The id of the skill that is gone is not given a second time.
	again, outcome := saved.Bank.Apply(skill.Edit{Op: skill.Propose, Category: skill.General, Title: "Third", Principle: "Something new entirely."}, skill.Permission{})
	if outcome != skill.Added || again.IDs()[1] != "dyn_003" {
		t.Errorf("the next skill is %v, %v", again.IDs(), outcome)
	}
	code, _, errs := sm(t, "", "bank", "check", "--run", dir)
	if code != 0 {
		t.Errorf("a reader beside a writer: %s", errs)
	}
}

func TestBankCheckFindsFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bank.json")
	if err := os.WriteFile(file, []byte(`{"general_skills":[{"skill_id":"a","principle":"p"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs := must(t, 1, "bank", "check", "--file", file); !strings.Contains(errs, "title") || !strings.Contains(errs, file) {
		t.Errorf("a skill without title is answered with %q", errs)
	}
	must(t, 1, "bank", "show", "--file", file)
}
