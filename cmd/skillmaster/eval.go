package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"skillmaster/env/webshop"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/rollout"
	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/train"
)

// evalCmd plays a panel.
type evalCmd struct {
	Run         string   `help:"Run directory." required:"" placeholder:"DIR"`
	Panel       []string `help:"Panels to play: names of the run's panels. Default: its report panels." placeholder:"NAME"`
	Retrieval   string   `help:"Whether skills stand in the prompts: on or off." default:"on" enum:"on,off"`
	Bank        string   `help:"frozen: the bank as it is; online: every review's edit counts from the next task on." default:"frozen" enum:"frozen,online"`
	Checkpoint  string   `help:"latest, best (on the held-out panel) or warm (the end of the warm start)." default:"latest" enum:"latest,best,warm"`
	Decoding    string   `help:"free, or constrained: the policy chooses among the admissible actions." default:"free" enum:"free,constrained"`
	Temperature *float64 `help:"Sampling temperature; 0 is greedy. Default: the run's own."`
	Seed        *uint64  `help:"Seed of the evaluation. Default: the run's."`
	Data        string   `help:"Folder of the real games." default:"${data}" placeholder:"DIR"`
	Workers     int      `help:"Cores to use. Results do not depend on it. Default: all." default:"0"`
	Server      string   `help:"Inference server whose model plays in place of the run's policy, with the run's bank." placeholder:"URL"`
	Dialect     string   `help:"What kind of server it is." default:"generic" placeholder:"NAME"`
	Model       string   `help:"Name of the model there." placeholder:"NAME"`
	KeyEnv      string   `help:"Environment variable that holds the server's key. Default: it wants none." placeholder:"NAME"`
	Tasks       bool     `help:"Also list every task with its result."`
	JSON        bool     `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (evalCmd) Help() string {
	return `Plays every task of a panel exactly once and prints success by family, with 95 % intervals (Wilson). The result is
recorded in the run, with the command. In a shop the mean score is printed, too.

Examples:
  skillmaster eval --run runs/first --panel valid_unseen
  skillmaster eval --run runs/first --panel valid_seen --retrieval off --json
  skillmaster eval --run runs/first --checkpoint warm --bank online
  skillmaster eval --run runs/first --server https://HOST --model NAME --key-env SERVER_KEY`
}

// scored is an evaluation with its scores, as it is printed.
type scored struct {
	train.Evaluation
	Summaries []train.Summary `json:"summaries"`
	BankAfter string          `json:"bank_after"`
	Seconds   float64         `json:"seconds"`
	Steps     int             `json:"steps_played"`
	Score     *float64        `json:"mean_score,omitempty"` // of 100, in a shop; nil elsewhere
}

func (c *evalCmd) Execute(ctx context.Context, command []string, stdout, stderr io.Writer) error {
	run, err := store.View(ctx, c.Run, time.Now)
	if err != nil {
		return err
	}
	defer run.Close()
	player, bank, panels, seed, shut, err := c.player(ctx, run, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = shut() }() // what a server holds for us it lets go by itself
	var out []scored
	for _, p := range panels {
		fmt.Fprintf(stderr, "panel %s: %d tasks\n", p.Name, len(p.Tasks))
		began := time.Now()
		e, after, err := c.play(ctx, player, p, bank, seed)
		if err != nil {
			return err
		}
		if err := run.Record(ctx, e, command); err != nil {
			return err
		}
		s := scored{Evaluation: e, Summaries: e.Summaries(), BankAfter: after.Hash(), Seconds: time.Since(began).Seconds()}
		for _, r := range e.Results {
			s.Steps += r.Steps
		}
		if shop, ok := player.Suite.(*webshop.Suite); ok {
			score, err := shopScore(ctx, shop, p, e)
			if err != nil {
				return err
			}
			s.Score = &score
		}
		out = append(out, s)
	}
	if c.JSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(out)
	}
	return c.print(stdout, out)
}

func (c *evalCmd) play(ctx context.Context, p *rollout.Player, panel episode.Panel, bank skill.Bank, s episode.Seed) (train.Evaluation, skill.Bank, error) {
	if c.Bank == "online" {
		return train.EvaluateOnline(ctx, p, panel, bank, s)
	}
	e, err := train.Evaluate(ctx, p, panel, bank, s, train.AtOnce)
	return e, bank, err
}

// player is the policy of the wanted checkpoint, with its bank and the wanted panels.
func (c *evalCmd) player(ctx context.Context, run *store.Run, stderr io.Writer) (*rollout.Player, skill.Bank, []episode.Panel, episode.Seed, func() error, error) {
	fail := func(err error) (*rollout.Player, skill.Bank, []episode.Panel, episode.Seed, func() error, error) {
		return nil, skill.Bank{}, nil, 0, nil, err
	}
	m, err := run.Manifest(ctx)
	if err != nil {
		return fail(err)
	}
	var cfg runConfig
	if err := cfg.decode(m.Config); err != nil {
		return fail(fmt.Errorf("settings of %s: %w", c.Run, err))
	}
	if err := c.instead(&cfg); err != nil {
		return fail(usage(err))
	}
	suite, all, err := openWorld(ctx, cfg.World, c.Data, stderr)
	if err != nil {
		return fail(err)
	}
	if err := samePanels(m, all); err != nil {
		return fail(err)
	}
	panels, err := c.panels(all)
	if err != nil {
		return fail(usage(err))
	}
	saved, err := checkpointOf(ctx, run, c.Run, c.Checkpoint, stderr)
	if err != nil {
		return fail(err)
	}
	engine, err := openEngine(ctx, run, cfg, world{suite, all}, c.Workers, notices(stderr))
	if err != nil {
		return fail(err)
	}
	var answers policy.Policy
	if err = engine.load(ctx, saved.Path); err == nil {
		answers, err = engine.policy(ctx)
	}
	if err != nil {
		return fail(errors.Join(err, engine.close()))
	}
	p := &rollout.Player{Suite: suite, Policy: answers, Config: cfg.Train.Rollout}
	if engine.tokenizer != nil {
		p.Count = train.Counter(engine.tokenizer)
	}
	if p.Vectors, err = cfg.vectors(); err != nil {
		return fail(err)
	}
	p.Config.Temperature = cfg.Train.EvaluateTemperature
	if c.Temperature != nil {
		p.Config.Temperature = *c.Temperature
	}
	p.Config.Retrieval, p.Config.Constrained = c.Retrieval == "on", c.Decoding == "constrained"
	seed := m.Seed
	if c.Seed != nil {
		seed = episode.Seed(*c.Seed)
	}
	return p, saved.Checkpoint.Bank, panels, seed, engine.close, nil
}

