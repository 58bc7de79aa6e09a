package tinker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"skillmaster/grpo"
	"skillmaster/policy"
	"skillmaster/policy/remote"
)

// answer is what a server says to one request; no status: nothing, until the asker gives up.
type answer struct {
	status int
	text   string
	kind   string // of content; empty: JSON
}

// request is what a server was asked.
type request struct {
	path   string
	header http.Header
	body   string
}

// wire carries requests to a server that answers each path in turn, then with the last answer again and again.
type wire struct {
	mu      sync.Mutex
	answers map[string][]answer
	asked   []request
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/")
	w.mu.Lock()
	w.asked = append(w.asked, request{path, r.Header.Clone(), string(body)})
	a := w.answers[path][0]
	if len(w.answers[path]) > 1 {
		w.answers[path] = w.answers[path][1:]
	}
	w.mu.Unlock()
	if a.status == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if a.kind != "" {
		header.Set("Content-Type", a.kind)
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: io.NopCloser(strings.NewReader(a.text)), Request: r}, nil
}

// of are the requests to a path.
func (w *wire) of(path string) []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.asked), func(r request) bool { return r.path != path })
}

func wired(t *testing.T, w *wire, l Limits) *Client {
	return client(t, Options{URL: "http://127.0.0.1:1", Dialect: Hosted, Transport: w, Limits: l})
}

