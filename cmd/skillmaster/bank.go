package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"skillmaster/skill"
	"skillmaster/store"
)

// bankCmd looks at a bank and changes it.
type bankCmd struct {
	List     bankListCmd     `cmd:"" help:"List the banks of a run."`
	Show     bankShowCmd     `cmd:"" help:"Print the skills of a bank."`
	Diff     bankDiffCmd     `cmd:"" help:"Print what differs between two banks."`
	Log      bankLogCmd      `cmd:"" help:"Print the journal: every commit with its evidence."`
	Rollback bankRollbackCmd `cmd:"" help:"Make an earlier bank the current one, as a new commit."`
	Check    bankCheckCmd    `cmd:"" help:"Verify a run's journal, or a bank file."`
	Export   bankExportCmd   `cmd:"" help:"Write a bank as a file."`
	Import   bankImportCmd   `cmd:"" help:"Make the bank of a file the current one, as a new commit."`
}

// lockWait is how long a change waits for another process to be done with the run.
const lockWait = 5 * time.Second

// bankSource is where a bank is read from.
type bankSource struct {
	Run  string `help:"Run directory." placeholder:"DIR"`
	File string `help:"Bank file in the public JSON form, in place of a run." type:"existingfile" placeholder:"FILE"`
}

// with runs f with the run, which is nil if a file was given.
func (s bankSource) with(ctx context.Context, f func(run *store.Run) error) error {
	if (s.Run == "") == (s.File == "") {
		return usage(errors.New("give either --run DIR or --file FILE"))
	}
	if s.File != "" {
		return f(nil)
	}
	return withRun(ctx, s.Run, f)
}

// withRun runs f with a run open for reading.
func withRun(ctx context.Context, dir string, f func(run *store.Run) error) error {
	run, err := store.View(ctx, dir, time.Now)
	if err != nil {
		return err
	}
	return errors.Join(f(run), run.Close())
}

// readBank reads a file in the public form.
func readBank(path string) (skill.Bank, error) {
	f, err := os.Open(path)
	if err != nil {
		return skill.Bank{}, err
	}
	defer f.Close()
	b, err := skill.ReadPublic(f)
	if err != nil {
		return skill.Bank{}, fmt.Errorf("%s: %w (edit the file; skillmaster bank check --file %s looks again)", path, err, path)
	}
	return b, nil
}

// bank is the one with a hash, or the current one for "", or the file's.
func (s bankSource) bank(ctx context.Context, run *store.Run, hash string) (skill.Bank, error) {
	if run == nil {
		return readBank(s.File)
	}
	return bankOf(ctx, run, hash)
}

func bankOf(ctx context.Context, run *store.Run, hash string) (skill.Bank, error) {
	if hash == "" || hash == "current" {
		var err error
		if hash, err = run.Head(ctx); err != nil {
			return skill.Bank{}, err
		}
	}
	return run.Bank(ctx, hash)
}

// short is a hash as people see it.
func short(hash string) string { return hash[:min(12, len(hash))] }

// printJSON prints a result.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

