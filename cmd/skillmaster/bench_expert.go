package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"skillmaster/env"
	"skillmaster/env/alfworld"
	"skillmaster/episode"

	"golang.org/x/sync/errgroup"
)

// benchExpertCmd lets the two experts play games.
type benchExpertCmd struct {
	Env        string    `help:"World: household (generated games) or alfworld (the real ones under --data)." default:"household" enum:"household,alfworld"`
	Data       string    `help:"Folder of the real games, packed or in the official layout." default:"${data}" placeholder:"DIR"`
	Split      []string  `help:"Splits of the real games. Default: all." placeholder:"NAME"`
	Games      int       `help:"Generated games of each difficulty." default:"10000"`
	Seed       uint64    `help:"Seed of generated games." default:"0"`
	Difficulty []float64 `help:"Of generated games: 0, objects lie where they usually lie, to 1, anywhere they may." default:"0,0.5,1"`
	Custom     float64   `help:"Share of the things that lie where a house of its own keeps them." default:"0"`
	House      uint64    `help:"Which house that is." default:"1"`
	Least      float64   `help:"Fail if the search player wins less than this share of a world or split." default:"0.98"`
	Workers    int       `help:"Games played at once." default:"2"`
	JSON       bool      `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (benchExpertCmd) Help() string {
	return `Plays every game twice, in 50 steps at most: by search, knowing only what the game says, and by a shortest plan, knowing
everything. Exit code 1 if a plan does not win, or the search too seldom.

Examples:
  skillmaster bench expert
  skillmaster bench expert --difficulty 0 --custom 0.8
  skillmaster bench expert --env alfworld --data ../shared/data --split valid_seen --split valid_unseen`
}

// expertRow says how the experts did with the games of a family, or of all.
type expertRow struct {
	Games       string   `json:"games_of"` // a split, or a difficulty
	Family      string   `json:"family"`   // "all" for all
	Count       int      `json:"games"`
	SearchWon   int      `json:"search_won"`
	SearchSteps *float64 `json:"search_steps"` // mean over all its games; nil for none
	PlanWon     int      `json:"plan_won"`
	PlanSteps   *float64 `json:"plan_steps"`
	PlanMedian  *float64 `json:"plan_ms_median"` // finding the plan at the start
	PlanMost    *float64 `json:"plan_ms_most"`
}

func (c *benchExpertCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	parts, err := c.parts()
	if err != nil {
		return err
	}
	var rows []expertRow
	var wrong []error
	for _, p := range parts {
		fmt.Fprintf(stderr, "%s: %d games\n", p.name, len(p.tasks))
		played, err := c.play(ctx, p)
		if err != nil {
			return err
		}
		of := summariseExperts(p.name, played)
		rows = append(rows, of...)
		all := of[len(of)-1]
		if all.PlanWon < all.Count {
			wrong = append(wrong, fmt.Errorf("%s: plans win %d of %d games", p.name, all.PlanWon, all.Count))
		}
		if float64(all.SearchWon) < c.Least*float64(all.Count) {
			wrong = append(wrong, fmt.Errorf("%s: the search wins %d of %d games, fewer than %g of them", p.name, all.SearchWon, all.Count, c.Least))
		}
	}
	if c.JSON {
		err = printJSON(stdout, rows)
	} else {
		err = printExperts(stdout, rows)
	}
	return errors.Join(append(wrong, err)...)
}

// expertPart is a list of games with a name.
type expertPart struct {
	name  string
	suite *alfworld.Suite
	tasks []episode.Task
}

func (c *benchExpertCmd) parts() ([]expertPart, error) {
	var parts []expertPart
	add := func(name string, suite *alfworld.Suite, split string) error {
		tasks, err := suite.Tasks(split)
		parts = append(parts, expertPart{name, suite, tasks})
		return usage(err)
	}
	switch {
	case c.Env == household && len(c.Split) > 0:
		return nil, usage(fmt.Errorf("--split is for real games: leave it out, or use --env %s", realGames))
	case c.Env == realGames && (c.Seed != 0 || c.Custom != 0):
		return nil, usage(fmt.Errorf("--seed and --custom are for generated games: leave them out, or use --env %s", household))
	case c.Env == household:
		for _, d := range c.Difficulty {
			suite, err := alfworld.NewGenerated(alfworld.GeneratedOptions{
				Splits: map[string]int{"games": c.Games}, Seed: episode.Seed(c.Seed), Difficulty: d,
				Custom: alfworld.Custom{Share: c.Custom, Seed: episode.Seed(c.House)},
			})
			if err != nil {
				return nil, usage(err)
			}
			if err := add(fmt.Sprintf("difficulty %g", d), suite, "games"); err != nil {
				return nil, err
			}
		}
		return parts, nil
	}
	suite, err := openGames(gamesOf(c.Env), c.Data)
	if err != nil {
		return nil, err
	}
	splits := c.Split
	if len(splits) == 0 {
		splits = suite.Splits()
	}
	for _, s := range splits {
		if err := add(s, suite, s); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// expertPlay is how an expert did.
type expertPlay struct {
	won   bool
	steps int
	first time.Duration // to choose the first action
}

// playedTwice is a game as both experts played it.
type playedTwice struct {
	family       string
	search, plan expertPlay
}

func (c *benchExpertCmd) play(ctx context.Context, p expertPart) ([]playedTwice, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, c.Workers))
	played := make([]playedTwice, len(p.tasks))
	for i, t := range p.tasks {
		g.Go(func() error {
			search, err := playExpert(ctx, p.suite, t, env.Sees)
			plan, also := playExpert(ctx, p.suite, t, env.Knows)
			played[i] = playedTwice{t.Family, search, plan}
			if err := errors.Join(err, also); err != nil {
				return fmt.Errorf("play %s: %w", t.ID, err)
			}
			return nil
		})
	}
	return played, g.Wait()
}

// playExpert lets an expert play a task until it is done or knows no further.
func playExpert(ctx context.Context, suite interface {
	env.Suite
	env.Coach
}, t episode.Task, k env.Knowledge,
) (p expertPlay, err error) {
	e, _, err := suite.Open(ctx, t, 0)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	expert, err := suite.Expert(e, k, nil, nil)
	if err != nil {
		return p, err
	}
	began := time.Now()
	for {
		a, ok := expert.Next()
		if p.steps == 0 {
			p.first = time.Since(began)
		}
		if !ok {
			return p, nil
		}
		r, err := e.Step(ctx, a)
		if err != nil {
			return p, err
		}
		p.steps++
		if r.Done {
			p.won = r.Success
			return p, nil
		}
		expert.Observe(a, r)
	}
}

// summariseExperts gives a row for each family that there is and one for all.
func summariseExperts(name string, played []playedTwice) []expertRow {
	var rows []expertRow
	for _, f := range alfworld.Families() {
		of := slices.DeleteFunc(slices.Clone(played), func(p playedTwice) bool { return p.family != f.String() })
		if len(of) > 0 {
			rows = append(rows, expertRowOf(name, f.String(), of))
		}
	}
	return append(rows, expertRowOf(name, "all", played))
}

func expertRowOf(name, family string, played []playedTwice) expertRow {
	r := expertRow{Games: name, Family: family, Count: len(played)}
	if len(played) == 0 {
		return r
	}
	var search, plan float64
	var spent []float64
	for _, p := range played {
		search += float64(p.search.steps)
		plan += float64(p.plan.steps)
		spent = append(spent, float64(p.plan.first)/1e6)
		if p.search.won {
			r.SearchWon++
		}
		if p.plan.won {
			r.PlanWon++
		}
	}
	n := float64(len(played))
	search, plan = search/n, plan/n
	middle, most := median(spent), slices.Max(spent)
	r.SearchSteps, r.PlanSteps, r.PlanMedian, r.PlanMost = &search, &plan, &middle, &most
	return r
}

func printExperts(stdout io.Writer, rows []expertRow) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "games of\tfamily\tgames\tsearch wins\tmean steps\tplan wins\tmean steps\tms a plan\tmost ms\t")
	for _, r := range rows {
		if r.SearchSteps == nil {
			fmt.Fprintf(w, "%s\t%s\t0\t-\t-\t-\t-\t-\t-\t\n", r.Games, r.Family)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%.2f %%\t%.2f\t%.2f %%\t%.2f\t%.3f\t%.2f\t\n", r.Games, r.Family, r.Count,
			100*float64(r.SearchWon)/float64(r.Count), *r.SearchSteps, 100*float64(r.PlanWon)/float64(r.Count), *r.PlanSteps, *r.PlanMedian, *r.PlanMost)
	}
	return w.Flush()
}
