package train

import (
	"context"
	"io"
	"strconv"

	"skillmaster/episode"
	"skillmaster/probe"
	"skillmaster/skill"
)

// Phase is a part of a run.
type Phase uint8

// The phases of a run, in their order.
const (
	WarmStart Phase = iota // cloning demonstrations
	Learning               // iterations of acting, reviewing, probing and learning
	Finished
)

func (p Phase) String() string {
	switch p {
	case WarmStart:
		return "warm start"
	case Learning:
		return "learning"
	case Finished:
		return "finished"
	default:
		return "phase " + strconv.Itoa(int(p))
	}
}

// Report is what one round came to: some updates of the warm start, one iteration, or the end of a phase. Nobody
// changes one after it was made. Same seed, same Report, but for Seconds.
type Report struct {
	Phase         Phase
	Round         int                // counted from 0 within its phase
	PolicyVersion int                // after the round
	Bank          string             // hash after the round
	Metrics       map[string]float64 // stream/quantity; what was not measured is not there
	Seconds       map[string]float64 // wall time by part, time/part_seconds
	Groups        []episode.Group
	Credits       [][]Credit // by group and member; empty where nothing was learnt from
	Judgements    []Judgement
	Tests         []Test
	Commits       []skill.Commit
	Evaluations   []Evaluation
}

// Judgement is a review's edit with its verdict.
type Judgement struct {
	Group   int           `json:"group"`  // index into Report.Groups
	Member  int           `json:"member"` // index into the group's trajectories
	Edit    skill.Edit    `json:"edit"`
	Verdict probe.Verdict `json:"verdict"`
}

// Credit is what an episode was paid in each stream, and the advantage that its sampled ids were learnt with: one number
// for all ids of its action turns, one for those of its review turn.
type Credit struct {
	Action          float64 `json:"action"` // return
	Review          float64 `json:"review"` // return, without meaning unless Measured
	Measured        bool    `json:"measured"`
	ActionAdvantage float64 `json:"action_advantage"`
	ReviewAdvantage float64 `json:"review_advantage"` // before the stream's weight
}

// Test is what the gate found about a pending edit in one iteration, and what it decided.
type Test struct {
	Pending  probe.Pending  `json:"pending"` // with all evidence so far, this iteration's included
	Verdict  probe.Verdict  `json:"verdict"` // of this iteration's pairs
	Decision probe.Decision `json:"decision"`
	Why      string         `json:"why,omitempty"` // it was rejected
}

// Evaluation is a panel played once.
type Evaluation struct {
	Panel         string       `json:"panel"`
	PanelHash     string       `json:"panel_hash"`
	Bank          string       `json:"bank"`           // hash at the start
	PolicyVersion int          `json:"policy_version"` // -1: the context had room for no turn
	Retrieval     bool         `json:"retrieval"`
	Online        bool         `json:"online"` // the bank was edited while it was played
	Seed          episode.Seed `json:"seed"`
	Temperature   float64      `json:"temperature"`
	Constrained   bool         `json:"constrained"` // the policy chose among the admissible actions
	Results       []Result     `json:"results"`     // by task, in the panel's order
	// Uses are those of the skills in the prompts, all of them first, then by family. They are told and not stored; nil: no
	// skill was shown, or nobody knows.
	Uses []Use `json:"uses,omitempty"`
}

// Result is one task of an evaluation.
type Result struct {
	Task         string             `json:"task"`
	Family       string             `json:"family"`
	Success      bool               `json:"success"`
	Steps        int                `json:"steps"`
	Return       float64            `json:"return"` // of the environment
	Inadmissible int                `json:"inadmissible"`
	Malformed    int                `json:"malformed"`
	Stop         episode.StopReason `json:"stop"`
	Actions      []episode.Action   `json:"actions"`
}

// Checkpoint is all that resuming needs besides the learner's own state. What is drawn in a round follows from the
// run's seed and the round, so there are no cursors to keep.
type Checkpoint struct {
	Phase         Phase           `json:"phase"` // of the round to do next
	Round         int             `json:"round"` // to do next
	PolicyVersion int             `json:"policy_version"`
	Bank          skill.Bank      `json:"bank"`
	Gate          probe.GateState `json:"gate"`
	Effects       probe.Effects   `json:"effects,omitempty"` // of the bank's skills, by skill dropout
	Tokens        int64           `json:"tokens"`            // trained on so far
	Best          float64         `json:"best"`              // best score on the held-out panel so far
	Restart       bool            `json:"restart,omitempty"` // the next update is the first after the warm start: it forgets the optimiser's moments
}

// Keeper keeps a run safe.
type Keeper interface {
	// Keep stores a report, and with it a checkpoint if there is one: after a crash at any moment either all of it is
	// there or nothing. weights writes the learner's state; it is called at most once, and only with a checkpoint.
	Keep(ctx context.Context, r Report, c *Checkpoint, weights func(io.Writer) error) error
}

// Observer is told of every report after it was kept. It must not block for long: training waits for it.
type Observer interface {
	Observe(ctx context.Context, r Report) error
}
