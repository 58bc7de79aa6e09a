package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"skillmaster/policy/remote"
)

// exchanged is a request and what came of it, one line of a recording. Keys and hosts are not in it.
type exchanged struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Request string            `json:"request,omitempty"`
	Status  int               `json:"status"`
	Header  map[string]string `json:"header,omitempty"`
	Reply   string            `json:"reply"`
	Broken  bool              `json:"broken,omitempty"` // the connection broke after Reply
}

// heeded are the headers of replies that a client heeds.
var heeded = []string{"Content-Type", "Date", "Retry-After", "Retry-After-Ms", "X-Should-Retry"}

// Recorder is an http.RoundTripper that writes what it carries, a line of JSON each: for tests that need no server.
// Authorization never reaches the recording, nor does the key where a server repeats it. Safe for concurrent use; the
// lines stand in the order of the replies.
type Recorder struct {
	base http.RoundTripper

	mu  sync.Mutex
	to  io.Writer
	err error
}

// NewRecorder returns a recorder of what base carries.
func NewRecorder(base http.RoundTripper, to io.Writer) *Recorder {
	return &Recorder{base: base, to: to}
}

// Err is the first error of writing.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// recordable is the most bytes of a reply that a recorder reads.
const recordable = 256 << 20

// RoundTrip implements http.RoundTripper. Replies are read whole before they are handed on.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	e := exchanged{Method: req.Method, Path: req.URL.Path}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		_ = req.Body.Close() // it is read to the end
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
		e.Request = string(body)
	}
	resp, err := r.base.RoundTrip(req)
	if err != nil {
		return nil, err // nothing came that could be played back
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, recordable))
	e.Status, e.Reply, e.Broken, e.Header = resp.StatusCode, string(reply), err != nil, map[string]string{}
	for _, name := range heeded {
		if v := resp.Header.Get(name); v != "" {
			e.Header[name] = v
		}
	}
	key := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	r.write(e, key)
	resp.Body = e.body()
	return resp, nil
}

func (r *Recorder) write(e exchanged, key string) {
	e.Request, e.Reply = remote.Strike(e.Request, key), remote.Strike(e.Reply, key) // e is a copy
	for name, v := range e.Header {
		e.Header[name] = remote.Strike(v, key)
	}
	line, err := json.Marshal(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		_, err = r.to.Write(append(line, '\n'))
	}
	if r.err == nil {
		r.err = err
	}
}

// broken is a reader of nothing but an error.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func (e exchanged) body() io.ReadCloser {
	if e.Broken {
		return io.NopCloser(io.MultiReader(strings.NewReader(e.Reply), broken{io.ErrUnexpectedEOF}))
	}
	return io.NopCloser(strings.NewReader(e.Reply))
}

// Replay is an http.RoundTripper that answers from a recording. A request is known by its method, path and body; the same
// one sent again gets the next of its replies. Safe for concurrent use.
type Replay struct {
	mu   sync.Mutex
	left map[[3]string][]exchanged
}

// NewReplay reads a recording.
func NewReplay(from io.Reader) (*Replay, error) {
	p := &Replay{left: map[[3]string][]exchanged{}}
	lines := bufio.NewReader(from)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return nil, err
		}
		if err := p.add(line); err != nil {
			return nil, fmt.Errorf("recording, line %d: %w", n, err)
		}
		if ended {
			return p, nil
		}
	}
}

// add reads a line, which may be empty.
func (p *Replay) add(line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	var e exchanged
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return err
	}
	if e.Status < 100 || e.Status > 599 {
		return fmt.Errorf("status %d", e.Status)
	}
	p.left[e.key()] = append(p.left[e.key()], e)
	return nil
}

func (e exchanged) key() [3]string { return [3]string{e.Method, e.Path, e.Request} }

// Left is how many replies of the recording nobody has asked for.
func (p *Replay) Left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, all := range p.left {
		n += len(all)
	}
	return n
}

// RoundTrip implements http.RoundTripper.
func (p *Replay) RoundTrip(req *http.Request) (*http.Response, error) {
	e := exchanged{Method: req.Method, Path: req.URL.Path}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		_ = req.Body.Close() // it is read to the end
		if err != nil {
			return nil, err
		}
		e.Request = remote.Strike(string(body), strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.left[e.key()]
	if len(all) == 0 {
		return nil, remote.Final(fmt.Errorf("the recording has no (further) reply to %s %s with this body: %s", e.Method, e.Path, remote.Printable(e.Request)))
	}
	e, p.left[e.key()] = all[0], all[1:]
	header := http.Header{}
	for name, v := range e.Header {
		header.Set(name, v)
	}
	return &http.Response{
		Status: http.StatusText(e.Status), StatusCode: e.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: e.body(), ContentLength: -1, Request: req,
	}, nil
}
