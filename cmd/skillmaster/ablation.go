package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"skillmaster/grpo"
	"skillmaster/probe"
)

// ablations are the named ways to leave a part of the method out, or to take another in its place.
var ablations = map[string]func(c *runConfig){
	// Plain GRPO: no skills in prompts, no reviews, one stream.
	"no-skills": func(c *runConfig) {
		c.Train.Rollout.Retrieval, c.Train.Review, c.Train.Learn.Variant, c.Train.Gate.Rule = false, false, grpo.GRPO, probe.Never
	},
	// The skills of the starting bank, and nobody who edits them.
	"no-review": func(c *runConfig) {
		c.Train.Review, c.Train.Learn.Variant, c.Train.Gate.Rule = false, grpo.GRPO, probe.Never
	},
	// Edits earn their form only.
	"no-utility": func(c *runConfig) { c.Train.Prices.Utility = 0 },
	// The weights stay as the warm start left them: the bank is what improves.
	"frozen": func(c *runConfig) { c.Train.Frozen = true },
	// A model elsewhere proposes skills in place of reviews, untested, as in SkillRL.
	"teacher": func(c *runConfig) {
		c.Train.Review, c.Train.Learn.Variant, c.Train.Gate.Rule, c.Train.Teacher.Every = false, grpo.GRPO, probe.Never, 5
	},
	// The settings of the paper, whatever the size.
	"paper": (*runConfig).paper,
	// Both streams standardised as one population.
	"joint": func(c *runConfig) { c.Train.Learn.Variant = grpo.Joint },
	// Harm is paid no less than nothing.
	"clip-zero": func(c *runConfig) { c.Train.Probe.ClipAtZero = true },
}

// ablate lays a named ablation over the settings.
func (c *runConfig) ablate(name string) error {
	change, ok := ablations[name]
	if !ok {
		return fmt.Errorf("there is no ablation %q: it is one of %s", name, strings.Join(slices.Sorted(maps.Keys(ablations)), ", "))
	}
	change(c)
	return nil
}
