package openenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"skillmaster/episode"

	"github.com/coder/websocket"
)

// remote is an episode on a server. It is not safe for concurrent use.
type remote struct {
	suite  *suite
	conn   *websocket.Conn
	steps  int
	total  float64 // of rewards
	before []episode.Action
	more   bool
	last   episode.StepResult
	broken error // what a step failed with; the episode is lost
	leave  func()
}

// begin connects and resets.
func (s *suite) begin(ctx context.Context, start reset) (*remote, episode.Observation, error) {
	none := episode.Observation{}
	header, err := s.token()
	if err != nil {
		return nil, none, final{err}
	}
	dialling, cancel := context.WithTimeout(ctx, s.o.Limits.Connect)
	defer cancel()
	conn, resp, err := websocket.Dial(dialling, s.base.String()+"/ws", &websocket.DialOptions{HTTPClient: &s.http, HTTPHeader: header}) //nolint:bodyclose // whoever dials need not close it
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, none, statusError{"/ws", resp.StatusCode, ""}
		}
		return nil, none, reason(dialling, err, "no connection within %v", s.o.Limits.Connect)
	}
	conn.SetReadLimit(s.o.Limits.Message)
	e := &remote{suite: s, conn: conn}
	r, err := e.exchange(ctx, typeReset, start)
	if err != nil {
		_ = conn.CloseNow() // the error says more
		return nil, none, err
	}
	if r.Done {
		_ = conn.CloseNow() // nothing was played
		return nil, none, errors.New("the episode is over before its first step")
	}
	e.before, e.more = r.Observation.Admissible, r.Observation.More
	return e, r.Observation, nil
}

// exchange sends a message and reads what the world shows.
func (e *remote) exchange(ctx context.Context, kind string, data any) (episode.StepResult, error) {
	waiting, cancel := context.WithTimeout(ctx, e.suite.o.Limits.Reply)
	defer cancel()
	raw, err := json.Marshal(data)
	if err == nil {
		raw, err = json.Marshal(message{Type: kind, Data: raw})
	}
	if err != nil {
		return episode.StepResult{}, final{err}
	}
	var reply []byte
	if err = e.conn.Write(waiting, websocket.MessageText, raw); err == nil {
		_, reply, err = e.conn.Read(waiting)
	}
	if err != nil && ctx.Err() != nil {
		return episode.StepResult{}, ctx.Err()
	}
	if err != nil {
		return episode.StepResult{}, reason(waiting, err, "no answer within %v", e.suite.o.Limits.Reply)
	}
	return e.suite.read(reply, kind == typeReset)
}

// reason says why a connection failed.
func reason(waiting context.Context, err error, late string, limit time.Duration) error {
	switch {
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		return fmt.Errorf(late, limit)
	case websocket.CloseStatus(err) >= 0:
		return fmt.Errorf("the server closed the connection: %w", err)
	default:
		return fmt.Errorf("the connection broke: %w", err)
	}
}

// read understands an answer to reset or step. An answer that cannot be is an error, never a result.
func (s *suite) read(reply []byte, first bool) (episode.StepResult, error) {
	var m message
	if err := strictly(reply, &m); err != nil {
		return episode.StepResult{}, fmt.Errorf("the answer cannot be read: %w: %s", err, printable(string(reply)))
	}
	switch m.Type {
	case typeError:
		return episode.StepResult{}, complaint(m.Data)
	case typeObservation:
	default:
		return episode.StepResult{}, fmt.Errorf("the answer is of type %.40q", m.Type)
	}
	var d shown
	if err := json.Unmarshal(m.Data, &d); err != nil {
		return episode.StepResult{}, fmt.Errorf("the answer cannot be read: %w: %s", err, printable(string(m.Data)))
	}
	if d.Done == nil || len(d.Observation) == 0 || d.Observation[0] != '{' {
		return episode.StepResult{}, fmt.Errorf("the answer is not whole: %s", printable(string(m.Data)))
	}
	if d.Reward == nil && !first && (s.ours || *d.Done) {
		return episode.StepResult{}, errors.New("the answer has no reward") // which is not 0: nobody knows what the step was worth
	}
	if s.ours {
		return readOurs(d)
	}
	return s.format.read(d)
}

