package track

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"skillmaster/policy/remote"
	"skillmaster/report"
	"skillmaster/store/storetest"
	"skillmaster/train"
)

const secret = "s3cret-token"

// fake is an MLflow server as its REST API is documented (mlflow.org/docs/latest/api_reference/rest-api.html): request
// fields, limits, params that do not change, one of equal metrics.
type fake struct {
	t    *testing.T
	auth string // header that must come

	mu          sync.Mutex
	experiments map[string]string // name to id
	runs        []*fakeRun
	calls       []string                                                          // paths
	trouble     func(n int, path string, w http.ResponseWriter) (down, lost bool) // before the n-th call: answers in its place; or after it
}

type fakeRun struct {
	experiment, id, name, status string
	start, end                   int64
	tags, params                 map[string]string
	points                       map[metric]int // how often each came
}

func newFake(t *testing.T) (*fake, *MLflow) {
	t.Helper()
	f := &fake{t: t, auth: "Bearer " + secret, experiments: map[string]string{}}
	return f, f.client(MLflowOptions{Key: func() (string, error) { return secret, nil }})
}

func (f *fake) client(o MLflowOptions) *MLflow {
	f.t.Helper()
	s := httptest.NewServer(http.StripPrefix("/behind", f))
	f.t.Cleanup(s.Close)
	o.URL, o.Experiment, o.Pause = s.URL+"/behind/", "some experiment & more", time.Millisecond
	m, err := NewMLflow(o)
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow/")
	f.calls = append(f.calls, path)
	if r.Header.Get("Authorization") != f.auth {
		f.refuse(w, 401, "PERMISSION_DENIED", "not with "+r.Header.Get("Authorization"))
		return
	}
	lost := false
	if f.trouble != nil {
		var down bool
		if down, lost = f.trouble(len(f.calls), path, w); down {
			return
		}
	}
	reply := httptest.NewRecorder()
	f.do(reply, r, path)
	if lost {
		f.refuse(w, 502, "", "the reply was lost")
		return
	}
	w.WriteHeader(reply.Code)
	_, _ = w.Write(reply.Body.Bytes())
}

func (f *fake) refuse(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error_code": code, "message": message})
}

func (f *fake) do(w http.ResponseWriter, r *http.Request, path string) {
	read := func(into any) bool {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.ContentLength > 1<<20 {
			f.t.Errorf("%s %s of %s, %d bytes", r.Method, path, r.Header.Get("Content-Type"), r.ContentLength)
		}
		d := json.NewDecoder(r.Body)
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			f.t.Errorf("%s: %v", path, err)
			f.refuse(w, 400, "INVALID_PARAMETER_VALUE", err.Error())
			return false
		}
		return true
	}
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	switch path {
	case "experiments/get-by-name":
		id, is := f.experiments[r.URL.Query().Get("experiment_name")]
		if r.Method != http.MethodGet {
			f.t.Errorf("%s by %s", path, r.Method)
		}
		if !is {
			f.refuse(w, 404, "RESOURCE_DOES_NOT_EXIST", "Could not find experiment")
			return
		}
		answer(map[string]any{"experiment": map[string]string{"experiment_id": id, "lifecycle_stage": "active"}})
	case "experiments/create":
		var q struct{ Name string }
		if read(&q) {
			f.experiments[q.Name] = strconv.Itoa(len(f.experiments) + 1)
			answer(map[string]string{"experiment_id": f.experiments[q.Name]})
		}
	case "runs/search":
		var q struct {
			Experiments []string `json:"experiment_ids"`
			Filter      string   `json:"filter"`
			View        string   `json:"run_view_type"`
			Most        int      `json:"max_results"`
		}
		if !read(&q) {
			return
		}
		m := regexp.MustCompile("^tags\\.`([\\w.]+)` = '([0-9a-f]+)'$").FindStringSubmatch(q.Filter)
		if m == nil || q.View != "ACTIVE_ONLY" || q.Most < 1 || len(q.Experiments) != 1 {
			f.t.Fatalf("search %+v", q)
		}
		found := []any{}
		for _, run := range f.runs {
			if run.experiment == q.Experiments[0] && run.tags[m[1]] == m[2] {
				found = append(found, run.json())
			}
		}
		answer(map[string]any{"runs": found})
	case "runs/create":
		var q struct {
			Experiment string  `json:"experiment_id"`
			Name       string  `json:"run_name"`
			Start      int64   `json:"start_time"`
			Tags       []named `json:"tags"`
		}
		if read(&q) {
			run := &fakeRun{experiment: q.Experiment, id: fmt.Sprintf("run%d", len(f.runs)), name: q.Name, status: "RUNNING", start: q.Start, tags: map[string]string{}, params: map[string]string{}, points: map[metric]int{}}
			f.runs = append(f.runs, run)
			run.tag(q.Tags)
			answer(map[string]any{"run": run.json()})
		}
	case "runs/log-batch":
		var q batch
		if read(&q) {
			f.log(w, q)
		}
	case "runs/update":
		var q struct {
			Run    string `json:"run_id"`
			Status string `json:"status"`
			End    int64  `json:"end_time"`
		}
		if read(&q) {
			run := f.run(q.Run)
			run.status, run.end = q.Status, q.End
			answer(map[string]any{"run_info": map[string]string{"run_id": run.id}})
		}
	default:
		f.t.Errorf("no such call: %s", path)
		f.refuse(w, 404, "ENDPOINT_NOT_FOUND", path)
	}
}

