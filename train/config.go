package train

import (
	"errors"
	"fmt"

	"skillmaster/grpo"
	"skillmaster/policy"
	"skillmaster/probe"
	"skillmaster/rollout"
)

// Config says how a run trains. Zero fields mean zero: start from Default.
type Config struct {
	// Set these.
	Seed       uint64 `json:"seed"`
	Iterations int    `json:"iterations"`
	Tasks      int    `json:"tasks"` // drawn from the train panel each iteration
	Group      int    `json:"group"` // G, episodes of a task

	Warm    WarmConfig       `json:"warm"`
	Rollout rollout.Config   `json:"rollout"`
	Crowd   CrowdConfig      `json:"crowd"`
	Probe   probe.Config     `json:"probe"`
	Gate    probe.GateConfig `json:"gate"`
	Retire  probe.Retirement `json:"retire"`
	Prices  Prices           `json:"prices"`
	Learn   LearnConfig      `json:"learn"`

	Teacher TeacherConfig `json:"teacher"`

	// Ablations.
	Frozen   bool    `json:"frozen"`   // the policy does not learn: the bank is what improves
	Review   bool    `json:"review"`   // take review turns; off: no edits, no review stream
	Vary     float64 `json:"vary"`     // share of tasks played in varied surroundings
	Evaluate int     `json:"evaluate"` // play the held-out panel every so many iterations; 0: at the ends only

	// EvaluateTemperature is the sampling temperature of evaluations.
	EvaluateTemperature float64 `json:"evaluate_temperature"`
}

// AtOnce is how many episodes are played together if nothing else is said: enough to keep the engine's batches full.
const AtOnce = 96

// CrowdConfig says how many episodes are played at once, and what becomes of those that are lost. Zero fields stand for
// defaults. Nothing of it changes what an episode comes to.
type CrowdConfig struct {
	Episodes int `json:"episodes"` // most at once; 0: 96
	Tokens   int `json:"tokens"`   // most ids in flight to the policy, prompts and what may come; 0: no limit
	Tries    int `json:"tries"`    // most times an episode is begun, where its world or its policy breaks; 0: 2
	// Lost is the largest share of an iteration's groups that may be left out because an episode was lost; beyond it the
	// run stops. 0: a half.
	Lost float64 `json:"lost"`
	// As soon as CutShare of the episodes have ended, no other may take longer than CutFactor times the longest of those.
	// What is cut depends on the clock: such a run cannot be repeated. 0: nobody is cut.
	CutShare  float64 `json:"cut_share"`
	CutFactor float64 `json:"cut_factor"`
}

// Complete puts the defaults in place of zero fields.
func (c CrowdConfig) Complete() CrowdConfig {
	if c.Episodes == 0 {
		c.Episodes = AtOnce
	}
	if c.Tries == 0 {
		c.Tries = 2
	}
	if c.Lost == 0 {
		c.Lost = 0.5
	}
	return c
}

func (c CrowdConfig) validate() error {
	switch {
	case c.Episodes < 0 || c.Tokens < 0 || c.Tries < 0:
		return errors.New("crowd.episodes, crowd.tokens and crowd.tries cannot be negative")
	case !(c.Lost >= 0 && c.Lost <= 1) || !(c.CutShare >= 0 && c.CutShare <= 1):
		return errors.New("crowd.lost and crowd.cut_share are shares between 0 and 1")
	case c.CutShare > 0 && !(c.CutFactor >= 1):
		return fmt.Errorf("crowd.cut_factor is %v, with crowd.cut_share it is at least 1", c.CutFactor)
	}
	return nil
}

// TeacherConfig says when somebody else proposes skills, as in SkillRL: an outside model that is shown what failed. Its
// skills become part of the bank at once, without a test.
type TeacherConfig struct {
	Every    int     `json:"every"`    // iterations between two lessons; 0: there is no teacher
	Below    float64 `json:"below"`    // families with less success on the iteration's train tasks get a lesson
	Most     int     `json:"most"`     // skills of a lesson
	Failures int     `json:"failures"` // failed episodes it is shown, at most
	Tokens   int     `json:"tokens"`   // most ids of a reply
}

func (c TeacherConfig) validate() error {
	if c.Every < 0 || c.Every > 0 && (c.Most < 1 || c.Failures < 1 || c.Tokens < 1 || !(c.Below > 0 && c.Below <= 1)) {
		return errors.New("teacher.every cannot be negative; with a teacher, teacher.most, failures and tokens must be positive and teacher.below a share")
	}
	return nil
}

