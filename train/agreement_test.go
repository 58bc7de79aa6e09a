package train

import (
	"context"
	"strings"
	"sync"
	"testing"

	"skillmaster/env"
	"skillmaster/env/envtest"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/rollout"
)

// speaker answers every request with a function of the last thing it was told, and counts requests.
type speaker struct {
	say func(r policy.Request) string

	mu    sync.Mutex
	asked int
	hot   bool // somebody asked for chance
}

func (s *speaker) Complete(_ context.Context, r policy.Request) (policy.Completion, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	s.hot = s.hot || r.Sampling.Temperature != 0
	return policy.Completion{Text: s.say(r)}, nil
}

// A policy that says one action throughout agrees exactly where the expert takes that one, whatever number of workers; one whose
// replies are malformed never does.
func TestAgree(t *testing.T) {
	world := envtest.World{}
	tasks, err := world.Tasks("valid")
	if err != nil {
		t.Fatal(err)
	}
	var texts recorder
	want := Agreement{}
	taken := map[string]int{}
	d := rollout.Demonstrator{Suite: world, Coach: world, Renderer: &texts, Config: Default().Rollout, Knowledge: env.Sees}
	for _, task := range tasks {
		tr, err := d.Play(t.Context(), rollout.Start{Task: task, Seed: episode.Seed(7).Derive("agreement " + task.ID)})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range tr.Steps {
			kind := env.SortOf(world, s.Action)
			k := want[kind]
			k.Of++
			want[kind] = k
			taken[string(s.Action)]++
		}
	}
	often := ""
	for a, n := range taken {
		if n > taken[often] || n == taken[often] && a < often {
			often = a
		}
	}
	for _, workers := range []int{1, 8} {
		for _, c := range []struct {
			reply string
			same  int
		}{{rollout.FormatAction(often), taken[often]}, {often, 0}, {rollout.FormatAction("no such thing"), 0}} {
			s := &speaker{say: func(policy.Request) string { return c.reply }}
			config := Default().Rollout
			a, err := Agree(t.Context(), &rollout.Player{Suite: world, Policy: s, Config: config}, deaf{}, tasks, 7, workers)
			if err != nil {
				t.Fatal(err)
			}
			all := a.All()
			if all.Same != c.same || all.Of != s.asked || s.hot {
				t.Errorf("%q: %d of %d the same, want %d of %d; by chance: %v", c.reply, all.Same, all.Of, c.same, s.asked, s.hot)
			}
			for _, kind := range a.Kinds() {
				if a[kind].Of != want[kind].Of {
					t.Errorf("the expert took %d of kind %s, want %d", a[kind].Of, kind, want[kind].Of)
				}
			}
			m := map[string]float64{}
			a.metrics(m)
			if got := m["warm/agreement"]; got != float64(c.same)/float64(all.Of) {
				t.Errorf("%q: agreement %v", c.reply, got)
			}
		}
	}
}

// deaf renders nothing.
type deaf struct{}

func (deaf) Prompt(policy.Request) ([]int32, error) { return []int32{0}, nil }
func (deaf) Encode(string) []int32                  { return []int32{0} }

// silent is a suite in which nobody knows how to play.
type silent struct{ env.Suite }

func TestAgreeNeedsAnExpert(t *testing.T) {
	_, err := Agree(t.Context(), &rollout.Player{Suite: silent{envtest.World{}}}, deaf{}, nil, 1, 1)
	if err == nil || !strings.Contains(err.Error(), "expert") {
		t.Errorf("error %v", err)
	}
}
