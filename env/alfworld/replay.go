package alfworld

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"skillmaster/env"
	"skillmaster/episode"
)

// What a replay comes to is the same in every world.
type (
	// Replayed is what was played and where it differed.
	Replayed = env.Replayed
	// Difference is the first difference of a record.
	Difference = env.Difference
	// Skipped is what was left out, and why.
	Skipped = env.Skipped
)

// Replay implements env.Replayer.
func (s *Suite) Replay(ctx context.Context, folder fs.FS, name string) (result Replayed, err error) {
	f, err := folder.Open(name)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return Replay(ctx, s, f)
}

// Replay plays a recording of the original engine again and compares every word. It knows by its content which form a
// recording has, packed or not: traces (observation, admissible actions, reward, done and success of every step),
// evaluation runs (actions and outcome), transcripts (observations, in either wording). The error is for a recording
// that cannot be read; a difference is no error.
func Replay(ctx context.Context, s *Suite, recording io.Reader) (Replayed, error) {
	r := replayer{suite: s}
	err := env.Records(recording, func(n int, raw json.RawMessage) error {
		r.record = n
		return r.replay(ctx, raw)
	})
	if errors.As(err, &r.result.First) {
		err = nil
	}
	return r.result, err
}

// replayer plays one recording. A *Difference travels as an error from where it is found.
type replayer struct {
	suite  *Suite
	result Replayed
	record int
	// of the episode being played
	game   *Game
	env    *Env
	step   int
	action string
}

func (r *replayer) replay(ctx context.Context, raw []byte) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return err
	}
	has := func(key string) bool { _, ok := keys[key]; return ok }
	switch {
	case has("reset"):
		return decodeThen(ctx, raw, r.trace)
	case has("gamefile"):
		return decodeThen(ctx, raw, r.run)
	case has("wording"):
		return decodeThen(ctx, raw, r.transcript)
	default:
		return errors.New("want a trace (reset), an evaluation run (gamefile) or a transcript (wording)")
	}
}

func decodeThen[T any](ctx context.Context, raw []byte, play func(context.Context, T) error) error {
	var v T
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return err
	}
	return play(ctx, v)
}