// Every way in which servers answer the question for a result: it is asked for again, in time, or there is an error that
// says whose fault it was.
func TestFutures(t *testing.T) {
	ok, later := answer{status: 200, text: `{"x":1}`}, answer{status: 200, text: `{"type":"try_again","request_id":"f","queue_state":"paused_capacity"}`}
	again := func(a answer, n int) []answer { return append(slices.Repeat([]answer{a}, n), ok) }
	status := func(code int, text string) answer { return answer{status: code, text: text} }
	var user *FailedError
	for name, c := range map[string]struct {
		answers []answer
		polls   int
		least   time.Duration // that passes
		most    time.Duration
		is      error  // nil: it works out, or fails for good
		says    string // in the error; empty: it works out
		dead    bool   // nothing else is answered, either
	}{
		"there":                     {again(ok, 0), 1, 0, 0, nil, "", false},
		"later":                     {again(later, 3), 4, 150 * time.Millisecond, time.Second, nil, "", false},
		"408 at once, for a minute": {again(status(408, ""), 120), 121, 50 * time.Second, time.Minute, nil, "", false},
		"its size first":            {again(status(200, `{"status":"complete_metadata","response_payload_size":9}`), 1), 2, 0, time.Second, nil, "", false},
		"as protobuf":               {[]answer{{200, "x", protobuf}}, 1, 0, 0, nil, "", false},
		"the asker's fault":         {again(status(200, `{"error":"no such loss","category":"user"}`), 1), 1, 0, 0, nil, "no such loss", false},
		"the server's fault":        {again(status(200, `{"error":"out of memory","category":"server"}`), 1), 1, 0, 0, policy.ErrUnavailable, "out of memory", false},
		"an error that is no text":  {again(status(200, `{"error":{"code":7},"category":"user"}`), 1), 1, 0, 0, nil, `{"code":7}`, false},
		"400 with words":            {again(status(400, `{"detail":"bad datum"}`), 1), 1, 0, 0, policy.ErrUnavailable, "bad datum", false},
		"422 with words":            {again(status(422, `{"detail":"Future failed: bad datum"}`), 1), 1, 0, 0, policy.ErrUnavailable, "bad datum", false},
		"400 without words":         {again(status(400, ""), 3), 4, 0, time.Second, nil, "", false},
		"400 without words or end":  {[]answer{status(400, "")}, 4, 0, time.Second, policy.ErrUnavailable, "the server failed", false},
		"401":                       {again(status(401, ""), 1), 1, 0, 0, nil, "is the key right", false},
		"402":                       {again(status(402, ""), 2), 3, 10 * time.Second, 12 * time.Second, nil, "", false},
		"404":                       {again(status(404, ""), 1), 1, 0, 0, nil, "404", false},
		"410":                       {again(status(410, ""), 1), 1, 0, 0, errGone, "lost the result", false},
		"429, 500, 503":             {[]answer{status(429, ""), status(500, ""), status(503, ""), ok}, 4, 6 * time.Second, 8 * time.Second, nil, "", false},
		"500 without end":           {[]answer{status(500, "oh")}, 8, time.Minute, 3 * time.Minute, policy.ErrUnavailable, "500: oh", false},
		"garbage":                   {again(status(200, "<html>"), 2), 3, time.Second, 4 * time.Second, nil, "", false},
		"garbage without end":       {[]answer{status(200, `{"type":`)}, 8, time.Minute, 3 * time.Minute, policy.ErrUnavailable, "cannot be read", false},
		"held for long":             {again(answer{}, 3), 4, 3 * time.Minute, 4 * time.Minute, nil, "", false},
		"stalls":                    {[]answer{{}}, 8, 15 * time.Minute, 20 * time.Minute, policy.ErrUnavailable, "no whole answer within 1m0s", true},
		"never":                     {[]answer{later}, -1, time.Hour, time.Hour, policy.ErrUnavailable, "no result within 1h0m0s", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{answers: map[string][]answer{"retrieve_future": c.answers, "healthz": {ok}}}
				if c.dead {
					w.answers["healthz"] = []answer{{}}
				}
				began := time.Now()
				reply, isProto, err := wired(t, w, Limits{}).await(t.Context(), promise{Request: "f"}, "Sample", true)
				took := time.Since(began)
				polls := w.of("retrieve_future")
				if (err != nil) != (c.says != "") || err != nil && (!strings.Contains(err.Error(), c.says) || errors.Is(err, policy.ErrUnavailable) != (c.is == policy.ErrUnavailable) ||
					c.is != nil && !errors.Is(err, c.is)) {
					t.Errorf("got %v, want an error that is %v and says %q", err, c.is, c.says)
				}
				if len(polls) != c.polls && c.polls >= 0 || took < c.least || took > c.most {
					t.Errorf("%d polls in %v, want %d in %v to %v", len(polls), took, c.polls, c.least, c.most)
				}
				if err == nil && isProto != (name == "as protobuf") || err == nil && !isProto && string(reply) != ok.text || err != nil && reply != nil {
					t.Errorf("got %q, protobuf: %v", reply, isProto)
				}
				for i, r := range polls {
					want := fmt.Sprintf(`{"request_id":"f","allow_metadata_only":%v}`, name != "its size first" || i == 0)
					if r.body != want || r.header.Get("X-Tinker-Request-Iteration") != fmt.Sprint(i) || r.header.Get("X-Tinker-Request-Type") != "Sample" || r.header.Get("Accept") != protobuf {
						t.Errorf("poll %d: %s with %v, want %s", i, r.body, r.header, want)
					}
				}
				if strings.Contains(name, "fault") && !errors.As(err, &user) {
					t.Errorf("%v does not tell the category", err)
				}
			})
		})
	}
}

