// Package env is the contract of a world: a suite of tasks, and environments that run one episode each.
package env

import (
	"context"
	"math/rand/v2"
	"strings"

	"skillmaster/episode"
	"skillmaster/skill"
)

// Suite is the set of tasks of one world and the way to open them. Its methods are safe for concurrent use.
type Suite interface {
	// Tasks lists a split, in the same order every time. An unknown split is an error that names those there are.
	Tasks(split string) ([]episode.Task, error)
	// Guide is what an agent is told about the world.
	Guide() Guide
	// Open starts an episode of the task and returns the first observation. The seed is for worlds with chance in
	// them; a deterministic world ignores it. The Env is the caller's alone, to be closed by it.
	Open(ctx context.Context, t episode.Task, s episode.Seed) (Env, episode.Observation, error)
}

// Env is one episode of one task. It is not reused and not safe for concurrent use.
type Env interface {
	// Step takes one action. Text the world cannot make sense of is an ordinary step with the world's own answer, not
	// an error. After Done, Step returns the last result again. An error means the world broke.
	Step(ctx context.Context, a episode.Action) (episode.StepResult, error)
	// Close frees the episode; a second call does nothing.
	Close() error
}

// Guide is what an agent is told about a world, as text; nobody above a world asks which one it is.
type Guide struct {
	Role    string // one sentence: who the agent is and what it is to do
	Rules   string // actions and what they need, a line each
	Horizon int    // most steps of an episode
	// Categories are the shelves of the bank, with the families that retrieve from each.
	Categories map[string][]string
	// SuccessReward is the return of an episode that did nothing but succeed.
	SuccessReward float64
}

// Varier is a Suite that can make new tasks from given ones: the same goal in changed surroundings.
type Varier interface {
	// Vary returns a task of the same family whose start differs, the same one for the same arguments. It opens like any other.
	Vary(t episode.Task, s episode.Seed) (episode.Task, error)
}

// Coach is a Suite whose tasks somebody knows how to play, and who can say in words what helps. Warm start needs one.
type Coach interface {
	// Expert returns a player for an episode of this suite that has taken no step yet. It follows those skills of the
	// advice that it understands, true or not, so that text in a prompt changes what is done.
	Expert(e Env, k Knowledge, advice []skill.Skill, r *rand.Rand) (Expert, error)
	// Advice returns a skill that an Expert understands and that bears on the task: one that shortens the search if
	// helpful, a plausible but wrong one if not; false if there is none. Its ID is empty.
	Advice(t episode.Task, helpful bool, r *rand.Rand) (skill.Skill, bool)
	// Lesson returns what an episode taught, as a skill an Expert understands (ID empty), or false if nothing.
	// steps are those of the episode so far, from its start.
	Lesson(t episode.Task, steps []episode.Step) (skill.Skill, bool)
}

// Sorter is a Suite that sorts actions more finely than by their first word, for those who count them.
type Sorter interface {
	// Sort names the kind of an action, in lower-case letters.
	Sort(a episode.Action) string
}

// SortOf is the kind of an action: as the suite sorts it, else its first word, "other" if it begins with none.
func SortOf(s Suite, a episode.Action) string {
	if own, ok := s.(Sorter); ok {
		return own.Sort(a)
	}
	if n := strings.IndexFunc(string(a), func(r rune) bool { return r < 'a' || r > 'z' }); n != 0 && a != "" {
		if n < 0 {
			n = len(a)
		}
		return string(a[:n])
	}
	return "other"
}

// Knowledge says what an expert may use.
type Knowledge uint8

// How much an expert knows.
const (
	Sees  Knowledge = iota // only what an agent sees
	Knows                  // the whole state: plays a shortest plan
)

// Expert plays one episode.
type Expert interface {
	// Next is what the expert would do now; false if it has nothing left to try.
	Next() (episode.Action, bool)
	// Observe tells it what was done, by it or by another, and what came of it. Call it after every step.
	Observe(a episode.Action, r episode.StepResult)
}

// Snapshotter is an Env that can be copied while it runs.
type Snapshotter interface {
	// Fork returns an independent episode in the same state.
	Fork() (Env, error)
}

// Shortening drops the hints that make an episode longer than it is without any, and if some make it shorter, those that
// do not. length is the number of an expert's steps when it follows the given hints.
func Shortening[H any](hints []H, length func(hints []H) int) []H {
	usual := length(nil)
	var shorter, others []H
	for _, h := range hints {
		switch n := length([]H{h}); {
		case n < usual:
			shorter = append(shorter, h)
		case n == usual:
			others = append(others, h)
		}
	}
	if len(shorter) > 0 {
		return shorter
	}
	return others
}