// complaint is an error of the server. Its own words follow ours.
func complaint(data json.RawMessage) error {
	var f fault
	if err := json.Unmarshal(data, &f); err != nil || f.Code == "" {
		return fmt.Errorf("the server's error cannot be read: %s", printable(string(data)))
	}
	f.Message = printable(f.Message)
	err := fmt.Errorf("the server says: %w", faulty{f})
	switch f.Code {
	case codeCapacity:
		return full{err}
	case codeInvalid, codeType, codeJSON:
		return final{err}
	default:
		return err
	}
}

func readOurs(d shown) (episode.StepResult, error) {
	var o ourObservation
	if err := strictly(d.Observation, &o); err != nil {
		return episode.StepResult{}, fmt.Errorf("the observation cannot be read: %w: %s", err, printable(string(d.Observation)))
	}
	r := episode.StepResult{Done: *d.Done, Success: o.Won, Observation: episode.Observation{Text: o.Text, Admissible: o.Admissible, More: o.More}}
	if d.Reward != nil {
		r.Reward = *d.Reward
	}
	if p := o.Metadata.Possible; p != nil {
		r.Admissible = *p
	}
	if r.Success && !r.Done {
		return episode.StepResult{}, errors.New("the world says won, and goes on")
	}
	return r, nil
}

// Step takes one action. Whatever fails makes the episode a lost one: every later step fails, too.
func (e *remote) Step(ctx context.Context, a episode.Action) (episode.StepResult, error) {
	if err := ctx.Err(); err != nil {
		return episode.StepResult{}, err
	}
	if e.broken != nil {
		return episode.StepResult{}, e.broken
	}
	if e.last.Done {
		return e.last, nil
	}
	r, err := e.step(ctx, a)
	if err != nil {
		e.broken = fmt.Errorf("world on %s: %w", e.suite.base.Host, err)
		_ = e.conn.CloseNow() // the error says more
		return episode.StepResult{}, e.broken
	}
	e.steps++
	e.total += r.Reward
	if !e.suite.ours {
		r = e.judge(r, a)
	}
	e.before, e.more, e.last = r.Observation.Admissible, r.Observation.More, r
	return r, nil
}

func (e *remote) step(ctx context.Context, a episode.Action) (episode.StepResult, error) {
	if e.suite.ours {
		return e.exchange(ctx, typeStep, map[string]string{"message": strings.ToValidUTF8(string(a), "\uFFFD")})
	}
	action, problem := e.suite.format.action(string(a))
	if problem != "" { // the server has no way to hear of it
		return e.same(problem), nil
	}
	r, err := e.exchange(ctx, typeStep, action)
	var f faulty
	if errors.As(err, &f) && f.Code == codeInvalid {
		return e.same("The world does not understand this: " + f.Message), nil
	}
	return r, err
}

// same is the answer to an action that the world did not get to see.
func (e *remote) same(text string) episode.StepResult {
	return episode.StepResult{Observation: episode.Observation{Text: text, Admissible: e.before, More: e.more}}
}

// judge adds what a server that is not ours does not say: whether the action was one of those possible, the horizon, and
// success.
func (e *remote) judge(r episode.StepResult, a episode.Action) episode.StepResult {
	r.Admissible = e.before == nil || slices.Contains(e.before, a)
	r.Success = r.Success || r.Done && !e.suite.format.tells && e.total >= e.suite.o.Success
	r.Done = r.Done || r.Success || e.steps >= e.suite.guide.Horizon
	return r
}

// Close ends the session.
func (e *remote) Close() error {
	if e.conn == nil {
		return nil
	}
	conn := e.conn
	e.conn = nil
	defer e.leave()
	if e.broken != nil {
		return nil // it is closed
	}
	e.broken = errors.New("step after close")
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	raw, err := json.Marshal(message{Type: typeClose})
	if err == nil {
		err = conn.Write(ctx, websocket.MessageText, raw)
	}
	for err == nil {
		_, _, err = conn.Read(ctx) // until the server ends the connection
	}
	_ = conn.CloseNow() // the episode is over, however the connection ended
	return nil
}

// printable is foreign text for a line of an error: cut, without control characters.
func printable(s string) string {
	const most = 400 // bytes
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s))
}
