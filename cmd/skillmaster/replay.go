package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"skillmaster/env"
)

// replayCmd plays recordings again.
type replayCmd struct {
	Recordings []string `arg:"" optional:"" help:"Recordings, or folders of them. Default: golden/ and transcripts/ of the world under --data." placeholder:"PATH"`
	Env        string   `help:"World that plays them." default:"alfworld" enum:"household,alfworld,webshop,textworld"`
	Data       string   `help:"Folder of the real games." default:"${data}" placeholder:"DIR"`
	All        bool     `help:"Fail if an episode cannot be played, as one of a game that is not there."`
	JSON       bool     `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (replayCmd) Help() string {
	return `Plays every recorded action and compares what the world says, word by word, with what was recorded: traces of the
original engine, evaluation runs and transcripts, in either wording; pages, goals, searches and rewards of the shop. Reports the first difference of each file; exit
code 1 if there is one, or if nothing could be played.

Examples:
  skillmaster replay --data ../shared/data
  skillmaster replay --data ../shared/data --env webshop
  skillmaster replay --data ../shared/data traces/unseen.jsonl.gz --json
  skillmaster replay --data games --all recording.jsonl.gz   # of the games in folder games, see make alfworld-python`
}

// replayRow is what came of one file.
type replayRow struct {
	File       string      `json:"file"`
	Episodes   int         `json:"episodes"`
	Steps      int         `json:"steps"`
	Unparsable int         `json:"unparsable"` // actions of evaluation runs that are the tail of a reply without an action
	Skipped    []leftOut   `json:"skipped"`
	First      *difference `json:"first_difference"`
}

// leftOut is a game or an episode that could not be used.
type leftOut struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

func leftOuts(skipped []env.Skipped) []leftOut {
	out := make([]leftOut, len(skipped))
	for i, s := range skipped {
		out[i] = leftOut(s)
	}
	return out
}

// difference is where a recording and a world part.
type difference struct {
	Record int    `json:"record"` // from 1
	Task   string `json:"task"`
	Step   int    `json:"step"` // 0 is the first observation
	Action string `json:"action"`
	What   string `json:"what"`
	Got    string `json:"got"`
	Want   string `json:"want"`
}

func (c *replayCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	suite, err := openSuite(ctx, gamesOf(c.Env), c.Data, stderr)
	if err != nil {
		return err
	}
	replayer, can := suite.(env.Replayer)
	if !can {
		return usage(fmt.Errorf("recordings cannot be played in %s", c.Env))
	}
	files, err := c.files()
	if err != nil {
		return err
	}
	var rows []replayRow
	for _, f := range files {
		fmt.Fprintln(stderr, f)
		row, err := replayFile(ctx, replayer, f)
		if err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		rows = append(rows, row)
	}
	if c.JSON {
		err = printJSON(stdout, rows)
	} else {
		err = printReplays(stdout, rows)
	}
	if err != nil {
		return err
	}
	return c.judge(rows)
}

// files are the recordings that were named, folders opened.
func (c *replayCmd) files() ([]string, error) {
	paths := c.Recordings
	if len(paths) == 0 {
		paths = recordingFolders(c.Data, c.Env)
		if len(paths) == 0 {
			return nil, fmt.Errorf("no golden/ or transcripts/ under %s: name the recordings, or give --data", c.Data)
		}
	}
	var files []string
	for _, p := range paths {
		err := filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (path == p || isRecording(path)) {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no recordings (.json, .jsonl, .jsonl.gz) in %s", strings.Join(paths, ", "))
	}
	return files, nil
}

func isRecording(path string) bool {
	for _, suffix := range []string{".json", ".jsonl", ".json.gz", ".jsonl.gz"} {
		if strings.HasSuffix(path, suffix) {
			return true
		}
	}
	return false
}

// recordingFolders are those of the real games that are there.
func recordingFolders(data, world string) (out []string) {
	if world == household {
		world = realGames
	}
	for _, d := range []string{filepath.Join(data, world), data} {
		for _, sub := range []string{"golden", "transcripts"} {
			if info, err := os.Stat(filepath.Join(d, sub)); err == nil && info.IsDir() {
				out = append(out, filepath.Join(d, sub))
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

func replayFile(ctx context.Context, world env.Replayer, path string) (replayRow, error) {
	r, err := world.Replay(ctx, os.DirFS(filepath.Dir(path)), filepath.Base(path))
	return replayRow{File: path, Episodes: r.Episodes, Steps: r.Steps, Unparsable: r.Unparsable, Skipped: leftOuts(r.Skipped), First: (*difference)(r.First)}, err
}

func printReplays(stdout io.Writer, rows []replayRow) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "episodes\tsteps\tskipped\tresult\trecording\n")
	var episodes, steps, skipped, differ int
	for _, r := range rows {
		result := "equal"
		switch {
		case r.First != nil:
			result = "differs"
			differ++
		case r.Episodes == 0:
			result = "not played"
		}
		episodes, steps, skipped = episodes+r.Episodes, steps+r.Steps, skipped+len(r.Skipped)
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\t%s\n", r.Episodes, r.Steps, len(r.Skipped), result, r.File)
	}
	fmt.Fprintf(w, "%d\t%d\t%d\t%d differ\tall %d\n", episodes, steps, skipped, differ, len(rows))
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		for _, s := range r.Skipped {
			fmt.Fprintf(stdout, "skipped: %s: %s (%s)\n", r.File, s.ID, s.Reason)
		}
	}
	for _, r := range rows {
		if r.First != nil {
			fmt.Fprintf(stdout, "%s: %v\n", r.File, (*env.Difference)(r.First))
		}
	}
	return nil
}

// judge is an error if a recording differs, or what should be played was not.
func (c *replayCmd) judge(rows []replayRow) error {
	differ, episodes, skipped := 0, 0, 0
	for _, r := range rows {
		episodes += r.Episodes
		skipped += len(r.Skipped)
		if r.First != nil {
			differ++
		}
	}
	switch {
	case differ > 0:
		return fmt.Errorf("%d of %d recordings differ", differ, len(rows))
	case episodes == 0:
		return errors.New("no episode could be played: are these recordings of this world's games?")
	case c.All && skipped > 0:
		return fmt.Errorf("%d episodes could not be played", skipped)
	}
	return nil
}
