// Package episode holds the nouns of one run of one world: what is to be done, what was done, and what came of it.
package episode

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"skillmaster/skill"
)

// Task is one goal with a fixed start.
type Task struct {
	ID       string `json:"id"`       // the suite's own stable name; opening it gives the same start every time
	Split    string `json:"split"`    // the source's own split
	Family   string `json:"family"`   // tasks of one kind; probes are drawn by family
	Category string `json:"category"` // the shelf of the bank it retrieves from
	Goal     string `json:"goal"`     // the sentence that states it
}

// Action is the text sent to an environment.
type Action string

// Observation is what an environment shows.
type Observation struct {
	Text       string
	Admissible []Action // the actions possible now, sorted; nil where the world does not list them
	More       bool     // more are possible than can be listed: some hold words of the agent's own, such as a search
}

// StepResult is what came of one action.
type StepResult struct {
	Observation Observation
	Reward      float64
	Done        bool // nothing more can happen
	Success     bool // the environment's own verdict
	Admissible  bool // the action was one of those possible before it
}

// Step is one action and what came of it, as it is recorded.
type Step struct {
	Action      Action  `json:"action"`
	Observation string  `json:"observation"` // after the action
	Reward      float64 `json:"reward"`
	Admissible  bool    `json:"admissible"`
	Malformed   bool    `json:"malformed,omitempty"` // the reply held no well-formed action; Action is what was sent in its place
}

// TurnKind tells the two streams apart.
type TurnKind uint8

// The kinds of turn.
const (
	ActionTurn TurnKind = iota
	ReviewTurn
)

func (k TurnKind) String() string {
	switch k {
	case ActionTurn:
		return "action"
	case ReviewTurn:
		return "review"
	default:
		return "turn kind " + strconv.Itoa(int(k))
	}
}

// Turn is one prompt and one completion, as token ids. Sampled ids are kept as they were sampled; they are what is
// trained on. Text is for people and parsers.
type Turn struct {
	Kind       TurnKind  `json:"kind"`
	Continues  bool      `json:"continues"`           // Prompt extends the sequence of the turn before (append-only layout)
	Prompt     []int32   `json:"prompt"`              // ids shown since the previous turn, or the whole prompt if not Continues
	Completion []int32   `json:"completion"`          // ids the policy chose, the stop id included
	LogProbs   []float32 `json:"log_probs,omitempty"` // sampling log-probabilities, one for each id of Completion; nil if not known
	Shown      string    `json:"shown"`               // the text of Prompt's messages
	Text       string    `json:"text"`                // the completion as text, without the stop id
	Truncated  bool      `json:"truncated,omitempty"` // ended by the token limit
	Noise      bool      `json:"noise,omitempty"`     // a deliberate mistake of a demonstration: seen, not imitated
}

// StopReason says why an episode ended.
type StopReason uint8

// The reasons an episode ends.
const (
	Unfinished  StopReason = iota // zero: still running
	Succeeded                     // the environment said yes
	Failed                        // the environment ended it without success
	Horizon                       // the most steps allowed were taken
	ContextFull                   // no room for another turn
	Degenerate                    // the guard cut it off
	GaveUp                        // the policy had nothing to do (an expert without a plan)
	stopReasons                   // their number
)

var stopNames = [stopReasons]string{"unfinished", "succeeded", "failed", "horizon", "context full", "degenerate", "gave up"}

func (r StopReason) String() string {
	if r < stopReasons {
		return stopNames[r]
	}
	return "stop reason " + strconv.Itoa(int(r))
}

// MarshalText writes the reason by name.
func (r StopReason) MarshalText() ([]byte, error) {
	if r >= stopReasons {
		return nil, fmt.Errorf("no such stop reason: %d", r)
	}
	return []byte(stopNames[r]), nil
}

// UnmarshalText reads what MarshalText writes.
func (r *StopReason) UnmarshalText(b []byte) error {
	for i, n := range stopNames {
		if n == string(b) {
			*r = StopReason(i)
			return nil
		}
	}
	return fmt.Errorf("no such stop reason: %q", b)
}

// Review is what the review turn came to.
type Review struct {
	Edit    skill.Edit    `json:"edit"`
	Outcome skill.Outcome `json:"outcome"` // of applying Edit to the bank of the episode
	Fault   string        `json:"fault,omitempty"`
	Offset  int           `json:"offset,omitempty"` // byte of the reply where the call begins or reading stopped; the reply is the last turn's text
	// Repaired names what a lenient reading mended; empty where the reply was well formed.
	Repaired []string `json:"repaired,omitempty"`
	// Conflicts are the ids of the skills that the edited one contradicts.
	Conflicts []string `json:"conflicts,omitempty"`
}

// Trajectory is the record of an episode. Nobody changes one after it was made.
type Trajectory struct {
	Task          Task       `json:"task"`
	Seed          Seed       `json:"seed"`
	BankHash      string     `json:"bank"`
	PolicyVersion int        `json:"policy_version"`
	ShownSkills   []string   `json:"shown_skills"`          // ids of the skills in its prompt
	Withhold      float64    `json:"withhold,omitempty"`    // chance at which each retrieved skill was left out of it (skill dropout)
	Withheld      []string   `json:"withheld,omitempty"`    // ids of those that were
	UsedSkills    []string   `json:"used_skills,omitempty"` // those of them whose mark is on what the policy wrote (skill.Used)
	Turns         []Turn     `json:"turns"`
	Steps         []Step     `json:"steps"`
	EnvReturn     float64    `json:"env_return"` // sum of the environment's rewards
	Success       bool       `json:"success"`
	Stop          StopReason `json:"stop"`
	Review        *Review    `json:"review,omitempty"` // nil: no review turn was taken
}

// Inadmissible counts well-formed actions that the environment did not list as possible.
func (t Trajectory) Inadmissible() int {
	n := 0
	for _, s := range t.Steps {
		if !s.Admissible && !s.Malformed {
			n++
		}
	}
	return n
}

// Malformed counts replies without a well-formed action.
func (t Trajectory) Malformed() int {
	n := 0
	for _, s := range t.Steps {
		if s.Malformed {
			n++
		}
	}
	return n
}

// Tokens counts the ids of all turns, prompts and completions.
func (t Trajectory) Tokens() int {
	n := 0
	for _, u := range t.Turns {
		n += len(u.Prompt) + len(u.Completion)
	}
	return n
}

// Group is G trajectories of the same task under the same bank and policy.
type Group struct {
	Task         Task         `json:"task"`
	Trajectories []Trajectory `json:"trajectories"`
}

// Panel is a named, ordered list of tasks.
type Panel struct {
	Name  string
	Tasks []Task
}

// Hash names the panel's content: its tasks' ids in their order.
func (p Panel) Hash() string {
	h := sha256.New()
	for _, t := range p.Tasks {
		fmt.Fprintf(h, "%d:%s\n", len(t.ID), t.ID)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Disjoint returns an error naming the first task that stands in two panels, or twice in one.
func Disjoint(panels ...Panel) error {
	in := map[string]string{}
	for _, p := range panels {
		for _, t := range p.Tasks {
			if other, twice := in[t.ID]; twice {
				return fmt.Errorf("task %s is in panel %s and in panel %s: panels must not share tasks", t.ID, other, p.Name)
			}
			in[t.ID] = p.Name
		}
	}
	return nil
}