// instead puts a server's model in the place of the run's policy, if one is given.
func (c *evalCmd) instead(cfg *runConfig) error {
	if c.Server == "" && c.Model == "" && c.KeyEnv == "" {
		return nil
	}
	cfg.Server = serverConfig{URL: c.Server, Model: c.Model, Dialect: c.Dialect, Key: c.KeyEnv}
	cfg.Tinker = distantConfig{}
	if c.Server == "" {
		return errors.New("--model and --key-env are of a --server: give its address")
	}
	return cfg.Server.validate("server")
}

// panels are the wanted ones.
func (c *evalCmd) panels(all train.Panels) ([]episode.Panel, error) {
	if len(c.Panel) == 0 {
		return all.Report, nil
	}
	var out []episode.Panel
	for _, name := range c.Panel {
		i := slices.IndexFunc(all.All(), func(p episode.Panel) bool { return p.Name == name })
		if i < 0 {
			var names []string
			for _, p := range all.All() {
				names = append(names, p.Name)
			}
			return nil, fmt.Errorf("there is no panel %q: it is one of %s", name, strings.Join(names, ", "))
		}
		out = append(out, all.All()[i])
	}
	return out, nil
}

// checkpointOf is the wanted one of a run: latest, best or warm. Newer ones that are damaged are told of.
func checkpointOf(ctx context.Context, run *store.Run, dir, which string, stderr io.Writer) (store.Saved, error) {
	var saved store.Saved
	var damaged []store.Damage
	var err error
	switch which {
	case "best":
		saved, err = run.Best(ctx)
	case "warm":
		saved, err = run.Warm(ctx)
	default:
		saved, damaged, err = run.Latest(ctx)
	}
	for _, d := range damaged {
		fmt.Fprintln(stderr, "warning:", d)
	}
	switch {
	case errors.Is(err, store.ErrNoCheckpoint):
		err = fmt.Errorf("%w: let the run train until its first round is kept", err)
	case errors.Is(err, store.ErrNotFound):
		err = fmt.Errorf("%s: %w: the run has not come so far, or has had no success on its held-out panel (take --checkpoint latest)", dir, err)
	}
	return saved, err
}

func (c *evalCmd) print(stdout io.Writer, out []scored) error {
	for _, s := range out {
		how := "retrieval on"
		if !s.Retrieval {
			how = "retrieval off"
		}
		bank := "frozen bank"
		if s.Online {
			bank = "online bank"
		}
		decoding := "free-form"
		if s.Constrained {
			decoding = "constrained"
		}
		fmt.Fprintf(stdout, "panel %s %s, %s, %s %s, %s decoding, policy version %d, seed %d, temperature %g\n",
			s.Panel, s.PanelHash, how, bank, s.Evaluation.Bank, decoding, s.PolicyVersion, s.Seed, s.Temperature)
		w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(w, "family\ttasks\tsuccess\tshare\t95 % interval\tsteps\tsteps when won\t\n")
		for _, f := range s.Summaries {
			won := "–" // there is no success
			if f.Success > 0 {
				won = fmt.Sprintf("%.1f", f.Won)
			}
			fmt.Fprintf(w, "%s\t%d\t%d\t%.1f %%\t%.1f–%.1f\t%.1f\t%s\t\n", f.Family, f.Tasks, f.Success, 100*f.Rate, 100*f.Low, 100*f.High, f.Steps, won)
		}
		if c.Tasks {
			fmt.Fprint(w, "\n")
			for _, r := range s.Results {
				fmt.Fprintf(w, "%s\t%v\t%d\t%s\t\n", r.Task, r.Success, r.Steps, r.Stop)
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if s.Score != nil {
			fmt.Fprintf(stdout, "mean score %.2f of 100\n", *s.Score)
		}
		if err := printUses(stdout, s.Uses); err != nil {
			return err
		}
	}
	return nil
}

// printUses says, by family, how many skills stood in prompts and how many left a mark on what the policy wrote.
func printUses(stdout io.Writer, all []train.Use) error {
	if len(all) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\nfamily\tskills shown\tused\tshare\t\n")
	for _, u := range all {
		share := "–" // none was shown
		if u.Shown > 0 {
			share = fmt.Sprintf("%.1f %%", 100*float64(u.Used)/float64(u.Shown))
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t\n", u.Family, u.Shown, u.Used, share)
	}
	return w.Flush()
}
