package openenv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"skillmaster/env"
	"skillmaster/episode"

	"github.com/coder/websocket"
)

// session is one connection and the episode that is played over it.
type session struct {
	h     *Handler
	world env.Env // nil: nothing was reset yet
	id    string  // of the episode
	task  wireTask
	seed  uint64
	last  episode.StepResult
	steps int
	first bool // last is what the reset showed
	brief bool
}

// writeTime is how long a message may take to be sent.
const writeTime = 30 * time.Second

// session answers messages until the client ends it, or falls silent.
func (h *Handler) session(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = conn.CloseNow() }() // it is closed already, or its client is gone
	conn.SetReadLimit(h.served.Body)
	if !h.enter() {
		active, most := h.Sessions(), h.served.Sessions
		_ = send(h.ctx, conn, typeError, fault{ // who hung up needs no answer
			Code: codeCapacity, Active: &active, Most: &most,
			Message: fmt.Sprintf("the server is at its capacity: %d of %d sessions are in use", active, most),
		})
		_ = conn.Close(websocket.StatusTryAgainLater, "capacity reached")
		return
	}
	defer h.leave()
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	go h.pulse(ctx, conn)
	s := &session{h: h}
	defer s.end()
	s.serve(ctx, conn)
}

// pulse asks a silent client whether it lives, and closes the connection if not.
func (h *Handler) pulse(ctx context.Context, conn *websocket.Conn) {
	t := time.NewTicker(h.served.Pulse)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		one, cancel := context.WithTimeout(ctx, 2*h.served.Pulse)
		err := conn.Ping(one)
		cancel()
		if err != nil {
			_ = conn.CloseNow() // its reader learns of it
			return
		}
	}
}

func (s *session) serve(ctx context.Context, conn *websocket.Conn) {
	for {
		one, cancel := context.WithTimeout(ctx, s.h.served.Idle)
		kind, data, err := conn.Read(one)
		cancel()
		if err != nil {
			return
		}
		if kind != websocket.MessageText {
			data = nil // no JSON
		}
		t, reply, more := s.answer(ctx, data)
		if !more {
			_ = conn.Close(websocket.StatusNormalClosure, "") // the client has asked for it
			return
		}
		if err := send(ctx, conn, t, reply); err != nil {
			s.h.served.Log.WarnContext(ctx, "session broke off", "error", err)
			return
		}
	}
}

func send(ctx context.Context, conn *websocket.Conn, t string, data any) error {
	raw, err := json.Marshal(data)
	if err == nil {
		raw, err = json.Marshal(message{Type: t, Data: raw})
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, raw)
}

// wrong is the fault of a message that cannot be.
func wrong(format string, a ...any) error {
	return faulty{fault{Code: codeInvalid, Message: fmt.Sprintf(format, a...)}}
}

// faulty is a fault as an error.
type faulty struct{ fault }

func (f faulty) Error() string { return f.Message + " (" + f.Code + ")" }

// answer is the reply to a message; false if there is none because the session ends.
func (s *session) answer(ctx context.Context, data []byte) (t string, reply any, more bool) {
	var m message
	err := strictly(data, &m)
	switch {
	case err == nil:
		t, reply, err = s.handle(ctx, m)
	case json.Valid(data):
		err = wrong("the message cannot be read: %v", err)
	default:
		err = faulty{fault{Code: codeJSON, Message: "the message is no JSON"}}
	}
	if err == nil {
		return t, reply, m.Type != typeClose
	}
	return typeError, s.fault(ctx, err), true
}

// fault is what the client is told of an error. What went wrong inside is for the log.
func (s *session) fault(ctx context.Context, err error) fault {
	var f faulty
	if errors.As(err, &f) {
		return f.fault
	}
	if ctx.Err() == nil {
		s.h.served.Log.ErrorContext(ctx, "world broke", "task", s.task.ID, "error", err)
	}
	return fault{Code: codeExecution, Message: "the world broke; the server's log says why"}
}

// strictly reads one JSON value without fields that nobody knows.
func strictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("there is more than one value")
	}
	return nil
}

func (s *session) handle(ctx context.Context, m message) (string, any, error) {
	switch m.Type {
	case typeReset:
		if err := s.reset(ctx, m.Data); err != nil {
			return "", nil, err
		}
		reply, err := s.show()
		return typeObservation, reply, err
	case typeStep:
		reply, err := s.step(ctx, m.Data)
		return typeObservation, reply, err
	case typeState:
		return typeState, s.state(), nil
	case typeTool:
		return typeTool, s.tool(ctx, m.Data), nil
	case typeClose:
		return "", nil, nil
	default:
		return "", nil, faulty{fault{Code: codeType, Message: fmt.Sprintf("unknown type of message: %.40q", m.Type)}}
	}
}

// start is what a reset may say; it is not strict, since clients send along what other worlds want.
type start struct {
	Seed    *uint64 `json:"seed"`
	Episode *string `json:"episode_id"`
	Task    *string `json:"task_id"`
	Split   *string `json:"split"`
	Index   *int    `json:"index"`
	Brief   bool    `json:"brief"` // observations say everything once: for clients of ours
}

const longestID = 512 // bytes

