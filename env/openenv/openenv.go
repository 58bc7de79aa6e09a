// Package openenv is both ends of the OpenEnv protocol: a Suite that plays the world of a server, ours or anybody's, and a
// Handler that lets anybody's client play a suite of ours.
//
// One WebSocket connection is one environment: reset, step, state, close, each a JSON message with an answer. A server of
// ours says more than the protocol asks for, under /guide and in the metadata of its observations; whoever does not know
// of it misses nothing that the protocol has.
//
// Not here: the HTTP endpoints /reset, /step and /state, which play a new environment at every call, and tool calls over
// HTTP, which would need sessions of their own. Tools are called over the WebSocket.
package openenv

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"skillmaster/env"
	"skillmaster/episode"
)

// message is what goes over a connection, in both directions.
type message struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data,omitempty"`
}

// The types of messages.
const (
	typeReset       = "reset"
	typeStep        = "step"
	typeState       = "state"
	typeClose       = "close"
	typeTool        = "mcp"
	typeObservation = "observation"
	typeError       = "error"
)

// The codes of errors. After the last three the server closes the connection.
const (
	codeJSON      = "INVALID_JSON"
	codeType      = "UNKNOWN_TYPE"
	codeInvalid   = "VALIDATION_ERROR"
	codeExecution = "EXECUTION_ERROR"
	codeCapacity  = "CAPACITY_REACHED"
	codeFactory   = "FACTORY_ERROR"
	codeSession   = "SESSION_ERROR"
)

// fault is the data of an error message.
type fault struct {
	Message string          `json:"message"`
	Code    string          `json:"code"`
	Errors  json.RawMessage `json:"errors,omitempty"`
	Active  *int            `json:"active_sessions,omitempty"`
	Most    *int            `json:"max_sessions,omitempty"`
	Factory string          `json:"factory_name,omitempty"`
}

// shown is the data of an observation message.
type shown struct {
	Observation json.RawMessage `json:"observation"`
	Reward      *float64        `json:"reward"` // null: none is told
	Done        *bool           `json:"done"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
}

// ourObservation is the observation of a server of ours.
type ourObservation struct {
	Text       string           `json:"text"`
	Admissible []episode.Action `json:"admissible_commands"` // null: the world does not list them
	More       bool             `json:"more"`                // than can be listed
	Goal       string           `json:"goal"`
	Won        bool             `json:"won"`
	Metadata   metadata         `json:"metadata"`
}

// metadata says what is played.
type metadata struct {
	Task       string           `json:"task_id"`
	Split      string           `json:"split"`
	Family     string           `json:"family"`
	Category   string           `json:"category"`
	Seed       uint64           `json:"seed"`
	Horizon    int              `json:"horizon"`
	Steps      int              `json:"steps"`
	Admissible []episode.Action `json:"admissible_actions"`  // those possible now; null as above
	Possible   *bool            `json:"action_was_possible"` // the last action was one of those possible before it; null: there was none
}

// guide is what /guide says: env.Guide, and the splits in order.
type guide struct {
	Protocol      int                 `json:"protocol"` // 1
	Name          string              `json:"name"`
	Role          string              `json:"role"`
	Rules         string              `json:"rules"`
	Horizon       int                 `json:"horizon"`
	Categories    map[string][]string `json:"categories"`
	SuccessReward float64             `json:"success_reward"`
	Splits        []string            `json:"splits"`
	Varies        bool                `json:"varies"` // POST /vary makes new tasks of given ones
}

// protocol is the version of what a server of ours says beyond OpenEnv.
const protocol = 1

func (g guide) guide() env.Guide {
	return env.Guide{Role: g.Role, Rules: g.Rules, Horizon: g.Horizon, Categories: g.Categories, SuccessReward: g.SuccessReward}
}

// check reports a guide that no world can have.
func (g guide) check() error {
	if g.Protocol != protocol {
		return fmt.Errorf("the server speaks version %d of our additions, this program %d: use the same version of both", g.Protocol, protocol)
	}
	if g.Horizon < 1 || !(g.SuccessReward > 0) || len(g.Splits) == 0 || g.Role == "" {
		return fmt.Errorf("the server's guide is not whole: horizon %d, reward of success %v, splits %q, role %q", g.Horizon, g.SuccessReward, g.Splits, g.Role)
	}
	return nil
}

// varied asks for a variation of a task.
type varied struct {
	Task string `json:"task_id"`
	Seed uint64 `json:"seed"`
}

// wireTask is a task on the wire.
type wireTask struct {
	ID       string `json:"id"`
	Split    string `json:"split"`
	Family   string `json:"family"`
	Category string `json:"category"`
	Goal     string `json:"goal"`
	Index    *int   `json:"index,omitempty"` // in its split; nil: it is a variation
}

func (t wireTask) task() episode.Task {
	return episode.Task{ID: t.ID, Split: t.Split, Family: t.Family, Category: t.Category, Goal: t.Goal}
}

// positive is n, or what stands for 0.
func positive[T int | int64 | time.Duration | float64](n, otherwise T) T {
	if n > 0 {
		return n
	}
	return otherwise
}

// local says whether a host is this machine.
func local(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
