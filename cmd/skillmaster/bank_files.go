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

	"skillmaster/skill"
	"skillmaster/store"
)

type bankExportCmd struct {
	bankSource
	Hash string `arg:"" optional:"" help:"Hash of the bank, or its first characters. Default: the current one."`
	Form string `help:"public: the JSON form of published banks; json: one line, as the run stores it; skills: Agent Skills, a folder with a SKILL.md for each skill; bundles: a folder for each category." default:"public" enum:"public,json,skills,bundles"`
	To   string `help:"File to write, default stdout; for skills and bundles the folder, which must not exist." placeholder:"PATH"`
}

// Help is shown under --help.
func (bankExportCmd) Help() string {
	return `Agent Skills hold the active skills and nothing else: no archive, no pins, no mistakes.

Examples:
  skillmaster bank export --run runs/first --to bank.json
  skillmaster bank export --run runs/first 3f2a9c --form skills --to .claude/skills
  skillmaster bank export --file bank.json --form bundles --to skills`
}

func (c *bankExportCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	return c.with(ctx, func(run *store.Run) error {
		b, err := c.bank(ctx, run, c.Hash)
		if err != nil {
			return err
		}
		switch c.Form {
		case "skills":
			return c.folders(b, skill.Folders(b), stderr)
		case "bundles":
			return c.folders(b, skill.Bundles(b), stderr)
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

// folders writes Agent Skills beside their place and then puts them there, all or none.
func (c *bankExportCmd) folders(b skill.Bank, all []skill.Folder, stderr io.Writer) error {
	if c.To == "" {
		return usage(errors.New("--form skills and --form bundles need --to DIR"))
	}
	if _, err := os.Lstat(c.To); err == nil {
		return fmt.Errorf("%s is there already: remove it, or name another folder", c.To)
	}
	beside, err := os.MkdirTemp(filepath.Dir(filepath.Clean(c.To)), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(beside) }() // what is left after a rename is nothing
	for _, f := range all {
		dir := filepath.Join(beside, f.Name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), f.File, 0o644); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Chmod(beside, 0o755), os.Rename(beside, c.To)); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%d skills in %d folders of %s\n", b.Len(), len(all), c.To)
	return nil
}

type bankImportCmd struct {
	Run     string `help:"Run directory." required:"" placeholder:"DIR"`
	Path    string `arg:"" help:"Bank file in the public JSON form, or a folder of Agent Skills." type:"path"`
	Replace bool   `help:"Agent Skills take the place of the bank's skills; without it they are added."`
	Strict  bool   `help:"Change nothing if anything is refused."`
	Reason  string `help:"Why; kept in the journal." placeholder:"TEXT"`
	JSON    bool   `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (bankImportCmd) Help() string {
	return `A file takes the place of the current bank, whole or not at all. A folder of Agent Skills is added to it skill by skill: one that
this program exported updates the skill of its id, one that somebody else wrote becomes a general skill of its name (or first heading) and its
description; what is refused is listed with the reason. Training goes on from the new bank; the journal keeps the one before.

Examples:
  skillmaster bank import --run runs/first bank.json --reason "edited by hand"
  skillmaster bank import --run runs/first .claude/skills
  skillmaster bank import --run runs/first skills --strict`
}

// imported is what came of an import.
type imported struct {
	Bank    string          `json:"bank"`
	Skills  int             `json:"skills"`
	Taken   []taken         `json:"taken"`
	Refused []skill.Refused `json:"refused"`
}

// taken is a skill that came in.
type taken struct {
	File    string        `json:"file"`
	ID      string        `json:"id"`
	Outcome skill.Outcome `json:"outcome"`
	Note    string        `json:"note,omitempty"`
}

func (c *bankImportCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	info, err := os.Stat(c.Path)
	if err != nil {
		return err
	}
	next, done, err := c.file, &imported{Taken: []taken{}, Refused: []skill.Refused{}}, error(nil)
	if info.IsDir() {
		if next, err = c.folders(done); err != nil {
			return err
		}
	}
	var b skill.Bank
	b, err = change(ctx, c.Run, store.Imported, stderr, func(_ context.Context, _ *store.Run, cur store.Current) (skill.Commit, error) {
		if cur.Damage != nil && info.IsDir() {
			return skill.Commit{}, cur.Damage
		}
		after, err := next(cur.Bank)
		return skill.Commit{Bank: after, Reason: c.Reason}, err
	})
	done.Bank, done.Skills = b.Hash(), b.Len()
	return errors.Join(c.tell(stdout, done, err == nil), err)
}

// tell lists what was taken and what was not.
func (c *bankImportCmd) tell(stdout io.Writer, d *imported, changed bool) error {
	if c.JSON && changed {
		return printJSON(stdout, d)
	}
	var out bytes.Buffer
	for _, t := range d.Taken {
		if changed && t.Note != "" {
			fmt.Fprintf(&out, "%s: %s %s (%s)\n", t.File, t.Outcome, t.ID, t.Note)
		} else if changed {
			fmt.Fprintf(&out, "%s: %s %s\n", t.File, t.Outcome, t.ID)
		}
	}
	for _, r := range d.Refused {
		fmt.Fprintf(&out, "%s: refused: %s\n", r.File, r.Why)
	}
	if changed {
		fmt.Fprintf(&out, "the bank is %s now: %d skills\n", short(d.Bank), d.Skills)
	}
	_, err := stdout.Write(out.Bytes())
	return err
}

// file is the bank of a file, whatever the current one.
func (c *bankImportCmd) file(current skill.Bank) (skill.Bank, error) {
	read, err := readBank(c.Path)
	return read.Continue(current), err
}

// folders reads Agent Skills; what it returns lays them over a bank and notes in done what came of each.
func (c *bankImportCmd) folders(done *imported) (func(skill.Bank) (skill.Bank, error), error) {
	found, unread, err := skill.ReadFolders(os.DirFS(c.Path))
	if err != nil {
		return nil, err
	}
	return func(current skill.Bank) (skill.Bank, error) {
		done.Taken, done.Refused = []taken{}, append([]skill.Refused{}, unread...)
		b := current
		if c.Replace {
			b = skill.Bank{}.Continue(current)
		}
		for _, f := range found {
			next, outcome, err := b.Merge(f.Skill, skill.Limits{})
			if err != nil {
				name := f.File
				if f.Skill.ID != "" {
					name += " (" + f.Skill.ID + ")"
				}
				done.Refused = append(done.Refused, skill.Refused{File: name, Why: fmt.Sprintf("%s: %v", outcome, err)})
				continue
			}
			id := f.Skill.ID
			if id == "" {
				id = next.Changed(b)
			}
			done.Taken = append(done.Taken, taken{f.File, id, outcome, f.Note})
			b = next
		}
		switch {
		case c.Strict && len(done.Refused) > 0:
			return b, fmt.Errorf("%d refused, nothing was changed", len(done.Refused))
		case len(done.Taken) == 0:
			return b, fmt.Errorf("%s holds no skill that could be taken: nothing was changed", c.Path)
		}
		return b, nil
	}, nil
}
