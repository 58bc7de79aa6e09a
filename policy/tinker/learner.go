package tinker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"skillmaster/grpo"
	"skillmaster/policy"
)

// LearnerOptions say what is trained.
type LearnerOptions struct {
	Base    string // name of the model, as the server lists it
	Rank    int    // of the adapter; 0: all weights, where the server can
	Seed    uint64 // of the adapter's first weights
	Context int    // most ids of a sequence; 0: as many as the server says
	// OnePass asks for no forward pass of its own before each update: a quarter to a third of the work less, and a loss
	// that is the server's ppo. Its KL term is that of the sampling log-probabilities, exact where the policy has not
	// changed since.
	OnePass bool
	// Unchecked leaves out Client.Check, for a server that was looked at before.
	Unchecked bool
}

// Learner trains weights on a server. It implements policy.Learner and is not safe for concurrent use; its samplers are.
//
// Save has the server keep the weights and writes where they are. A model that the server has lost is loaded again from
// there by itself if there was no update since; otherwise Update and Sampler end with ErrLost, and Load is the way on.
type Learner struct {
	client  *Client
	options LearnerOptions

	session string
	model   string // "": lost
	seq     int    // of the last request of this model
	version int
	saved   saved
	since   int  // updates since it was saved
	torn    bool // a step broke off in the middle
}

var _ policy.Learner = (*Learner)(nil)

// saved says where weights are.
type saved struct {
	Format  string `json:"format"`
	Server  string `json:"server"` // dialect
	Base    string `json:"base_model"`
	Rank    int    `json:"rank"`
	Path    string `json:"path"`
	Version int    `json:"version"`
}

const savedFormat = "skillmaster tinker 1"

// NewLearner makes a model on the server, after a look at whether what the table says of its dialect is so.
func (c *Client) NewLearner(ctx context.Context, o LearnerOptions) (*Learner, error) {
	if c.dialect.forward == noForward && !o.OnePass {
		return nil, fmt.Errorf("dialect %s gives no log-probabilities without gradients: set one_pass", c.options.Dialect)
	}
	if err := c.complete(ctx, &o); err != nil {
		return nil, err
	}
	if !o.Unchecked {
		if err := c.Check(ctx, o); err != nil {
			return nil, fmt.Errorf("checking the server: %w", err)
		}
	}
	l := &Learner{client: c, options: o}
	return l, l.create(ctx)
}

