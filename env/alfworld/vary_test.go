package alfworld

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"skillmaster/env"
	"skillmaster/episode"
)

func TestVariationsAreSound(t *testing.T) {
	same, kept := 0, 0.0
	games := generated(t, fewer(600), 0)
	for i, g := range games {
		v, err := g.Vary("v", episode.Seed(i))
		if err != nil {
			t.Fatal(err)
		}
		again, err := g.Vary("v", episode.Seed(i))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(v.Spec(), again.Spec()) {
			t.Fatalf("game %d: the variation differs when made again", i)
		}
		if v.Task != g.Task || v.Goal != g.Goal || v.Wording != g.Wording {
			t.Errorf("game %d: the variation's task is %q %+v, was %q %+v", i, v.Task, v.Goal, g.Task, g.Goal)
		}
		if len(v.Receptacles) == len(g.Receptacles) && len(v.Objects) == len(g.Objects) {
			same++
		}
		kept += float64(len(v.Receptacles)) / float64(len(g.Receptacles))
		checkStart(t, i, v)
		checkNumbers(t, i, v)
	}
	if same > 0 {
		t.Errorf("%d variations drop nothing", same)
	}
	// The level of thinning is even in [0, 1], and a receptacle that is the only one of its class mostly stays.
	if kept /= float64(len(games)); kept < 0.65 || kept > 0.88 {
		t.Errorf("%.2f of the receptacles stay on average", kept)
	}
}

// checkNumbers checks that receptacles of a class are numbered from 1 without a gap.
func checkNumbers(t *testing.T, i int, g *Game) {
	t.Helper()
	most, count := map[string]int{}, map[string]int{}
	for _, r := range g.Receptacles {
		class, n, ok := splitName(r.Name)
		if !ok {
			t.Fatalf("game %d: receptacle %q", i, r.Name)
		}
		most[class] = max(most[class], n)
		count[class]++
	}
	if !reflect.DeepEqual(most, count) {
		t.Errorf("game %d: highest numbers %v of %v receptacles", i, most, count)
	}
}

func TestVariedTasksOpenByID(t *testing.T) {
	s, err := NewGenerated(GeneratedOptions{Splits: map[string]int{"train": 60}})
	if err != nil {
		t.Fatal(err)
	}
	for i, task := range everyTask(t, s, "train", 1) {
		varied, err := s.Vary(task, episode.Seed(i))
		if err != nil {
			t.Fatal(err)
		}
		twice, err := s.Vary(varied, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []episode.Task{varied, twice} {
			if v.Family != task.Family || v.Goal != task.Goal || v.Category != task.Category || v.Split != task.Split || v.ID == task.ID {
				t.Errorf("%+v is varied to %+v", task, v)
			}
			if p := play(t, s, v, env.Knows, nil, nil); !p.success {
				t.Errorf("%s cannot be won", v.ID)
			}
		}
	}
}

func TestVariedReleasedGamesCanBeWon(t *testing.T) {
	s := openData(t, Options{})
	lost, n := 0, 0
	for i, task := range everyTask(t, s, "valid_seen", 140/fewer(140)) {
		v, err := s.Vary(task, episode.Seed(i))
		if err != nil {
			t.Fatal(err)
		}
		if p := play(t, s, v, env.Knows, nil, nil); !p.success || len(p.steps) == 0 {
			t.Errorf("%s cannot be won by plan", v.ID)
		}
		n++
		if p := play(t, s, v, env.Sees, nil, nil); !p.success {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("search loses %d of %d", lost, n)
	}
}

func TestUnknownVariations(t *testing.T) {
	s, err := NewGenerated(GeneratedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	task := everyTask(t, s, "valid", 100)[0]
	for _, id := range []string{task.ID + "~", task.ID + "~xyz", task.ID + "~1~", "nothing~1", "~1", task.ID + "~11112222333344445"} {
		if _, _, err := s.Open(context.Background(), episode.Task{ID: id}, 0); !errors.Is(err, ErrNoGame) {
			t.Errorf("open %s: %v, want ErrNoGame", id, err)
		}
		if _, err := s.Vary(episode.Task{ID: id}, 1); !errors.Is(err, ErrNoGame) {
			t.Errorf("vary %s: %v, want ErrNoGame", id, err)
		}
	}
}

func BenchmarkVary(b *testing.B) {
	games := generated(b, 60, 0)
	for i := 0; b.Loop(); i++ {
		if _, err := games[i%60].Vary("v", episode.Seed(i)); err != nil {
			b.Fatal(err)
		}
	}
}
