package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skillmaster/chat"
	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/train"
)

// trainCmd trains a policy.
type trainCmd struct {
	Run         string   `help:"Run directory. Default: a new one under runs/, named by world and time." placeholder:"DIR"`
	Resume      bool     `help:"Go on with the run in --run, with the settings it was begun with."`
	Env         string   `help:"World: household or shop (generated, no download), alfworld or webshop (the real ones under --data), or openenv:ADDRESS (on a server)." default:"household"`
	Data        string   `help:"Folder of the real games." default:"${data}" placeholder:"DIR"`
	Preset      string   `help:"Settings to start from: default, paper, release, quick, smoke, pretrained, server or distant." default:"default"`
	Ablation    []string `help:"What to leave out, or to take another in its place: no-skills, no-review, no-utility, joint, clip-zero, teacher, frozen, paper. Laid over the preset." placeholder:"NAME"`
	Config      string   `help:"File of settings that are laid over the preset." type:"existingfile" placeholder:"FILE"`
	Set         []string `help:"One setting, laid over the file, such as train.learn.rate=1e-4. May be repeated." sep:"none" placeholder:"KEY=VALUE"`
	Seed        *uint64  `help:"Root seed: the same seed gives the same run."`
	Iterations  *int     `help:"Iterations after the warm start."`
	Bank        string   `help:"Bank to begin with, in the public JSON form. Default: an empty one." type:"existingfile" placeholder:"FILE"`
	WarmFrom    string   `help:"Run whose warm start (weights and tokenizer) is taken in place of an own one: for comparing what comes after it." type:"existingdir" placeholder:"DIR"`
	WarmData    string   `help:"Conversations to clone in the warm start in place of the expert's episodes: JSON lines, or Parquet (a name that ends in .parquet)." type:"existingfile" placeholder:"FILE"`
	Workers     int      `help:"Cores to use. Results do not depend on it. Default: all." default:"0"`
	Serve       string   `help:"Show the run in the browser while it trains, at this address of this machine, such as ${listen}." placeholder:"HOST:PORT"`
	PrintConfig bool     `help:"Print the settings that would be used, and end."`

	trackFlags `group:"Other tools"`
}

// Help is shown under --help.
func (trainCmd) Help() string {
	return `Clones expert episodes (warm start), then repeats: play groups of episodes, review each, judge every edit on probe
tasks with and without it, commit what passes the gate, and learn from both streams.

Examples:
  skillmaster train
  skillmaster train --env alfworld --data ../shared/data --run runs/first
  skillmaster train --run runs/first --resume
  skillmaster train --serve 127.0.0.1:8384 --tensorboard tb
  skillmaster train --ablation joint --warm-from runs/first
  skillmaster train --preset pretrained --set model.pretrained=DIR --warm-data episodes.jsonl
  skillmaster train --preset pretrained --set model.pretrained=DIR
  skillmaster train --preset server --set server.url=http://127.0.0.1:8000 --set server.model=NAME
  skillmaster train --preset distant --set tinker.url=https://HOST --set tinker.dialect=tinker --set tinker.model=NAME --set tinker.key=TINKER_API_KEY --set model.pretrained=DIR
  skillmaster train --ablation teacher --set teacher.url=https://HOST --set teacher.model=NAME --set teacher.key=TEACHER_KEY`
}

func (c *trainCmd) Execute(ctx context.Context, command []string, stdout, stderr io.Writer) error {
	if err := c.checkResume(); err != nil {
		return usage(err)
	}
	cfg, err := c.config()
	if err != nil {
		return usage(err)
	}
	if c.PrintConfig {
		b, err := cfg.JSON()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(stdout, string(b))
		return err
	}
	if c.Run == "" {
		c.Run = filepath.Join("runs", cfg.World.short()+"-"+time.Now().Format("20060102-150405"))
	}
	tools, err := c.tools(c.Run, notices(stderr))
	if err != nil {
		return usage(err)
	}
	run, cfg, w, err := c.open(ctx, cfg, command, stderr)
	if err != nil {
		return err
	}
	defer run.Close()
	started := time.Now()
	if err := c.train(ctx, run, cfg, w, tools, stderr); err != nil {
		return c.stopped(ctx, cfg, err)
	}
	return summarise(ctx, run, time.Since(started), stdout)
}