// complete sees that the model is there, and how long sequences can be.
func (c *Client) complete(ctx context.Context, o *LearnerOptions) error {
	models, err := c.Models(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(models, func(m Model) bool { return m.Name == o.Base })
	if i < 0 {
		return fmt.Errorf("the server has no model %q, it lists %v", o.Base, models)
	}
	most := models[i].Context
	if o.Context == 0 {
		o.Context = most
	}
	switch {
	case o.Context < 2:
		return errors.New("the server does not say how many ids its context has: give it")
	case most > 0 && o.Context > most:
		return fmt.Errorf("sequences of %d ids are wanted, the server has room for %d", o.Context, most)
	case o.Rank < 0:
		return fmt.Errorf("rank is %d, it cannot be negative", o.Rank)
	}
	return nil
}

// create makes the model anew.
func (l *Learner) create(ctx context.Context) error {
	c := l.client
	session, n, err := c.numbered(ctx, &c.models)
	if err != nil {
		return err
	}
	seed := c.dialect.cut(l.options.Seed)
	var p promise
	err = c.post(ctx, "create_model", createModel{
		Session: session, Number: n, Base: l.options.Base, Type: "create_model",
		LoRA: &loraConfig{Rank: l.options.Rank, Seed: &seed, Unembed: true, MLP: true, Attention: true},
	}, &p)
	if lost(err) { // of a server that was started again
		c.forget(session)
		return fmt.Errorf("%w: %w", policy.ErrUnavailable, err)
	}
	if err != nil {
		return err
	}
	var r named
	if err := c.result(ctx, p, "CreateModel", &r); err != nil {
		return err
	}
	if r.Model == "" {
		r.Model = p.Model
	}
	if r.Model == "" {
		return errors.New("the server made a model without a name")
	}
	l.session, l.model, l.seq, l.torn = session, r.Model, 0, false
	return nil
}

// Close has the server free the model. What was saved stays.
func (l *Learner) Close(ctx context.Context) error {
	if l.model == "" {
		return nil
	}
	var p promise
	err := l.client.post(ctx, "unload_model", named{Model: l.model, Type: "unload_model"}, &p)
	l.model = ""
	if err != nil || p.Request == "" {
		return err
	}
	_, _, err = l.client.await(ctx, p, "UnloadModel", false)
	return err
}

// Context is the most ids of a sequence.
func (l *Learner) Context() int { return l.options.Context }

// next is the number of the next request of this model.
func (l *Learner) next() int {
	l.seq++
	return l.seq
}

// Update implements policy.Learner. Entropy is not measured and cannot be paid for; the gradient's norm is NaN where the
// server does not tell.
func (l *Learner) Update(ctx context.Context, batch []grpo.Datum, o policy.Optim) (policy.Stats, error) {
	if err := l.check(batch, o); err != nil {
		return policy.Stats{}, err
	}
	if err := ctx.Err(); err != nil {
		return policy.Stats{}, err
	}
	var s policy.Stats
	err := l.whole(ctx, func() (err error) {
		s, err = l.update(ctx, batch, o)
		return err
	})
	if err != nil {
		return policy.Stats{}, err
	}
	l.version++
	l.since++
	return s, nil
}

// whole does something with the model, and once more from what was saved last if the model was lost and nothing is lost by
// that.
func (l *Learner) whole(ctx context.Context, do func() error) error {
	var err error
	if l.model == "" || l.torn {
		err = ErrLost
	} else if err = do(); err == nil || ctx.Err() != nil || !lost(err) && !l.torn {
		return err
	}
	if l.since > 0 {
		return fmt.Errorf("%w, %d updates after they were saved: go on from the last checkpoint (--resume): %w", ErrLost, l.since, err)
	}
	if n := l.client.options.Notice; n != nil {
		n(fmt.Sprintf("the model is made anew from what was saved last: %v", err))
	}
	if again := l.restore(ctx, true); again != nil {
		return errors.Join(err, again)
	}
	return do()
}

// restore makes the model anew as it was when it was saved, or as it was at first.
func (l *Learner) restore(ctx context.Context, moments bool) error {
	for try := 1; ; try++ {
		err := l.create(ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, policy.ErrUnavailable) || try == 2 {
			return err
		}
	}
	if l.saved.Path == "" {
		return nil
	}
	var p promise
	q := loadWeights{Model: l.model, Seq: l.next(), Path: l.saved.Path, Moments: moments, Type: "load_weights"}
	if err := l.client.post(ctx, "load_weights", q, &p); err != nil {
		return err
	}
	var r loadedWeights
	return l.client.result(ctx, p, "LoadWeights", &r)
}

// check reports what cannot be learnt.
func (l *Learner) check(batch []grpo.Datum, o policy.Optim) error {
	d := l.client.dialect
	if err := o.Loss.Check(); err != nil {
		return err
	}
	for _, v := range []float64{o.Rate, o.Beta1, o.Beta2, o.Epsilon, o.WeightDecay, o.Clip} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("optimiser has a setting of %v", v)
		}
	}
	switch {
	case o.Beta1 >= 1 || o.Beta2 >= 1 || o.Epsilon == 0:
		return fmt.Errorf("optimiser has betas of %v and %v and an epsilon of %v: betas are below 1, epsilon above 0", o.Beta1, o.Beta2, o.Epsilon)
	case o.Loss.Entropy != 0:
		return errors.New("an entropy bonus needs whole distributions, which no server gives: set train.learn.entropy=0")
	case o.Clip > 0 && !d.clips:
		return fmt.Errorf("servers of dialect %s do not clip gradients: set train.learn.clip_norm=0 and train.warm.clip_norm=0", l.client.options.Dialect)
	case o.WeightDecay > 0 && !d.betas:
		return fmt.Errorf("servers of dialect %s have a weight decay of their own: set train.learn.weight_decay=0 and train.warm.weight_decay=0", l.client.options.Dialect)
	case o.Restart && !d.forgets && l.version > 0:
		return fmt.Errorf("servers of dialect %s cannot forget what the optimiser has gathered: leave the warm start out (train.warm.updates=0)", l.client.options.Dialect)
	}
	trained := 0
	for i, x := range batch {
		if err := x.Check(); err != nil {
			return fmt.Errorf("datum %d: %w", i, err)
		}
		if err := checkIDs(x.IDs); err != nil {
			return fmt.Errorf("datum %d: %w", i, err)
		}
		if len(x.IDs) > l.options.Context {
			return fmt.Errorf("datum %d: sequence has %d ids, the context is %d", i, len(x.IDs), l.options.Context)
		}
		for _, w := range x.Weight {
			if w != 0 {
				trained++
			}
		}
	}
	if trained == 0 {
		return fmt.Errorf("batch of %d datums has no position with weight", len(batch))
	}
	return nil
}

