package envtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/skill"
)

// Config says which part of a suite Run looks at.
type Config struct {
	Splits []string     // to list; at least one
	Tasks  int          // tasks of each split to play, spread evenly; 0 stands for 5
	Seed   episode.Seed // of the actions played
	// ExpertMayFail lets experts that know everything lose, for worlds with tasks that cannot be won.
	ExpertMayFail bool
}

// Run checks that a suite keeps the contract of package env, in one sub-test for each rule. Optional abilities
// (env.Coach, env.Varier, env.Snapshotter) are checked where the suite or its episodes have them.
func Run(t *testing.T, suite env.Suite, c Config) {
	t.Helper()
	s, err := newSubject(suite, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			if err := rule.check(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
	}
}

// rule is one clause of the contract; check returns an error that says where it is broken.
type rule struct {
	name  string
	check func(ctx context.Context, s *subject) error
}

var rules = []rule{
	{"guide is complete", checkGuide},
	{"tasks are well-formed and keep their order", checkTasks},
	{"same actions give the same texts", each(checkDeterminism)},
	{"admissible actions are sorted and judge the next action", each(checkAdmissible)},
	{"nonsense is an ordinary step", each(checkNonsense)},
	{"episodes end at the horizon and freeze", each(checkEnd)},
	{"close may be called twice", each(checkClose)},
	{"a cancelled context is reported", each(checkCancel)},
	{"an unknown task is an error", checkUnknownTask},
	{"concurrent episodes equal serial ones", each(checkConcurrency)},
	{"forks are independent", each(checkFork)},
	{"variations are repeatable", each(checkVary)},
	{"experts that know win", each(checkExpert)},
	{"advice is well-formed and repeatable", each(checkAdvice)},
}

// subject is a suite under test with the tasks to play.
type subject struct {
	suite env.Suite
	c     Config
	tasks []episode.Task
}

func newSubject(suite env.Suite, c Config) (*subject, error) {
	if c.Tasks == 0 {
		c.Tasks = 5
	}
	s := &subject{suite: suite, c: c}
	for _, split := range c.Splits {
		tasks, err := suite.Tasks(split)
		if err != nil {
			return nil, fmt.Errorf("tasks of %s: %w", split, err)
		}
		n := min(c.Tasks, len(tasks))
		for i := range n {
			s.tasks = append(s.tasks, tasks[i*len(tasks)/n])
		}
	}
	if len(s.tasks) == 0 {
		return nil, fmt.Errorf("no tasks in splits %q: nothing to check", c.Splits)
	}
	return s, nil
}

// each makes a check of one task a check of all.
func each(check func(context.Context, *subject, episode.Task) error) func(context.Context, *subject) error {
	return func(ctx context.Context, s *subject) error {
		for _, t := range s.tasks {
			if err := check(ctx, s, t); err != nil {
				return fmt.Errorf("task %s: %w", t.ID, err)
			}
		}
		return nil
	}
}

func checkGuide(_ context.Context, s *subject) error {
	g := s.suite.Guide()
	switch {
	case strings.TrimSpace(g.Role) == "" || strings.TrimSpace(g.Rules) == "":
		return fmt.Errorf("role %q or rules %q is empty", g.Role, g.Rules)
	case g.Horizon <= 0:
		return fmt.Errorf("horizon is %d", g.Horizon)
	case !(g.SuccessReward > 0) || math.IsInf(g.SuccessReward, 1):
		return fmt.Errorf("reward of success is %v", g.SuccessReward)
	}
	shelf := map[string]string{}
	for category, families := range g.Categories {
		for _, f := range families {
			if other, twice := shelf[f]; twice {
				return fmt.Errorf("family %s is on two shelves, %s and %s", f, other, category)
			}
			shelf[f] = category
		}
	}
	for _, t := range s.tasks {
		if shelf[t.Family] != t.Category {
			return fmt.Errorf("task %s of family %s is in category %q, the guide says %q", t.ID, t.Family, t.Category, shelf[t.Family])
		}
	}
	return nil
}

func checkTasks(_ context.Context, s *subject) error {
	in := map[string]string{}
	for _, split := range s.c.Splits {
		tasks, err := s.suite.Tasks(split)
		if err != nil {
			return err
		}
		again, err := s.suite.Tasks(split)
		if err != nil {
			return err
		}
		if !slices.Equal(tasks, again) {
			return fmt.Errorf("split %s: two calls give two lists", split)
		}
		for _, t := range tasks {
			if other, twice := in[t.ID]; twice {
				return fmt.Errorf("id %s is in split %s and in split %s", t.ID, other, split)
			}
			in[t.ID] = split
			if t.ID == "" || t.Split != split || t.Family == "" || t.Category == "" || t.Goal == "" {
				return fmt.Errorf("split %s: incomplete task %+v", split, t)
			}
		}
		if len(tasks) == 0 {
			continue
		}
		tasks[0] = episode.Task{}
		if third, err := s.suite.Tasks(split); err != nil || !slices.Equal(third, again) {
			return fmt.Errorf("split %s: the caller's change of a list shows in the next (%v)", split, err)
		}
	}
	if tasks, err := s.suite.Tasks("no such split"); err == nil {
		return fmt.Errorf("an unknown split has %d tasks and no error", len(tasks))
	}
	return nil
}

// played is what an episode showed.
type played struct {
	First   episode.Observation
	Actions []episode.Action
	Results []episode.StepResult
}

// choose draws an action: mostly an admissible one, now and then nonsense.
func choose(r *rand.Rand, o episode.Observation) episode.Action {
	if len(o.Admissible) == 0 || r.IntN(8) == 0 {
		return episode.Action(fmt.Sprintf("juggle ball %d", r.IntN(100)))
	}
	return o.Admissible[r.IntN(len(o.Admissible))]
}

// play plays actions drawn from the seed until the end of the episode.
func (s *subject) play(ctx context.Context, t episode.Task, seed episode.Seed) (played, error) {
	e, first, err := s.suite.Open(ctx, t, s.c.Seed)
	if err != nil {
		return played{}, fmt.Errorf("open: %w", err)
	}
	p, err := s.carryOn(ctx, e, first, seed.Rand())
	return p, errors.Join(err, e.Close())
}

func (s *subject) carryOn(ctx context.Context, e env.Env, o episode.Observation, r *rand.Rand) (played, error) {
	p := played{First: o}
	for range s.suite.Guide().Horizon {
		a := choose(r, o)
		result, err := e.Step(ctx, a)
		if err != nil {
			return p, fmt.Errorf("step %q: %w", a, err)
		}
		p.Actions, p.Results = append(p.Actions, a), append(p.Results, result)
		if result.Done {
			return p, nil
		}
		o = result.Observation
	}
	return p, fmt.Errorf("the episode goes on after %d steps, the horizon", s.suite.Guide().Horizon)
}

// differ says where two episodes part.
func differ(got, want played) error {
	if !reflect.DeepEqual(got.First, want.First) {
		return fmt.Errorf("first observations differ: got %+v, want %+v", got.First, want.First)
	}
	for i := range min(len(got.Results), len(want.Results)) {
		if got.Actions[i] != want.Actions[i] || !reflect.DeepEqual(got.Results[i], want.Results[i]) {
			return fmt.Errorf("step %d: got %q, %+v; want %q, %+v", i+1, got.Actions[i], got.Results[i], want.Actions[i], want.Results[i])
		}
	}
	if len(got.Results) != len(want.Results) {
		return fmt.Errorf("got %d steps, want %d", len(got.Results), len(want.Results))
	}
	return nil
}

func checkDeterminism(ctx context.Context, s *subject, t episode.Task) error {
	want, err := s.play(ctx, t, s.c.Seed)
	if err != nil {
		return err
	}
	got, err := s.play(ctx, t, s.c.Seed)
	if err != nil {
		return err
	}
	return differ(got, want)
}

func checkAdmissible(ctx context.Context, s *subject, t episode.Task) error {
	p, err := s.play(ctx, t, s.c.Seed)
	if err != nil {
		return err
	}
	before, steps, won := p.First, 0, false
	for i, r := range p.Results {
		if !slices.IsSorted(before.Admissible) {
			return fmt.Errorf("before step %d: admissible actions are not sorted: %q", i+1, before.Admissible)
		}
		if listed := slices.Contains(before.Admissible, p.Actions[i]); before.Admissible != nil && r.Admissible != listed && (listed || !before.More) {
			return fmt.Errorf("step %d: %q is judged admissible: %v, but the list was %q", i+1, p.Actions[i], r.Admissible, before.Admissible)
		}
		if math.IsNaN(r.Reward) || math.IsInf(r.Reward, 0) {
			return fmt.Errorf("step %d: reward %v", i+1, r.Reward)
		}
		before, won = r.Observation, r.Success
		steps++
		if won && !r.Done {
			return fmt.Errorf("step %d: success, and the episode goes on", steps)
		}
	}
	return nil
}

func checkNonsense(ctx context.Context, s *subject, t episode.Task) error {
	for _, a := range []episode.Action{"", " ", "\n\t", "go", "open the pod bay doors", "\x00\xff", "take take take", "日本語", episode.Action(strings.Repeat("ha ", 50000))} {
		e, first, err := s.suite.Open(ctx, t, s.c.Seed)
		if err != nil {
			return err
		}
		r, err := e.Step(ctx, a)
		switch {
		case err != nil:
			return fmt.Errorf("step %.40q: %w", a, err)
		case r.Success:
			return fmt.Errorf("step %.40q: success", a)
		case first.Admissible != nil && r.Admissible:
			return fmt.Errorf("step %.40q is judged admissible", a)
		}
		if err := e.Close(); err != nil {
			return err
		}
	}
	return nil
}

func checkEnd(ctx context.Context, s *subject, t episode.Task) error {
	e, first, err := s.suite.Open(ctx, t, s.c.Seed)
	if err != nil {
		return err
	}
	p, err := s.carryOn(ctx, e, first, s.c.Seed.Rand())
	if err != nil {
		return err
	}
	last := p.Results[len(p.Results)-1]
	for _, a := range []episode.Action{p.Actions[0], "juggle"} {
		again, err := e.Step(ctx, a)
		if err != nil {
			return fmt.Errorf("a step after the end: %w", err)
		}
		if !reflect.DeepEqual(again, last) {
			return fmt.Errorf("a step after the end gives %+v, not the last result %+v", again, last)
		}
	}
	return e.Close()
}

func checkClose(ctx context.Context, s *subject, t episode.Task) error {
	e, _, err := s.suite.Open(ctx, t, s.c.Seed)
	if err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return fmt.Errorf("first close: %w", err)
	}
	if err := e.Close(); err != nil {
		return fmt.Errorf("second close: %w", err)
	}
	return nil
}