// open starts an episode; false if there is no such game, which is then counted as skipped.
func (r *replayer) open(id string, w Wording, limit int) (bool, error) {
	g, err := r.suite.Game(id)
	if errors.Is(err, ErrNoGame) {
		r.skip(id, err.Error())
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.game, r.env, r.step, r.action = g, newEnv(g.NewState(w), limit), 0, ""
	r.result.Episodes++
	return true, nil
}

func (r *replayer) skip(id, reason string) {
	r.result.Skipped = append(r.result.Skipped, Skipped{ID: id, Reason: reason})
}

func (r *replayer) take(ctx context.Context, action string) (episode.StepResult, error) {
	r.step++
	r.action = action
	r.result.Steps++
	return r.env.Step(ctx, episode.Action(action))
}

// same compares one thing; the difference it returns is an error.
func same[T comparable](r *replayer, what string, got, want T) error {
	if got == want {
		return nil
	}
	return r.differ(what, fmt.Sprint(got), fmt.Sprint(want))
}

func (r *replayer) differ(what, got, want string) error {
	return &Difference{Record: r.record, Task: r.game.ID, Step: r.step, Action: r.action, What: what, Got: got, Want: want}
}

func (r *replayer) sameActions(got, want []episode.Action) error {
	if slices.Equal(got, want) {
		return nil
	}
	var extra, missing []episode.Action
	for _, a := range got {
		if !slices.Contains(want, a) {
			extra = append(extra, a)
		}
	}
	for _, a := range want {
		if !slices.Contains(got, a) {
			missing = append(missing, a)
		}
	}
	if extra == nil && missing == nil {
		return r.differ("order of admissible actions", fmt.Sprintf("%q", got), fmt.Sprintf("%q", want))
	}
	return r.differ("admissible actions", fmt.Sprintf("more by %q", extra), fmt.Sprintf("more by %q", missing))
}

const unlimited = math.MaxInt

func idOf(gameFile string) string { return strings.TrimSuffix(gameFile, "/"+gameFileName) }

// trace is an episode with all that the engine says.
type trace struct {
	Game  string `json:"game"`
	Kind  string `json:"kind"`
	Limit int    `json:"limit"` // of its steps; 0: none
	Reset struct {
		Observation string           `json:"obs"`
		Admissible  []episode.Action `json:"adm"`
	} `json:"reset"`
	Steps []struct {
		Action      string           `json:"a"`
		Observation string           `json:"obs"`
		Reward      float64          `json:"r"`
		Done        bool             `json:"done"`
		Won         bool             `json:"won"`
		Admissible  []episode.Action `json:"adm"`
	} `json:"steps"`
}

func (r *replayer) trace(ctx context.Context, t trace) error {
	if t.Limit < 0 {
		return fmt.Errorf("a limit of %d steps: want one above 0, or 0 for none", t.Limit)
	}
	ok, err := r.open(idOf(t.Game), r.suite.o.Wording, cmp.Or(t.Limit, unlimited))
	if !ok {
		return err
	}
	s := r.env.State()
	if err := cmpFirst(same(r, "observation", s.Intro(), t.Reset.Observation), r.sameActions(s.Admissible(), t.Reset.Admissible)); err != nil {
		return err
	}
	for _, want := range t.Steps {
		got, err := r.take(ctx, want.Action)
		if err != nil {
			return err
		}
		if err := cmpFirst(
			same(r, "observation", got.Observation.Text, want.Observation),
			r.sameActions(got.Observation.Admissible, want.Admissible),
			same(r, "reward", got.Reward, want.Reward),
			same(r, "done", got.Done, want.Done),
			same(r, "success", got.Success, want.Won),
		); err != nil {
			return err
		}
	}
	return nil
}

// cmpFirst is the first error that is one.
func cmpFirst(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// run is an episode of an evaluation: what was done and how it ended.
type run struct {
	GameFile     string   `json:"gamefile"`
	TaskType     string   `json:"task_type"`
	Won          bool     `json:"won"`
	Steps        int      `json:"n_steps"`
	Invalid      int      `json:"n_invalid"`      // replies without an action
	Inadmissible int      `json:"n_inadmissible"` // actions that were not
	DocChars     int      `json:"doc_chars"`
	Actions      []string `json:"actions"`
}

// tailLength of a reply is sent in place of an action that it does not have, bytes.
const tailLength = 30

func (r *replayer) run(ctx context.Context, want run) error {
	ok, err := r.open(idOf(want.GameFile), r.suite.o.Wording, r.suite.o.StepLimit)
	if !ok {
		return err
	}
	var last episode.StepResult
	inadmissible, tails := 0, 0
	for _, a := range want.Actions {
		if last.Done {
			return r.differ("end", "done", "goes on")
		}
		if last, err = r.take(ctx, a); err != nil {
			return err
		}
		switch {
		case last.Admissible:
		case len(a) == tailLength && tails < want.Invalid:
			tails++
		default:
			inadmissible++
		}
	}
	r.result.Unparsable += tails
	steps := r.step
	r.step, r.action = r.step+1, ""
	return cmpFirst(
		same(r, "success", last.Success, want.Won),
		same(r, "done", last.Done, true),
		same(r, "steps", steps, want.Steps),
		same(r, "inadmissible actions", inadmissible, want.Inadmissible),
	)
}

// transcript is an episode as a person or a project wrote it down.
type transcript struct {
	Task      string  `json:"task"`
	Split     string  `json:"split"`
	Wording   string  `json:"wording"`
	Available *bool   `json:"game_file_available"`
	Won       *bool   `json:"won"`
	Source    string  `json:"source"`
	Note      string  `json:"note"`
	Initial   *string `json:"initial"`
	Steps     []struct {
		Action      string   `json:"action"`
		Observation string   `json:"observation"`
		Score       *float64 `json:"score"`
		Done        *bool    `json:"done"`
	} `json:"steps"`
}

func (t *transcript) wording() (Wording, error) {
	switch {
	case strings.HasPrefix(t.Wording, "0.3"):
		return Put, nil
	case strings.HasPrefix(t.Wording, "0.4+"):
		return Move, nil
	default:
		return 0, fmt.Errorf("wording %q: want 0.3 or 0.4+", t.Wording)
	}
}

func (t *transcript) id() string {
	if t.Split == "" {
		return t.Task
	}
	return t.Split + "/" + t.Task
}

// listAction is an action that one project answered itself, with a list of the engine's admissible ones.
const (
	listAction = "check valid actions"
	listHead   = "Valid actions:\n  - "
)

func (r *replayer) transcript(ctx context.Context, t transcript) error {
	w, err := t.wording()
	if err != nil {
		return err
	}
	if t.Available != nil && !*t.Available {
		r.skip(t.id(), "the game was not released")
		return nil
	}
	ok, err := r.open(t.id(), w, unlimited)
	if !ok {
		return err
	}
	if t.Initial != nil {
		if err := same(r, "observation", r.env.State().Intro(), *t.Initial); err != nil {
			return err
		}
	}
	won := false
	for _, want := range t.Steps {
		if list, ok := strings.CutPrefix(want.Observation, listHead); ok && want.Action == listAction {
			var as []episode.Action
			for _, a := range strings.Split(list, "\n  - ") {
				as = append(as, episode.Action(a))
			}
			if err := r.sameActions(r.env.State().Admissible(), as); err != nil {
				return err
			}
			continue
		}
		got, err := r.take(ctx, want.Action)
		if err != nil {
			return err
		}
		won = got.Success
		err = same(r, "observation", got.Observation.Text, want.Observation)
		if err == nil && want.Score != nil {
			err = same(r, "reward", got.Reward, *want.Score)
		}
		if err == nil && want.Done != nil {
			err = same(r, "done", got.Done, *want.Done)
		}
		if err != nil {
			return err
		}
	}
	if t.Won != nil {
		r.step, r.action = r.step+1, ""
		return same(r, "success", won, *t.Won)
	}
	return nil
}
