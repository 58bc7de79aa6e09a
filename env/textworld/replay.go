package textworld

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"

	"skillmaster/env"
	"skillmaster/episode"
)

// trace is an episode of the original engine, with all that it said.
type trace struct {
	Game  string `json:"game"`  // id of the task, with or without the end of its path
	Names string `json:"names"` // "id" or "alfworld"; may be missing
	Kind  string `json:"kind"`
	Limit int    `json:"limit"` // of its steps; 0: none
	Reset struct {
		Observation string           `json:"obs"`
		Admissible  []episode.Action `json:"adm"`
	} `json:"reset"`
	Steps []struct {
		Action      episode.Action   `json:"a"`
		Observation string           `json:"obs"`
		Reward      float64          `json:"r"`
		Done        bool             `json:"done"`
		Won         bool             `json:"won"`
		Admissible  []episode.Action `json:"adm"`
	} `json:"steps"`
}

var namingOf = map[string]Naming{"id": ByID, "alfworld": ByAlfworld}

// Replay implements env.Replayer: it plays traces, a JSON value for each episode, packed or not. Traces of games that are
// not here, or that call things otherwise, are skipped.
func (s *Suite) Replay(ctx context.Context, folder fs.FS, name string) (result env.Replayed, err error) {
	f, err := folder.Open(name)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	err = env.Records(f, func(n int, raw json.RawMessage) error {
		var t trace
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&t); err != nil {
			return err
		}
		return s.replay(ctx, n, &t, &result)
	})
	if errors.As(err, &result.First) {
		err = nil
	}
	return result, err
}

func (s *Suite) replay(ctx context.Context, record int, t *trace, result *env.Replayed) error {
	id, found := s.find(t.Game)
	naming, known := namingOf[t.Names]
	switch {
	case !found:
		result.Skipped = append(result.Skipped, env.Skipped{ID: t.Game, Reason: "no such game in " + s.dir})
		return nil
	case t.Names != "" && !known:
		return fmt.Errorf("names %q: want id or alfworld", t.Names)
	case t.Names != "" && naming != s.o.Naming:
		result.Skipped = append(result.Skipped, env.Skipped{ID: t.Game, Reason: "recorded with names by " + t.Names})
		return nil
	}
	g, err := s.Game(id)
	if err != nil {
		return err
	}
	e, first, err := g.Open(cmp.Or(t.Limit, math.MaxInt))
	if err != nil {
		return err
	}
	result.Episodes++
	c := comparison{at: env.Difference{Record: record, Task: id}}
	c.text("observation", first.Text, t.Reset.Observation)
	c.list(first.Admissible, t.Reset.Admissible)
	for i, want := range t.Steps {
		if c.found {
			break
		}
		c.at.Step, c.at.Action = i+1, string(want.Action)
		r, err := e.Step(ctx, want.Action)
		if err != nil {
			return err
		}
		result.Steps++
		c.text("observation", r.Observation.Text, want.Observation)
		c.list(r.Observation.Admissible, want.Admissible)
		c.text("reward", fmt.Sprint(r.Reward), fmt.Sprint(want.Reward))
		c.text("done", strconv.FormatBool(r.Done), strconv.FormatBool(want.Done))
		c.text("success", strconv.FormatBool(r.Success), strconv.FormatBool(want.Won))
	}
	if c.found {
		return &c.at
	}
	return nil
}

// find finds the id of a game that a trace names.
func (s *Suite) find(game string) (id string, found bool) {
	for _, id := range []string{game, game + suffix, game + "/game" + suffix} {
		if _, found := slices.BinarySearch(s.paths, id); found {
			return id, true
		}
	}
	return "", false
}

// comparison keeps the first difference.
type comparison struct {
	at    env.Difference
	found bool
}

func (c *comparison) text(what, got, want string) {
	if !c.found && got != want {
		c.found, c.at.What, c.at.Got, c.at.Want = true, what, got, want
	}
}

func (c *comparison) list(got, want []episode.Action) {
	if !slices.Equal(got, want) {
		c.text("admissible actions", fmt.Sprintf("%q", got), fmt.Sprintf("%q", want))
	}
}
