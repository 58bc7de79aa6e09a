package alfworld

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"skillmaster/env"
	"skillmaster/env/textworld"
	"skillmaster/episode"
)

// ErrGeneral marks a game that is played as any TextWorld game is: its texts are not the released ones, or its goal is of
// no family. Nothing is known of its household, so there is no Game, no expert, no advice and no variation of it.
var ErrGeneral = errors.New("played as any TextWorld game, without expert, advice or variations")

// general is such a game.
type general struct {
	task episode.Task
	why  error
	load func() (*textworld.Game, error)
}

// Error says why the game is not one of the others.
func (g *general) Error() string { return fmt.Sprintf("%s: %s: %s", g.task.ID, ErrGeneral, g.why) }

func (g *general) Unwrap() error { return ErrGeneral }

// open starts an episode.
func (g *general) open(limit int) (env.Env, episode.Observation, error) {
	game, err := g.load()
	if err != nil {
		return nil, episode.Observation{}, err
	}
	e, first, err := game.Open(limit)
	if err != nil {
		return nil, episode.Observation{}, err
	}
	return e, first, nil
}

// file gives a game file to package textworld.
func (f *gameFile) file() textworld.File {
	return textworld.File{Domain: f.Domain, Grammar: f.Grammar, Problem: f.Problem, Walkthrough: f.Walkthrough}
}

// readGeneral reads a trial's game file as any TextWorld game. It keeps the task only: the game is read again when it is
// played, and the last ones played are kept.
func (ls layers) readGeneral(id string, f *gameFile, why error, kept *textworld.Kept) outcome {
	g, err := textworld.NewGame(id, f.file(), textworld.ByAlfworld)
	if err != nil {
		return outcome{skipped: &Skipped{ID: id, Reason: fmt.Sprintf("%s; as any TextWorld game: %s", why, err)}}
	}
	split, _, _ := strings.Cut(id, "/")
	family, known := FamilyNamed(cmp.Or(ls.taskType(id), familyOf(id)))
	task := episode.Task{ID: id, Split: split, Goal: cmp.Or(g.Task(), id)}
	if known {
		task.Family, task.Category = family.String(), family.Category()
	}
	return outcome{general: &general{task: task, why: why, load: func() (*textworld.Game, error) {
		return kept.Game(id, func() (*textworld.Game, error) { return ls.loadGeneral(id) })
	}}}
}

func (ls layers) loadGeneral(id string) (*textworld.Game, error) {
	b, path, err := ls.read(id + "/" + gameFileName)
	var f gameFile
	if err == nil {
		err = f.decode(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return textworld.NewGame(id, f.file(), textworld.ByAlfworld)
}

// taskType is what a trial's traj_data.json says; "" if it says nothing or there is none.
func (ls layers) taskType(id string) string {
	b, _, err := ls.read(id + "/" + trialFileName)
	var data trialData
	if err != nil || json.Unmarshal(b, &data) != nil {
		return "" // a damaged file has been reported
	}
	return data.TaskType
}

// familyOf reads the family from a task folder's name ("<family>-<object>-…").
func familyOf(id string) string {
	family, _, _ := strings.Cut(path.Base(path.Dir(id)), "-")
	return family
}

// generalTask finds a game by its task among sorted ones.
func generalTask(all []*general, id string) (*general, bool) {
	i, found := slices.BinarySearchFunc(all, id, func(g *general, id string) int { return cmp.Compare(g.task.ID, id) })
	if !found {
		return nil, false
	}
	return all[i], true
}