// LearnConfig says how an iteration's episodes become an update.
type LearnConfig struct {
	Variant     grpo.Variant     `json:"variant"`
	Lambda      float64          `json:"lambda"` // weight of the review stream
	Aggregation grpo.Aggregation `json:"aggregation"`
	Rate        float64          `json:"rate"`
	RateWarmUp  int              `json:"rate_warm_up"` // iterations over which the rate rises to Rate
	Schedule    Schedule         `json:"schedule"`     // how it falls from then on, until the last iteration
	RateFloor   float64          `json:"rate_floor"`   // share of Rate at the end
	Updates     int              `json:"updates"`      // an iteration's groups are dealt into so many optimiser steps
	ClipLow     float64          `json:"clip_low"`
	ClipHigh    float64          `json:"clip_high"`
	DualClip    float64          `json:"dual_clip"`
	KL          float64          `json:"kl"` // weight of the k3 estimator to the policy that learning began with
	Entropy     float64          `json:"entropy"`
	MaxDrift    float64          `json:"max_drift"`
	WeightDecay float64          `json:"weight_decay"`
	ClipNorm    float64          `json:"clip_norm"`

	StdFloor     float64 `json:"std_floor"`     // added to a group's standard deviation, as a share of the stream's scale; 0: 0.05
	PoolTurns    bool    `json:"pool_turns"`    // a return counts once for each turn of its episode, as in the public release
	RawSingleton bool    `json:"raw_singleton"` // a group's only measured return is its own advantage, as in the public release
}

// WarmConfig says how demonstrations are cloned before learning begins.
type WarmConfig struct {
	Updates     int      `json:"updates"` // 0: no warm start
	Tokens      int      `json:"tokens"`  // ids of an update, at least
	Round       int      `json:"round"`   // updates between reports and checkpoints
	Rate        float64  `json:"rate"`    // highest
	RateWarmUp  int      `json:"rate_warm_up"`
	Flat        float64  `json:"flat"` // share of the updates before the rate falls from its highest
	Schedule    Schedule `json:"schedule"`
	RateFloor   float64  `json:"rate_floor"`  // share of the highest rate at the end
	Observation float64  `json:"observation"` // loss weight of what the world answers: a side task that models the world
	Vary        float64  `json:"vary"`        // share of demonstrations in varied surroundings
	Noise       float64  `json:"noise"`       // share of actions that are deliberate mistakes, not imitated
	Broken      float64  `json:"broken"`      // share of demonstrations that are broken off within a few steps, and then reviewed
	Advised     float64  `json:"advised"`     // share of demonstrations whose prompt holds skills
	Helpful     float64  `json:"helpful"`     // share of the skills about the task that are true
	Others      int      `json:"others"`      // most skills about other tasks beside it
	Compare     int      `json:"compare"`     // held-out tasks on which the policy is compared with the expert, step by step, after each round; 0: none
	WeightDecay float64  `json:"weight_decay"`
	ClipNorm    float64  `json:"clip_norm"`
}

// Default is a run that two cores finish in minutes on generated games.
func Default() Config {
	return Config{
		Seed: 1, Iterations: 50, Tasks: 24, Group: 8,
		Warm: WarmConfig{
			Updates: 1500, Tokens: 2000, Round: 100, Rate: 1.5e-3, RateWarmUp: 50, Flat: 0.3, Schedule: Linear, RateFloor: 0.03,
			Observation: 0.3, Vary: 0.7, Noise: 0.05, Broken: 0.1, Advised: 0.5, Helpful: 0.8, Others: 3, Compare: 16, WeightDecay: 0.1, ClipNorm: 1,
		},
		Rollout: rollout.DefaultConfig(),
		Probe:   probe.Default(),
		Gate:    probe.DefaultGate(),
		Retire:  probe.DefaultRetirement(),
		Prices:  DefaultPrices(),
		Learn: LearnConfig{
			Variant: grpo.DualAdv, Lambda: 0.05, Aggregation: grpo.TrajectoryMean, Rate: 1e-4, RateWarmUp: 5, Updates: 1,
			ClipLow: 0.2, ClipHigh: 0.2, DualClip: 3, ClipNorm: 1,
		},
		Teacher: TeacherConfig{Below: 0.4, Most: 3, Failures: 4, Tokens: 1024},
		Review:  true, Vary: 0.8, Evaluate: 20, EvaluateTemperature: 0.4,
	}
}