var mlflowNames = regexp.MustCompile(`^[\w.\- ]+(/[\w.\- ]+)?$`)

func (f *fake) log(w http.ResponseWriter, q batch) {
	run := f.run(q.Run)
	if len(q.Metrics) > 1000 || len(q.Params) > 100 || len(q.Tags) > 100 || len(q.Metrics)+len(q.Params)+len(q.Tags) > 1000 {
		f.t.Errorf("a batch of %d metrics, %d params, %d tags", len(q.Metrics), len(q.Params), len(q.Tags))
	}
	for _, m := range q.Metrics {
		if !mlflowNames.MatchString(m.Key) || len(m.Key) > 250 {
			f.t.Errorf("metric %q", m.Key)
		}
		run.points[m]++
	}
	for _, p := range q.Params {
		if old, is := run.params[p.Key]; is && old != p.Value {
			f.refuse(w, 400, "INVALID_PARAMETER_VALUE", "Changing param values is not allowed")
			return
		}
		if !mlflowNames.MatchString(p.Key) || len(p.Value) > 6000 {
			f.t.Errorf("param %q", p.Key)
		}
		run.params[p.Key] = p.Value
	}
	run.tag(q.Tags)
	_, _ = w.Write([]byte("{}"))
}

func (f *fake) run(id string) *fakeRun {
	for _, r := range f.runs {
		if r.id == id {
			return r
		}
	}
	f.t.Fatalf("no run %q", id)
	return nil
}

func (r *fakeRun) tag(tags []named) {
	for _, t := range tags {
		r.tags[t.Key] = t.Value
	}
}

func (r *fakeRun) json() any {
	tags := []named{}
	for k, v := range r.tags {
		tags = append(tags, named{k, v})
	}
	return map[string]any{"info": map[string]any{"run_id": r.id, "status": r.status, "lifecycle_stage": "active"}, "data": map[string]any{"tags": tags}}
}

// has checks that the only run has every number of the rounds, and no other; times is how often one may have come.
func (f *fake) has(h *report.History, times int) {
	f.t.Helper()
	if len(f.runs) != 1 || len(f.experiments) != 1 {
		f.t.Fatalf("%d runs, %d experiments", len(f.runs), len(f.experiments))
	}
	want := map[metric]bool{}
	for _, r := range Rounds(h) {
		for _, p := range points(r) {
			want[p] = true
		}
	}
	for p, n := range f.runs[0].points {
		if !want[p] || n > times {
			f.t.Errorf("%+v came %d times; wanted: %v", p, n, want[p])
		}
	}
	if len(f.runs[0].points) != len(want) {
		f.t.Errorf("%d points, want %d", len(f.runs[0].points), len(want))
	}
}

