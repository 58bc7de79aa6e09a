package tinker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"skillmaster/policy"
	"skillmaster/policy/remote"

	"github.com/klauspost/compress/zstd"
)

// Served is what a Server offers to others.
type Served struct {
	Model   string // its name
	Vocab   int    // number of ids
	Context int    // most ids of a sequence
	// Open makes a learner of the model as it is offered, with an adapter of that rank, or of all weights (rank 0). Its
	// samplers must be policy.Scorers.
	Open func(ctx context.Context, rank int, seed uint64) (policy.Learner, error)
	// Folder keeps what is saved, in folders by model. It must exist.
	Folder   string
	Token    string        // that clients must show as X-API-Key; "": none is asked for, and only this machine may ask
	Models   int           // most at a time; 0: 8
	Parallel int           // most samples at a time, further ones are sent away with 429; 0: 1024
	Body     int64         // most bytes of a request, unpacked; 0: 64 MiB
	Idle     time.Duration // a session that is silent for so long loses its models; 0: 10 minutes
	Log      *slog.Logger  // of what fails here; nil: nobody
	Now      func() time.Time
}

// Server speaks the Tinker API for learners of ours. What it was made for is Client and the Python SDK, release 0.38: it
// refuses what it would not heed. Safe for concurrent use; Close it.
type Server struct {
	served Served
	mux    http.ServeMux
	root   *os.Root
	slots  chan struct{}
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	work   sync.WaitGroup

	// reduce is how it adds up; for tests that make it add up otherwise.
	reduce func(d []row)

	mu       sync.Mutex
	sessions map[string]time.Time // last sign of life
	models   map[string]*trained
	samplers map[string]*offered
	promises map[string]*promised
}

// offered is a sampler that clients may ask.
type offered struct {
	session string
	path    string // "": the base model or a model as it was at some time
	sampler policy.Sampler
	last    time.Time         // that it was asked
	asked   map[int]*promised // by number
}

// NewServer returns a server. Without a token it answers requests of this machine alone, and none that a web page sends.
func NewServer(s Served) (*Server, error) {
	switch {
	case s.Open == nil || s.Now == nil || s.Model == "" || s.Folder == "":
		return nil, errors.New("a server needs learners, the model's name, a folder and a clock")
	case s.Vocab < 1 || s.Context < 2:
		return nil, fmt.Errorf("a server needs the size of vocabulary and context, not %d and %d", s.Vocab, s.Context)
	}
	if err := remote.CheckToken(s.Token); err != nil {
		return nil, err
	}
	s.Models, s.Parallel, s.Body, s.Idle = positive(s.Models, 8), positive(s.Parallel, 1024), positive(s.Body, 64<<20), positive(s.Idle, 10*time.Minute)
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	root, err := os.OpenRoot(s.Folder)
	if err != nil {
		return nil, err
	}
	v := &Server{
		served: s, root: root, slots: make(chan struct{}, s.Parallel),
		sessions: map[string]time.Time{}, models: map[string]*trained{}, samplers: map[string]*offered{}, promises: map[string]*promised{},
	}
	v.ctx, v.stop = context.WithCancel(context.Background())
	v.routes()
	return v, nil
}

// Close ends what is under way and waits for it. It may be called twice.
func (v *Server) Close() error {
	v.stop()
	v.mu.Lock()
	for _, m := range v.models {
		m.close()
	}
	v.mu.Unlock()
	v.work.Wait()
	return v.root.Close()
}

// Serve answers on l; see remote.Serve.
func (v *Server) Serve(ctx context.Context, l net.Listener, connections int) error {
	return remote.Serve(ctx, l, v, v.served.Token, connections, v.served.Log)
}

// refused is an error of the protocol.
type refused struct {
	status int
	text   string
}

func (r refused) Error() string { return r.text }

func wrong(format string, a ...any) error {
	return refused{http.StatusUnprocessableEntity, fmt.Sprintf(format, a...)}
}

func unknown(what, name string) error {
	return refused{http.StatusNotFound, fmt.Sprintf("there is no %s %q", what, remote.Printable(name))}
}

// ServeHTTP implements http.Handler.
func (v *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status, err := remote.May(r, r.Header.Get("X-API-Key"), v.served.Token); err != nil {
		v.fail(w, r, refused{status, err.Error()})
		return
	}
	v.mux.ServeHTTP(w, r)
}

