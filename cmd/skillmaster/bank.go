package main

import (
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
	Edit     bankEditCmd     `cmd:"" help:"Edit the current bank by hand: propose, update, retire, pin, each a commit."`
	Judge    bankJudgeCmd    `cmd:"" help:"Judge the edits that other agents proposed, and commit those that help."`
	Export   bankExportCmd   `cmd:"" help:"Write a bank as a file, or as Agent Skills."`
	Import   bankImportCmd   `cmd:"" help:"Make the bank of a file the current one, or add Agent Skills to it, as a new commit."`
	Salvage  bankSalvageCmd  `cmd:"" help:"Read the banks of a damaged run database."`
}

// Help is shown under --help.
func (bankCmd) Help() string {
	return `A bank never changes: an edit makes another one, and the journal says how it came about.

Examples:
  skillmaster bank show --run runs/first
  skillmaster bank log --run runs/first
  skillmaster bank export --run runs/first --form skills --to .claude/skills`
}

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
		mark := ""
		if b.Pinned(s.ID) {
			mark = "  (pinned)"
		}
		fmt.Fprintf(&out, "  %s  %s%s\n      %s\n", s.ID, s.Title, mark, s.Principle)
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
	return "- is what the first bank has, + what the second has. Exit code 1 if they differ, as diff has it.\n\nExample:\n  skillmaster bank diff --run runs/first 3f2a9c"
}

// bankChange is a skill that one of two banks has otherwise; nil: it does not have it.
type bankChange struct {
	ID   string       `json:"id"`
	From *skill.Skill `json:"from"`
	To   *skill.Skill `json:"to"`
	// Status is what else changed: retired, pinned or unpinned.
	Status string `json:"status,omitempty"`
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
		c := bankChange{ID: id, Status: statusChange(a, b, id)}
		if had && from != to {
			c.From = &from
		}
		if has && from != to {
			c.To = &to
		}
		if c.From != nil || c.To != nil || c.Status != "" {
			out = append(out, c)
		}
	}
	return out
}

// statusChange says what became of a skill besides its text.
func statusChange(a, b skill.Bank, id string) string {
	archived := func(x skill.Bank) bool {
		return slices.ContainsFunc(x.Archived(), func(s skill.Skill) bool { return s.ID == id })
	}
	switch {
	case archived(b) && !archived(a):
		return "retired"
	case b.Pinned(id) && !a.Pinned(id):
		return "pinned"
	case a.Pinned(id) && !b.Pinned(id):
		return "unpinned"
	}
	return ""
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
			if err == nil && len(changes) == 0 && a.Hash() != b.Hash() {
				_, err = io.WriteString(stdout, "the skills are the same; order, archive, mistakes or ids to come differ\n")
			}
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
		if c.Status != "" {
			fmt.Fprintf(&out, "! %s %s\n", c.ID, c.Status)
		}
	}
	return out.String()
}