func (l *Learner) update(ctx context.Context, batch []grpo.Datum, o policy.Optim) (policy.Stats, error) {
	if o.Restart && l.version > 0 {
		if err := l.forgetMoments(ctx); err != nil {
			return policy.Stats{}, err
		}
	}
	var in lossInput
	var s policy.Stats
	var err error
	if l.options.OnePass {
		in, err = l.client.ppo(batch, o.Loss)
	} else {
		var logProbs, g [][]float32
		if logProbs, err = l.logProbs(ctx, batch); err != nil {
			return s, err
		}
		g, s, err = slopes(batch, logProbs, o.Loss)
		in = l.client.linear(batch, logProbs, g)
	}
	if err != nil {
		return s, err
	}
	l.torn = true // until the step is known to be done
	results, norm, err := l.step(ctx, in, o)
	if err != nil {
		return s, err
	}
	l.torn = false
	if l.options.OnePass {
		logProbs, err := readLogProbs(batch, results)
		if err != nil {
			return s, err
		}
		if _, s, err = slopes(batch, logProbs, o.Loss); err != nil {
			return s, err
		}
	}
	s.GradNorm = norm
	return s, nil
}

// forgetMoments saves the weights and loads them without the optimiser's state.
func (l *Learner) forgetMoments(ctx context.Context) error {
	if err := l.keep(ctx); err != nil {
		return err
	}
	old := *l
	if err := l.restore(ctx, false); err != nil {
		return err
	}
	return old.Close(ctx)
}

// linear is an importance-sampled loss whose gradient is Σ g·∂ log p: ratio 1, advantages −g.
func (c *Client) linear(batch []grpo.Datum, logProbs, g [][]float32) lossInput {
	in := lossInput{Loss: "importance_sampling"}
	for i, d := range batch {
		a := make([]float32, len(d.IDs))
		for t := range a {
			a[t] = -g[i][t]
		}
		in.Data = append(in.Data, c.shifted(d, logProbs[i], a, len(batch)))
	}
	return in
}

// ppo is the loss of a batch as servers know it. Its KL term is folded into the advantages: the slope of k3 where the
// policy is still the one that sampled.
func (c *Client) ppo(batch []grpo.Datum, l grpo.Loss) (lossInput, error) {
	if l.Kind == grpo.CrossEntropy {
		if l.KL != 0 {
			return lossInput{}, errors.New("cross-entropy with a KL term cannot be asked for in one pass")
		}
		if c.dialect.reduce != sum {
			return lossInput{}, fmt.Errorf("servers of dialect %s divide by the weights: set one_pass=false", c.options.Dialect)
		}
		in := lossInput{Loss: "cross_entropy"}
		for _, d := range batch {
			in.Data = append(in.Data, datum{Input: text(d.IDs[:len(d.IDs)-1]), Inputs: map[string]tensor{
				"target_tokens": integers(d.IDs[1:]), "weights": floats(d.Weight[1:]),
			}})
		}
		return in, nil
	}
	if l.DualClip != 0 || l.MaxDrift != 0 {
		return lossInput{}, errors.New("servers know no dual clip and no truncation: set train.learn.dual_clip=0 and max_drift=0, or one_pass=false")
	}
	in, err := c.clipped(l)
	if err != nil {
		return lossInput{}, err
	}
	for i, d := range batch {
		if d.LogProb == nil {
			return lossInput{}, fmt.Errorf("datum %d has no sampling log-probabilities: they are needed in one pass", i)
		}
		a := make([]float32, len(d.IDs))
		for t, w := range d.Weight {
			slope := 0.0
			if l.KL != 0 && d.Ref != nil {
				_, slope = grpo.K3(float64(d.LogProb[t]), float64(d.Ref[t]))
			}
			a[t] = float32(float64(w) * (float64(d.Advantage[t]) - l.KL*slope))
		}
		in.Data = append(in.Data, c.shifted(d, d.LogProb, a, len(batch)))
	}
	return in, nil
}