// A result that the server has lost is asked for again as the same sample, and a request that is tried again carries the
// same idempotency key, another one another.
func TestAskedAgainAsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		promised := answer{status: 200, text: `{"request_id":"f"}`}
		w := &wire{answers: map[string][]answer{
			"asample":         {{status: 500}, {status: 503}, promised},
			"retrieve_future": {{status: 410}, {status: 200, text: `{"sequences":[{"stop_reason":"length","tokens":[7],"logprobs":[-1]}]}`}},
		}}
		s := &Sampler{client: wired(t, w, Limits{}), session: "s", version: 4, context: 9}
		for range 2 {
			got, err := s.Sample(t.Context(), []int32{1, 2}, policy.Sampling{Temperature: 1, MaxTokens: 1, Seed: 3})
			if err != nil || !slices.Equal(got.IDs, []int32{7}) || got.Version != 4 || got.Stop != policy.Length {
				t.Fatalf("got %+v, %v", got, err)
			}
		}
		var keys []string
		var numbers []int
		for _, r := range w.of("asample") {
			var q sampleRequest
			if err := json.Unmarshal([]byte(r.body), &q); err != nil {
				t.Fatal(err)
			}
			keys, numbers = append(keys, r.header.Get("X-Idempotency-Key")), append(numbers, *q.Seq)
			if r.header.Get("X-Tinker-Sampling-Backpressure") != "1" {
				t.Error("back-pressure is not asked for")
			}
		}
		// Tries 1 to 3 are one request, the fourth follows a lost result, the fifth is the next sample.
		if len(keys) != 5 || keys[0] == "" || keys[0] != keys[1] || keys[0] != keys[2] || keys[2] == keys[3] || keys[3] == keys[4] {
			t.Errorf("idempotency keys %v", keys)
		}
		if !slices.Equal(numbers, []int{0, 0, 0, 0, 1}) {
			t.Errorf("samples are numbered %v", numbers)
		}
	})
}

// A session says every ten seconds that it is alive, also after a beat that failed, and no longer than it is needed.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ok := answer{status: 200, text: `{}`}
		w := &wire{answers: map[string][]answer{
			"create_session": {{status: 200, text: `{"session_id":"s","warning_message":"use a newer\nrelease"}`}}, "session_heartbeat": {ok, {status: 500}, {}, ok},
		}}
		var told []string
		c := client(t, Options{URL: "http://127.0.0.1:1", Dialect: Hosted, Transport: w, Limits: Limits{Patience: 5 * time.Second}, Notice: func(text string) { told = append(told, text) }})
		for range 2 {
			if session, err := c.open(t.Context()); err != nil || session != "s" {
				t.Fatalf("session %q, %v", session, err)
			}
		}
		time.Sleep(55 * time.Second)
		beats := w.of("session_heartbeat")
		if len(beats) != 5 || len(w.of("create_session")) != 1 {
			t.Errorf("%d beats of %d sessions in 55 s", len(beats), len(w.of("create_session")))
		}
		for _, b := range beats {
			if b.body != `{"session_id":"s","type":"session_heartbeat"}` {
				t.Errorf("a beat of %s", b.body)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if n := len(w.of("session_heartbeat")); n != 5 {
			t.Errorf("%d beats, some after the end", n)
		}
		if len(told) != 3 || !strings.Contains(told[0], "use a newer release") || !strings.Contains(told[1], "500") || !strings.Contains(told[2], "no whole answer") {
			t.Errorf("told was %q", told)
		}
	})
}

