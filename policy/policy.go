// Package policy is the contract of what answers: complete a conversation, sample ids, score ids, learn.
package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"skillmaster/chat"
	"skillmaster/grpo"
)

// The ways in which what answers breaks without having said anything: neither is a reply, and what it was for is played
// again or dropped whole.
var (
	// ErrUnavailable: it failed at every try, and may do better later.
	ErrUnavailable = errors.New("the policy's server failed")
	// ErrVersion: other weights answered than those that were asked.
	ErrVersion = errors.New("other weights answered")
)

// Policy completes conversations. Safe for concurrent use.
type Policy interface {
	Complete(ctx context.Context, r Request) (Completion, error)
}

// Request asks for the next message of a conversation.
type Request struct {
	Messages []chat.Message // the whole conversation so far, the last one not the policy's own
	// Prior is the token sequence of Messages[:Seen] as it was shown and sampled; it is extended, never rendered
	// again. Both are zero for a fresh prompt.
	Prior    []int32
	Seen     int
	Allowed  []string // if any, the only replies there can be; Sampling.Allowed is left empty
	Sampling Sampling
}

// Sampling says how ids are chosen.
type Sampling struct {
	Temperature float64 // 0 takes the likeliest id
	TopP        float64 // 0 or 1: off
	TopK        int     // 0: off
	MaxTokens   int     // most ids to sample; must be positive
	Stop        []int32 // ids that end the sample; the stop id is part of it
	// Allowed, if any, are the only samples there can be: at each position the ids that go on with one of them compete.
	// None may be empty or the beginning of another; one that is complete is Stopped.
	Allowed [][]int32
	Seed    uint64 // of this sample alone: results do not depend on what else is sampled at the time
}

// Check reports the first setting that no sampler can follow; ids are not looked at.
func (p Sampling) Check() error {
	switch {
	case !(p.Temperature >= 0) || math.IsInf(p.Temperature, 0):
		return fmt.Errorf("sampling temperature is %v, it must be at least 0", p.Temperature)
	case !(p.TopP >= 0 && p.TopP <= 1):
		return fmt.Errorf("sampling top-p is %v, it must be in 0…1", p.TopP)
	case p.TopK < 0:
		return fmt.Errorf("sampling top-k is %d, it must be at least 0", p.TopK)
	case p.MaxTokens < 1:
		return fmt.Errorf("sampling allows %d tokens, it must allow at least 1", p.MaxTokens)
	}
	return nil
}

// Choices returns Allowed sorted, in a list of its own, or says which of them cannot be.
func (p Sampling) Choices() ([][]int32, error) {
	all := slices.SortedFunc(slices.Values(p.Allowed), slices.Compare)
	for i, ids := range all {
		if len(ids) == 0 {
			return nil, errors.New("an allowed sample is empty")
		}
		if i > 0 && len(all[i-1]) <= len(ids) && slices.Equal(all[i-1], ids[:len(all[i-1])]) {
			return nil, fmt.Errorf("allowed sample %v is the beginning of %v: nobody could tell where it ends", all[i-1], ids)
		}
	}
	return all, nil
}

// StopKind says why a sample ended.
type StopKind uint8

// The ways a sample ends.
const (
	Stopped   StopKind = iota // a stop id was sampled
	Length                    // MaxTokens were sampled
	NoContext                 // the model's context is full
)

// Sample is a sequence of sampled ids.
type Sample struct {
	IDs      []int32
	LogProbs []float32 // of each id under the policy at temperature 1 among all ids, natural log [len(IDs)]
	// Among are the LogProbs among the ids that Sampling.Allowed left [len(IDs)]; nil where all were allowed.
	Among   []float32
	Stop    StopKind
	Version int // of the weights that sampled
}

// Completion is what a policy wrote. A policy that has no token ids (a person, a message-only server) leaves Prompt,
// IDs and LogProbs nil.
type Completion struct {
	Text     string
	Prompt   []int32 // ids that were shown after Prior
	IDs      []int32
	LogProbs []float32
	Stop     StopKind
	Version  int
}

// Sampler continues token sequences. Safe for concurrent use; calls made at the same time are sampled as one batch
// where the implementation can. A prompt at least as long as the context is the sample {Stop: NoContext}, not an error.
type Sampler interface {
	Sample(ctx context.Context, prompt []int32, p Sampling) (Sample, error)
}

// Scorer gives log-probabilities of given ids.
type Scorer interface {
	// Score returns for each sequence [T] the log-probability of each id given those before it; position 0 is 0.
	Score(ctx context.Context, seqs [][]int32) ([][]float32, error)
}

// Optim is one optimiser step.
type Optim struct {
	Loss        grpo.Loss
	Rate        float64 // learning rate
	Beta1       float64 // AdamW
	Beta2       float64
	Epsilon     float64
	WeightDecay float64 // decoupled; matrices only
	Clip        float64 // largest global gradient norm; 0: none
	Restart     bool    // forget the optimiser's moments first: what is learnt from now on is another task
}

// Stats is what one update did. Means are over the positions with weight, each weighing the same.
type Stats struct {
	Loss      float64
	GradNorm  float64 // before clipping
	Entropy   float64 // mean, nats
	KL        float64 // mean k3 to the reference; NaN if there was none
	ClipShare float64 // share of positions whose ratio was clipped
	Drift     float64 // mean |training − sampling| log-probability; NaN if there were no sampling ones
	Tokens    int     // ids in the batch
	Trained   int     // positions with weight
}

// Learner holds weights and improves them. Not safe for concurrent use; the Samplers it gave out are, and go on
// speaking with the weights of their version while it learns.
type Learner interface {
	// Update takes one optimiser step on the batch. A loss or gradient that is not finite is an error that names the
	// layer, and leaves the weights as they were.
	Update(ctx context.Context, batch []grpo.Datum, o Optim) (Stats, error)
	// Sampler returns a sampler of the weights as they are now.
	Sampler(ctx context.Context) (Sampler, error)
	// Save writes all that Load needs to go on as if nothing had happened: weights and optimiser state.
	Save(ctx context.Context, w io.Writer) error
	Load(ctx context.Context, r io.Reader) error
}
