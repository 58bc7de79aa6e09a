package openenv

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"skillmaster/env"
	"skillmaster/episode"
)

// Served is what a Handler offers to others.
type Served struct {
	Suite    env.Suite
	Splits   []string      // of the suite, in order; a reset that names none plays the first
	Name     string        // of the world
	Version  string        // of the program
	Token    string        // that clients must show; "": none is asked for, and only this machine may ask
	Sessions int           // most connections at a time, further ones are told so and closed; 0: 1024
	Idle     time.Duration // after so long without a message a session is closed; 0: 30 minutes
	Pulse    time.Duration // how often a silent connection is asked whether it lives; 0: 30 s
	Body     int64         // most bytes of a message; 0: 1 MiB
	Log      *slog.Logger  // of what fails here; nil: nobody
}

// Handler serves a suite: /ws for episodes, /health, /metadata, /schema and /openapi.json for whoever looks first, the
// lists of tasks, /mcp with the tool that the WebSocket has, and /guide. Safe for concurrent use.
//
// reset takes task_id, or split and index, or neither: the seed then says which task of the split it is, so that seeds
// from 0 on go through them; without a seed each reset plays the next one. Fields that it does not know are left alone, as
// the stock server does.
type Handler struct {
	served Served
	guide  guide
	tasks  map[string][]wireTask // by split
	byID   map[string]wireTask
	mux    http.ServeMux
	next   atomic.Uint64 // seed of a reset that has none

	ctx      context.Context // of all sessions
	end      context.CancelFunc
	mu       sync.Mutex
	sessions int
	closed   bool
	wait     sync.WaitGroup
}

// NewHandler returns a handler; Close ends its sessions. Without a token it answers requests of this machine alone, and
// none that a web page sends.
func NewHandler(s Served) (*Handler, error) {
	switch {
	case s.Suite == nil || s.Name == "" || len(s.Splits) == 0:
		return nil, errors.New("a handler needs a suite, its name and its splits")
	case strings.ContainsAny(s.Name, "/ ?#%"):
		return nil, fmt.Errorf("the world's name is %q: it stands in addresses, so it cannot have / ? # %% or spaces", s.Name)
	case s.Token != "" && len(s.Token) < 16:
		return nil, errors.New("a token needs 16 characters at least: others can guess shorter ones")
	}
	s.Sessions, s.Idle, s.Pulse, s.Body = positive(s.Sessions, 1024), positive(s.Idle, 30*time.Minute), positive(s.Pulse, 30*time.Second), positive(s.Body, 1<<20)
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	g := s.Suite.Guide()
	_, varies := s.Suite.(env.Varier)
	h := &Handler{served: s, tasks: map[string][]wireTask{}, byID: map[string]wireTask{}, guide: guide{
		Protocol: protocol, Name: s.Name, Role: g.Role, Rules: g.Rules, Horizon: g.Horizon, Categories: g.Categories,
		SuccessReward: g.SuccessReward, Splits: s.Splits, Varies: varies,
	}}
	for _, split := range s.Splits {
		tasks, err := s.Suite.Tasks(split)
		if err != nil {
			return nil, err
		}
		for i, t := range tasks {
			w := wireTask{ID: t.ID, Split: t.Split, Family: t.Family, Category: t.Category, Goal: t.Goal, Index: &i}
			h.tasks[split] = append(h.tasks[split], w)
			h.byID[t.ID] = w
		}
	}
	h.ctx, h.end = context.WithCancel(context.Background())
	h.routes()
	return h, nil
}

// Close ends all sessions and waits for them.
func (h *Handler) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	h.wait.Wait()
	return nil
}

// Sessions is how many connections are open.
func (h *Handler) Sessions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions
}

// enter counts a session in, if there is room.
func (h *Handler) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.sessions >= h.served.Sessions {
		return false
	}
	h.sessions++
	h.wait.Add(1)
	return true
}

func (h *Handler) leave() {
	h.mu.Lock()
	h.sessions--
	h.mu.Unlock()
	h.wait.Done()
}

type fields = map[string]any

// refused is an answer that is no success.
type refused struct {
	status int
	text   string
}

func (r refused) Error() string { return r.text }

