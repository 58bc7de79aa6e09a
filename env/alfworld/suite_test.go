package alfworld

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"skillmaster/env"
	"skillmaster/env/envtest"
	"skillmaster/episode"
)

// shelf is a source of games in memory, all of one split.
type shelf []*Game

func (s shelf) Splits() []string { return []string{"valid_seen"} }

func (s shelf) Tasks(split string) ([]episode.Task, error) {
	if split != "valid_seen" {
		return nil, fmt.Errorf("no split %q: there is valid_seen", split)
	}
	var ts []episode.Task
	for _, g := range s {
		ts = append(ts, g.task(split))
	}
	return ts, nil
}

func (s shelf) Game(id string) (*Game, error) {
	for _, g := range s {
		if g.ID == id {
			return g, nil
		}
	}
	return nil, ErrNoGame
}

func TestSuiteKeepsTheContract(t *testing.T) {
	t.Run("by hand", func(t *testing.T) {
		envtest.Run(t, NewSuite(shelf{mustGame(t, kitchen())}, Options{}), envtest.Config{Splits: []string{"valid_seen"}, Seed: 5})
	})
	t.Run("before 0.4", func(t *testing.T) {
		s := NewSuite(shelf{mustGame(t, kitchen())}, Options{Wording: Put, StepLimit: 20})
		envtest.Run(t, s, envtest.Config{Splits: []string{"valid_seen"}, Seed: 6})
	})
	t.Run("released", func(t *testing.T) {
		s := openData(t, Options{})
		envtest.Run(t, s, envtest.Config{Splits: []string{"valid_seen", "valid_unseen", "valid_train"}, Seed: 7})
	})
}

func openKitchen(t *testing.T, o Options) *Env {
	t.Helper()
	g := mustGame(t, kitchen())
	e, _, err := NewSuite(shelf{g}, o).Open(t.Context(), g.task("valid_seen"), 0)
	if err != nil {
		t.Fatal(err)
	}
	return e.(*Env)
}

var kitchenWalkthrough = []string{
	"go to countertop 1", "take apple 1 from countertop 1", "go to sinkbasin 1", "clean apple 1 with sinkbasin 1", "go to fridge 1",
	"open fridge 1", "move apple 1 to fridge 1",
}

func TestRewardIsForTheWinningStep(t *testing.T) {
	e := openKitchen(t, Options{})
	for i, a := range kitchenWalkthrough {
		r, err := e.Step(t.Context(), episode.Action(a))
		if err != nil {
			t.Fatal(err)
		}
		wins := i == len(kitchenWalkthrough)-1
		if r.Done != wins || r.Success != wins || r.Reward != map[bool]float64{true: 1}[wins] || !r.Admissible {
			t.Errorf("%q: got %+v", a, r)
		}
	}
	last, err := e.Step(t.Context(), "go to sinkbasin 1")
	if err != nil || !last.Success || last.Observation.Text != "You move the apple 1 to the fridge 1." {
		t.Errorf("after the end: got %+v, %v", last, err)
	}
}

func TestStepLimit(t *testing.T) {
	for limit, want := range map[int]int{0: 50, 3: 3, -1: 50} {
		e := openKitchen(t, Options{StepLimit: limit})
		for i := 1; ; i++ {
			r, err := e.Step(t.Context(), "dance") // counts, though it is not admissible
			if err != nil {
				t.Fatal(err)
			}
			if r.Done {
				if i != want || r.Success || r.Reward != 0 {
					t.Errorf("limit %d: done after %d steps, want %d: %+v", limit, i, want, r)
				}
				break
			}
		}
	}
}

