package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"skillmaster/episode"
	"skillmaster/grpo"
	"skillmaster/probe"
	"skillmaster/skill"
	"skillmaster/train"
)

// benchProbeCmd judges edits of known effect.
type benchProbeCmd struct {
	Success float64   `help:"Chance that the scripted policy succeeds without the edit." default:"0.7"`
	Effect  float64   `help:"What the edit adds to that chance; negative: a harmful edit." default:"0.1"`
	Saved   int       `help:"Steps that the edit saves in an episode that succeeds." default:"0"`
	Shared  []float64 `help:"Chances that both arms of a probe have the same luck: 1 with common random numbers and a policy that answers alike, 0 as if they were independent." default:"1,0.5,0"`
	Groups  int       `help:"Groups of an iteration, each of one task." default:"8"`
	Members int       `help:"Edits of a group." default:"8"`
	Rounds  int       `help:"Iterations to judge." default:"200"`
	Seed    uint64    `help:"Seed of the scripted policy's luck." default:"1"`
	JSON    bool      `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (benchProbeCmd) Help() string {
	return `A scripted policy succeeds with a known chance, in 6 to 40 of 50 steps, and an edit adds a known effect to that chance. The judge of
each preset (default, paper, release: the public release's rule, of independent arms whatever --shared says) tells what it would pay; signed
is the release's rule without its cut at 0. Four tables:

  cost       episodes of one iteration of groups × members edits
  no effect  what an edit that does nothing is paid, by the policy's chance of success
  advantage  of edits and of keeps, in groups that are half of each
  signal     distance of the mean utility from that of no effect, over the standard deviation of all edits (total) or within
             a group, which is what a group's advantages see; default* has the probes that the release's episodes would buy

Examples:
  skillmaster bench probe
  skillmaster bench probe --success 0.9 --effect 0.05 --shared 0.5 --json`
}

// probeBench is what presets do with edits of known effect.
type probeBench struct {
	Cost      []probeCost      `json:"cost"`
	NoEffect  []probeRow       `json:"no_effect"`
	Advantage []probeAdvantage `json:"advantage"`
	Signal    []probeRow       `json:"signal"`
}

// probeCost is what one iteration's verdicts cost.
type probeCost struct {
	Preset  string  `json:"preset"`
	Edits   int     `json:"edits"`
	Groups  int     `json:"groups"`
	Before  float64 `json:"before"` // episodes, mean over the iterations
	After   float64 `json:"after"`
	Release float64 `json:"of_release"` // share of the release's episodes
}

// probeRow is what one preset says of one edit.
type probeRow struct {
	Preset      string  `json:"preset"`
	Tasks       int     `json:"tasks"` // K
	Success     float64 `json:"success"`
	Effect      float64 `json:"effect"` // true one, on the chance of success
	Shared      float64 `json:"shared_luck"`
	Edits       int     `json:"edits"`
	Mean        float64 `json:"utility_mean"`
	Error       float64 `json:"utility_mean_error"`    // standard error of the mean, from iteration to iteration
	SD          float64 `json:"utility_sd"`            // divisor n − 1
	GroupSD     float64 `json:"utility_group_sd"`      // within groups
	Noise       float64 `json:"signal_to_noise"`       // |mean − mean without effect| / sd; 0 without effect
	GroupNoise  float64 `json:"signal_to_group_noise"` // 0: the edits of a group are all paid the same, there is no noise
	Ratio       float64 `json:"of_release"`            // signal-to-noise over the release's
	Positive    float64 `json:"positive"`              // share of edits with utility above 0
	Episodes    float64 `json:"episodes_per_edit"`
	NotMeasured int     `json:"not_measured"`
}

// probeAdvantage is what edits and keeps get in groups that are half of each.
type probeAdvantage struct {
	Preset string  `json:"preset"`
	Effect float64 `json:"effect"`
	Shared float64 `json:"shared_luck"`
	Mean   float64 `json:"utility_mean"`
	Edit   float64 `json:"edit"`
	Keep   float64 `json:"keep"`
}

// benched are the rules that are compared; the first is the one the others are measured against.
var benched = []string{"release", signed, "paper", "default"}

// signed is the rule of the release without its cut at 0: what the cut does is the difference between the two.
const signed = "signed"

// benchedConfig is the settings of a rule.
func benchedConfig(name string) (train.Config, error) {
	from := name
	if name == signed {
		from = "release"
	}
	c, err := preset(household, from)
	c.Train.Probe.ClipAtZero = c.Train.Probe.ClipAtZero && name != signed
	return c.Train, err
}

func (c *benchProbeCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	if err := c.validate(); err != nil {
		return usage(err)
	}
	b, err := c.bench(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(stdout, b)
	}
	return b.print(stdout)
}

func (c *benchProbeCmd) validate() error {
	for _, s := range c.Shared {
		if !(s >= 0 && s <= 1) {
			return errors.New("--shared are chances between 0 and 1")
		}
	}
	switch {
	case !(c.Success >= 0 && c.Success <= 1):
		return errors.New("--success is a chance between 0 and 1")
	case !(math.Abs(c.Effect) <= 1):
		return errors.New("--effect lies between -1 and 1")
	case c.Groups < 1 || c.Members < 2 || c.Rounds < 2:
		return errors.New("--groups must be at least 1, --members and --rounds at least 2")
	case c.Saved < 0 || c.Saved >= scriptHorizon:
		return fmt.Errorf("--saved lies between 0 and the horizon of %d steps", scriptHorizon)
	case len(c.Shared) == 0:
		return errors.New("--shared needs a value")
	}
	return nil
}

func (c *benchProbeCmd) bench(ctx context.Context) (b probeBench, err error) {
	release := map[string]float64{} // episodes of an iteration, signal-to-noise
	for _, name := range benched {
		cfg, err := benchedConfig(name)
		if err != nil {
			return b, err
		}
		if err := c.costs(ctx, &b, name, cfg, release); err != nil {
			return b, err
		}
		for _, shared := range c.luck(cfg.Probe) {
			if err := c.noEffect(ctx, &b, name, cfg.Probe, shared); err != nil {
				return b, err
			}
			if err := c.advantages(ctx, &b, name, cfg, shared); err != nil {
				return b, err
			}
			if err := c.signal(ctx, &b, name, cfg.Probe, shared, release); err != nil {
				return b, err
			}
			if name != "default" {
				continue
			}
			equal := cfg.Probe
			if equal.Tasks, err = c.affordable(ctx, equal, shared, release["episodes"]); err != nil {
				return b, err
			}
			if err := c.signal(ctx, &b, name+"*", equal, shared, release); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// luck is what the arms of a preset may have in common.
func (c *benchProbeCmd) luck(cfg probe.Config) []float64 {
	if cfg.Independent {
		return []float64{0}
	}
	return c.Shared
}

// costs counts the episodes of an iteration, without the edit having an effect.
func (c *benchProbeCmd) costs(ctx context.Context, b *probeBench, name string, cfg train.Config, release map[string]float64) error {
	j, err := c.judge(ctx, cfg.Probe, script{success: c.Success, shared: c.Shared[0]})
	if err != nil {
		return err
	}
	n := float64(c.Rounds)
	row := probeCost{Preset: name, Edits: c.Groups * c.Members, Groups: c.Groups, Before: float64(j.before) / n, After: float64(j.after) / n}
	if name == "release" {
		release["episodes"] = row.Before + row.After
	}
	row.Release = (row.Before + row.After) / release["episodes"]
	b.Cost = append(b.Cost, row)
	return nil
}

// noEffect judges an edit that does nothing, at the chances of success that the literature has figures for.
func (c *benchProbeCmd) noEffect(ctx context.Context, b *probeBench, name string, cfg probe.Config, shared float64) error {
	for _, p := range []float64{0.2, 0.5, 0.8, 0.95} {
		j, err := c.judge(ctx, cfg, script{success: p, shared: shared})
		if err != nil {
			return err
		}
		b.NoEffect = append(b.NoEffect, j.row(name, cfg))
	}
	return nil
}

// advantages are those of groups whose second half keeps the bank as it is.
func (c *benchProbeCmd) advantages(ctx context.Context, b *probeBench, name string, cfg train.Config, shared float64) error {
	for _, effect := range []float64{0, -2 * c.Effect, c.Effect} {
		j, err := c.judge(ctx, cfg.Probe, script{success: c.Success, effect: effect, shared: shared})
		if err != nil {
			return err
		}
		row := probeAdvantage{Preset: name, Effect: effect, Shared: shared, Mean: j.row(name, cfg.Probe).Mean}
		groups := 0.0
		for _, g := range j.groups {
			returns := make([]grpo.Returns, len(g))
			for i, u := range g {
				if i < len(g)/2 {
					returns[i].Review = u
				}
				returns[i].ReviewMeasured = true
			}
			adv, _, err := grpo.Advantages(returns, cfg.Learn.Variant, grpo.Options{StdFloor: cfg.Learn.StdFloor})
			if err != nil {
				return err
			}
			groups++
			for i, a := range adv {
				if i < len(g)/2 {
					row.Edit += a.Review / float64(len(g)/2)
				} else {
					row.Keep += a.Review / float64(len(g)-len(g)/2)
				}
			}
		}
		row.Edit, row.Keep = row.Edit/groups, row.Keep/groups
		b.Advantage = append(b.Advantage, row)
	}
	return nil
}

// signal judges the edit, and one without effect to tell it from.
func (c *benchProbeCmd) signal(ctx context.Context, b *probeBench, name string, cfg probe.Config, shared float64, release map[string]float64) error {
	without, err := c.judge(ctx, cfg, script{success: c.Success, shared: shared})
	if err != nil {
		return err
	}
	with, err := c.judge(ctx, cfg, script{success: c.Success, effect: c.Effect, saved: c.Saved, shared: shared})
	if err != nil {
		return err
	}
	row, null := with.row(name, cfg), without.row(name, cfg)
	distance := math.Abs(row.Mean - null.Mean)
	row.Noise = distance / row.SD
	if row.GroupSD > 1e-9 {
		row.GroupNoise = distance / row.GroupSD
	}
	if name == "release" {
		release["noise"] = row.Noise
	}
	row.Ratio = row.Noise / release["noise"]
	b.Signal = append(b.Signal, row)
	return nil
}

// affordable is the largest number of probes that costs no more episodes an iteration than are given.
func (c *benchProbeCmd) affordable(ctx context.Context, cfg probe.Config, shared, episodes float64) (int, error) {
	for {
		j, err := c.judge(ctx, cfg, script{success: c.Success, effect: c.Effect, saved: c.Saved, shared: shared})
		switch {
		case err != nil:
			return 0, err
		case float64(j.before+j.after)/float64(c.Rounds) > episodes:
			return cfg.Tasks - 1, nil
		case cfg.Tasks == scriptTasks:
			return cfg.Tasks, nil
		}
		cfg.Tasks++
	}
}

// judged is what a judge said of edits of one kind.
type judged struct {
	script        script
	groups        [][]float64 // utilities
	rounds        []float64   // mean utility of each iteration
	edits         int
	notMeasured   int
	before, after int // episodes
}

// judge lets a judge rule on iterations of edits of one kind.
func (c *benchProbeCmd) judge(ctx context.Context, cfg probe.Config, s script) (judged, error) {
	cfg.Horizon, cfg.Candidates = scriptHorizon, 0
	out := judged{script: s}
	cs, err := candidates(c.Groups, c.Members)
	if err != nil {
		return out, err
	}
	for n := range c.Rounds {
		judge := probe.NewJudge(s.play, cfg, 1)
		verdicts, err := judge.Judge(ctx, skill.Bank{}, cs, episode.Seed(c.Seed).Derive("bench probe", uint64(n)))
		if err != nil {
			return out, err
		}
		var all, measured float64
		for g := range c.Groups {
			var us []float64
			for _, v := range verdicts[g*c.Members : (g+1)*c.Members] {
				out.edits++
				out.after += len(v.Pairs)
				if !v.Measured {
					out.notMeasured++
					continue
				}
				us = append(us, v.Utility)
				all, measured = all+v.Utility, measured+1
			}
			out.groups = append(out.groups, us)
		}
		out.before += judge.Played
		if measured > 0 {
			out.rounds = append(out.rounds, all/measured)
		}
	}
	out.before -= out.after
	return out, nil
}

// row sums up.
func (j judged) row(name string, cfg probe.Config) probeRow {
	r := probeRow{Preset: name, Tasks: cfg.Tasks, Success: j.script.success, Effect: j.script.effect, Shared: j.script.shared, NotMeasured: j.notMeasured}
	var within, degrees float64
	var all []float64
	for _, g := range j.groups {
		all = append(all, g...)
		if len(g) > 1 {
			_, sd := meanSD(g)
			within, degrees = within+sd*sd*float64(len(g)-1), degrees+float64(len(g)-1)
		}
	}
	r.Edits = len(all)
	r.Mean, r.SD = meanSD(all)
	r.GroupSD = math.Sqrt(within / degrees)
	_, sd := meanSD(j.rounds)
	r.Error = sd / math.Sqrt(float64(len(j.rounds)))
	for _, u := range all {
		if u > 0 {
			r.Positive += 1 / float64(len(all))
		}
	}
	r.Episodes = float64(j.before+j.after) / float64(j.edits)
	return r
}

// meanSD is the mean and the standard deviation (divisor n − 1).
func meanSD(xs []float64) (mean, sd float64) {
	n := float64(len(xs))
	for _, x := range xs {
		mean += x / n
	}
	for _, x := range xs {
		sd += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sd / (n - 1))
}

const (
	scriptHorizon = 50
	scriptTasks   = 64 // probe tasks of a family
)

// candidates are banks with one skill each that says something of its own; every group's task is of a family of its own.
func candidates(groups, members int) ([]probe.Candidate, error) {
	var out []probe.Candidate
	for g := range groups {
		family := fmt.Sprintf("family %d", g)
		tasks := make([]episode.Task, scriptTasks)
		for i := range tasks {
			tasks[i] = episode.Task{ID: fmt.Sprintf("%s, task %d", family, i), Family: family}
		}
		for range members {
			n := len(out)
			e := skill.Edit{Op: skill.Propose, Category: skill.General, Title: fmt.Sprintf("Skill %d", n), Principle: fmt.Sprintf("Do it in way number %d.", n)}
			after, outcome := skill.Bank{}.Apply(e, skill.Permission{})
			if outcome != skill.Added {
				return nil, fmt.Errorf("edit %d: %v", n, outcome)
			}
			out = append(out, probe.Candidate{Bank: after, Skill: after.Changed(skill.Bank{}), Tasks: [][]episode.Task{tasks}, Source: family})
		}
	}
	return out, nil
}

// script is a policy whose chance of success is known, and an edit's effect on it.
type script struct {
	success, effect float64
	saved           int
	shared          float64
}

// play succeeds if its luck is below its chance. An episode that succeeds takes 6 to 40 steps, less what the edit saves.
// The luck is that of the seed, or of seed and bank where the arms do not share it.
func (s script) play(ctx context.Context, a probe.Arm) (episode.Trajectory, error) {
	if err := ctx.Err(); err != nil {
		return episode.Trajectory{}, err
	}
	edited := a.Must != ""
	rng := a.Seed.Derive("luck").Rand()
	if s.shared < 1 && a.Seed.Derive("shared luck").Rand().Float64() >= s.shared {
		rng = a.Seed.Derive("luck of " + a.Bank.Hash()).Rand()
	}
	chance, saved := s.success, 0
	t := episode.Trajectory{Task: a.Task, Stop: episode.Horizon}
	if edited {
		chance, saved = chance+s.effect, s.saved
		t.ShownSkills = []string{a.Must}
	}
	steps := scriptHorizon
	t.Success = rng.Float64() < chance
	if n := 6 + rng.IntN(35); t.Success {
		t.Stop = episode.Succeeded
		steps = max(n-saved, 1)
	}
	t.Steps = make([]episode.Step, steps)
	return t, nil
}

func (b probeBench) print(stdout io.Writer) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "cost\tedits\tgroups\tbefore\tafter\tepisodes\tof the release's\t\n")
	for _, r := range b.Cost {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f %%\t\n", r.Preset, r.Edits, r.Groups, r.Before, r.After, r.Before+r.After, 100*r.Release)
	}
	fmt.Fprint(w, "\nno effect\tK\tshared luck\tsuccess\tutility\t± error\tsd\tpositive\t\n")
	for _, r := range b.NoEffect {
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%+.4f\t%.4f\t%.4f\t%.1f %%\t\n", r.Preset, r.Tasks, r.Shared, r.Success, r.Mean, r.Error, r.SD, 100*r.Positive)
	}
	fmt.Fprint(w, "\nadvantage\tshared luck\teffect\tutility\tedit\tkeep\t\n")
	for _, r := range b.Advantage {
		fmt.Fprintf(w, "%s\t%.2f\t%+.2f\t%+.3f\t%+.3f\t%+.3f\t\n", r.Preset, r.Shared, r.Effect, r.Mean, r.Edit, r.Keep)
	}
	fmt.Fprint(w, "\nsignal\tK\tshared luck\teffect\tutility\tsd\tgroup sd\tsignal/sd\tsignal/group sd\tof the release's\tepisodes per edit\t\n")
	for _, r := range b.Signal {
		group := "no noise"
		if r.GroupNoise > 0 {
			group = fmt.Sprintf("%.3f", r.GroupNoise)
		}
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%+.2f\t%+.4f\t%.4f\t%.4f\t%.3f\t%s\t%.2f\t%.2f\t\n",
			r.Preset, r.Tasks, r.Shared, r.Effect, r.Mean, r.SD, r.GroupSD, r.Noise, group, r.Ratio, r.Episodes)
	}
	return w.Flush()
}
