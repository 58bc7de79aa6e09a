package openenv

import (
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"skillmaster/env"
	"skillmaster/env/envtest"
	"skillmaster/episode"
)

var halls = []string{"train", "probe", "gate", "valid"}

// serve starts a server of ours and returns its address.
func serve(t *testing.T, s Served) (*Handler, string) {
	t.Helper()
	if s.Suite == nil {
		s.Suite, s.Splits = envtest.World{}, halls
	}
	s.Name, s.Version = "halls", "test"
	h, err := NewHandler(s)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, "ws" + strings.TrimPrefix(server.URL, "http")
}

func dial(t *testing.T, o Options) World {
	t.Helper()
	w, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestContractOverTheWire(t *testing.T) {
	h, url := serve(t, Served{})
	envtest.Run(t, dial(t, Options{URL: url}), envtest.Config{Splits: halls, Tasks: 1, Seed: 7})
	for range 100 { // a session ends a moment after its client has gone
		if h.Sessions() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := h.Sessions(); n != 0 {
		t.Errorf("%d sessions are open after all episodes were closed", n)
	}
}

// TestSameEpisodes plays every task locally and over the wire, with the same seeds and actions.
func TestSameEpisodes(t *testing.T) {
	_, url := serve(t, Served{})
	local, remote := envtest.World{}, dial(t, Options{URL: url})
	if !reflect.DeepEqual(local.Guide(), remote.Guide()) {
		t.Errorf("guides differ: got %+v, want %+v", remote.Guide(), local.Guide())
	}
	for _, split := range halls {
		want, err := local.Tasks(split)
		if err != nil {
			t.Fatal(err)
		}
		got, err := remote.Tasks(split)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("tasks of %s differ (%v)", split, err)
		}
		for i, task := range want {
			if i%2 == 0 { // a variation comes to the same, wherever it is made
				there, err := remote.(env.Varier).Vary(task, episode.Seed(i))
				if err != nil {
					t.Fatal(err)
				}
				if task, err = local.Vary(task, episode.Seed(i)); err != nil || there != task {
					t.Fatalf("variations differ: got %+v, want %+v (%v)", there, task, err)
				}
			}
			same(t, local, remote, task, episode.Seed(i))
		}
	}
}

// same plays a task in two worlds at once.
func same(t *testing.T, a, b env.Suite, task episode.Task, seed episode.Seed) {
	t.Helper()
	ea, oa, err := a.Open(t.Context(), task, seed)
	if err != nil {
		t.Fatal(err)
	}
	eb, ob, err := b.Open(t.Context(), task, seed)
	if err != nil {
		t.Fatal(err)
	}
	r := seed.Derive("actions").Rand()
	for step := 0; ; step++ {
		if !reflect.DeepEqual(oa, ob) {
			t.Fatalf("task %s, step %d: got %+v, want %+v", task.ID, step, ob, oa)
		}
		action := episode.Action("whistle")
		if n := len(oa.Admissible); n > 0 && r.IntN(6) > 0 {
			action = oa.Admissible[r.IntN(n)]
		}
		ra, err := ea.Step(t.Context(), action)
		if err != nil {
			t.Fatal(err)
		}
		rb, err := eb.Step(t.Context(), action)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(ra, rb) {
			t.Fatalf("task %s, step %d: got %+v, want %+v", task.ID, step+1, rb, ra)
		}
		if oa, ob = ra.Observation, rb.Observation; ra.Done {
			break
		}
	}
	for _, e := range []env.Env{ea, eb} {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