func send(t *testing.T, m *MLflow, h *report.History, want Sent) {
	t.Helper()
	if got, err := m.Send(t.Context(), h); err != nil || got != want {
		t.Fatalf("got %+v, %v; want %+v", got, err, want)
	}
}

// A run that grows, sent three times, has every number once; at its end it is finished.
func TestMLflow(t *testing.T) {
	h := read(t, made(t, storetest.Shape{Seed: 9, Iterations: 40, Tasks: 1, Group: 1, Evaluate: 5, Panel: 4}))
	f, m := newFake(t)
	part := *h
	part.Rounds = h.Rounds[:5]
	send(t, m, &part, Sent{Rounds: 5})
	f.has(&part, 1)
	if f.runs[0].status != "RUNNING" {
		t.Errorf("it is %s", f.runs[0].status)
	}
	f.calls = nil
	send(t, m, h, Sent{Rounds: 38})
	f.has(h, 1)
	if len(f.calls) != 5 { // 38 rounds of some 40 numbers: two batches; experiment, search and update
		t.Errorf("calls: %q", f.calls)
	}
	f.calls = nil
	send(t, m, h, Sent{})
	if len(f.calls) != 2 {
		t.Errorf("calls when there is nothing new: %q", f.calls)
	}
	run := f.runs[0]
	if run.status != "FINISHED" || run.end != h.Last().UnixMilli() || run.name != "made" || run.start != start.UnixMilli() {
		t.Errorf("it is %+v", run)
	}
	if run.params["train.iterations"] != "40" || run.tags["skillmaster.world"] != "made up" {
		t.Errorf("params %v, tags %v", run.params, run.tags)
	}
}

// A server that is down for a while, or whose replies are lost, gets everything in the end; numbers that it had and
// could not confirm come again as they were, which a database keeps once.
func TestMLflowTries(t *testing.T) {
	h := small()
	f, m := newFake(t)
	f.trouble = func(n int, path string, w http.ResponseWriter) (down, lost bool) {
		switch n % 3 {
		case 1:
			w.Header().Set("Retry-After", "0")
			f.refuse(w, http.StatusTooManyRequests, "REQUEST_LIMIT_EXCEEDED", "slowly")
			return true, false
		case 2:
			return false, path == "runs/log-batch"
		default:
			return false, false
		}
	}
	send(t, m, h, Sent{Rounds: 2})
	f.has(h, 2)
	f.trouble = nil
	send(t, m, h, Sent{})
}