func (h *Handler) routes() {
	name := h.served.Name
	h.mux.HandleFunc("GET /health", h.tell(fields{"status": "healthy"}))
	h.mux.HandleFunc("GET /metadata", h.tell(fields{
		"name": name, "description": h.guide.Role, "version": h.served.Version, "readme_content": h.guide.Rules,
		"author": nil, "documentation_url": nil,
	}))
	h.mux.HandleFunc("GET /guide", h.tell(h.guide))
	h.mux.HandleFunc("GET /schema", h.tell(schemas()))
	h.mux.HandleFunc("GET /openapi.json", h.tell(openAPI(name, h.served.Version)))
	h.mux.HandleFunc("GET /list_environments", h.tell([]string{name}))
	h.mux.HandleFunc("GET /"+name+"/splits", h.tell(h.splits()))
	h.mux.HandleFunc("POST /"+name+"/num_tasks", post(h, h.numTasks))
	h.mux.HandleFunc("POST /"+name+"/tasks", post(h, h.allTasks))
	h.mux.HandleFunc("POST /"+name+"/task", post(h, h.oneTask))
	h.mux.HandleFunc("POST /"+name+"/task_range", post(h, h.taskRange))
	h.mux.HandleFunc("POST /vary", post(h, h.vary))
	h.mux.HandleFunc("POST /mcp", post(h, h.toolOverHTTP))
	h.mux.HandleFunc("GET /ws", h.session)
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, refused{http.StatusNotFound, "there is no such endpoint here: episodes are played over /ws"})
	})
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.admit(r); err != nil {
		h.fail(w, r, err)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// admit says who may ask: who shows the token, as a bearer or as the password of an address (ws://any:TOKEN@host), or,
// where there is none, programs on this machine. A page in a browser of this machine is none: it comes with an Origin, or
// with a host of its own that was made to mean this machine.
func (h *Handler) admit(r *http.Request) error {
	if want := h.served.Token; want != "" {
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if _, password, basic := r.BasicAuth(); basic {
			got = password
		}
		if subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
			return refused{http.StatusUnauthorized, "wrong or missing token"}
		}
		return nil
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	from, _, _ := net.SplitHostPort(r.RemoteAddr) // what cannot be read is not local
	if !local(host) || !local(from) || r.Header.Get("Origin") != "" {
		return refused{http.StatusForbidden, "without a token only programs on this machine may ask"}
	}
	return nil
}

func respond(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"detail":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // who hung up needs no answer
}

// fail answers with an error. What went wrong inside is for the log.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var e refused
	if !errors.As(err, &e) {
		h.served.Log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
		e = refused{http.StatusInternalServerError, "the server failed; its log says why"}
	}
	if e.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	respond(w, e.status, fields{"detail": e.text})
}

// tell answers always the same.
func (h *Handler) tell(v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, v) }
}

// bodyTime is how long a request's body may take to come.
const bodyTime = 30 * time.Second

// post decodes a request, and answers it.
func post[T any](h *Handler, answer func(asked T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		slow := time.AfterFunc(bodyTime, func() { _ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) })
		defer slow.Stop()
		var asked T
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, h.served.Body)).Decode(&asked)
		if err != nil {
			h.fail(w, r, refused{http.StatusUnprocessableEntity, "the request cannot be read: " + err.Error()})
			return
		}
		v, err := answer(asked)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		respond(w, http.StatusOK, v)
	}
}

// splits describes them as the protocol does.
func (h *Handler) splits() []fields {
	var out []fields
	for _, s := range h.served.Splits {
		kind := "validation"
		switch {
		case s == "train" || s == "warm":
			kind = "train"
		case s == "report" || strings.HasPrefix(s, "test"):
			kind = "test"
		}
		out = append(out, fields{"name": s, "type": kind})
	}
	return out
}

// span asks for tasks.
type span struct {
	Split string `json:"split"`
	Index *int   `json:"index"`
	Start *int   `json:"start"`
	Stop  *int   `json:"stop"`
}

func (h *Handler) split(name string) ([]wireTask, error) {
	if !slices.Contains(h.served.Splits, name) {
		return nil, refused{http.StatusBadRequest, fmt.Sprintf("no split %q: there are %s", name, strings.Join(h.served.Splits, ", "))}
	}
	return h.tasks[name], nil
}

func (h *Handler) numTasks(s span) (any, error) {
	ts, err := h.split(s.Split)
	return fields{"num_tasks": len(ts)}, err
}

func (h *Handler) allTasks(s span) (any, error) {
	ts, err := h.split(s.Split)
	return fields{"tasks": slices.Concat([]wireTask{}, ts), "env_name": h.served.Name}, err
}

func (h *Handler) oneTask(s span) (any, error) {
	ts, err := h.split(s.Split)
	if err != nil {
		return nil, err
	}
	if s.Index == nil || *s.Index < 0 || *s.Index >= len(ts) {
		return nil, refused{http.StatusBadRequest, fmt.Sprintf("index must lie in 0…%d", len(ts)-1)}
	}
	return fields{"task": ts[*s.Index]}, nil
}

// taskRange is a slice as Python makes it: a negative bound counts from the end.
func (h *Handler) taskRange(s span) (any, error) {
	ts, err := h.split(s.Split)
	bound := func(b *int, otherwise int) int {
		if b == nil {
			return otherwise
		}
		if *b < 0 {
			return max(0, *b+len(ts))
		}
		return min(*b, len(ts))
	}
	from, to := bound(s.Start, 0), bound(s.Stop, len(ts))
	return fields{"tasks": slices.Concat([]wireTask{}, ts[min(from, to):to])}, err
}

func (h *Handler) vary(v varied) (any, error) {
	varier, can := h.served.Suite.(env.Varier)
	if !can {
		return nil, refused{http.StatusNotImplemented, "this world makes no variations"}
	}
	t, known := h.byID[v.Task]
	if !known {
		return nil, refused{http.StatusBadRequest, fmt.Sprintf("no task %.200q", v.Task)}
	}
	made, err := varier.Vary(t.task(), episode.Seed(v.Seed))
	if err != nil {
		return nil, err
	}
	return wireTask{ID: made.ID, Split: made.Split, Family: made.Family, Category: made.Category, Goal: made.Goal}, nil
}