type bankListCmd struct {
	Run  string `help:"Run directory." required:"" placeholder:"DIR"`
	JSON bool   `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (bankListCmd) Help() string {
	return "Lists the bank the run began with and those that were committed, the oldest first.\n\nExample:\n  skillmaster bank list --run runs/first"
}

// bankRow is a bank of a run.
type bankRow struct {
	Hash    string    `json:"hash"`
	Skills  int       `json:"skills"`
	Kind    string    `json:"kind"` // how it became the bank
	Made    time.Time `json:"made"`
	Current bool      `json:"current"`
}

func (c *bankListCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	return withRun(ctx, c.Run, func(run *store.Run) error {
		m, err := run.Manifest(ctx)
		if err != nil {
			return err
		}
		commits, err := run.Commits(ctx)
		if err != nil {
			return err
		}
		rows := []bankRow{{Hash: m.Bank.Hash(), Skills: m.Bank.Len(), Kind: "start", Made: m.Created}}
		for _, e := range commits {
			rows = append(rows, bankRow{Hash: e.Hash, Skills: e.Commit.Bank.Len(), Kind: string(e.Kind), Made: e.Made})
		}
		rows[len(rows)-1].Current = true
		if c.JSON {
			return printJSON(stdout, rows)
		}
		w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
		fmt.Fprint(w, "bank\tskills\tby\tmade\t\n")
		for _, r := range rows {
			mark := ""
			if r.Current {
				mark = "current"
			}
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", short(r.Hash), r.Skills, r.Kind, r.Made.Local().Format(time.DateTime), mark)
		}
		return w.Flush()
	})
}

type bankShowCmd struct {
	bankSource
	Hash string `arg:"" optional:"" help:"Hash of the bank, or its first characters. Default: the current one."`
	JSON bool   `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (bankShowCmd) Help() string {
	return "Examples:\n  skillmaster bank show --run runs/first\n  skillmaster bank show --run runs/first 3f2a9c\n  skillmaster bank show --file bank.json"
}

func (c *bankShowCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	return c.with(ctx, func(run *store.Run) error {
		b, err := c.bank(ctx, run, c.Hash)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(stdout, b)
		}
		_, err = io.WriteString(stdout, bankText(b))
		return err
	})
}

// bankText lays a bank out for people.
func bankText(b skill.Bank) string {
	var out strings.Builder
	fmt.Fprintf(&out, "bank %s: %d skills, %d archived, %d mistakes\n", short(b.Hash()), b.Len(), len(b.Archived()), len(b.Mistakes()))
	category := ""
	for _, s := range b.Skills() {
		if s.Category != category {
			category = s.Category
			fmt.Fprintf(&out, "\n%s\n", category)
		}
		fmt.Fprintf(&out, "  %s  %s\n      %s\n", s.ID, s.Title, s.Principle)
		if s.When != "" {
			fmt.Fprintf(&out, "      when: %s\n", s.When)
		}
	}
	return out.String()
}

