package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/rollout"
	"skillmaster/skill"
)

// warm makes the demonstrations of a warm start: expert episodes whose prompts hold sampled skills that the expert
// follows, so that text in the prompt changes behaviour, each with a review written by rule.
type warm struct {
	cfg   WarmConfig
	suite env.Suite
	coach env.Coach
	train []episode.Task
	demo  rollout.Demonstrator
}

var errNoExpert = errors.New("it needs a world whose tasks an expert can play; this one has none")

func newWarm(cfg Config, suite env.Suite, train []episode.Task, r rollout.Renderer) (*warm, error) {
	coach, ok := suite.(env.Coach)
	if !ok {
		return nil, fmt.Errorf("a warm start: %w (set warm.updates to 0)", errNoExpert)
	}
	w := &warm{cfg: cfg.Warm, suite: suite, coach: coach, train: train}
	w.demo = rollout.Demonstrator{
		Suite: suite, Coach: coach, Renderer: r, Config: cfg.Rollout, Knowledge: env.Sees, Noise: cfg.Warm.Noise,
	}
	if cfg.Review {
		w.demo.Reviewer = w.review
	}
	return w, nil
}

// demonstration is the one named by its seed. Episodes that the expert does not win are drawn again, a few times; some
// are broken off on purpose, to show what a review says after a failure.
func (w *warm) demonstration(ctx context.Context, s episode.Seed) (episode.Trajectory, error) {
	var t episode.Trajectory
	for try := range uint64(4) {
		s := s.Derive("try", try)
		task, err := pick(w.suite, w.train, w.cfg.Vary, s)
		if err != nil {
			return t, err
		}
		start := rollout.Start{Task: task, Bank: w.bank(task, s), Seed: s}
		if r := s.Derive("broken").Rand(); r.Float64() < w.cfg.Broken {
			start.Horizon = 1 + r.IntN(8)
		}
		t, err = w.demo.Play(ctx, start)
		if err != nil || t.Success || start.Horizon > 0 {
			return t, err
		}
	}
	return t, nil
}

// pick draws a task, in varied surroundings with chance vary where the suite can.
func pick(suite env.Suite, tasks []episode.Task, vary float64, s episode.Seed) (episode.Task, error) {
	r := s.Derive("task").Rand()
	t := tasks[r.IntN(len(tasks))]
	v, can := suite.(env.Varier)
	if !can || r.Float64() >= vary {
		return t, nil
	}
	return v.Vary(t, s.Derive("vary"))
}

// bank is a bank as one might be in the middle of a run: perhaps a skill about the task, true or not, among skills about
// other tasks of its category.
func (w *warm) bank(t episode.Task, s episode.Seed) skill.Bank {
	r := s.Derive("bank").Rand()
	if r.Float64() >= w.cfg.Advised {
		return skill.Bank{}
	}
	var skills []skill.Skill
	add := func(k skill.Skill, ok bool) {
		for _, o := range skills {
			ok = ok && !strings.EqualFold(o.Title, k.Title)
		}
		if ok {
			skills = append(skills, k)
		}
	}
	if r.Float64() < 0.75 {
		add(w.coach.Advice(t, r.Float64() < w.cfg.Helpful, r))
	}
	for range r.IntN(w.cfg.Others + 1) {
		other := w.train[r.IntN(len(w.train))]
		for range 50 {
			if other.Category == t.Category {
				break
			}
			other = w.train[r.IntN(len(w.train))]
		}
		if other.Category == t.Category {
			add(w.coach.Advice(other, true, r))
		}
	}
	r.Shuffle(len(skills), func(i, j int) { skills[i], skills[j] = skills[j], skills[i] })
	from := r.IntN(40)
	for i := range skills {
		skills[i].ID = fmt.Sprintf("dyn_%03d", from+i+1)
	}
	b, err := skill.New(skills, nil)
	if err != nil {
		panic(fmt.Sprintf("train: the coach's own advice makes no bank: %v", err))
	}
	return b
}

// review is the rule-written review: propose what the episode shows and the bank lacks, update a shown skill that it
// contradicts, keep otherwise.
func (w *warm) review(t episode.Trajectory, bank skill.Bank, shown []skill.Skill) skill.Edit {
	lesson, ok := w.coach.Lesson(t.Task, t.Steps)
	if !ok {
		return skill.Edit{Op: skill.Keep, Reason: "nothing new"}
	}
	for _, k := range bank.Skills() {
		if strings.EqualFold(k.Principle, lesson.Principle) {
			return skill.Edit{Op: skill.Keep, Reason: "covered"}
		}
	}
	for _, k := range shown {
		if strings.EqualFold(k.Title, lesson.Title) {
			return skill.Edit{Op: skill.Update, ID: k.ID, Title: lesson.Title, Principle: lesson.Principle, When: lesson.When}
		}
	}
	e := skill.Edit{Op: skill.Propose, Category: lesson.Category, Title: lesson.Title, Principle: lesson.Principle, When: lesson.When}
	if _, outcome := bank.Apply(e, skill.Permission{Category: t.Task.Category}); outcome != skill.Added {
		return skill.Edit{Op: skill.Keep, Reason: "covered"}
	}
	return e
}

// Corpus is text of the world as a policy would see and write it, message by message, from n demonstrations: what a
// tokenizer is trained on.
func Corpus(ctx context.Context, cfg Config, suite env.Suite, train []episode.Task, n int) ([]string, error) {
	var texts recorder
	w, err := newWarm(cfg, suite, train, &texts)
	if err != nil {
		return nil, err
	}
	for i := range uint64(n) {
		if _, err := w.demonstration(ctx, episode.Seed(cfg.Seed).Derive("corpus", i)); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// GoalWords are the words that tell the tasks' goals apart, sorted: those that stand in some goals and not in a quarter
// of them. A tokenizer that keeps them whole lets a policy see what a goal is about.
func GoalWords(tasks []episode.Task) []string {
	in := map[string]int{}
	for _, t := range tasks {
		words := strings.FieldsFunc(t.Goal, func(r rune) bool { return !unicode.IsLetter(r) })
		slices.Sort(words)
		for _, w := range slices.Compact(words) {
			in[w]++
		}
	}
	var out []string
	for w, n := range in {
		if n*4 < len(tasks) {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return out
}

// recorder renders nothing and notes the texts it was given.
type recorder []string

func (r *recorder) Prompt(q policy.Request) ([]int32, error) {
	for _, m := range q.Messages[q.Seen:] {
		*r = append(*r, m.Text)
	}
	return []int32{0}, nil
}

func (r *recorder) Encode(reply string) []int32 {
	*r = append(*r, reply)
	return []int32{0}
}
