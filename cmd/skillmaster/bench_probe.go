package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"skillmaster/episode"
	"skillmaster/probe"
	"skillmaster/skill"
)

// benchProbeCmd judges edits of known effect.
type benchProbeCmd struct {
	Success    float64 `help:"Chance that the scripted policy succeeds without the edit." default:"0.7"`
	Effect     float64 `help:"What the edit adds to that chance; negative: a harmful edit." default:"0.1"`
	Saved      int     `help:"Steps that the edit saves in an episode that succeeds." default:"0"`
	Shared     float64 `help:"Chance that both arms of a probe have the same luck: 1 with common random numbers and a policy that answers alike, 0 for independent arms." default:"1"`
	Edits      int     `help:"Edits to judge." default:"4000"`
	Candidates int     `help:"Edits judged together, sharing their before arms." default:"16"`
	Horizon    int     `help:"Most steps of an episode." default:"50"`
	Seed       uint64  `help:"Seed of the scripted policy's luck." default:"1"`
	JSON       bool    `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (benchProbeCmd) Help() string {
	return `A scripted policy succeeds with a known chance, and an edit adds a known effect to it. Each preset judges the edit, an edit
without effect, and a harmful one (the effect turned round): mean and standard deviation of the utility, signal-to-noise (the mean's distance from
that of the edit without effect, over the standard deviation), and episodes played for each judged edit. The release
preset is the public release's rule as far as the judge can follow it: independent arms whatever --shared says, clipped at zero.

Examples:
  skillmaster bench probe
  skillmaster bench probe --success 0.9 --effect 0.05 --shared 0.5 --json`
}

// probeRow is what one preset says of one edit.
type probeRow struct {
	Preset      string  `json:"preset"`
	Effect      float64 `json:"effect"` // true one, on the chance of success
	Shared      float64 `json:"shared_luck"`
	Edits       int     `json:"edits"`
	Mean        float64 `json:"utility_mean"`
	SD          float64 `json:"utility_sd"`      // divisor n − 1
	Noise       float64 `json:"signal_to_noise"` // |mean − mean without effect| / sd; 0 for the edit without effect
	Positive    float64 `json:"positive"`        // share of edits with utility above 0
	Episodes    float64 `json:"episodes_per_edit"`
	NotMeasured int     `json:"not_measured"`
}

func (c *benchProbeCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	if err := c.validate(); err != nil {
		return usage(err)
	}
	rows, err := c.rows(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(stdout, rows)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "preset\teffect\tshared luck\tutility\tsd\tsignal/noise\tpositive\tepisodes per edit\t\n")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%+.3f\t%.2f\t%+.4f\t%.4f\t%.3f\t%.1f %%\t%.2f\t\n", r.Preset, r.Effect, r.Shared, r.Mean, r.SD, r.Noise, 100*r.Positive, r.Episodes)
	}
	return w.Flush()
}

func (c *benchProbeCmd) validate() error {
	switch {
	case !(c.Success >= 0 && c.Success <= 1) || !(c.Shared >= 0 && c.Shared <= 1):
		return errors.New("--success and --shared are chances between 0 and 1")
	case !(math.Abs(c.Effect) <= 1):
		return errors.New("--effect lies between -1 and 1")
	case c.Edits < 2 || c.Candidates < 1 || c.Horizon < 2:
		return errors.New("--edits and --horizon must be at least 2, --candidates at least 1")
	case c.Saved < 0 || c.Saved >= c.Horizon:
		return errors.New("--saved lies between 0 and the horizon")
	}
	return nil
}

// rows judges, by preset, an edit without effect, the edit and its opposite.
func (c *benchProbeCmd) rows(ctx context.Context) ([]probeRow, error) {
	var out []probeRow
	for _, name := range []string{"default", "paper", "release"} {
		cfg, err := preset("household", name)
		if err != nil {
			return nil, err
		}
		shared := c.Shared
		if name == "release" {
			shared = 0
		}
		var null float64
		for _, direction := range []int{0, 1, -1} {
			r, err := c.judge(ctx, cfg.Train.Probe, shared, direction)
			if err != nil {
				return nil, err
			}
			r.Preset = name
			if direction == 0 {
				null = r.Mean
			} else if r.SD > 0 {
				r.Noise = math.Abs(r.Mean-null) / r.SD
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// judge lets a judge rule on edits of one kind; direction is 1 for the edit, −1 for its opposite, 0 for one without effect.
func (c *benchProbeCmd) judge(ctx context.Context, cfg probe.Config, shared float64, direction int) (probeRow, error) {
	cfg.Horizon, cfg.Candidates = c.Horizon, 0
	s := script{benchProbeCmd: *c, shared: shared, direction: float64(direction)}
	row := probeRow{Effect: c.Effect * s.direction, Shared: shared}
	judge := probe.NewJudge(s.play, cfg, 1)
	var before skill.Bank
	var utilities []float64
	for n := 0; len(utilities)+row.NotMeasured < c.Edits; n++ {
		cs, err := candidates(before, min(c.Candidates, c.Edits-len(utilities)-row.NotMeasured))
		if err != nil {
			return row, err
		}
		verdicts, err := judge.Judge(ctx, before, cs, episode.Seed(c.Seed).Derive("bench probe", uint64(n)))
		if err != nil {
			return row, err
		}
		for _, v := range verdicts {
			if v.Measured {
				utilities = append(utilities, v.Utility)
			} else {
				row.NotMeasured++
			}
		}
	}
	row.summarise(utilities)
	row.Episodes = float64(judge.Played) / float64(c.Edits)
	return row, nil
}

func (r *probeRow) summarise(utilities []float64) {
	r.Edits = len(utilities)
	n := float64(r.Edits)
	for _, u := range utilities {
		r.Mean += u / n
		if u > 0 {
			r.Positive += 1 / n
		}
	}
	var squares float64
	for _, u := range utilities {
		squares += (u - r.Mean) * (u - r.Mean)
	}
	if r.Edits > 1 {
		r.SD = math.Sqrt(squares / (n - 1))
	}
}

// candidates are n banks with one skill each that says something of its own, and a family of many probe tasks.
func candidates(before skill.Bank, n int) ([]probe.Candidate, error) {
	tasks := make([]episode.Task, 64)
	for i := range tasks {
		tasks[i] = episode.Task{ID: fmt.Sprintf("task %d", i), Family: "family"}
	}
	out := make([]probe.Candidate, n)
	for i := range out {
		e := skill.Edit{Op: skill.Propose, Category: skill.General, Title: fmt.Sprintf("Skill %d", i), Principle: fmt.Sprintf("Do it in way number %d.", i)}
		after, outcome := before.Apply(e, skill.Permission{})
		if outcome != skill.Added {
			return nil, fmt.Errorf("edit %d: %v", i, outcome)
		}
		out[i] = probe.Candidate{Bank: after, Skill: after.Changed(before), Tasks: [][]episode.Task{tasks}}
	}
	return out, nil
}

// script is a policy whose chance of success is known.
type script struct {
	benchProbeCmd
	shared    float64
	direction float64
}

// play succeeds if its luck is below its chance. An episode that succeeds takes 20 % to 80 % of the horizon, less what the
// edit saves. The luck is that of the seed, or of seed and bank where the arms do not share it.
func (s script) play(ctx context.Context, a probe.Arm) (episode.Trajectory, error) {
	if err := ctx.Err(); err != nil {
		return episode.Trajectory{}, err
	}
	edited := a.Must != ""
	rng := a.Seed.Derive("luck").Rand()
	if a.Seed.Derive("shared luck").Rand().Float64() >= s.shared {
		rng = a.Seed.Derive("luck of " + a.Bank.Hash()).Rand()
	}
	chance, saved := s.Success, 0
	t := episode.Trajectory{Task: a.Task, Stop: episode.Horizon}
	if edited {
		chance += s.Effect * s.direction
		saved = int(s.direction) * s.Saved
		t.ShownSkills = []string{a.Must}
	}
	steps := s.Horizon
	t.Success = rng.Float64() < chance
	if u := rng.Float64(); t.Success {
		t.Stop = episode.Succeeded
		steps = min(max(int((0.2+0.6*u)*float64(s.Horizon))-saved, 1), s.Horizon)
	}
	t.Steps = make([]episode.Step, steps)
	return t, nil
}