func (s *session) reset(ctx context.Context, data json.RawMessage) error {
	var a start
	if len(data) > 0 {
		if err := json.Unmarshal(data, &a); err != nil {
			return wrong("a reset that cannot be read: %v", err)
		}
	}
	seed := uint64(0)
	if a.Seed != nil {
		seed = *a.Seed
	} else {
		seed = s.h.next.Add(1) - 1
	}
	task, err := s.h.choose(a, seed)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("%s#%d", task.ID, seed)
	if a.Episode != nil {
		if id = *a.Episode; len(id) > longestID {
			return wrong("the episode's id has %d bytes, at most %d are allowed", len(id), longestID)
		}
	}
	world, o, err := s.h.served.Suite.Open(ctx, task.task(), episode.Seed(seed))
	if err != nil && task.Index == nil && ctx.Err() == nil {
		return wrong("no task %.200q", task.ID)
	}
	if err != nil {
		return err
	}
	s.end()
	*s = session{h: s.h, world: world, id: id, task: task, seed: seed, last: episode.StepResult{Observation: o}, first: true, brief: a.Brief}
	return nil
}

// choose finds the task of a reset.
func (h *Handler) choose(a start, seed uint64) (wireTask, error) {
	if a.Task != nil {
		if t, known := h.byID[*a.Task]; known {
			return t, nil
		}
		if len(*a.Task) > longestID {
			return wireTask{}, wrong("no task %.200q", *a.Task)
		}
		return wireTask{ID: *a.Task}, nil // a variation, or nothing
	}
	split := h.served.Splits[0]
	if a.Split != nil {
		split = *a.Split
	}
	ts, err := h.split(split)
	if err != nil {
		return wireTask{}, wrong("%v", err)
	}
	if len(ts) == 0 {
		return wireTask{}, wrong("split %q has no tasks", split)
	}
	i := int(seed % uint64(len(ts)))
	if a.Index != nil {
		i = *a.Index
	}
	if i < 0 || i >= len(ts) {
		return wireTask{}, wrong("index %d must lie in 0…%d", i, len(ts)-1)
	}
	return ts[i], nil
}

// step takes one action, as {"message"} or as a call of the tool.
func (s *session) step(ctx context.Context, data json.RawMessage) (any, error) {
	var call struct {
		Type      string          `json:"type"`
		Name      string          `json:"tool_name"`
		Arguments json.RawMessage `json:"arguments"`
		Metadata  json.RawMessage `json:"metadata"`
	}
	if strictly(data, &call) == nil {
		switch call.Type {
		case "list_tools":
			return s.result(fields{"tools": []fields{{"name": tool, "description": toolSays, "input_schema": toolSchema()}}})
		case "call_tool":
			return s.call(ctx, call.Name, call.Arguments)
		}
	}
	var a struct {
		Message  *string         `json:"message"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := strictly(data, &a); err != nil || a.Message == nil {
		return nil, wrong(`an action is {"message": text}`)
	}
	if err := s.act(ctx, *a.Message); err != nil {
		return nil, err
	}
	return s.show()
}

// act takes one step in the world.
func (s *session) act(ctx context.Context, action string) error {
	if s.world == nil {
		return faulty{fault{Code: codeExecution, Message: "nothing to act in: reset first"}}
	}
	r, err := s.world.Step(ctx, episode.Action(action))
	if err == nil && (math.IsNaN(r.Reward) || math.IsInf(r.Reward, 0)) {
		err = fmt.Errorf("reward %v", r.Reward)
	}
	if err != nil {
		return err
	}
	if !s.last.Done {
		s.steps++
	}
	s.last, s.first = r, false
	return nil
}

// metadata says what is played.
func (s *session) metadata() metadata {
	m := metadata{
		Task: s.task.ID, Split: s.task.Split, Family: s.task.Family, Category: s.task.Category, Seed: s.seed,
		Horizon: s.h.guide.Horizon, Steps: s.steps,
	}
	if !s.brief {
		m.Admissible = s.last.Observation.Admissible
	}
	if !s.first {
		m.Possible = &s.last.Admissible
	}
	return m
}

// show is what the world shows now. Older clients look for the metadata in the observation, newer ones beside it.
func (s *session) show() (any, error) {
	m := s.metadata()
	o, err := json.Marshal(ourObservation{
		Text: strings.ToValidUTF8(s.last.Observation.Text, "\uFFFD"), Admissible: s.last.Observation.Admissible, More: s.last.Observation.More,
		Goal: s.task.Goal, Won: s.last.Success, Metadata: m,
	})
	if err != nil {
		return nil, err
	}
	return s.shown(o)
}

// result is the answer of a tool, as an observation.
func (s *session) result(v fields) (any, error) {
	v["metadata"] = s.metadata()
	o, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return s.shown(o)
}

func (s *session) shown(observation json.RawMessage) (any, error) {
	d := shown{Observation: observation, Done: &s.last.Done}
	if !s.first {
		d.Reward = &s.last.Reward
	}
	if s.brief {
		return d, nil
	}
	var err error
	d.Metadata, err = json.Marshal(s.metadata())
	return d, err
}

func (s *session) state() any {
	return fields{
		"episode_id": s.id, "step_count": s.steps, "task_id": s.task.ID, "split": s.task.Split, "family": s.task.Family,
		"category": s.task.Category, "goal": s.task.Goal, "seed": s.seed, "done": s.last.Done, "won": s.last.Success,
	}
}

// end closes the episode.
func (s *session) end() {
	if s.world == nil {
		return
	}
	if err := s.world.Close(); err != nil {
		s.h.served.Log.WarnContext(s.h.ctx, "world did not close", "task", s.task.ID, "error", err)
	}
	s.world = nil
}
