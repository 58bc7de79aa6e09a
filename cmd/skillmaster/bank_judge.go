package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"skillmaster/episode"
	"skillmaster/probe"
	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/train"
)

// bankJudgeCmd judges what others proposed.
type bankJudgeCmd struct {
	Run        string `help:"Run directory." required:"" placeholder:"DIR"`
	Checkpoint string `help:"Policy that plays: latest, best or warm." default:"latest" enum:"latest,best,warm"`
	Data       string `help:"Folder of the real games." default:"${data}" placeholder:"DIR"`
	Workers    int    `help:"Cores to use. Results do not depend on it. Default: all." default:"0"`
	List       bool   `help:"Only list what is and was in quarantine."`
	JSON       bool   `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (bankJudgeCmd) Help() string {
	return `Plays the gate's tasks with and without each edit that other agents proposed (serve --mcp), by the run's own rule and
policy, and commits what passes; the rest is refused, with why. While nobody trains the run. Each edit has the gate's α of its own, which the
run's budget does not count.

Examples:
  skillmaster bank judge --run runs/first
  skillmaster bank judge --run runs/first --list`
}

func (c *bankJudgeCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	run, err := store.View(ctx, c.Run, time.Now)
	if err != nil {
		return err
	}
	defer run.Close()
	guests, err := run.Guests(ctx)
	if err != nil {
		return err
	}
	if !c.List {
		if guests, err = c.judgeAll(ctx, run, guests, stderr); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(stdout, guests)
	}
	if len(guests) == 0 {
		fmt.Fprintln(stdout, "nothing is in quarantine")
	}
	for _, g := range guests {
		fmt.Fprintf(stdout, "%d  %s  %s %s\n", g.Number, g.State, g.Edit.Op, oneLine(g.Edit.Title))
		if n := len(g.Tests); n > 0 {
			p := g.Tests[n-1].Pending
			fmt.Fprintf(stdout, "   %d pairs, %d won, %d lost, E %.3g\n", p.Pairs, p.Wins, p.Losses, probe.EValue(p.Wins, p.Losses))
		}
		if g.Why != "" {
			fmt.Fprintf(stdout, "   %s\n", g.Why)
		}
	}
	return nil
}

// judgeAll judges the edits that wait, the oldest first, and returns those of this call.
func (c *bankJudgeCmd) judgeAll(ctx context.Context, run *store.Run, guests []store.Guest, stderr io.Writer) (out []store.Guest, err error) {
	closed := func() error { return nil }
	defer func() { err = errors.Join(err, closed()) }()
	var judge func(ctx context.Context, b skill.Bank, g store.Guest) ([]train.Test, *skill.Commit, error)
	for _, g := range guests {
		if g.State != store.Waiting {
			continue
		}
		if judge == nil {
			if judge, closed, err = c.judge(ctx, run, stderr); err != nil {
				closed = func() error { return nil }
				return nil, err
			}
		}
		fmt.Fprintf(stderr, "edit %d: %s\n", g.Number, oneLine(g.Edit.Title))
		g.State, g.Why = store.Committed, ""
		_, err := change(ctx, c.Run, store.Judged, stderr, func(ctx context.Context, _ *store.Run, cur store.Current) (skill.Commit, error) {
			if cur.Damage != nil {
				return skill.Commit{}, cur.Damage
			}
			tests, commit, err := judge(ctx, cur.Bank, g)
			g.Tests = tests
			if err != nil {
				return skill.Commit{}, err
			}
			if commit == nil {
				return skill.Commit{}, errNoChange
			}
			return *commit, nil
		})
		switch {
		case err == nil:
		case errors.Is(err, errNoChange):
			g.State, g.Why = store.Refused, g.Tests[len(g.Tests)-1].Why
		default:
			return nil, err
		}
		if err := run.Decide(ctx, g.Number, g.State, g.Why, g.Tests); err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, nil
}

// judge returns what tests an edit with the run's policy on its gate panel, and what frees the policy.
func (c *bankJudgeCmd) judge(ctx context.Context, run *store.Run, stderr io.Writer) (
	test func(context.Context, skill.Bank, store.Guest) ([]train.Test, *skill.Commit, error), closed func() error, err error,
) {
	m, err := run.Manifest(ctx)
	if err != nil {
		return nil, nil, err
	}
	var cfg runConfig
	if err := cfg.decode(m.Config); err != nil {
		return nil, nil, err
	}
	e := evalCmd{Run: c.Run, Panel: []string{"gate"}, Retrieval: "on", Decoding: "free", Checkpoint: c.Checkpoint, Data: c.Data, Workers: c.Workers}
	player, _, panels, seed, closed, err := e.player(ctx, run, stderr)
	if err != nil {
		return nil, nil, err
	}
	player.Config = cfg.Train.Rollout
	t := &train.Trainer{Config: cfg.Train, Suite: player.Suite, Panels: train.Panels{Gate: panels[0]}, Workers: train.AtOnce}
	return func(ctx context.Context, b skill.Bank, g store.Guest) ([]train.Test, *skill.Commit, error) {
		return t.Outside(ctx, player, b, g.Edit, guestSeed(seed, g))
	}, closed, nil
}

// guestSeed draws the tasks of an edit in quarantine.
func guestSeed(s episode.Seed, g store.Guest) episode.Seed {
	return s.Derive("guest", uint64(g.Number))
}
