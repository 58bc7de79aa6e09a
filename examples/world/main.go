// Command world is a world of one's own, whole: a hidden number is to be guessed. Every skillmaster command can play it.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"slices"

	"skillmaster/env"
	"skillmaster/env/openenv"
	"skillmaster/episode"
)

const most, horizon = 200, 10

var splits = []string{"train", "probe", "gate", "valid", "report"} // each has every fifth number

type suite struct{}

func (suite) Tasks(split string) (tasks []episode.Task, err error) {
	first := slices.Index(splits, split) + 1
	if first == 0 {
		return nil, fmt.Errorf("no split %q: there are %v", split, splits)
	}
	for n := first; n <= most; n += len(splits) {
		tasks = append(tasks, episode.Task{ID: fmt.Sprint("number/", n), Split: split, Family: "guess", Category: "numbers", Goal: "Guess the number."})
	}
	return tasks, nil
}

func (suite) Guide() env.Guide {
	const rules = "guess NUMBER: tells whether the hidden one is higher or lower"
	return env.Guide{Role: "You guess numbers.", Rules: rules, Horizon: horizon, SuccessReward: 1, Categories: map[string][]string{"numbers": {"guess"}}}
}

func (suite) Open(ctx context.Context, t episode.Task, _ episode.Seed) (env.Env, episode.Observation, error) {
	g := new(game)
	if _, err := fmt.Sscanf(t.ID, "number/%d", &g.number); err != nil {
		return nil, episode.Observation{}, fmt.Errorf("no task %q: Tasks lists them", t.ID)
	}
	return g, episode.Observation{Text: fmt.Sprintf("I think of a number from 1 to %d.", most)}, ctx.Err()
}

type game struct {
	number, steps int
	last          episode.StepResult
}

func (g *game) Step(ctx context.Context, a episode.Action) (episode.StepResult, error) {
	if g.last.Done || ctx.Err() != nil {
		return g.last, ctx.Err()
	}
	var n int
	_, err := fmt.Sscanf(string(a), "guess %d", &n)
	g.steps++
	g.last = episode.StepResult{Admissible: err == nil && 1 <= n && n <= most, Success: err == nil && n == g.number}
	switch {
	case g.last.Success:
		g.last.Reward, g.last.Observation.Text = 1, "That is it!"
	case !g.last.Admissible:
		g.last.Observation.Text = "Say guess and a number."
	case n < g.number:
		g.last.Observation.Text = "It is higher."
	default:
		g.last.Observation.Text = "It is lower."
	}
	g.last.Done = g.last.Success || g.steps == horizon
	return g.last, nil
}

func (*game) Close() error { return nil }

func main() {
	world, err := openenv.NewHandler(openenv.Served{Suite: suite{}, Splits: splits, Name: "guess", Version: "1"})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8385", world)) //nolint:gosec // of this machine alone, and the handler has its own limits
}