// clipped names the server's loss of a ratio that is clipped as in l. Its limits are absolute; a limit of 0 in l is none.
func (c *Client) clipped(l grpo.Loss) (lossInput, error) {
	switch {
	case !c.dialect.evenly:
	case l.ClipLow == 0 && l.ClipHigh == 0:
		return lossInput{Loss: "importance_sampling"}, nil
	case l.ClipLow != l.ClipHigh:
		return lossInput{}, fmt.Errorf("servers of dialect %s clip both sides alike: set train.learn.clip_low and clip_high to the same", c.options.Dialect)
	default:
		return lossInput{Loss: "ppo", Config: map[string]float64{"clip_range": l.ClipLow, "kl_coeff": 0}}, nil
	}
	in := lossInput{Loss: "ppo", Config: map[string]float64{"clip_low_threshold": 1 - l.ClipLow, "clip_high_threshold": 1 + l.ClipHigh}}
	if l.ClipLow == 0 {
		in.Config["clip_low_threshold"] = 0
	}
	if l.ClipHigh == 0 {
		in.Config["clip_high_threshold"] = math.MaxFloat32
	}
	return in, nil
}

// shifted lays a sequence out as it travels: what was said of predicting id t stands at t−1. n is the number of sequences
// of the step.
func (c *Client) shifted(d grpo.Datum, logProbs, advantages []float32, n int) datum {
	counts := make([]float32, len(d.IDs))
	m := 0
	for t, w := range d.Weight {
		if w != 0 {
			counts[t] = 1
			m++
		}
	}
	a := slices.Clone(advantages)
	switch c.dialect.reduce {
	case sum:
	case sequenceMean:
		for t := range a {
			a[t] *= float32(m) * float32(n)
		}
	default:
		panic(fmt.Sprintf("tinker: reduction %d", c.dialect.reduce))
	}
	out := datum{Input: text(d.IDs[:len(d.IDs)-1]), Inputs: map[string]tensor{
		"target_tokens": integers(d.IDs[1:]), "logprobs": floats(logProbs[1:]), "advantages": floats(a[1:]),
	}}
	if c.dialect.mask {
		out.Inputs["weights"] = floats(counts[1:])
	}
	return out
}

// Most of one request.
const (
	chunkData  = 1024
	chunkBytes = 4 << 20
)

// chunks deals the sequences of a step into requests.
func chunks(in lossInput) []lossInput {
	var out []lossInput
	bytes := 0
	for _, d := range in.Data {
		size := 0
		for _, t := range d.Inputs {
			size += 8 * len(t.Data)
		}
		if last := len(out) - 1; last < 0 || bytes+size > chunkBytes || len(out[last].Data) == chunkData {
			out = append(out, lossInput{Loss: in.Loss, Config: in.Config})
			bytes = 0
		}
		bytes += size
		last := len(out) - 1
		out[last].Data = append(out[last].Data, d)
	}
	return out
}

// pass asks for one pass over some sequences; the promise comes when the server has taken it.
func (l *Learner) pass(ctx context.Context, in lossInput, forward bool) (p promise, err error) {
	c, seq := l.client, l.next()
	path := "forward_backward"
	var b body
	switch {
	case c.dialect.body == asProto:
		b = body{encodePass(l.model, seq, in, forward), protobuf}
	case forward && c.dialect.forward == ownEndpoint:
		path = "forward"
		b, err = jsonBody(passRequest{Model: l.model, Seq: seq, Forward: &in})
	default:
		b, err = jsonBody(passRequest{Model: l.model, Seq: seq, Backward: &in})
	}
	if err != nil {
		return p, err
	}
	return p, c.send(ctx, path, b, &p)
}