// train opens the policy and trains it to the end, and keeps tools up to date.
func (c *trainCmd) train(ctx context.Context, run *store.Run, cfg runConfig, w world, tools []tool, stderr io.Writer) error {
	engine, err := openEngine(ctx, run, cfg, w, c.Workers, notices(stderr))
	if err != nil {
		return err
	}
	t, from, err := c.trainer(ctx, run, cfg, w, engine, stderr)
	if err == nil {
		err = tracked(ctx, tools, run, t, notices(stderr), func() error { return c.trainAndShow(ctx, t, from, stderr) })
	}
	return errors.Join(err, engine.close())
}

// stopped says how to go on if it was a person who ended the run, whatever broke off because of it.
func (c *trainCmd) stopped(ctx context.Context, cfg runConfig, err error) error {
	if ctx.Err() == nil {
		return err
	}
	more := "--run " + c.Run + " --resume"
	if cfg.World.Name == realGames || cfg.World.Name == realShop {
		more += " --data " + c.Data
	}
	if !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return fmt.Errorf("stopped; go on with: skillmaster train %s: %w", more, err)
}

// checkResume refuses flags that a resumed run would not heed: it has its settings.
func (c *trainCmd) checkResume() error {
	if !c.Resume {
		return nil
	}
	if c.Run == "" {
		return errors.New("--resume needs --run: which run is to go on?")
	}
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"preset", c.Preset != "default"},
		{"ablation", len(c.Ablation) > 0},
		{"config", c.Config != ""},
		{"set", len(c.Set) > 0},
		{"seed", c.Seed != nil},
		{"iterations", c.Iterations != nil},
		{"bank", c.Bank != ""},
		{"warm-from", c.WarmFrom != ""},
		{"warm-data", c.WarmData != ""},
		{"print-config", c.PrintConfig},
	} {
		if f.given {
			return fmt.Errorf("--%s does not go with --resume: the run goes on with the settings it was begun with (its config.json shows them); leave it out, or start a new run", f.name)
		}
	}
	return nil
}

// config is preset, file and flags, one over the other.
func (c *trainCmd) config() (runConfig, error) {
	cfg, err := preset(c.Env, c.Preset)
	if err != nil {
		return cfg, err
	}
	for _, name := range c.Ablation {
		if err := cfg.ablate(name); err != nil {
			return cfg, err
		}
	}
	if c.Config != "" {
		if err := cfg.load(c.Config); err != nil {
			return cfg, err
		}
	}
	for _, s := range c.Set {
		if err := cfg.set(s); err != nil {
			return cfg, err
		}
	}
	if c.Seed != nil {
		cfg.Train.Seed = *c.Seed
	}
	if c.Iterations != nil {
		cfg.Train.Iterations = *c.Iterations
	}
	if c.WarmFrom != "" {
		if cfg.WarmFrom, err = filepath.Abs(c.WarmFrom); err != nil {
			return cfg, err
		}
	}
	if c.WarmData != "" {
		cfg.WarmData = warmData{File: c.WarmData}
	}
	if err := cfg.WarmData.look(); err != nil {
		return cfg, err
	}
	for _, dir := range []*string{&cfg.Model.Pretrained, &cfg.Model.AdapterFrom} {
		if *dir != "" {
			if *dir, err = filepath.Abs(*dir); err != nil {
				return cfg, err
			}
		}
	}
	if err := cfg.validate(); err != nil {
		return cfg, fmt.Errorf("settings: %w (skillmaster train --print-config shows every key)", err)
	}
	return cfg, nil
}

// world is an open world with its panels.
type world struct {
	suite  env.Suite
	panels train.Panels
}

