package train

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skillmaster/env"
	"skillmaster/env/envtest"
	"skillmaster/env/openenv"
	"skillmaster/policy"
	"skillmaster/policy/openai"
	"skillmaster/rollout"
)

// This file holds that what fails on the way never becomes a return: whatever an inference server or a world's server does,
// an episode is whole, or it is lost with its group and counted, or the run stops with an error.

// opens is what the test's policy always says. In a hall of coins the doors are locked, so that nothing is won there.
const opens = "<action>open red door 1</action>"

func reply(w http.ResponseWriter, model, text string) {
	content, _ := json.Marshal(text) // a text can be
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"model":%q,"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":9,"completion_tokens":5}}`, model, content)
}

// failures are what a server may do to a request.
var failures = map[string]http.HandlerFunc{
	"stalls":        func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() },
	"resets":        func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"says 429":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
	"says 500":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	"says 503":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
	"garbage":       func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>busy</html>") },
	"half a reply":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"choices":[{"mess`) },
	"no reply":      func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"choices":[]}`) },
	"empty reply":   func(w http.ResponseWriter, _ *http.Request) { reply(w, "tiny", "") },
	"other weights": func(w http.ResponseWriter, _ *http.Request) { reply(w, "huge", opens) },
}

// faulty answers, but does what it does to requests about owls from the third message on: in the middle of an episode.
func faulty(does http.HandlerFunc, always bool) http.HandlerFunc {
	var asked atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Messages []struct{ Content string } }
		if json.NewDecoder(r.Body).Decode(&q) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if len(q.Messages) >= 3 && (always || strings.Contains(q.Messages[0].Content, "owl") || asked.Add(1)%5 == 0) {
			does(w, r)
			return
		}
		reply(w, "tiny", opens)
	}
}

// policyFunc is a policy that is a function.
type policyFunc func(r policy.Request) (policy.Completion, error)

func (f policyFunc) Complete(ctx context.Context, r policy.Request) (policy.Completion, error) {
	if err := ctx.Err(); err != nil {
		return policy.Completion{}, err
	}
	return f(r)
}

// crowdOf is a trainer that does no more than play, and its player.
func crowdOf(suite env.Suite, p policy.Policy) (*Trainer, *rollout.Player) {
	c := hallConfig()
	c.Tasks, c.Group, c.Review, c.Vary, c.Crowd = 16, 4, false, 0, CrowdConfig{Lost: 1, Episodes: 32}
	t := &Trainer{Config: c, Suite: suite, Panels: hallPanels(suite), Workers: 32, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	return t, &rollout.Player{Suite: suite, Policy: p, Config: c.Rollout}
}

func hallPanels(suite env.Suite) (p Panels) {
	p.Train.Name = "train"
	p.Train.Tasks, _ = suite.Tasks("train") // there is that split
	return p
}

func serverPolicy(t *testing.T, h http.HandlerFunc, patience time.Duration) policy.Policy {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	client, err := openai.New(openai.Options{
		URL: server.URL, Model: "tiny", Dialect: openai.VLLM,
		Limits: openai.Limits{Parallel: 64, Tries: 2, Patience: patience, Pause: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client.Policy(0)
}

// patience is how long a failing server is waited for: long enough for a busy machine, if it answers at all.
func patience(failure string) time.Duration {
	if failure == "stalls" {
		return 300 * time.Millisecond
	}
	return 20 * time.Second
}

// Groups are whole, or dropped and counted.
func TestFailingServerIsNoFailingPolicy(t *testing.T) {
	for name, does := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trainer, player := crowdOf(envtest.World{}, serverPolicy(t, faulty(does, false), patience(name)))
			m := map[string]float64{}
			groups, err := trainer.rollouts(t.Context(), player, &state{}, 5, m)
			if err != nil {
				t.Fatal(err)
			}
			if m["rollout/groups_dropped"] == 0 || int(m["rollout/groups_dropped"])+len(groups) != 16 || m["rollout/retried"] == 0 {
				t.Errorf("%d groups are left: %v", len(groups), m)
			}
			for _, g := range groups {
				if len(g.Trajectories) != 4 {
					t.Errorf("a group of %d", len(g.Trajectories))
				}
				for _, tr := range g.Trajectories {
					if len(tr.Steps) == 0 || len(tr.Turns) != len(tr.Steps) || !tr.Success && len(tr.Steps) < 6 {
						t.Errorf("task %s: %d steps, %d turns, %v: not whole", tr.Task.ID, len(tr.Steps), len(tr.Turns), tr.Stop)
					}
					for _, u := range tr.Turns {
						if u.Text != opens {
							t.Errorf("a turn says %q, which the policy never said", u.Text)
						}
					}
				}
			}
		})
	}
}

// If nothing comes through any more the run stops, and says what to do.
func TestDeadServerStopsTheRun(t *testing.T) {
	for name, does := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trainer, player := crowdOf(envtest.World{}, serverPolicy(t, faulty(does, true), patience(name)))
			groups, err := trainer.rollouts(t.Context(), player, &state{}, 5, map[string]float64{})
			if groups != nil || err == nil || !strings.Contains(err.Error(), "16 of 16 groups were left out") || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), "--resume") {
				t.Errorf("%d groups, %v", len(groups), err)
			}
		})
	}
}

// The share of groups that may be lost is kept to.
func TestTooManyLostGroupsStopTheRun(t *testing.T) {
	trainer, player := crowdOf(envtest.World{}, serverPolicy(t, faulty(failures["says 500"], false), patience("")))
	trainer.Config.Crowd.Lost = 0.01
	if _, err := trainer.rollouts(t.Context(), player, &state{}, 5, map[string]float64{}); err == nil || !strings.Contains(err.Error(), "crowd.lost (0.01)") {
		t.Errorf("got %v", err)
	}
}

// Weights that change in the middle of an episode lose it.
func TestChangedWeightsLoseTheEpisode(t *testing.T) {
	var asked atomic.Int32
	p := policyFunc(func(r policy.Request) (policy.Completion, error) {
		version := 1
		if strings.Contains(r.Messages[0].Text, "fox") {
			version = int(asked.Add(1))
		}
		return policy.Completion{Text: opens, Version: version}, nil
	})
	trainer, player := crowdOf(envtest.World{}, p)
	m := map[string]float64{}
	groups, err := trainer.rollouts(t.Context(), player, &state{}, 5, m)
	if err != nil || m["rollout/groups_dropped"] == 0 {
		t.Fatalf("%v, %v", m, err)
	}
	for _, g := range groups {
		for _, tr := range g.Trajectories {
			if tr.PolicyVersion != 1 {
				t.Errorf("an episode of version %d", tr.PolicyVersion)
			}
		}
	}
}

// A world's server that goes away in the middle of the iteration loses the episodes it held, and those begun anew come whole.
func TestRestartedWorldLosesItsEpisodes(t *testing.T) {
	splits := []string{"train"}
	start := func() *openenv.Handler {
		h, err := openenv.NewHandler(openenv.Served{Suite: envtest.World{}, Splits: splits, Name: "halls"})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	var handler atomic.Pointer[openenv.Handler]
	handler.Store(start())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.Load().ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	world, err := openenv.Dial(t.Context(), openenv.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	p := policyFunc(func(policy.Request) (policy.Completion, error) {
		if asked.Add(1) == 100 {
			old := handler.Swap(start())
			if err := old.Close(); err != nil {
				t.Error(err)
			}
		}
		return policy.Completion{Text: opens, Version: 1}, nil
	})
	trainer, player := crowdOf(world, p)
	m := map[string]float64{}
	groups, err := trainer.rollouts(t.Context(), player, &state{}, 5, m)
	if err != nil || len(groups) != 16 || m["rollout/retried"] == 0 {
		t.Fatalf("%d groups, %v, %v", len(groups), m, err)
	}
	local, player := crowdOf(envtest.World{}, policyFunc(func(policy.Request) (policy.Completion, error) {
		return policy.Completion{Text: opens, Version: 1}, nil
	}))
	want, err := local.rollouts(t.Context(), player, &state{}, 5, map[string]float64{})
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range groups {
		for k, tr := range g.Trajectories {
			if w := want[i].Trajectories[k]; tr.Task != w.Task || tr.EnvReturn != w.EnvReturn || len(tr.Steps) != len(w.Steps) || tr.Stop != w.Stop {
				t.Errorf("group %d, episode %d: got %v after %d steps, in-process %v after %d", i, k, tr.Stop, len(tr.Steps), w.Stop, len(w.Steps))
			}
		}
	}
}