// passed waits for the result of a pass.
func (l *Learner) passed(ctx context.Context, p promise) (r passResult, err error) {
	reply, isProto, err := l.client.await(ctx, p, "ForwardBackward", true)
	switch {
	case err != nil:
		return r, fmt.Errorf("pass: %w", err)
	case isProto:
		r, err = decodeResult(reply)
	default:
		err = decode(reply, &r)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", policy.ErrUnavailable, err)
	}
	return r, err
}

// logProbs asks for the log-probabilities of a batch under the weights as they are [batch][T].
func (l *Learner) logProbs(ctx context.Context, batch []grpo.Datum) ([][]float32, error) {
	in := lossInput{Loss: "importance_sampling"}
	for _, d := range batch {
		none := make([]float32, len(d.IDs))
		in.Data = append(in.Data, l.client.shifted(d, none, none, len(batch)))
	}
	all, err := l.passes(ctx, in, true)
	if err != nil {
		return nil, err
	}
	return readLogProbs(batch, all)
}

// passes makes a pass over all sequences, one request after the other, and waits for all results.
func (l *Learner) passes(ctx context.Context, in lossInput, forward bool) (passResult, error) {
	ps, err := l.submit(ctx, in, forward)
	if err != nil {
		return passResult{}, err
	}
	return l.collect(ctx, ps)
}