// open makes the run directory, or opens the one to go on with and takes its settings; and it opens the world.
func (c *trainCmd) open(ctx context.Context, cfg runConfig, command []string, stderr io.Writer) (*store.Run, runConfig, world, error) {
	if c.Resume {
		return c.reopen(ctx, stderr)
	}
	suite, panels, err := openWorld(ctx, cfg.World, c.Data, stderr)
	w := world{suite, panels}
	if err != nil {
		return nil, cfg, w, err
	}
	var bank skill.Bank
	if c.Bank != "" {
		if bank, err = readBank(c.Bank); err != nil {
			return nil, cfg, w, err
		}
		if hidden := unseen(bank, cfg.Train.Rollout.RetrieveBy, panels.Train.Tasks); len(hidden) > 0 {
			fmt.Fprintf(stderr, "warning: the condition of %s shares no word with the goal of any train task: such a skill is never shown; "+
				"train.rollout.retrieve_by=ranked heeds no conditions\n", strings.Join(hidden, ", "))
		}
	}
	b, err := cfg.JSON()
	if err != nil {
		return nil, cfg, w, err
	}
	m := store.Manifest{
		Program: version, Config: b, Seed: episode.Seed(cfg.Train.Seed), World: describeWorld(cfg.World, panels), Command: command, Bank: bank,
	}
	for _, p := range panels.All() {
		m.Panels = append(m.Panels, store.PanelOf(p))
	}
	run, err := store.Create(ctx, c.Run, m, time.Now)
	if errors.Is(err, store.ErrExists) {
		return nil, cfg, w, fmt.Errorf("%w (to go on with it: --resume)", err)
	}
	if err == nil {
		fmt.Fprintf(stderr, "run directory %s\n", c.Run)
	}
	return run, cfg, w, err
}

// reopen opens the run to go on with, with its settings and its world.
func (c *trainCmd) reopen(ctx context.Context, stderr io.Writer) (*store.Run, runConfig, world, error) {
	var cfg runConfig
	var w world
	run, err := store.Open(ctx, c.Run, 0, time.Now)
	if err != nil {
		return nil, cfg, w, err
	}
	m, err := run.Manifest(ctx)
	if err == nil {
		err = cfg.decode(m.Config)
	}
	if err != nil {
		return nil, cfg, w, errors.Join(fmt.Errorf("settings of %s: %w", c.Run, err), run.Close())
	}
	if w.suite, w.panels, err = openWorld(ctx, cfg.World, c.Data, stderr); err == nil {
		err = samePanels(m, w.panels)
	}
	if err != nil {
		return nil, cfg, w, errors.Join(err, run.Close())
	}
	return run, cfg, w, nil
}

// trainer wires the parts of a run, and says where to go on.
func (c *trainCmd) trainer(ctx context.Context, run *store.Run, cfg runConfig, w world, engine *engine, stderr io.Writer) (*train.Trainer, train.Checkpoint, error) {
	var from train.Checkpoint
	var err error
	saved, damaged, none := run.Latest(ctx)
	for _, d := range damaged {
		fmt.Fprintln(stderr, "warning:", d)
	}
	switch {
	case errors.Is(none, store.ErrNoCheckpoint) && cfg.WarmFrom != "":
		if from, err = engine.warmFrom(ctx, cfg, w.panels); err != nil {
			return nil, from, err
		}
	case errors.Is(none, store.ErrNoCheckpoint):
	case none != nil:
		return nil, from, none
	default:
		from = saved.Checkpoint
		if err := engine.load(ctx, saved.Path); err != nil {
			return nil, from, err
		}
	}
	back, err := run.Rewind(ctx, saved)
	if err != nil {
		return nil, from, err
	}
	tellRewound(stderr, back)
	bank, err := startingBank(ctx, run)
	if err != nil {
		return nil, from, err
	}
	if errors.Is(none, store.ErrNoCheckpoint) {
		from.Bank = bank
	}
	reference, err := engine.reference(ctx, run, cfg, from)
	if err != nil {
		return nil, from, err
	}
	var teacher policy.Policy
	if cfg.Teacher.URL != "" {
		if teacher, err = cfg.Teacher.open(ctx, 0, notices(stderr)); err != nil {
			return nil, from, err
		}
	}
	vectors, err := cfg.vectors()
	if err != nil {
		return nil, from, err
	}
	var told []chat.Conversation
	if from.Phase == train.WarmStart && cfg.WarmData.File != "" {
		if told, err = cfg.WarmData.read(); err != nil {
			return nil, from, err
		}
	}
	console := newConsole(stderr, cfg.Train)
	return &train.Trainer{
		Config: cfg.Train, Suite: w.suite, Panels: w.panels, Learner: engine.learns(), Policy: engine.served, Teacher: teacher, Vectors: vectors, Conversations: told,
		Context: engine.context(), Reference: reference,
		Tokenizer: engine.tokenizer, Template: engine.template, Bank: bank,
		Keeper: run, Observers: []train.Observer{console}, Progress: console.progress,
		Log: slog.New(slog.NewTextHandler(stderr, nil)), Now: time.Now,
	}, from, nil
}

