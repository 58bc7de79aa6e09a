package tinker

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skillmaster/grpo"
	"skillmaster/policy"
)

// restartable is a server that can be started again on the same folder.
type restartable struct {
	now     atomic.Pointer[Server]
	folder  string
	answers atomic.Pointer[func(http.ResponseWriter, *http.Request) bool] // answers in the server's place; nil: never
}

func (r *restartable) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if b := r.answers.Load(); b != nil && (*b)(w, q) {
		return
	}
	r.now.Load().ServeHTTP(w, q)
}

func (r *restartable) restart(t *testing.T) { r.now.Store(serve(t, r.folder, nil)) }

func startable(t *testing.T) (*restartable, string) {
	r := &restartable{folder: t.TempDir()}
	r.restart(t)
	return r, listen(t, r)
}

func learn(t *testing.T, l policy.Learner, seed uint64) {
	t.Helper()
	if _, err := l.Update(t.Context(), rows(seed, 4), optim(losses["policy gradient"])); err != nil {
		t.Fatal(err)
	}
}

func keep(t *testing.T, l policy.Learner) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := l.Save(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A server that was started again has lost its models. One that was saved since its last update goes on as if nothing had
// happened; else the learner says so, and its last checkpoint goes on.
func TestRestart(t *testing.T) {
	for _, rank := range []int{0, 3} {
		r, url := startable(t)
		c := client(t, Options{URL: url})
		whole, l := policy.Learner(here(t, rank, 9)), there(t, c, LearnerOptions{Rank: rank, Seed: 9, Unchecked: true})
		r.restart(t)
		learn(t, whole, 1)
		learn(t, l, 1) // of a model that was never saved, and never learnt
		checkpoint := keep(t, l)
		if !bytes.Equal(keep(t, l), checkpoint) {
			t.Error("saved twice, and elsewhere")
		}
		r.restart(t)
		learn(t, whole, 2)
		learn(t, l, 2)
		batch := rows(7, 3)
		if d := apart(scores(t, whole, batch), scores(t, l, batch)); d > 2e-5 {
			t.Errorf("rank %d: log-probabilities differ by %v", rank, d)
		}
		r.restart(t)
		if _, err := l.Update(t.Context(), rows(3, 4), optim(grpo.Loss{})); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "--resume") {
			t.Errorf("an update after the loss of one that was not saved: %v", err)
		}
		resumed := there(t, client(t, Options{URL: url}), LearnerOptions{Rank: rank, Seed: 8, Unchecked: true})
		for _, x := range []*Learner{l, resumed} {
			if err := x.Load(t.Context(), bytes.NewReader(append(slices.Clone(checkpoint), "more"...))); err != nil {
				t.Fatal(err)
			}
			learn(t, x, 2)
			if d := apart(scores(t, whole, batch), scores(t, x, batch)); d > 2e-5 {
				t.Errorf("rank %d: log-probabilities differ by %v after a checkpoint was loaded", rank, d)
			}
			s, err := x.Sampler(t.Context())
			if err != nil || s.(*Sampler).Version() != 2 {
				t.Errorf("version %d, %v; want 2", s.(*Sampler).Version(), err)
			}
		}
	}
}

// What breaks in the middle of a step is done again from what was saved, once and not twice.
func TestTornStep(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter){
		"refused": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"detail":"no"}`))
		},
		"forgotten": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"nonsense":  func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) },
	} {
		t.Run(name, func(t *testing.T) {
			r, url := startable(t)
			c := client(t, Options{URL: url, Limits: Limits{Tries: 2, Pause: time.Millisecond}})
			whole, l := policy.Learner(here(t, 0, 0)), there(t, c, LearnerOptions{Unchecked: true})
			learn(t, whole, 1)
			learn(t, l, 1)
			keep(t, l)
			left := int32(2)
			b := func(w http.ResponseWriter, q *http.Request) bool {
				if strings.HasSuffix(q.URL.Path, "/optim_step") && atomic.AddInt32(&left, -1) >= 0 {
					if name != "nonsense" {
						atomic.StoreInt32(&left, 0)
					}
					answer(w)
					return true
				}
				return false
			}
			r.answers.Store(&b)
			learn(t, whole, 2)
			learn(t, l, 2)
			batch := rows(7, 3)
			if d := apart(scores(t, whole, batch), scores(t, l, batch)); d > 2e-5 {
				t.Errorf("log-probabilities differ by %v", d)
			}
		})
	}
}

// Without the optimiser's state a step is the first of its kind again.
func TestForgetsMoments(t *testing.T) {
	_, url := startable(t)
	whole, l := policy.Learner(here(t, 0, 0)), there(t, client(t, Options{URL: url}), LearnerOptions{Unchecked: true})
	for i := range uint64(3) {
		for _, x := range []policy.Learner{whole, l} {
			o := optim(losses["policy gradient"])
			o.Restart = i == 2
			if _, err := x.Update(t.Context(), rows(i, 4), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	batch := rows(7, 3)
	if d := apart(scores(t, whole, batch), scores(t, l, batch)); d > 2e-5 {
		t.Errorf("log-probabilities differ by %v", d)
	}
}

// What cannot be learnt, or is no checkpoint, is an error that changes nothing.
func TestRefusals(t *testing.T) {
	_, url := startable(t)
	c := client(t, Options{URL: url})
	l := there(t, c, LearnerOptions{Unchecked: true})
	learn(t, l, 1)
	want := scores(t, l, rows(7, 3))
	for name, change := range map[string]func(b []grpo.Datum, o *policy.Optim) []grpo.Datum{
		"nothing":       func([]grpo.Datum, *policy.Optim) []grpo.Datum { return nil },
		"entropy":       func(b []grpo.Datum, o *policy.Optim) []grpo.Datum { o.Loss.Entropy = 0.1; return b },
		"an unknown id": func(b []grpo.Datum, _ *policy.Optim) []grpo.Datum { b[0].IDs[2] = testVocab; return b },
		"a beta of 1":   func(b []grpo.Datum, o *policy.Optim) []grpo.Datum { o.Beta1 = 1; return b },
		"too long": func(b []grpo.Datum, _ *policy.Optim) []grpo.Datum {
			d := grpo.Datum{IDs: make([]int32, testContext+1), Stream: make([]grpo.Stream, testContext+1), Weight: make([]float32, testContext+1), Advantage: make([]float32, testContext+1)}
			d.Weight[1] = 1
			return append(b, d)
		},
	} {
		o := optim(grpo.Loss{})
		if _, err := l.Update(t.Context(), change(rows(2, 3), &o), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, text := range []string{"", "{}\n", `{"format":"skillmaster tinker 1","server":"skillmaster","base_model":"tiny","rank":0,"path":"tinker://../weights/x","version":1}` + "\n", strings.Repeat("x", 9000)} {
		if err := l.Load(t.Context(), strings.NewReader(text)); err == nil {
			t.Errorf("loading %q: no error", text)
		}
	}
	if d := apart(scores(t, l, rows(7, 3)), want); d != 0 {
		t.Errorf("what was refused changed log-probabilities by %v", d)
	}
	for _, d := range []Dialect{SkyRLJAX, SkyRL} {
		other := there(t, client(t, Options{URL: url, Dialect: d}), LearnerOptions{Unchecked: true})
		if _, err := other.Update(t.Context(), rows(1, 3), optim(grpo.Loss{})); err == nil || !strings.Contains(err.Error(), "clip_norm=0") {
			t.Errorf("%s: a clip that it does not heed: %v", d, err)
		}
	}
}
