package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skillmaster/skill"
	"skillmaster/store"
)

type bankLogCmd struct {
	Run  string `help:"Run directory." required:"" placeholder:"DIR"`
	JSON bool   `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (bankLogCmd) Help() string {
	return `For every commit: the banks before and after it, who made it and when; of an edit by training, the episode whose review wrote it,
the verdict it was paid for, and the gate's evidence.

Examples:
  skillmaster bank log --run runs/first
  skillmaster bank log --run runs/first --json`
}

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
			out.WriteString(commitText(r))
		}
		_, err = io.WriteString(stdout, out.String())
		return err
	})
}

// oneLine is a committed edit's text as the bank took it, white space collapsed: the record holds what the policy wrote,
// carriage returns and all.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// commitText is what a commit did and what speaks for it, a line each.
func commitText(r logRow) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, "   "+format+"\n", args...) }
	edit := r.Kind == string(store.Edited) || r.Kind == string(store.Amended)
	switch e := r.Edit; {
	case !edit:
	case e.Principle != "":
		line("%s: %s: %s", r.Outcome, oneLine(e.Title), oneLine(e.Principle))
	default:
		line("%s %s", e.Op, oneLine(e.ID))
	}
	if len(r.Superseded) > 0 {
		line("retired with it, because they contradict it: %s", strings.Join(r.Superseded, ", "))
	}
	if p := r.Provenance; r.Kind == string(store.Edited) {
		line("iteration %d, group %d, member %d: %s (%s, seed %d), policy version %d", p.Iteration, p.Group, p.Member, p.Task, p.Family, p.Seed, p.PolicyVersion)
		if v := p.Verdict; v.Pairs > 0 {
			line("verdict: utility %+.3f, %d pairs, %d won, %d lost, mean delta %+.3f", v.Utility, v.Pairs, v.Wins, v.Losses, v.MeanDelta)
		}
		if e := p.Evidence; e.Pairs > 0 {
			line("gate: %d pairs, %d won, %d lost, mean delta %+.3f, e-value %.2f", e.Pairs, e.Wins, e.Losses, e.MeanDelta, e.EValue)
		}
	}
	if r.Reason != "" {
		line("%s", oneLine(r.Reason))
	}
	return out.String()
}

// lockWait is how long a change waits for another process to be done with the run.
const lockWait = 30 * time.Second

// change commits a bank to a run that nobody trains. next makes it from the current one, and is called again if another
// process was faster.
func change(ctx context.Context, dir string, k store.Kind, stderr io.Writer, next func(context.Context, *store.Run, store.Current) (skill.Commit, error)) (skill.Bank, error) {
	tell := func(text string) { fmt.Fprintln(stderr, plain(text)) }
	c, err := store.Amend(ctx, dir, lockWait, time.Now, k, tell, func(ctx context.Context, run *store.Run, cur store.Current) (skill.Commit, error) {
		c, err := next(ctx, run, cur)
		if err == nil && c.Bank.Hash() == cur.Hash {
			err = fmt.Errorf("bank %s is the current one already", short(cur.Hash))
		}
		return c, err
	})
	return c.Bank, err
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
	b, err := change(ctx, c.Run, store.RolledBack, stderr, func(ctx context.Context, run *store.Run, cur store.Current) (skill.Commit, error) {
		if cur.Damage != nil {
			fmt.Fprintf(stderr, "warning: the current bank cannot be read: %s; it stays in the journal as it is\n", plain(cur.Damage.Error()))
		}
		old, err := bankOf(ctx, run, c.Hash)
		return skill.Commit{Bank: old.Continue(cur.Bank), Reason: reason}, err
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
	// Contradictions are pairs of skills of the current bank that say opposite things. They are no fault of the journal.
	Contradictions [][2]string `json:"contradictions"`
}

func contradictions(b skill.Bank) [][2]string {
	out := [][2]string{}
	for _, s := range b.Skills() {
		for _, other := range skill.Conflicts(b, s) {
			if s.ID < other {
				out = append(out, [2]string{s.ID, other})
			}
		}
	}
	return out
}

func (c *bankCheckCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	return c.with(ctx, func(run *store.Run) error {
		found := bankCheck{Wrong: []string{}}
		if run == nil {
			b, err := readBank(c.File)
			if err != nil {
				return err
			}
			found.Banks, found.Contradictions = 1, contradictions(b)
		} else {
			wrong, banks, commits, err := run.CheckBanks(ctx)
			if err != nil {
				return err
			}
			found.Banks, found.Commits, found.Wrong = banks, commits, append(found.Wrong, wrong...)
			if b, err := bankOf(ctx, run, ""); err == nil { // one that cannot be read is among what is wrong
				found.Contradictions = contradictions(b)
			}
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
			for _, pair := range found.Contradictions {
				fmt.Fprintf(stdout, "  note: %s and %s contradict each other\n", pair[0], pair[1])
			}
		}
		if n := len(found.Wrong); n > 0 {
			return fmt.Errorf("the journal has %d faults", n)
		}
		return nil
	})
}

type bankEditCmd struct {
	Run    string   `help:"Run directory." required:"" placeholder:"DIR"`
	File   string   `arg:"" optional:"" help:"Edits as JSON, one after another." type:"existingfile"`
	Pin    []string `help:"Skill that is never to be retired, by id or exact title. May be repeated." placeholder:"ID" sep:"none"`
	Unpin  []string `help:"Skill that may be retired again." placeholder:"ID" sep:"none"`
	Retire []string `help:"Skill to move to the archive." placeholder:"ID" sep:"none"`
	Reason string   `help:"Why; kept in the journal." placeholder:"TEXT"`
	JSON   bool     `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (bankEditCmd) Help() string {
	return `Every edit is a commit of its own, made if the bank is still the one it was read as, and made anew from the current one if
another process was faster: any number of them may edit at the same time, while nobody trains. Edits are judged as those of a policy are: texts are bounded, and
what says the same as another skill is refused. Exit code 1 if any was refused.

Examples:
  skillmaster bank edit --run runs/first --pin dyn_003 --retire dyn_007 --reason "checked by hand"
  echo '{"op":"propose","category":"heat","title":"Find the mug","principle":"Look in the cabinet first."}' > edits.json
  skillmaster bank edit --run runs/first edits.json`
}

// bankEdited is what came of an edit.
type bankEdited struct {
	Edit    skill.Edit    `json:"edit"`
	Outcome skill.Outcome `json:"outcome"`
	ID      string        `json:"id"`   // of the skill concerned; empty: there is none
	Bank    string        `json:"bank"` // after
	// Conflicts are the ids of the skills that the edited one contradicts.
	Conflicts []string `json:"conflicts,omitempty"`
}

func (c *bankEditCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	edits, err := c.edits()
	if err != nil {
		return err
	}
	if len(edits) == 0 {
		return usage(errors.New("nothing to do: give a file of edits, --pin, --unpin or --retire"))
	}
	var done []bankEdited
	refused := 0
	for _, e := range edits {
		d, err := c.apply(ctx, e, stderr)
		if err != nil {
			return err
		}
		done = append(done, d)
		if !d.changed() {
			refused++
		}
		if !c.JSON {
			fmt.Fprintf(stdout, "%s %s: %s\n", e.Op, oneLine(strings.TrimSpace(d.ID+" "+e.Title)), d.Outcome)
			if len(d.Conflicts) > 0 {
				fmt.Fprintf(stdout, "  note: it contradicts %s\n", strings.Join(d.Conflicts, ", "))
			}
		}
	}
	if c.JSON {
		if err := printJSON(stdout, done); err != nil {
			return err
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d edits changed nothing", refused, len(edits))
	}
	return nil
}

func (d bankEdited) changed() bool {
	return d.Outcome == skill.Added || d.Outcome == skill.Updated || d.Outcome == skill.Retired
}

// edits are those of the file, then those of the flags.
func (c *bankEditCmd) edits() ([]skill.Edit, error) {
	var out []skill.Edit
	if c.File != "" {
		data, err := os.ReadFile(c.File)
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		for d.More() {
			var e skill.Edit
			if err := d.Decode(&e); err != nil {
				return nil, fmt.Errorf("%s: edit %d: %w", c.File, len(out)+1, err)
			}
			out = append(out, e)
		}
	}
	for _, f := range []struct {
		op  skill.Op
		ids []string
	}{{skill.Pin, c.Pin}, {skill.Unpin, c.Unpin}, {skill.Retire, c.Retire}} {
		for _, id := range f.ids {
			out = append(out, skill.Edit{Op: f.op, ID: id})
		}
	}
	return out, nil
}

// errNoChange ends a change that has come to nothing.
var errNoChange = errors.New("the edit changes nothing")

func (c *bankEditCmd) apply(ctx context.Context, e skill.Edit, stderr io.Writer) (bankEdited, error) {
	d := bankEdited{Edit: e}
	after, err := change(ctx, c.Run, store.Amended, stderr, func(_ context.Context, _ *store.Run, cur store.Current) (skill.Commit, error) {
		if cur.Damage != nil {
			return skill.Commit{}, cur.Damage
		}
		next, outcome := cur.Bank.Apply(e, skill.Permission{Shown: cur.Bank.IDs()})
		d.Outcome, d.ID, d.Bank = outcome, next.Changed(cur.Bank), next.Hash()
		if d.ID == "" {
			d.ID = e.ID
		}
		if !d.changed() {
			return skill.Commit{}, errNoChange
		}
		return skill.Commit{Bank: next, Edit: e, Outcome: outcome, Reason: c.Reason}, nil
	})
	if errors.Is(err, errNoChange) {
		return d, nil
	}
	if s, ok := after.Skill(d.ID); ok {
		d.Conflicts = skill.Conflicts(after, s)
	}
	return d, err
}

type bankSalvageCmd struct {
	File string `arg:"" help:"The damaged database: run.db.damaged, as it was set aside." type:"existingfile"`
	To   string `help:"Folder to write the banks to, which must not exist. Default: list them only." placeholder:"DIR"`
}

// Help is shown under --help.
func (bankSalvageCmd) Help() string {
	return `Reads what can be read of the banks, the oldest first, from a copy: the file stays as it is. Each is checked against its hash.
A new run can begin with one: skillmaster train --bank FILE. Exit code 1 if anything could not be read.

Example:
  skillmaster bank salvage runs/first/run.db.damaged --to banks`
}

func (c *bankSalvageCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	banks, lost, err := store.Salvage(ctx, c.File)
	if err != nil {
		return err
	}
	if c.To != "" {
		if err := os.Mkdir(c.To, 0o755); err != nil {
			return err
		}
	}
	for i, b := range banks {
		line := fmt.Sprintf("bank %s, %d skills", short(b.Hash()), b.Len())
		if c.To != "" {
			path := filepath.Join(c.To, fmt.Sprintf("%04d-%s.json", i+1, short(b.Hash())))
			if err := writeWhole(path, func(w io.Writer) error { return skill.WritePublic(w, b) }); err != nil {
				return err
			}
			line += " → " + path
		}
		if _, err := fmt.Fprintln(stdout, line); err != nil {
			return err
		}
	}
	for _, l := range lost {
		if _, err := fmt.Fprintln(stdout, "lost:", l); err != nil {
			return err
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("%s: %d places could not be read", c.File, len(lost))
	}
	return nil
}