// Validate reports the first setting that cannot be.
func (c Config) Validate() error {
	switch {
	case c.Iterations < 0:
		return fmt.Errorf("iterations is %d, it cannot be negative", c.Iterations)
	case c.Tasks < 1:
		return fmt.Errorf("tasks is %d, at least 1 is needed", c.Tasks)
	case c.Group < 2:
		return fmt.Errorf("group is %d, a group needs at least 2 episodes to compare", c.Group)
	case c.Vary < 0 || c.Vary > 1:
		return fmt.Errorf("vary is %v, it is a share between 0 and 1", c.Vary)
	case c.Iterations > 0 && c.Rollout.Temperature == 0:
		return errors.New("rollout.temperature is 0: the episodes of a group would all be the same, and there would be nothing to learn from")
	case c.Review && c.Rollout.Layout == rollout.Window && c.Rollout.Recap == 0:
		return errors.New("rollout.recap is 0: with rollout.layout=window there would be no reviews; set it, to 12 perhaps, or review to false")
	case c.Evaluate < 0 || c.EvaluateTemperature < 0:
		return errors.New("evaluate and evaluate_temperature cannot be negative")
	}
	for _, err := range []error{c.Warm.validate(), c.Learn.validate(), c.Rollout.Validate(), c.Crowd.validate(), c.Probe.Validate(), c.Gate.Validate(), c.Retire.Validate(), c.Teacher.validate(), c.Prices.Validate()} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c WarmConfig) validate() error {
	for _, s := range []struct {
		name string
		v    float64
	}{{"flat", c.Flat}, {"rate_floor", c.RateFloor}, {"observation", c.Observation}, {"vary", c.Vary}, {"noise", c.Noise}, {"broken", c.Broken}, {"advised", c.Advised}, {"helpful", c.Helpful}} {
		if !(s.v >= 0 && s.v <= 1) {
			return fmt.Errorf("warm.%s is %v, it lies between 0 and 1", s.name, s.v)
		}
	}
	if c.Updates < 0 || c.RateWarmUp < 0 || c.Others < 0 || c.Compare < 0 || c.WeightDecay < 0 || c.ClipNorm < 0 {
		return errors.New("warm.updates, rate_warm_up, others, compare, weight_decay and clip_norm cannot be negative")
	}
	if c.Updates > 0 && (c.Tokens < 1 || c.Round < 1 || c.Rate <= 0) {
		return errors.New("warm.tokens, warm.round and warm.rate must be positive")
	}
	return nil
}

func (c LearnConfig) validate() error {
	if c.Rate <= 0 || c.Lambda < 0 || c.Updates < 1 || c.RateWarmUp < 0 || c.WeightDecay < 0 || c.ClipNorm < 0 || c.StdFloor < 0 {
		return errors.New("learn.rate and learn.updates must be positive, learn.lambda, rate_warm_up, weight_decay, clip_norm and std_floor not negative")
	}
	if !(c.RateFloor >= 0 && c.RateFloor <= 1) {
		return fmt.Errorf("learn.rate_floor is %v, it lies between 0 and 1", c.RateFloor)
	}
	if err := c.loss().Check(); err != nil {
		return fmt.Errorf("learn: %w", err)
	}
	return nil
}

func (c LearnConfig) loss() grpo.Loss {
	return grpo.Loss{
		Kind: grpo.PolicyGradient, ClipLow: c.ClipLow, ClipHigh: c.ClipHigh, DualClip: c.DualClip,
		KL: c.KL, Entropy: c.Entropy, MaxDrift: c.MaxDrift,
	}
}

// options are those of normalisation: success is the scale of the action stream, the format reward's unit that of reviews.
func (c LearnConfig) options(p Prices) grpo.Options {
	return grpo.Options{
		ActionScale: p.Success, ReviewScale: 1, StdFloor: c.StdFloor, PoolTurns: c.PoolTurns, RawSingleton: c.RawSingleton,
	}
}

// optim is the optimiser step of iteration i of so many, counted from 0.
func (c LearnConfig) optim(i, iterations int) policy.Optim {
	rate := c.Rate
	if i < c.RateWarmUp {
		rate *= float64(i+1) / float64(c.RateWarmUp)
	} else {
		rate *= c.Schedule.share(float64(i-c.RateWarmUp)/float64(max(1, iterations-c.RateWarmUp)), c.RateFloor)
	}
	return policy.Optim{
		Loss: c.loss(), Rate: rate, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8,
		WeightDecay: c.WeightDecay, Clip: c.ClipNorm,
	}
}

// optim is the optimiser step of warm-start update u, counted from 0: the rate rises linearly, stays, and falls.
func (c WarmConfig) optim(u int) policy.Optim {
	rate := c.Rate
	done := float64(u) / float64(c.Updates)
	switch {
	case u < c.RateWarmUp:
		rate *= float64(u+1) / float64(c.RateWarmUp)
	case done > c.Flat:
		rate *= c.Schedule.share((done-c.Flat)/(1-c.Flat), c.RateFloor)
	}
	return policy.Optim{
		Rate: rate, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: c.WeightDecay, Clip: c.ClipNorm,
	}
}