// tellRewound says what was taken back to go on from a checkpoint.
func tellRewound(stderr io.Writer, back store.Rewound) {
	if back.Reports > 0 {
		fmt.Fprintf(stderr, "%d rounds after the checkpoint are taken back and done again\n", back.Reports)
	}
	if back.ByHand > 0 {
		fmt.Fprintf(stderr, "warning: %d banks that were committed by hand after the checkpoint do not count any more: if they are wanted, stop and commit them again (skillmaster bank import, or bank rollback to their hash)\n", back.ByHand)
	}
}

// unseen are the ids of skills that are retrieved for none of the tasks, because of their condition.
func unseen(b skill.Bank, by skill.Retrieval, tasks []episode.Task) []string {
	var out []string
	for _, s := range b.Skills() {
		if by == skill.Matched && !slices.ContainsFunc(tasks, func(t episode.Task) bool { return s.Applies(t.Goal) }) {
			out = append(out, s.ID)
		}
	}
	return out
}

// startingBank is the run's current bank: the one it was begun with, unless somebody has committed another by hand.
func startingBank(ctx context.Context, run *store.Run) (skill.Bank, error) {
	head, err := run.Head(ctx)
	if err != nil {
		return skill.Bank{}, err
	}
	return run.Bank(ctx, head)
}

// samePanels refuses to go on with other data than the run was begun with.
func samePanels(m store.Manifest, p train.Panels) error {
	now := map[string]string{}
	for _, q := range p.All() {
		now[q.Name] = q.Hash()
	}
	for _, q := range m.Panels {
		if now[q.Name] != q.Hash {
			return fmt.Errorf("panel %s is %s now and was %s when the run began: its tasks have changed (give the run's own --data)", q.Name, now[q.Name], q.Hash)
		}
	}
	return nil
}

// summarise prints what a run came to: the held-out panel at the start and at the end. What eval played does not count.
func summarise(ctx context.Context, run *store.Run, took time.Duration, stdout io.Writer) error {
	es, err := run.Evaluations(ctx)
	if err != nil {
		return err
	}
	es = slices.DeleteFunc(es, func(e store.Evaluated) bool { return e.Report == 0 })
	commits, err := run.Commits(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "run %s, %s\n", run.Dir(), took.Round(time.Second))
	line := func(name string, e train.Evaluation) {
		s := e.Summaries()[0]
		fmt.Fprintf(&b, "  %-18s %5.1f %% success [%.1f, %.1f], %.1f steps, %d tasks of panel %s\n",
			name, 100*s.Rate, 100*s.Low, 100*s.High, s.Steps, s.Tasks, e.Panel)
	}
	if len(es) > 0 {
		line("before learning", es[0].Evaluation)
		line("at the end", es[len(es)-1].Evaluation)
	}
	if saved, _, err := run.Latest(ctx); err == nil {
		fmt.Fprintf(&b, "  trained on         %.1f million tokens in %d updates\n", float64(saved.Checkpoint.Tokens)/1e6, saved.Checkpoint.PolicyVersion)
	}
	fmt.Fprintf(&b, "  skills committed   %d\nnext: skillmaster eval --run %s, or skillmaster bank show --run %s\n", len(commits), run.Dir(), run.Dir())
	_, err = io.WriteString(stdout, b.String())
	return err
}
