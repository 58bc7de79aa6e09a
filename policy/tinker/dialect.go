package tinker

import (
	"maps"
	"slices"
)

// Dialect names a kind of server.
type Dialect string

// The dialects.
const (
	Hosted      Dialect = "tinker"       // the hosted service
	SkyRLJAX    Dialect = "skyrl-jax"    // SkyRL with the JAX backend
	SkyRL       Dialect = "skyrl"        // SkyRL with FSDP or Megatron
	TuFT        Dialect = "tuft"         //
	OpenRL      Dialect = "open-rl"      //
	TinkerCloud Dialect = "tinker-cloud" // over Miles or verl
	Twinkle     Dialect = "twinkle"      // known, and refused
	SkillMaster Dialect = "skillmaster"  // this package's own Server
)

// Dialects are the names of those that can be learnt with, in order.
func Dialects() []string {
	var names []string
	for name := range maps.Keys(dialects) {
		if dialects[name].refuse == "" {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

// form is one of the two forms of passes and their results.
type form uint8

const (
	asJSON form = iota
	asProto
)

// passes says how a forward pass alone is asked for.
type passes uint8

const (
	noForward   passes = iota // not at all
	ownEndpoint               // /forward
	byFlag                    // forward_only of the protobuf form
)

// reduction says how a server adds up the losses of what it was sent before an optimiser step.
type reduction uint8

const (
	// sum of the positions of all sequences. What is sent is what counts.
	sum reduction = iota
	// sequenceMean: mean over sequences of Σ over positions / Σ of the mask. What is sent is multiplied by both divisors.
	sequenceMean
)

// dialect is what one kind of server takes and does. Where an answer may come in either form, both are read.
type dialect struct {
	body    form
	forward passes
	reduce  reduction
	mask    bool // weights of 0 and 1 say which positions count, and must be sent
	clips   bool // heeds the clip of an optimiser step
	betas   bool // heeds betas, epsilon and decay of an optimiser step; else they are settings of the server
	forgets bool // weights can be loaded without the optimiser's state
	evenly  bool // ppo has one limit for both sides, clip_range, and a KL term of its own
	seed    int  // bits of a seed it takes
	refuse  string
}

// dialects is the table. Its facts were read in the servers' sources and documentation in autumn 2026; docs/integration.md
// says which of them were tried. What changes gradients is seen to by Client.Check.
var dialects = map[Dialect]dialect{
	Hosted:   {body: asProto, forward: byFlag, clips: true, betas: true, forgets: true, seed: 31},
	SkyRLJAX: {body: asProto, forward: byFlag, reduce: sequenceMean, mask: true, betas: true, forgets: true, seed: 31},
	SkyRL:    {body: asProto, forward: byFlag, mask: true, seed: 31},
	TuFT:     {body: asProto, forward: byFlag, clips: true, betas: true, forgets: true, seed: 31},
	// Its log-probabilities come with gradients only: the loss is the server's own.
	OpenRL:      {clips: true, betas: true, evenly: true, seed: 31},
	TinkerCloud: {forward: ownEndpoint, seed: 31},
	Twinkle:     {refuse: "its importance_sampling is a loss of its own that normalises what it is sent: nothing can be learnt with it that is the loss it was meant to be"},
	SkillMaster: {body: asProto, forward: byFlag, mask: true, clips: true, betas: true, forgets: true, seed: 64},
}

// cut is a seed of so many bits as the server takes.
func (d dialect) cut(seed uint64) uint64 {
	if d.seed >= 64 {
		return seed
	}
	return (seed ^ seed>>32) & (1<<d.seed - 1)
}
