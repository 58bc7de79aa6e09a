package openenv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"skillmaster/env"
	"skillmaster/episode"
)

// Options say which server is played on, and how. Horizon, Success and Seeds are for servers that are not ours: ours say
// themselves what they have.
type Options struct {
	URL   string                 // such as ws://127.0.0.1:8000
	Token func() (string, error) // that the server knows us by, asked for before every use; nil: none
	// Cleartext allows the token to travel over ws or http to another machine, where everybody between can read it.
	Cleartext bool
	Horizon   int            // most steps of an episode; 0: 50
	Success   float64        // an episode that ends with at least this return is a success, if the world does not say; 0: 1
	Seeds     map[string]int // splits, and how many seeds are the tasks of each, where the server lists no tasks; nil: train 1000, test 100
	Limits    Limits
	Notice    func(text string) // told what went wrong and is tried again; safe for concurrent use; nil: nobody
}

// Limits bound what a suite asks and takes.
type Limits struct {
	Sessions int           // most connections at a time; 0: 1024
	Tries    int           // most tries of an opening; 0: 5
	Connect  time.Duration // longest wait for a connection; 0: 10 s
	Reply    time.Duration // longest wait for an answer; 0: 60 s
	Queue    time.Duration // longest wait for a server that is full; 0: 10 minutes
	Message  int64         // most bytes of an answer; 0: 64 MiB
}

func (l Limits) complete() Limits {
	return Limits{
		Sessions: positive(l.Sessions, 1024), Tries: positive(l.Tries, 5), Connect: positive(l.Connect, 10*time.Second),
		Reply: positive(l.Reply, time.Minute), Queue: positive(l.Queue, 10*time.Minute), Message: positive(l.Message, 64<<20),
	}
}

// World is a suite that knows its splits.
type World interface {
	env.Suite
	Splits() []string
}

// suite plays the world of one server. Each episode has a connection of its own, that no other episode ever uses.
type suite struct {
	o      Options
	base   *url.URL // http or https
	http   http.Client
	guide  guide
	ours   bool
	format format // of actions and observations of other servers
	tasks  map[string][]episode.Task
	resets map[string]reset // of other servers' tasks, by id
	slots  chan struct{}
}

// reset is what names a task to a server.
type reset struct {
	Seed  uint64 `json:"seed"`
	Task  string `json:"task_id,omitempty"`
	Split string `json:"split,omitempty"`
	Index *int   `json:"index,omitempty"`
	Brief bool   `json:"brief,omitempty"`
	fixed bool   // the seed is the task
}

// varying is a suite whose server makes variations of tasks.
type varying struct{ *suite }

var _ env.Varier = varying{}

// Dial asks a server what world it is. Nothing is played yet.
func Dial(ctx context.Context, o Options) (World, error) {
	o.Limits = o.Limits.complete()
	o.Horizon, o.Success = positive(o.Horizon, 50), positive(o.Success, 1)
	if o.Seeds == nil {
		o.Seeds = map[string]int{"train": 1000, "test": 100}
	}
	s := &suite{o: o, tasks: map[string][]episode.Task{}, resets: map[string]reset{}, slots: make(chan struct{}, o.Limits.Sessions)}
	if err := s.address(o.URL); err != nil {
		return nil, err
	}
	// A redirect would carry the token, and what is played, to an address that nobody chose.
	s.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	err := s.ask(ctx, http.MethodGet, "/guide", nil, &s.guide)
	switch {
	case err == nil:
		s.ours = true
		err = s.list(ctx)
	case answered(err, http.StatusNotFound):
		err = s.discover(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("world on %s: %w", s.base.Host, err)
	}
	if s.guide.Varies {
		return varying{s}, nil
	}
	return s, nil
}

// address reads the server's address.
func (s *suite) address(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains([]string{"ws", "wss", "http", "https"}, u.Scheme) {
		return errors.New("the server's address cannot be read: want one such as ws://127.0.0.1:8000") // it may hold a token
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("the address of %s has a user, a question mark or a fragment: give the token apart, and the bare address", u.Host)
	}
	u.Scheme = map[string]string{"ws": "http", "http": "http", "wss": "https", "https": "https"}[u.Scheme]
	u.Path = strings.TrimRight(u.Path, "/")
	if s.o.Token != nil && u.Scheme == "http" && !local(u.Hostname()) && !s.o.Cleartext {
		return fmt.Errorf("the token would travel to %s in clear text: use wss, or allow it", u.Host)
	}
	s.base = u
	return nil
}

// token is the header that shows it.
func (s *suite) token() (http.Header, error) {
	h := http.Header{"User-Agent": {"skillmaster"}}
	if s.o.Token == nil {
		return h, nil
	}
	t, err := s.o.Token()
	if err != nil {
		return nil, err
	}
	h.Set("Authorization", "Bearer "+t)
	return h, nil
}

// statusError is an answer over HTTP that is no success.
type statusError struct {
	path   string
	status int
	text   string
}

func (e statusError) Error() string {
	text := fmt.Sprintf("%s: the server says %d", e.path, e.status)
	if e.text != "" {
		text += ": " + e.text
	}
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		text += " (is the token right?)"
	}
	return text
}

// answered says whether the server has given one of these answers.
func answered(err error, statuses ...int) bool {
	var e statusError
	return errors.As(err, &e) && slices.Contains(statuses, e.status)
}