// What stays broken is an error, and the next time goes on from there: at whatever call it was.
func TestMLflowGoesOnAfterFailure(t *testing.T) {
	for broken := 1; broken <= 7; broken++ {
		f, m := newFake(t)
		h := small()
		h.Manifest.Config = json.RawMessage(`{"a":1}`)
		h.Train.Iterations = 1 // it is finished
		f.trouble = func(n int, _ string, w http.ResponseWriter) (down, lost bool) {
			if n >= broken {
				f.refuse(w, http.StatusInternalServerError, "INTERNAL_ERROR", "broken")
			}
			return n >= broken, false
		}
		_, err := m.Send(t.Context(), h)
		if len(f.calls) < broken {
			if err != nil || broken != 7 {
				t.Errorf("%v after %d calls; there are six", err, len(f.calls))
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "broken") || len(f.calls) != broken+3 {
			t.Errorf("broken from call %d: %v after %d calls", broken, err, len(f.calls))
		}
		f.trouble = nil
		if _, err := m.Send(t.Context(), h); err != nil {
			t.Errorf("broken from call %d, then: %v", broken, err)
		}
		f.has(h, 1)
		if f.runs[0].status != "FINISHED" {
			t.Errorf("broken from call %d: it is %s", broken, f.runs[0].status)
		}
	}
}

// Rounds that were taken back stay on the server, which is told, and are not doubled.
func TestMLflowCannotTakeBack(t *testing.T) {
	f, m := newFake(t)
	send(t, m, small(), Sent{Rounds: 2})
	send(t, m, again(), Sent{Outdated: true})
	f.has(small(), 1)
	h := again()
	h.Rounds = append(h.Rounds, kept(3, train.Learning, 1, time.Hour, map[string]float64{"action/success": 1}))
	send(t, m, h, Sent{Rounds: 1, Outdated: true})
	send(t, m, h, Sent{})
	if n := len(f.runs[0].points); n != 5 {
		t.Errorf("%d points, want 5", n)
	}
}

// A round with more numbers than a batch may have, and more settings, goes in several.
func TestMLflowBatches(t *testing.T) {
	f, m := newFake(t)
	h := small()
	many, settings := map[string]float64{}, map[string]any{}
	for i := range 2500 {
		many[fmt.Sprintf("skill/effect_%d", i)] = float64(i)
	}
	for i := range 250 {
		settings[fmt.Sprint("s", i)] = map[string]any{"x": []int{i, 2}, "y": strings.Repeat("ü", 4000)}
	}
	h.Rounds = append(h.Rounds, kept(3, train.Learning, 1, time.Hour, many))
	h.Manifest.Config, _ = json.Marshal(settings)
	send(t, m, h, Sent{Rounds: 3})
	f.has(h, 1)
	if p := f.runs[0].params; len(p) != 500 || p["s7.x"] != "[7,2]" || !strings.HasSuffix(p["s7.y"], "ü…") {
		t.Errorf("%d params; s7.x is %q", len(p), p["s7.x"])
	}
}

// The key is shown to the server and to nobody else.
func TestMLflowKeepsTheKey(t *testing.T) {
	f, m := newFake(t)
	f.auth = "another"
	var notices []string
	m.options.Notice = func(text string) { notices = append(notices, text) }
	if _, err := m.Send(t.Context(), small()); err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "[key]") {
		t.Errorf("got %v", err)
	}
	f.auth = "Basic bWU6czNjcmV0LXRva2Vu" // base64 of me:s3cret-token
	named := f.client(MLflowOptions{User: "me", Key: func() (string, error) { return secret, nil }})
	send(t, named, small(), Sent{Rounds: 2})
	f.auth = "another"
	if _, err := named.Send(t.Context(), small()); err == nil || strings.Contains(err.Error(), "bWU6czNjcmV0") {
		t.Errorf("got %v", err)
	}
	if len(notices) > 0 {
		t.Errorf("a refusal is tried again: %q", notices)
	}
	if _, err := NewMLflow(MLflowOptions{URL: "http://example.org", Experiment: "e", Key: remote.EnvKey("K")}); err == nil {
		t.Error("the key would travel in clear text")
	}
}

func TestMLflowName(t *testing.T) {
	long := "skill/" + strings.Repeat("x", 300)
	for key, want := range map[string]string{
		"action/success": "action/success", "rollout/stop_context full": "rollout/stop_context full", "skill/met_a/b": "skill/met_a_2fb",
		"/a": "_2fa", "a//b": "a/_2fb", "r/ü:": "r/_c3_bc_3a", "a.b-c": "a.b-c",
	} {
		if got := mlflowName(key); got != want {
			t.Errorf("%q becomes %q, want %q", key, got, want)
		}
	}
	if a, b := mlflowName(long), mlflowName(long+"y"); len(a) != longestName || len(b) != longestName || a == b {
		t.Errorf("long keys become %q and %q", a, b)
	}
}

// Two runs are told apart, and a copy of one is not.
func TestIdentity(t *testing.T) {
	a, other, seed := small(), small(), small()
	other.Manifest.Created = start.Add(time.Millisecond)
	seed.Manifest.Seed = 1
	if identity(a) != identity(small()) || identity(a) == identity(other) || identity(a) == identity(seed) {
		t.Error("runs are told apart wrongly")
	}
}