// fail answers with an error in the form of the servers others run. What went wrong inside is for the log.
func (v *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var e refused
	switch {
	case errors.As(err, &e):
	case r.Context().Err() != nil:
		return // nobody waits for it
	default:
		v.served.Log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
		e = refused{http.StatusInternalServerError, "the server failed; its log says why"}
	}
	if e.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	respond(w, e.status, map[string]any{"detail": e.text})
}

func respond(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"detail":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // who hung up needs no answer
}

// take reads a request in JSON, strictly, and answers it.
func take[T any](v *Server, answer func(r *http.Request, asked T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked T
		data, err := v.body(w, r)
		if err == nil {
			err = strictly(data, &asked)
		}
		var reply any
		if err == nil {
			reply, err = answer(r, asked)
		}
		if err != nil {
			v.fail(w, r, err)
			return
		}
		respond(w, http.StatusOK, reply)
	}
}

func strictly(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return wrong("the request cannot be read: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return wrong("there is more after the request")
	}
	return nil
}

// body reads a request, unpacked.
func (v *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	defer remote.Hurry(w)()
	most := v.served.Body
	from := io.Reader(http.MaxBytesReader(w, r.Body, most))
	switch kind := r.Header.Get("Content-Encoding"); kind {
	case "", "identity":
	case "zstd":
		z, err := zstd.NewReader(from, zstd.WithDecoderMaxMemory(uint64(most)), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		from = z
	default:
		return nil, refused{http.StatusUnsupportedMediaType, "the body is packed as " + remote.Printable(kind) + ": zstd is read here"}
	}
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if m := (*http.MaxBytesError)(nil); errors.As(err, &m) || int64(len(data)) > most || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return nil, refused{http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d bytes", most)}
	}
	if err != nil {
		return nil, wrong("the request cannot be read: %v", err)
	}
	return data, nil
}

func (v *Server) routes() {
	at := func(pattern string, h http.HandlerFunc) {
		method, path, _ := strings.Cut(pattern, " ")
		v.mux.HandleFunc(method+" /api/v1/"+path, h)
	}
	v.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		v.fail(w, r, refused{http.StatusNotFound, "there is no such endpoint here"})
	})
	at("GET healthz", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, map[string]any{"status": "ok"})
	})
	at("GET get_server_capabilities", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, capabilities{[]supported{{v.served.Model, v.served.Context, true, true}}})
	})
	at("POST client/config", take(v, func(_ *http.Request, _ sdkHello) (any, error) {
		return map[string]any{"parallel_fwdbwd_chunks": false, "proto_compress_fwdbwd": true}, nil
	}))
	at("POST client/dynamic_config", take(v, func(_ *http.Request, _ sdkHello) (any, error) { return map[string]any{}, nil }))
	at("POST telemetry", func(w http.ResponseWriter, r *http.Request) { // read by nobody, kept nowhere
		if _, err := v.body(w, r); err != nil {
			v.fail(w, r, err)
			return
		}
		respond(w, http.StatusOK, map[string]any{"status": "accepted"})
	})
	at("POST create_session", take(v, v.createSession))
	at("POST session_heartbeat", take(v, v.heartbeat))
	at("POST create_model", take(v, v.createModel))
	at("POST unload_model", take(v, v.unloadModel))
	at("POST get_info", take(v, v.info))
	at("POST weights_info", take(v, v.weightsInfo))
	at("POST forward_backward", v.passes(false))
	at("POST forward", v.passes(true))
	at("POST optim_step", take(v, v.optimStep))
	at("POST save_weights", take(v, v.saveWeights))
	at("POST save_weights_for_sampler", take(v, v.saveForSampler))
	at("POST load_weights", take(v, v.loadWeights))
	at("POST create_sampling_session", take(v, v.createSampler))
	at("GET samplers/{id}", v.samplerInfo)
	at("POST asample", take(v, v.sample))
	at("POST retrieve_future", v.retrieve)
}

type sdkHello struct {
	SDK string `json:"sdk_version"`
}

func (v *Server) createSession(_ *http.Request, _ createSession) (any, error) {
	v.sweep()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.sessions) >= mostSessions {
		return nil, refused{http.StatusTooManyRequests, "too many sessions"}
	}
	id := "session-" + random()
	v.sessions[id] = v.served.Now()
	return createdSession{
		ID: id, Type: "create_session",
		Info: "adapters here are of the projections of attention and feed-forward, never of embeddings and head, whatever train_unembed says",
	}, nil
}