func checkCancel(ctx context.Context, s *subject, t episode.Task) error {
	e, _, err := s.suite.Open(ctx, t, s.c.Seed)
	if err != nil {
		return err
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := e.Step(cancelled, "look"); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("step: got error %v, want %w", err, context.Canceled)
	}
	if _, _, err := s.suite.Open(cancelled, t, s.c.Seed); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("open: got error %v, want %w", err, context.Canceled)
	}
	return e.Close()
}

func checkUnknownTask(ctx context.Context, s *subject) error {
	t := s.tasks[0]
	t.ID = "no/such/task"
	if e, _, err := s.suite.Open(ctx, t, s.c.Seed); err == nil {
		return errors.Join(errors.New("a task with an unknown id opens"), e.Close())
	}
	return nil
}

func checkConcurrency(ctx context.Context, s *subject, t episode.Task) error {
	const n = 8
	want := make([]played, n)
	for i := range want {
		var err error
		if want[i], err = s.play(ctx, t, s.c.Seed.Derive("play", uint64(i))); err != nil {
			return err
		}
	}
	errs := make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			got, err := s.play(ctx, t, s.c.Seed.Derive("play", uint64(i)))
			if err == nil {
				err = differ(got, want[i])
			}
			errs[i] = err
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// checkFork forks an episode before every step. The fork must answer the step as the original does, and whatever it
// does afterwards, the original must go on like an episode that was never forked.
func checkFork(ctx context.Context, s *subject, t episode.Task) error {
	e, o, err := s.suite.Open(ctx, t, s.c.Seed)
	if err != nil {
		return err
	}
	if _, can := e.(env.Snapshotter); !can {
		return e.Close()
	}
	unforked, _, err := s.suite.Open(ctx, t, s.c.Seed)
	if err != nil {
		return err
	}
	r := s.c.Seed.Rand()
	horizon := s.suite.Guide().Horizon
	for n, done := 0, false; n < horizon && !done; n++ {
		a := choose(r, o)
		forked, err := stepOfFork(ctx, e, a, horizon, r)
		if err != nil {
			return err
		}
		got, err := e.Step(ctx, a)
		if err != nil {
			return err
		}
		want, err := unforked.Step(ctx, a)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(forked, want) {
			return fmt.Errorf("in a fork %q gives %+v, in the original %+v", a, forked, want)
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("after a fork %q gives %+v, without %+v", a, got, want)
		}
		o, done = got.Observation, got.Done
	}
	return errors.Join(e.Close(), unforked.Close())
}

// stepOfFork forks an episode, takes a step in the fork, returns its result, and plays the fork on to its end.
func stepOfFork(ctx context.Context, e env.Env, a episode.Action, horizon int, r *rand.Rand) (episode.StepResult, error) {
	f, err := e.(env.Snapshotter).Fork()
	if err != nil {
		return episode.StepResult{}, fmt.Errorf("fork: %w", err)
	}
	first, err := f.Step(ctx, a)
	if err != nil {
		return first, fmt.Errorf("step of a fork: %w", err)
	}
	for result, n := first, 0; n < horizon && !result.Done; n++ {
		if result, err = f.Step(ctx, choose(r, result.Observation)); err != nil {
			return first, fmt.Errorf("step of a fork: %w", err)
		}
	}
	return first, f.Close()
}

func checkVary(ctx context.Context, s *subject, t episode.Task) error {
	v, can := s.suite.(env.Varier)
	if !can {
		return nil
	}
	varied, err := v.Vary(t, s.c.Seed)
	if err != nil {
		return fmt.Errorf("vary: %w", err)
	}
	again, err := v.Vary(t, s.c.Seed)
	if err != nil {
		return fmt.Errorf("vary: %w", err)
	}
	switch {
	case varied != again:
		return fmt.Errorf("vary gives %+v, then %+v", varied, again)
	case varied.ID == t.ID || varied.Family != t.Family || varied.Category != t.Category:
		return fmt.Errorf("%+v is no variation of %+v", varied, t)
	}
	return checkDeterminism(ctx, s, varied)
}

func checkExpert(ctx context.Context, s *subject, t episode.Task) error {
	coach, can := s.suite.(env.Coach)
	if !can {
		return nil
	}
	e, _, err := s.suite.Open(ctx, t, s.c.Seed)
	if err != nil {
		return err
	}
	expert, err := coach.Expert(e, env.Knows, nil, s.c.Seed.Rand())
	if err != nil {
		return fmt.Errorf("expert: %w", err)
	}
	var said []episode.Action
	for range s.suite.Guide().Horizon {
		a, more := expert.Next()
		if !more {
			break
		}
		said = append(said, a)
		r, err := e.Step(ctx, a)
		if err != nil {
			return err
		}
		expert.Observe(a, r)
		if r.Success {
			return e.Close()
		}
	}
	if s.c.ExpertMayFail {
		return e.Close()
	}
	return fmt.Errorf("an expert that knows everything loses with %q", said)
}

func checkAdvice(_ context.Context, s *subject, t episode.Task) error {
	coach, can := s.suite.(env.Coach)
	if !can {
		return nil
	}
	for _, helpful := range []bool{true, false} {
		a, ok := coach.Advice(t, helpful, s.c.Seed.Rand())
		again, ok2 := coach.Advice(t, helpful, s.c.Seed.Rand())
		if ok != ok2 || a != again {
			return fmt.Errorf("advice differs from call to call: %+v, %+v", a, again)
		}
		if ok && (a.ID != "" || a.Title == "" || a.Principle == "" || a.Category != t.Category && a.Category != skill.General) {
			return fmt.Errorf("advice has an id, no title, no principle or a foreign category: %+v", a)
		}
	}
	return nil
}