func (l *Learner) submit(ctx context.Context, in lossInput, forward bool) ([]promise, error) {
	var ps []promise
	for _, part := range chunks(in) {
		p, err := l.pass(ctx, part, forward)
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	return ps, nil
}

func (l *Learner) collect(ctx context.Context, ps []promise) (all passResult, err error) {
	for _, p := range ps {
		r, err := l.passed(ctx, p)
		if err != nil {
			return all, err
		}
		all.Outputs = append(all.Outputs, r.Outputs...)
	}
	return all, nil
}

// readLogProbs reads the log-probabilities of a batch; those of ids that nobody asked about may be missing.
func readLogProbs(batch []grpo.Datum, r passResult) ([][]float32, error) {
	if len(r.Outputs) != len(batch) {
		return nil, fmt.Errorf("%w: %d sequences came back of %d", policy.ErrUnavailable, len(r.Outputs), len(batch))
	}
	all := make([][]float32, len(batch))
	for i, d := range batch {
		t := r.Outputs[i]["logprobs"]
		if err := t.list(len(d.IDs) - 1); err != nil {
			return nil, fmt.Errorf("%w: log-probabilities of sequence %d: %w", policy.ErrUnavailable, i, err)
		}
		all[i] = make([]float32, len(d.IDs))
		for k, v := range t.Data {
			if w := d.Weight[k+1]; w != 0 && !(v <= aboveZero && v >= -math.MaxFloat32) {
				return nil, fmt.Errorf("log-probability of id %d at position %d of datum %d is %v", d.IDs[k+1], k+1, i, v)
			}
			all[i][k+1] = float32(v)
		}
	}
	return all, nil
}

// step sends gradients and the optimiser step, and waits for both. norm is NaN where the server does not tell.
func (l *Learner) step(ctx context.Context, in lossInput, o policy.Optim) (passResult, float64, error) {
	ps, err := l.submit(ctx, in, false)
	if err != nil {
		return passResult{}, 0, err
	}
	var p promise
	q := optimStep{Model: l.model, Seq: l.next(), Type: "optim_step", Adam: adam{
		Rate: o.Rate, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Epsilon, Decay: o.WeightDecay, Clip: o.Clip,
	}}
	if err := l.client.post(ctx, "optim_step", q, &p); err != nil {
		return passResult{}, 0, err
	}
	all, err := l.collect(ctx, ps)
	if err != nil {
		return all, 0, err
	}
	var r optimResult
	if err := l.client.result(ctx, p, "OptimStep", &r); err != nil {
		return all, 0, err
	}
	return all, gradNorm(r.Metrics), nil
}

// gradNorm finds the norm of the gradient among a server's metrics.
func gradNorm(metrics map[string]float64) float64 {
	for name, v := range metrics {
		name, _, _ = strings.Cut(name, ":")
		if name[strings.LastIndexByte(name, '/')+1:] == "grad_norm" {
			return v
		}
	}
	return math.NaN()
}

// Sampler returns a *Sampler of the weights as they are now. The server forgets them some time after nobody samples.
func (l *Learner) Sampler(ctx context.Context) (policy.Sampler, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var s *Sampler
	err := l.whole(ctx, func() (err error) {
		s, err = l.sampler(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (l *Learner) sampler(ctx context.Context) (*Sampler, error) {
	c := l.client
	session, n, err := c.numbered(ctx, &c.samplers)
	if err != nil {
		return nil, err
	}
	if session != l.session {
		return nil, ErrLost
	}
	var p promise
	q := saveWeights{Model: l.model, Session: &n, Seq: l.next(), Type: "save_weights_for_sampler"}
	if err := c.post(ctx, "save_weights_for_sampler", q, &p); err != nil {
		return nil, err
	}
	var r savedWeights
	if err := c.result(ctx, p, "SaveWeightsForSampler", &r); err != nil {
		return nil, err
	}
	if r.Session != "" {
		return &Sampler{client: c, session: r.Session, version: l.version, context: l.options.Context}, nil
	}
	return c.sampler(ctx, createSampler{Session: session, Number: n, Path: r.Path, Type: "create_sampling_session"}, l.options.Context, l.version)
}

// keep has the server save the weights, unless it has these already.
func (l *Learner) keep(ctx context.Context) error {
	if l.saved.Path != "" && l.since == 0 {
		return nil
	}
	var r savedWeights
	err := l.whole(ctx, func() error {
		var p promise
		name := fmt.Sprintf("v%06d-%s", l.version, random()[:8])
		if err := l.client.post(ctx, "save_weights", saveWeights{Model: l.model, Path: name, Seq: l.next(), Type: "save_weights"}, &p); err != nil {
			return err
		}
		return l.client.result(ctx, p, "SaveWeights", &r)
	})
	if err != nil {
		return err
	}
	if !strings.HasPrefix(r.Path, "tinker://") {
		return fmt.Errorf("the server saved the weights under %q, which is no tinker:// path", r.Path)
	}
	l.saved = saved{savedFormat, string(l.client.options.Dialect), l.options.Base, l.options.Rank, r.Path, l.version}
	l.since = 0
	return nil
}

// Save has the server keep weights and optimiser, and writes where they are: a line of JSON.
func (l *Learner) Save(ctx context.Context, w io.Writer) error {
	if err := l.keep(ctx); err != nil {
		return err
	}
	line, err := json.Marshal(l.saved)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

var savedPath = regexp.MustCompile(`^tinker://[A-Za-z0-9_.:/-]{1,512}$`)

// Load goes on with what Save wrote, from the same server: it makes a model of what that has kept. After an error the
// learner is as it was.
func (l *Learner) Load(ctx context.Context, r io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	line, err := readLine(r)
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	var s saved
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	switch err := d.Decode(&s); {
	case err != nil || s.Format != savedFormat:
		return fmt.Errorf("read checkpoint: it is none of weights on a server (%q)", line[:min(len(line), 40)])
	case s.Server != string(l.client.options.Dialect) || s.Base != l.options.Base || s.Rank != l.options.Rank:
		return fmt.Errorf("read checkpoint: it is of %s with rank %d on a server of dialect %s", s.Base, s.Rank, s.Server)
	case !savedPath.MatchString(s.Path) || s.Version < 0:
		return fmt.Errorf("read checkpoint: the path is %q, the version %d", s.Path, s.Version)
	}
	other := &Learner{client: l.client, options: l.options, saved: s, version: s.Version}
	if err := other.restore(ctx, true); err != nil {
		return errors.Join(fmt.Errorf("load %s: %w", s.Path, err), other.Close(ctx))
	}
	old := *l
	*l = *other
	if err := old.Close(ctx); err != nil && l.client.options.Notice != nil {
		l.client.options.Notice(fmt.Sprintf("the model before: %v", err)) // it costs memory there, and nothing here
	}
	return nil
}

// readLine reads up to a line end, and no further.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for one := make([]byte, 1); len(line) < 4096; {
		if _, err := io.ReadFull(r, one); err != nil {
			return "", fmt.Errorf("it ends after %d bytes: %w", len(line), io.ErrUnexpectedEOF)
		}
		if one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[0])
	}
	return "", errors.New("its first line is too long")
}