// Most of what is kept for clients that do not come back.
const (
	mostSessions = 4096
	mostSamplers = 64 // of a session
	mostPromises = 1 << 16
	keepPromise  = 15 * time.Minute // after it came true
)

func (v *Server) heartbeat(_ *http.Request, q heartbeat) (any, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.sessions[q.Session]; !known {
		return nil, unknown("session", q.Session)
	}
	v.sessions[q.Session] = v.served.Now()
	return map[string]any{"type": "session_heartbeat"}, nil
}

// alive notes a sign of life of a session.
func (v *Server) alive(session string) error {
	_, err := v.heartbeat(nil, heartbeat{Session: session})
	return err
}

// sweep lets go of what silent sessions hold, and of old results.
func (v *Server) sweep() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.served.Now()
	for id, last := range v.sessions {
		if now.Sub(last) < v.served.Idle {
			continue
		}
		delete(v.sessions, id)
		for name, m := range v.models {
			if m.session == id {
				m.close()
				delete(v.models, name)
			}
		}
		for name, s := range v.samplers {
			if s.session == id {
				delete(v.samplers, name) // who samples has it; its memory is the collector's
			}
		}
	}
	old := func(p *promised) bool { return p.old(now) }
	for _, s := range v.samplers {
		prune(s.asked, old)
	}
	prune(v.promises, old)
}

func prune[K comparable](m map[K]*promised, old func(*promised) bool) {
	maps.DeleteFunc(m, func(_ K, p *promised) bool { return old(p) })
}

// promised is a result that is there or to come.
type promised struct {
	id   string
	seen [sha256.Size]byte // of the request, to know it again
	done chan struct{}     // closed when the rest is set
	at   time.Time
	json any
	wire func() []byte // protobuf; nil: there is none
	err  error
}

func (p *promised) old(now time.Time) bool {
	select {
	case <-p.done:
		return now.Sub(p.at) > keepPromise
	default:
		return false
	}
}

func (p *promised) keep(now time.Time, value any, wire func() []byte, err error) {
	p.at, p.json, p.wire, p.err = now, value, wire, err
	close(p.done)
}

// promise makes one. The caller holds the lock.
func (v *Server) promise(seen [sha256.Size]byte) (*promised, error) {
	if len(v.promises) >= mostPromises {
		return nil, refused{http.StatusTooManyRequests, "too many results wait to be fetched"}
	}
	p := &promised{id: "future-" + random(), seen: seen, done: make(chan struct{})}
	v.promises[p.id] = p
	return p, nil
}

// patience is how long a question for a result is held.
const patience = 20 * time.Second

func (v *Server) retrieve(w http.ResponseWriter, r *http.Request) {
	var q retrieve
	data, err := v.body(w, r)
	if err == nil {
		err = strictly(data, &q)
	}
	if err != nil {
		v.fail(w, r, err)
		return
	}
	v.mu.Lock()
	p := v.promises[q.Request]
	v.mu.Unlock()
	if p == nil {
		v.fail(w, r, refused{http.StatusGone, "there is no such result (any more)"})
		return
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-p.done:
		v.deliver(w, r, p)
	case <-t.C:
		respond(w, http.StatusOK, map[string]any{"type": "try_again", "request_id": p.id, "queue_state": "active"})
	case <-r.Context().Done():
	case <-v.ctx.Done():
		v.fail(w, r, refused{http.StatusServiceUnavailable, "the server is ending"})
	}
}

func (v *Server) deliver(w http.ResponseWriter, r *http.Request, p *promised) {
	var e refused
	switch {
	case errors.As(p.err, &e):
		respond(w, http.StatusOK, map[string]any{"error": e.text, "category": "user"})
	case p.err != nil:
		v.served.Log.ErrorContext(r.Context(), "work failed", "error", p.err)
		respond(w, http.StatusOK, map[string]any{"error": p.err.Error(), "category": "server"})
	case p.wire != nil && accepts(r, protobuf):
		w.Header().Set("Content-Type", protobuf)
		_, _ = w.Write(p.wire()) // who hung up needs no answer
	default:
		respond(w, http.StatusOK, p.json)
	}
}

func accepts(r *http.Request, kind string) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if got, _, err := mime.ParseMediaType(strings.TrimSpace(part)); err == nil && got == kind {
			return true
		}
	}
	return false
}
