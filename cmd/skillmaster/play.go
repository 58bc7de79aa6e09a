package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"skillmaster/env"
	"skillmaster/episode"
)

// playCmd lets a person be the policy.
type playCmd struct {
	Env    string `help:"World: household or shop (generated), alfworld or webshop (the real ones under --data), textworld (any game files), openenv:ADDRESS (on a server)." default:"household"`
	Data   string `help:"Folder of the real games." default:"${data}" placeholder:"DIR"`
	Split  string `help:"Split to choose the task from. Default: the first one." placeholder:"NAME"`
	Task   string `help:"Id of the task, or its beginning. Default: a task drawn from the split." placeholder:"ID"`
	Family string `help:"Draw the task from this family." placeholder:"NAME"`
	Seed   uint64 `help:"Seed of the draw." default:"1"`
	JSON   bool   `help:"Print the episode as JSON at its end; the dialogue goes to stderr." name:"json"`
}

// Help is shown under --help.
func (playCmd) Help() string {
	return `Shows what the world shows and reads an action a line. A line with ? lists the possible actions; the end of the
input, or a line with quit, ends the episode.

Examples:
  skillmaster play
  skillmaster play --env alfworld --data ../shared/data --split valid_unseen --family pick_two_obj_and_place`
}

// played is an episode as a person played it.
type played struct {
	Task    episode.Task       `json:"task"`
	Success bool               `json:"success"`
	Stop    episode.StopReason `json:"stop"`
	Return  float64            `json:"return"`
	Steps   []episode.Step     `json:"steps"`
}

func (c *playCmd) Execute(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	suite, err := openSuite(ctx, gamesOf(c.Env), c.Data, stderr)
	if err != nil {
		return err
	}
	splits := suite.Splits()
	if c.Split != "" {
		splits = []string{c.Split}
	}
	task, err := c.task(suite, splits)
	if err != nil {
		return usage(err)
	}
	dialogue := stdout
	if c.JSON {
		dialogue = stderr
	}
	p, err := playEpisode(ctx, suite, task, episode.Seed(c.Seed), stdin, dialogue)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(stdout, p)
	}
	_, err = fmt.Fprintf(stdout, "%s after %d steps, return %g\n", p.Stop, len(p.Steps), p.Return)
	return err
}

// task is the one that was asked for, looked for in all splits, or one drawn from the first.
func (c *playCmd) task(suite env.Suite, splits []string) (episode.Task, error) {
	if c.Task == "" {
		splits = splits[:1]
	}
	var all []episode.Task
	for _, s := range splits {
		ts, err := suite.Tasks(s)
		if err != nil {
			return episode.Task{}, err
		}
		all = append(all, ts...)
	}
	fits := func(t episode.Task) bool {
		return strings.HasPrefix(t.ID, c.Task) && (c.Family == "" || t.Family == c.Family)
	}
	var found []episode.Task
	var families []string
	for _, t := range all {
		families = append(families, t.Family)
		if fits(t) {
			found = append(found, t)
		}
	}
	switch {
	case len(found) == 0 && c.Task != "":
		return episode.Task{}, fmt.Errorf("no task begins with %q (skillmaster data list --tasks names them)", c.Task)
	case len(found) == 0:
		return episode.Task{}, fmt.Errorf("there is no family %q: it is one of %s", c.Family, strings.Join(distinct(families), ", "))
	case c.Task != "" && len(found) > 1 && found[0].ID != c.Task:
		return episode.Task{}, fmt.Errorf("%d tasks begin with %q; give more of the id", len(found), c.Task)
	case c.Task != "":
		return found[0], nil
	}
	return found[episode.Seed(c.Seed).Derive("play").Rand().IntN(len(found))], nil
}

// distinct sorts texts and leaves out repeats.
func distinct(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// playEpisode plays one episode with the actions read from in.
func playEpisode(ctx context.Context, suite env.Suite, task episode.Task, s episode.Seed, in io.Reader, out io.Writer) (p played, err error) {
	guide := suite.Guide()
	e, obs, err := suite.Open(ctx, task, s)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	p = played{Task: task, Stop: episode.GaveUp, Steps: []episode.Step{}}
	fmt.Fprintf(out, "%s\n%s\n\n%s\n", guide.Role, guide.Rules, obs.Text)
	lines := bufio.NewScanner(in)
	for len(p.Steps) < guide.Horizon {
		fmt.Fprint(out, "> ")
		line, ok := read(ctx, lines)
		if err := ctx.Err(); err != nil {
			return p, err
		}
		switch {
		case !ok || line == "quit":
			fmt.Fprintln(out)
			return p, lines.Err()
		case line == "":
			continue
		case line == "?":
			fmt.Fprintln(out, joinActions(obs.Admissible))
			continue
		}
		r, err := e.Step(ctx, episode.Action(line))
		if err != nil {
			return p, err
		}
		obs = r.Observation
		p.add(episode.Action(line), r)
		fmt.Fprintln(out, obs.Text)
		if r.Done {
			return p, nil
		}
	}
	p.Stop = episode.Horizon
	return p, nil
}

// add records a step.
func (p *played) add(a episode.Action, r episode.StepResult) {
	p.Steps = append(p.Steps, episode.Step{Action: a, Observation: r.Observation.Text, Reward: r.Reward, Admissible: r.Admissible})
	p.Return += r.Reward
	p.Success = r.Success
	if r.Done {
		p.Stop = episode.Failed
		if r.Success {
			p.Stop = episode.Succeeded
		}
	}
}

// read waits for a line, or for ctx to end. The goroutine that reads a terminal ends with the process.
func read(ctx context.Context, lines *bufio.Scanner) (string, bool) {
	got := make(chan bool, 1)
	go func() { got <- lines.Scan() }()
	select {
	case <-ctx.Done():
		return "", false
	case ok := <-got:
		return strings.TrimSpace(lines.Text()), ok
	}
}

func joinActions(as []episode.Action) string {
	if as == nil {
		return "this world does not list them"
	}
	texts := make([]string, len(as))
	for i, a := range as {
		texts[i] = string(a)
	}
	return strings.Join(texts, "\n")
}