type bankDiffCmd struct {
	Run  string `help:"Run directory." required:"" placeholder:"DIR"`
	From string `arg:"" help:"Hash of a bank, its first characters, or current."`
	To   string `arg:"" optional:"" help:"The other one. Default: the current one."`
	JSON bool   `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (bankDiffCmd) Help() string {
	return "Exit code 1 if they differ, as diff has it.\n\nExample:\n  skillmaster bank diff --run runs/first 3f2a9c"
}

// bankChange is a skill that one of two banks has otherwise; nil: it does not have it.
type bankChange struct {
	ID   string       `json:"id"`
	From *skill.Skill `json:"from"`
	To   *skill.Skill `json:"to"`
}

func diffBanks(a, b skill.Bank) []bankChange {
	var out []bankChange
	ids := a.IDs()
	for _, id := range b.IDs() {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		from, had := a.Skill(id)
		to, has := b.Skill(id)
		switch {
		case had && has && from != to:
			out = append(out, bankChange{id, &from, &to})
		case had && !has:
			out = append(out, bankChange{ID: id, From: &from})
		case has && !had:
			out = append(out, bankChange{ID: id, To: &to})
		}
	}
	return out
}

var errDiffer = errors.New("the banks differ")

func (c *bankDiffCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	return withRun(ctx, c.Run, func(run *store.Run) error {
		a, err := bankOf(ctx, run, c.From)
		if err != nil {
			return err
		}
		b, err := bankOf(ctx, run, c.To)
		if err != nil {
			return err
		}
		changes := diffBanks(a, b)
		if c.JSON {
			err = printJSON(stdout, changes)
		} else {
			_, err = io.WriteString(stdout, diffText(changes))
		}
		if err == nil && a.Hash() != b.Hash() {
			err = errDiffer
		}
		return err
	})
}

func diffText(changes []bankChange) string {
	var out strings.Builder
	line := func(mark string, s *skill.Skill) {
		if s != nil {
			fmt.Fprintf(&out, "%s %s [%s] %s: %s (%s)\n", mark, s.ID, s.Category, s.Title, s.Principle, s.When)
		}
	}
	for _, c := range changes {
		line("-", c.From)
		line("+", c.To)
	}
	return out.String()
}

type bankLogCmd struct {
	Run  string `help:"Run directory." required:"" placeholder:"DIR"`
	JSON bool   `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (bankLogCmd) Help() string { return "Example:\n  skillmaster bank log --run runs/first" }

// logRow is a commit as it is printed.
type logRow struct {
	Number int       `json:"number"`
	Kind   string    `json:"kind"`
	Report int       `json:"report"`
	Made   time.Time `json:"made"`
	skill.Commit
}

func (c *bankLogCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	return withRun(ctx, c.Run, func(run *store.Run) error {
		commits, err := run.Commits(ctx)
		if err != nil {
			return err
		}
		rows := make([]logRow, len(commits))
		for i, e := range commits {
			rows[i] = logRow{Number: e.Number, Kind: string(e.Kind), Report: e.Report, Made: e.Made, Commit: e.Commit}
		}
		if c.JSON {
			return printJSON(stdout, rows)
		}
		var out strings.Builder
		for _, r := range rows {
			fmt.Fprintf(&out, "%d  %s → %s  %s, %s\n", r.Number, short(r.Parent), short(r.Hash), r.Kind, r.Made.Local().Format(time.DateTime))
			if r.Kind == string(store.Edited) {
				p, e := r.Provenance, r.Provenance.Evidence
				fmt.Fprintf(&out, "   %s: %s: %s\n", r.Outcome, oneLine(r.Edit.Title), oneLine(r.Edit.Principle))
				fmt.Fprintf(&out, "   iteration %d, %s, policy version %d; %d pairs, %d won, %d lost, mean delta %+.3f, e-value %.2f\n",
					p.Iteration, p.Task, p.PolicyVersion, e.Pairs, e.Wins, e.Losses, e.MeanDelta, e.EValue)
			}
			if r.Reason != "" {
				fmt.Fprintf(&out, "   %s\n", r.Reason)
			}
		}
		_, err = io.WriteString(stdout, out.String())
		return err
	})
}

// oneLine is a committed edit's text as the bank took it, white space collapsed: the record holds what the policy wrote,
// carriage returns and all.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// makeBank makes a new bank from a run's current one.
type makeBank func(run *store.Run, current skill.Bank) (skill.Bank, error)

// change commits a bank to a run that nobody trains: rounds after its newest checkpoint are taken back first, as
// resuming does.
func change(ctx context.Context, dir string, k store.Kind, reason string, stderr io.Writer, next makeBank) (skill.Bank, error) {
	run, err := store.Open(ctx, dir, lockWait, time.Now)
	if err != nil {
		return skill.Bank{}, err
	}
	defer run.Close()
	saved, damaged, err := run.Latest(ctx)
	for _, d := range damaged {
		fmt.Fprintln(stderr, "warning:", d)
	}
	if err != nil && !errors.Is(err, store.ErrNoCheckpoint) {
		return skill.Bank{}, err
	}
	back, err := run.Rewind(ctx, saved)
	if err != nil {
		return skill.Bank{}, err
	}
	if back.Reports > 0 {
		fmt.Fprintf(stderr, "%d rounds after the newest checkpoint were taken back; training plays them again\n", back.Reports)
	}
	current, err := bankOf(ctx, run, "")
	if err != nil {
		return skill.Bank{}, err
	}
	b, err := next(run, current)
	if err != nil {
		return skill.Bank{}, err
	}
	if b.Hash() == current.Hash() {
		return skill.Bank{}, fmt.Errorf("bank %s is the current one already", short(b.Hash()))
	}
	return b, run.Commit(ctx, current.Hash(), b, k, reason)
}

type bankRollbackCmd struct {
	Run    string `help:"Run directory." required:"" placeholder:"DIR"`
	Hash   string `arg:"" help:"Hash of the bank to go back to, or its first characters."`
	Reason string `help:"Why; kept in the journal." placeholder:"TEXT"`
}

// Help is shown under --help.
func (bankRollbackCmd) Help() string {
	return `Nothing is deleted: the journal gets a new commit whose bank has the skills of the older one. Ids that were given since
are not given again, so its hash is a new one. Training goes on from it.

Example:
  skillmaster bank rollback --run runs/first 3f2a9c --reason "worse on heat"`
}

func (c *bankRollbackCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	reason := "back to " + c.Hash
	if c.Reason != "" {
		reason += ": " + c.Reason
	}
	b, err := change(ctx, c.Run, store.RolledBack, reason, stderr, func(run *store.Run, current skill.Bank) (skill.Bank, error) {
		old, err := bankOf(ctx, run, c.Hash)
		return old.Continue(current), err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "the bank is %s now: %d skills\n", short(b.Hash()), b.Len())
	return err
}

type bankCheckCmd struct {
	bankSource
	JSON bool `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (bankCheckCmd) Help() string {
	return `Of a run: every bank has the hash it is stored under, every commit starts from the bank before it, every round and
checkpoint speaks of a stored bank. Of a file: it can be read as it is. Exit code 1 if anything is wrong.

Examples:
  skillmaster bank check --run runs/first
  skillmaster bank check --file bank.json`
}

// bankCheck is what a check found.
type bankCheck struct {
	Banks   int      `json:"banks"`
	Commits int      `json:"commits"`
	Wrong   []string `json:"wrong"`
}

func (c *bankCheckCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	return c.with(ctx, func(run *store.Run) error {
		found := bankCheck{Wrong: []string{}}
		if run == nil {
			if _, err := readBank(c.File); err != nil {
				return err
			}
			found.Banks = 1
		} else {
			wrong, banks, commits, err := run.CheckBanks(ctx)
			if err != nil {
				return err
			}
			found.Banks, found.Commits, found.Wrong = banks, commits, append(found.Wrong, wrong...)
		}
		if c.JSON {
			if err := printJSON(stdout, found); err != nil {
				return err
			}
		} else {
			fmt.Fprintf(stdout, "%d banks, %d commits, %d faults\n", found.Banks, found.Commits, len(found.Wrong))
			for _, w := range found.Wrong {
				fmt.Fprintln(stdout, " ", w)
			}
		}
		if n := len(found.Wrong); n > 0 {
			return fmt.Errorf("the journal has %d faults", n)
		}
		return nil
	})
}

type bankExportCmd struct {
	Run  string `help:"Run directory." required:"" placeholder:"DIR"`
	Hash string `arg:"" optional:"" help:"Hash of the bank, or its first characters. Default: the current one."`
	Form string `help:"public: the JSON form of published banks; json: one line, as the run stores it." default:"public" enum:"public,json"`
	To   string `help:"File to write. Default: stdout." placeholder:"FILE"`
}

// Help is shown under --help.
func (bankExportCmd) Help() string {
	return "Example:\n  skillmaster bank export --run runs/first --to bank.json"
}

func (c *bankExportCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	return withRun(ctx, c.Run, func(run *store.Run) error {
		b, err := bankOf(ctx, run, c.Hash)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if c.Form == "json" {
			err = json.NewEncoder(&out).Encode(b)
		} else {
			err = skill.WritePublic(&out, b)
		}
		if err != nil {
			return err
		}
		if c.To == "" {
			_, err = stdout.Write(out.Bytes())
			return err
		}
		fmt.Fprintf(stderr, "%d skills to %s\n", b.Len(), c.To)
		return writeWhole(c.To, func(w io.Writer) error {
			_, err := w.Write(out.Bytes())
			return err
		})
	})
}

type bankImportCmd struct {
	Run    string `help:"Run directory." required:"" placeholder:"DIR"`
	File   string `arg:"" help:"Bank file in the public JSON form." type:"existingfile"`
	Reason string `help:"Why; kept in the journal." placeholder:"TEXT"`
}

// Help is shown under --help.
func (bankImportCmd) Help() string {
	return "Training goes on from the imported bank; the journal keeps the one before.\n\nExample:\n  skillmaster bank import --run runs/first bank.json --reason \"edited by hand\""
}

func (c *bankImportCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	read, err := readBank(c.File)
	if err != nil {
		return err
	}
	b, err := change(ctx, c.Run, store.Imported, c.Reason, stderr, func(_ *store.Run, current skill.Bank) (skill.Bank, error) {
		return read.Continue(current), nil
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "the bank is %s now: %d skills\n", short(b.Hash()), b.Len())
	return err
}
