// Package transformer is the embedded language model: a decoder in the style of Llama and Qwen that runs and learns on
// a CPU. It implements policy.Learner, policy.Sampler and policy.Scorer; it knows token ids and no text.
//
// The decoder is pre-norm: RMSNorm, rotary positions in Hugging Face's half-split layout, grouped-query attention,
// SwiGLU, a tied or untied head. Query-key norm and rotary scaling as options. Left out: sliding windows, dropout, mixture of experts.
//
// Numbers are float32. The log-probability of a sequence is the same to the last bit whether it was sampled, scored or
// trained on, whatever was in the batch with it, however many workers there were and whatever the caches held.
package transformer

import (
	"errors"
	"fmt"
	"math"
)

// Config is the shape of a model.
type Config struct {
	Vocab    int     `json:"vocab"`     // V, number of token ids
	Width    int     `json:"width"`     // D, of the residual stream
	Layers   int     `json:"layers"`    // L
	Heads    int     `json:"heads"`     // query heads
	KVHeads  int     `json:"kv_heads"`  // key and value heads, a divisor of Heads: fewer sample faster; 0: Heads
	HeadDim  int     `json:"head_dim"`  // of each head, even; 0: Width/Heads
	Hidden   int     `json:"hidden"`    // width of the feed-forward layer
	Context  int     `json:"context"`   // most ids of a sequence; 0: 1024
	RopeBase float64 `json:"rope_base"` // 0: 10000
	NormEps  float64 `json:"norm_eps"`  // 0: 1e-6
	Tied     bool    `json:"tied"`      // the head is the embedding
	Bias     bool    `json:"bias"`      // queries, keys and values have a bias (Qwen2)
	// QKNorm norms each head of queries and keys before it is turned (Qwen3).
	QKNorm      bool        `json:"qk_norm,omitempty"`
	RopeScaling RopeScaling `json:"rope_scaling,omitzero"`
}

// RopeScaling slows the rotary frequencies down for contexts longer than a model was first trained for, as Llama 3.1 does:
// wavelengths above Original/LowFactor are stretched by Factor, those below Original/HighFactor are kept, and between
// them the two are blended. The zero RopeScaling changes nothing.
type RopeScaling struct {
	Factor     float64 `json:"factor"`
	LowFactor  float64 `json:"low_factor"`
	HighFactor float64 `json:"high_factor"`
	Original   int     `json:"original"` // context of the first training
}

// apply returns the scaled form of an angular frequency.
func (s RopeScaling) apply(frequency float64) float64 {
	if s == (RopeScaling{}) {
		return frequency
	}
	turns := float64(s.Original) * frequency / (2 * math.Pi) // within the first context
	kept := min(1, max(0, (turns-s.LowFactor)/(s.HighFactor-s.LowFactor)))
	return frequency * (kept + (1-kept)/s.Factor)
}

func (s RopeScaling) valid() bool {
	return s == (RopeScaling{}) ||
		s.Factor >= 1 && s.LowFactor > 0 && s.HighFactor > s.LowFactor && s.HighFactor < maxSize && s.Original > 0 && s.Original <= maxSize
}

// Limits of a Config: far above what a CPU can train, low enough that no product of sizes overflows.
const (
	maxSize       = 1 << 22 // of one dimension
	maxLayers     = 1 << 10
	maxParameters = 1 << 31
	maxAngles     = 1 << 27 // of rotary positions: a gigabyte of tables
)

// Complete returns c with its optional sizes filled in.
func (c Config) Complete() Config {
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Width / c.Heads
	}
	if c.Context == 0 {
		c.Context = 1024
	}
	if c.RopeBase == 0 {
		c.RopeBase = 10000
	}
	if c.NormEps == 0 {
		c.NormEps = 1e-6
	}
	return c
}

// Validate reports every way in which the completed c is not a model.
func (c Config) Validate() error {
	fitsHeads := c.HeadDim != 0 || c.Heads < 1 || c.Width%c.Heads == 0
	c = c.Complete()
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf("model: "+format, a...)) }
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"vocab", c.Vocab, maxSize},
		{"width", c.Width, maxSize},
		{"layers", c.Layers, maxLayers},
		{"heads", c.Heads, maxSize},
		{"kv_heads", c.KVHeads, maxSize},
		{"head_dim", c.HeadDim, maxSize},
		{"hidden", c.Hidden, maxSize},
		{"context", c.Context, maxSize},
	} {
		if f.value < 1 || f.value > f.max {
			fault("%s is %d, it must be in 1…%d", f.name, f.value, f.max)
		}
	}
	if !fitsHeads {
		fault("width %d is not a multiple of %d heads (choose another, or set head_dim)", c.Width, c.Heads)
	}
	if c.KVHeads > 0 && c.Heads%c.KVHeads != 0 {
		fault("heads is %d, which is not a multiple of kv_heads, %d", c.Heads, c.KVHeads)
	}
	if c.HeadDim%2 != 0 {
		fault("head_dim is %d, rotary positions need an even one", c.HeadDim)
	}
	if !(c.RopeBase > 1) || math.IsInf(c.RopeBase, 0) {
		fault("rope_base is %v, it must be above 1", c.RopeBase)
	}
	if !c.RopeScaling.valid() {
		fault("rope_scaling is %+v: factor must be at least 1, 0 < low_factor < high_factor, original in 1…%d", c.RopeScaling, maxSize)
	}
	if !(c.NormEps > 0 && c.NormEps < 1) {
		fault("norm_eps is %v, it must be between 0 and 1", c.NormEps)
	}
	if n := float64(c.Context) * float64(c.HeadDim); len(faults) == 0 && n > maxAngles {
		fault("context %d times head_dim %d is %.3g angles, at most %d are possible (ask for a shorter context)", c.Context, c.HeadDim, n, maxAngles)
	}
	if n := c.parameters(); len(faults) == 0 && n > maxParameters {
		fault("it would have %.3g parameters, at most %d are possible", n, maxParameters)
	}
	return errors.Join(faults...)
}

// parameters estimates the number of parameters, in floating point so that nothing overflows.
func (c Config) parameters() float64 {
	d, attention := float64(c.Width), float64(c.HeadDim)*(2*float64(c.Heads)+2*float64(c.KVHeads))
	return float64(c.Layers)*d*(attention+3*float64(c.Hidden)) + 2*float64(c.Vocab)*d
}

func (c Config) queryWidth() int { return c.Heads * c.HeadDim }
func (c Config) keyWidth() int   { return c.KVHeads * c.HeadDim }
func (c Config) qkvWidth() int   { return c.queryWidth() + 2*c.keyWidth() }

// turnedWidth is that of what is turned: queries and keys.
func (c Config) turnedWidth() int { return c.queryWidth() + c.keyWidth() }
