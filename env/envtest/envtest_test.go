package envtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/skill"
)

func TestWorldKeepsTheContract(t *testing.T) {
	Run(t, World{}, Config{Splits: splits, Seed: 7})
}

// broken is a World with one fault.
type broken struct {
	World
	fault string
	opens *int
}

func (b broken) Guide() env.Guide {
	g := b.World.Guide()
	if b.fault == "shelf" {
		g.Categories = map[string][]string{"gems": {"find_gem"}}
	}
	return g
}

func (b broken) Tasks(split string) ([]episode.Task, error) {
	ts, err := b.World.Tasks(split)
	if b.fault == "order" {
		*b.opens++
		for i := 1; i < len(ts) && *b.opens%2 == 0; i += 2 {
			ts[i], ts[i-1] = ts[i-1], ts[i]
		}
	}
	return ts, err
}

func (b broken) Open(ctx context.Context, t episode.Task, s episode.Seed) (env.Env, episode.Observation, error) {
	if b.fault == "cancel" {
		ctx = context.WithoutCancel(ctx)
	}
	if b.fault == "any task" && strings.HasPrefix(t.ID, "no/") {
		t.ID = "train/find_gem/000"
	}
	e, o, err := b.World.Open(ctx, t, s)
	if err != nil {
		return nil, o, err
	}
	*b.opens++
	return &brokenEnv{run: e.(*run), fault: b.fault, number: *b.opens}, o, nil
}

func (b broken) Vary(t episode.Task, s episode.Seed) (episode.Task, error) {
	if b.fault == "vary" {
		*b.opens++
		s += episode.Seed(*b.opens)
	}
	return b.World.Vary(t, s)
}

func (b broken) Expert(e env.Env, k env.Knowledge, advice []skill.Skill, r *rand.Rand) (env.Expert, error) {
	if b.fault == "expert" {
		return &expert{}, nil
	}
	return b.World.Expert(e.(*brokenEnv).run, k, advice, r)
}

func (b broken) Advice(t episode.Task, helpful bool, r *rand.Rand) (skill.Skill, bool) {
	a, ok := b.World.Advice(t, helpful, r)
	if b.fault == "advice" {
		a.ID = "7"
	}
	return a, ok
}

type brokenEnv struct {
	*run
	fault  string
	number int
	steps  int
	closed bool
}

func (e *brokenEnv) Step(ctx context.Context, a episode.Action) (episode.StepResult, error) {
	e.steps++
	if e.fault == "cancel" {
		ctx = context.WithoutCancel(ctx)
	}
	if e.fault == "nonsense" && a == "" {
		return episode.StepResult{}, errors.New("empty action")
	}
	r, err := e.run.Step(ctx, a)
	switch {
	case e.fault == "chance" && e.number%2 == 0:
		r.Observation.Text += "!"
	case e.fault == "judge":
		r.Admissible = true
	case e.fault == "thaw" && e.steps > e.run.steps:
		r.Observation.Text = "The episode is over."
	case e.fault == "endless":
		r.Done = false
	}
	return r, err
}

func (e *brokenEnv) Close() error {
	if e.fault == "close" && e.closed {
		return errors.New("closed already")
	}
	e.closed = true
	return e.run.Close()
}

func (e *brokenEnv) Fork() (env.Env, error) {
	if e.fault == "shallow fork" {
		return e, nil
	}
	if e.fault == "fork from the start" {
		return &brokenEnv{run: &run{hall: e.run.hall}}, nil
	}
	f, err := e.run.Fork()
	return &brokenEnv{run: f.(*run), fault: e.fault, number: e.number, steps: e.steps}, err
}

// TestEveryRuleCanFail breaks the world in one way at a time and sees the rule for it fail.
func TestEveryRuleCanFail(t *testing.T) {
	for fault, breaks := range map[string]string{
		"none":                "",
		"shelf":               "guide is complete",
		"order":               "tasks are well-formed and keep their order",
		"chance":              "same actions give the same texts",
		"judge":               "admissible actions are sorted and judge the next action",
		"nonsense":            "nonsense is an ordinary step",
		"thaw":                "episodes end at the horizon and freeze",
		"endless":             "episodes end at the horizon and freeze",
		"close":               "close may be called twice",
		"cancel":              "a cancelled context is reported",
		"any task":            "an unknown task is an error",
		"shallow fork":        "forks are independent",
		"fork from the start": "forks are independent",
		"vary":                "variations are repeatable",
		"expert":              "experts that know win",
		"advice":              "advice is well-formed and repeatable",
	} {
		t.Run(fault, func(t *testing.T) {
			s, err := newSubject(broken{fault: fault, opens: new(int)}, Config{Splits: splits})
			if err != nil {
				t.Fatal(err)
			}
			failed := map[string]error{}
			for _, r := range rules {
				if r.name != "concurrent episodes equal serial ones" { // broken counts its episodes: not for goroutines
					if err := r.check(t.Context(), s); err != nil {
						failed[r.name] = err
					}
				}
			}
			if breaks == "" && len(failed) > 0 || breaks != "" && failed[breaks] == nil {
				t.Errorf("broke %q; rules that failed: %v", breaks, failed)
			}
		})
	}
}

func TestAdviceChangesTheExpert(t *testing.T) {
	w := World{}
	tasks, err := w.Tasks("train")
	if err != nil {
		t.Fatal(err)
	}
	wins := map[string]int{}
	for i, task := range tasks {
		for _, advised := range []string{"helpful", "wrong", "none"} {
			r := episode.Seed(i).Rand()
			var advice []skill.Skill
			if advised != "none" {
				a, ok := w.Advice(task, advised == "helpful", r)
				if !ok {
					t.Fatalf("no advice for %s", task.ID)
				}
				advice = []skill.Skill{a}
			}
			if steps, won := playExpert(t, w, task, advice, r); won {
				wins[advised]++
				if _, taught := w.Lesson(task, steps); !taught {
					t.Errorf("%s taught nothing", task.ID)
				}
			}
		}
	}
	if wins["helpful"] != len(tasks) || wins["none"] >= len(tasks) || wins["wrong"] >= wins["none"] {
		t.Errorf("wins of %d: %v; want all when helped, and fewer when misled than when left alone", len(tasks), wins)
	}
}

func playExpert(t *testing.T, w World, task episode.Task, advice []skill.Skill, r *rand.Rand) ([]episode.Step, bool) {
	t.Helper()
	e, _, err := w.Open(t.Context(), task, 0)
	if err != nil {
		t.Fatal(err)
	}
	x, err := w.Expert(e, env.Sees, advice, r)
	if err != nil {
		t.Fatal(err)
	}
	var steps []episode.Step
	for {
		a, more := x.Next()
		if !more {
			return steps, false
		}
		result, err := e.Step(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		x.Observe(a, result)
		steps = append(steps, episode.Step{Action: a, Observation: result.Observation.Text})
		if result.Done {
			return steps, result.Success
		}
	}
}