// Our server does once what it is asked for twice, and refuses something else under the same number.
func TestServerDoesItOnce(t *testing.T) {
	c := client(t, Options{URL: listen(t, serve(t, t.TempDir(), nil))})
	whole, l := policy.Learner(here(t, 0, 0)), there(t, c, LearnerOptions{Unchecked: true})
	batch, o := rows(5, 4), optim(losses["policy gradient"])
	if _, err := whole.Update(t.Context(), batch, o); err != nil {
		t.Fatal(err)
	}
	conflict := func(what string, err error) {
		t.Helper()
		var e *remote.StatusError
		if !errors.As(err, &e) || e.Status != http.StatusConflict {
			t.Errorf("another %s under the same number: %v", what, err)
		}
	}
	// twice asks for something again, and then for something else.
	twice := func(what string, ask func(changed bool) (promise, error)) promise {
		t.Helper()
		first, err := ask(false)
		if err != nil {
			t.Fatal(err)
		}
		l.seq--
		again, err := ask(false)
		if err != nil || first.Request == "" || again.Request != first.Request {
			t.Errorf("%s: promised %v, then %v, %v", what, first, again, err)
		}
		l.seq--
		_, err = ask(true)
		conflict(what, err)
		return first
	}
	logProbs, err := l.logProbs(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := slopes(batch, logProbs, o.Loss)
	if err != nil {
		t.Fatal(err)
	}
	pass := twice("pass", func(changed bool) (promise, error) {
		in := c.linear(batch, logProbs, g)
		if changed {
			in.Data = in.Data[1:]
		}
		return l.pass(t.Context(), in, false)
	})
	step := twice("step", func(changed bool) (p promise, err error) {
		q := optimStep{Model: l.model, Seq: l.next(), Type: "optim_step", Adam: adam{Rate: o.Rate, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Epsilon, Decay: o.WeightDecay, Clip: o.Clip}}
		if changed {
			q.Adam.Rate *= 2
		}
		return p, c.post(t.Context(), "optim_step", q, &p)
	})
	for _, p := range []promise{pass, step} {
		if _, _, err := c.await(t.Context(), p, "OptimStep", false); err != nil {
			t.Fatal(err)
		}
	}
	if d := apart(scores(t, whole, batch), scores(t, l, batch)); d > 2e-5 {
		t.Errorf("log-probabilities differ by %v", d)
	}
	s, err := c.Base(t.Context(), "tiny", testContext, 0)
	if err != nil {
		t.Fatal(err)
	}
	twice("sample", func(changed bool) (p promise, err error) {
		most, zero := 3, 0
		q := sampleRequest{Samples: 1, Prompt: text([]int32{1, 2}), Params: samplingParams{MaxTokens: &most}, Session: s.session, Seq: &zero, Type: "sample"}
		if changed {
			q.Prompt = text([]int32{1, 3})
		}
		return p, c.post(t.Context(), "asample", q, &p)
	})
}

// The forms of all dialects that add up carry the same step.
func TestForms(t *testing.T) {
	url := listen(t, serve(t, t.TempDir(), nil))
	batch := rows(5, 7)
	for i, row := range scores(t, here(t, 0, 0), batch) {
		batch[i].LogProb = row
	}
	o := optim(grpo.Loss{Kind: grpo.PolicyGradient, KL: 0.1})
	o.Clip, o.WeightDecay = 0, 0
	whole := here(t, 0, 0)
	if _, err := whole.Update(t.Context(), batch, o); err != nil {
		t.Fatal(err)
	}
	for _, d := range []Dialect{Hosted, SkyRL, TuFT, OpenRL, TinkerCloud, SkillMaster} {
		c := client(t, Options{URL: url, Dialect: d})
		oneWay := c.dialect.forward == noForward
		if _, err := c.NewLearner(t.Context(), LearnerOptions{Base: "elsewhere", Unchecked: true}); oneWay && (err == nil || !strings.Contains(err.Error(), "one_pass")) {
			t.Errorf("%s: without one_pass: %v", d, err)
		}
		l := there(t, c, LearnerOptions{OnePass: oneWay}) // after the self-check
		if _, err := l.Update(t.Context(), batch, o); err != nil {
			t.Errorf("%s: %v", d, err)
			continue
		}
		if diff := apart(scores(t, whole, batch), scores(t, l, batch)); diff > 2e-5 {
			t.Errorf("%s: log-probabilities differ by %v", d, diff)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Clipping in one pass is that of the server's own words, or refused.
func TestClipped(t *testing.T) {
	for _, c := range []struct {
		dialect   Dialect
		low, high float64
		want      string
	}{
		{Hosted, 0.2, 0.28, "ppo map[clip_high_threshold:1.28 clip_low_threshold:0.8]"},
		{Hosted, 0, 0, "ppo map[clip_high_threshold:3.4028234663852886e+38 clip_low_threshold:0]"},
		{OpenRL, 0.3, 0.3, "ppo map[clip_range:0.3 kl_coeff:0]"},
		{OpenRL, 0, 0, "importance_sampling map[]"},
		{OpenRL, 0.2, 0.28, "clip both sides alike"},
	} {
		in, err := client(t, Options{URL: "http://127.0.0.1:1", Dialect: c.dialect}).clipped(grpo.Loss{ClipLow: c.low, ClipHigh: c.high})
		if got := fmt.Sprint(in.Loss, " ", in.Config); err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %s, %v", c, got, err)
		}
	}
}