func TestStepAfterClose(t *testing.T) {
	e := openKitchen(t, Options{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Step(t.Context(), "look"); err == nil {
		t.Error("a closed episode takes steps")
	}
	if _, err := e.Fork(); err == nil {
		t.Error("a closed episode forks")
	}
}

// TestWalkthroughsWin plays what the released games carry as a solution, in both wordings.
func TestWalkthroughsWin(t *testing.T) {
	for _, w := range []Wording{Move, Put} {
		s := NewSuite(openData(t, Options{}).source, Options{Wording: w})
		for _, split := range []string{"valid_seen", "valid_unseen"} {
			tasks, err := s.Tasks(split)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range tasks {
				if err := playWalkthrough(t.Context(), s, task); err != nil {
					t.Errorf("%v: %s: %v", w, task.ID, err)
				}
			}
		}
	}
}

func playWalkthrough(ctx context.Context, s *Suite, task episode.Task) error {
	g, err := s.Game(task.ID)
	if err != nil {
		return err
	}
	e, _, err := s.Open(ctx, task, 0)
	if err != nil {
		return err
	}
	var r episode.StepResult
	for _, a := range g.Walkthrough {
		if s.o.Wording == Put && strings.HasPrefix(a, "move ") {
			a = strings.Replace(strings.Replace(a, "move ", "put ", 1), " to ", " in/on ", 1)
		}
		if r, err = e.Step(ctx, episode.Action(a)); err != nil {
			return err
		}
		if !r.Admissible {
			return fmt.Errorf("%q is not admissible", a)
		}
	}
	if !r.Success {
		return fmt.Errorf("%q does not win", g.Walkthrough)
	}
	return nil
}

// TestManyEpisodesOfOneGame plays 64 episodes of one fresh game at once, past their ends and on in copies, and one after
// the other in a game of their own.
func TestManyEpisodesOfOneGame(t *testing.T) {
	const n, limit = 64, 40
	play := func(g *Game, i int) []string {
		e := newEnv(g.NewState(Wording(1+i%2)), limit)
		rng, as := episode.Seed(i).Rand(), e.state.Admissible()
		texts := []string{e.state.Intro(), fmt.Sprint(as)}
		for k := range limit + 3 {
			if k%7 == i%7 {
				f, err := e.Fork()
				if err != nil {
					return append(texts, err.Error())
				}
				e = f.(*Env)
			}
			r, err := e.Step(t.Context(), as[rng.IntN(len(as))])
			texts = append(texts, fmt.Sprint(r, err))
			as = r.Observation.Admissible
		}
		return texts
	}
	fresh := func(k int) *Game {
		if k == 0 {
			return mustGame(t, kitchen())
		}
		return generated(t, k, 0.5)[k-1]
	}
	for k := range 4 {
		shared, alone := fresh(k), fresh(k)
		got := make([][]string, n)
		var wait sync.WaitGroup
		for i := range n {
			wait.Go(func() { got[i] = play(shared, i) })
		}
		wait.Wait()
		for i := range n {
			if want := play(alone, i); !slices.Equal(got[i], want) {
				t.Fatalf("%s, episode %d: got %q, want %q", shared.ID, i, got[i], want)
			}
		}
	}
}

// TestForksAndEnds plays an episode and copies made on its way: one that does the same sees the same, one that goes
// another way changes nothing for the others, and after the end nothing changes whatever is done.
func TestForksAndEnds(t *testing.T) {
	const limit = 30
	step := func(e env.Env, a episode.Action) episode.StepResult {
		t.Helper()
		r, err := e.Step(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	fork := func(e env.Env) env.Env {
		t.Helper()
		f, err := e.(env.Snapshotter).Fork()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	wins := 0
	for i, g := range append(generated(t, max(fewer(48), 6), 0.5), mustGame(t, kitchen())) {
		rng := episode.Seed(i).Derive("forks").Rand()
		e := env.Env(newEnv(g.NewState(FromFile), limit))
		as := e.(*Env).state.Admissible()
		var same, last env.Env = fork(e), nil
		var end episode.StepResult
		steps := 0
		for ; !end.Done; steps++ {
			a := as[rng.IntN(len(as))]
			if plan, ok := e.(*Env).state.Plan(); ok && len(plan) > 0 && i%2 == 0 {
				a = e.(*Env).state.Text(plan[0])
			}
			other := fork(e)
			for o := as; len(o) > 0; {
				if r := step(other, o[rng.IntN(len(o))]); r.Done {
					break
				} else {
					o = r.Observation.Admissible
				}
			}
			last = fork(e)
			end = step(e, a)
			if r := step(same, a); !reflect.DeepEqual(r, end) {
				t.Fatalf("%s, step %d, %q: the copy sees %+v, want %+v", g.ID, steps+1, a, r, end)
			}
			as = end.Observation.Admissible
		}
		if end.Success != (end.Reward == 1) || !end.Success && steps != limit {
			t.Errorf("%s: ends after %d steps with %+v", g.ID, steps, end)
		}
		if end.Success {
			wins++
		}
		for _, done := range []env.Env{e, same, fork(e)} {
			before := fmt.Sprint(*done.(*Env).state)
			for _, a := range append(slices.Clone(as), "dance") {
				if r := step(done, a); !reflect.DeepEqual(r, end) {
					t.Fatalf("%s: after the end %q gives %+v, want %+v", g.ID, a, r, end)
				}
			}
			if after := fmt.Sprint(*done.(*Env).state); after != before {
				t.Errorf("%s: after the end the state changes", g.ID)
			}
		}
		if r := step(last, "dance"); r.Admissible || r.Success {
			t.Errorf("%s: a copy from before the end has ended: %+v", g.ID, r)
		}
	}
	if wins < 3 {
		t.Errorf("%d episodes were won: too few to say anything of the end", wins)
	}
}

func TestUnknownGames(t *testing.T) {
	s := NewSuite(shelf{mustGame(t, kitchen())}, Options{})
	if _, err := s.Game("valid_seen/nothing/of_it"); !errors.Is(err, ErrNoGame) {
		t.Errorf("got %v, want %v", err, ErrNoGame)
	}
}

// TestEveryGameAtHand plays a few steps of all released games and writes and reads each of them.
func TestEveryGameAtHand(t *testing.T) {
	s := openData(t, Options{})
	for _, split := range splitsAtHand(t) {
		tasks, err := s.Tasks(split)
		if err != nil {
			t.Fatal(err)
		}
		if err := inParallel(t.Context(), len(tasks), nil, func(i int) {
			if err := checkGame(s, tasks[i], i%50 == 0); err != nil {
				t.Errorf("%s: %v", tasks[i].ID, err)
			}
		}); err != nil {
			t.Error(err)
		}
	}
}

// checkGame compares admissible actions with all that there could be only if told to: that is slow.
func checkGame(s *Suite, task episode.Task, thoroughly bool) error {
	g, err := s.Game(task.ID)
	if err != nil {
		return err
	}
	if folder := strings.Split(task.ID, "/")[1]; !strings.HasPrefix(folder, task.Family+"-"+g.Goal.Object+"-None-") {
		return fmt.Errorf("its goal is %+v", g.Goal)
	}
	if g.NewState(Move).Won() {
		return errors.New("its goal holds at the start")
	}
	spec, err := ReadProblem(g.Problem())
	if err != nil {
		return err
	}
	spec.ID, spec.Task, spec.Walkthrough, spec.Scene, spec.Annotations = g.ID, g.Task, g.Walkthrough, g.Scene, g.Annotations
	again, err := NewGame(spec)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(again.Spec(), g.Spec()) || !reflect.DeepEqual(again.first, g.first) {
		return errors.New("its problem, written and read, is another game")
	}
	st := g.NewState(Move)
	walk(st, episode.Seed(len(task.ID)).Rand(), 10, func(a episode.Action) {
		if !slices.IsSorted(st.Admissible()) {
			err = fmt.Errorf("after %q: admissible actions are not sorted: %q", a, st.Admissible())
		}
		if thoroughly && !slices.Equal(st.Admissible(), everyCommand(st)) {
			err = fmt.Errorf("after %q: admissible actions are %q, want %q", a, st.Admissible(), everyCommand(st))
		}
	})
	return err
}