// ask asks over HTTP.
func (s *suite) ask(ctx context.Context, method, path string, body, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Limits.Reply)
	defer cancel()
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if method == http.MethodGet {
		raw = nil
	}
	r, err := http.NewRequestWithContext(ctx, method, s.base.String()+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	if r.Header, err = s.token(); err != nil {
		return err
	}
	if raw != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.http.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, s.o.Limits.Message+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		return statusError{path, resp.StatusCode, printable(string(data))}
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case int64(len(data)) > s.o.Limits.Message:
		return fmt.Errorf("%s: the answer has more than %d bytes", path, s.o.Limits.Message)
	}
	if err := json.Unmarshal(data, reply); err != nil {
		return fmt.Errorf("%s: the answer cannot be read: %w", path, err)
	}
	return nil
}

// list reads the tasks of a server of ours.
func (s *suite) list(ctx context.Context) error {
	if err := s.guide.check(); err != nil {
		return err
	}
	for _, split := range s.guide.Splits {
		var reply struct {
			Tasks []wireTask `json:"tasks"`
		}
		if err := s.ask(ctx, http.MethodPost, "/"+url.PathEscape(s.guide.Name)+"/tasks", span{Split: split}, &reply); err != nil {
			return err
		}
		s.tasks[split] = []episode.Task{}
		for _, t := range reply.Tasks {
			if t.ID == "" || t.Split != split || t.Family == "" || t.Category == "" {
				return fmt.Errorf("split %s has a task that is not whole: %+v", split, t)
			}
			s.tasks[split] = append(s.tasks[split], t.task())
		}
	}
	return nil
}

// Splits are the splits in order.
func (s *suite) Splits() []string { return slices.Clone(s.guide.Splits) }

// Tasks lists a split as the server did when it was dialled.
func (s *suite) Tasks(split string) ([]episode.Task, error) {
	ts, known := s.tasks[split]
	if !known {
		return nil, fmt.Errorf("no split %q: there are %s", split, strings.Join(s.guide.Splits, ", "))
	}
	return slices.Clone(ts), nil
}

// Guide describes the world, in the server's words.
func (s *suite) Guide() env.Guide {
	g := s.guide.guide()
	g.Categories = maps.Clone(g.Categories)
	return g
}

// Vary asks the server for a variation of a task.
func (v varying) Vary(t episode.Task, seed episode.Seed) (episode.Task, error) {
	var made wireTask
	ctx, cancel := context.WithTimeout(context.Background(), v.o.Limits.Queue) // the contract has no context: it is not to wait for ever
	defer cancel()
	err := v.again(ctx, func(ctx context.Context) error {
		return v.ask(ctx, http.MethodPost, "/vary", varied{Task: t.ID, Seed: uint64(seed)}, &made)
	})
	if err != nil {
		return episode.Task{}, fmt.Errorf("vary task %s: %w", t.ID, err)
	}
	if made.ID == "" || made.Family != t.Family || made.Category != t.Category {
		return episode.Task{}, fmt.Errorf("vary task %s: the server gives %+v, which is no variation of it", t.ID, made)
	}
	return made.task(), nil
}

// final is an error that another try will not mend.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// full says that the server has no room for another session now.
type full struct{ error }

// again tries until there is an answer that another try will not change. Waiting for room is no try.
func (s *suite) again(ctx context.Context, try func(ctx context.Context) error) error {
	wait, waited := 250*time.Millisecond, time.Duration(0)
	for tries := 1; ; {
		err := try(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, new(final)) || answered(err, 400, 401, 403, 404, 405, 422, 501):
			return err
		case errors.As(err, new(full)):
			if waited += wait; waited > s.o.Limits.Queue {
				return fmt.Errorf("waited %v for the server to have room: %w", s.o.Limits.Queue, err)
			}
		case tries == s.o.Limits.Tries:
			return fmt.Errorf("at each of %d tries, the last time: %w", tries, err)
		default:
			tries++
			s.notice(err)
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
		wait = min(2*wait, 4*time.Second)
	}
}

func (s *suite) notice(err error) {
	if s.o.Notice != nil {
		s.o.Notice(fmt.Sprintf("world on %s: %v, trying again", s.base.Host, err))
	}
}

// Open starts an episode over a connection of its own. It waits while as many are open as Limits allow, or as the server
// has room for; a connection that fails is tried again.
func (s *suite) Open(ctx context.Context, t episode.Task, seed episode.Seed) (env.Env, episode.Observation, error) {
	fail := func(err error) (env.Env, episode.Observation, error) {
		return nil, episode.Observation{}, fmt.Errorf("open task %s on %s: %w", t.ID, s.base.Host, err)
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	start, err := s.start(t, seed)
	if err != nil {
		return fail(err)
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return fail(ctx.Err())
	}
	leave := sync.OnceFunc(func() { <-s.slots })
	var e *remote
	var o episode.Observation
	err = s.again(ctx, func(ctx context.Context) (err error) {
		e, o, err = s.begin(ctx, start)
		return err
	})
	if err != nil {
		leave()
		return fail(err)
	}
	e.leave = leave
	return e, o, nil
}

// start is how the server is told of a task.
func (s *suite) start(t episode.Task, seed episode.Seed) (reset, error) {
	if s.ours {
		return reset{Seed: uint64(seed), Task: t.ID, Brief: true}, nil
	}
	r, known := s.resets[t.ID]
	if !known {
		return r, errors.New("there is no such task: Tasks lists them")
	}
	if !r.fixed {
		r.Seed = uint64(seed) % (1 << 31) // what every language's generator takes
	}
	return r, nil
}
