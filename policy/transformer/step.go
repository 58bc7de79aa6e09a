package transformer

import (
	"runtime"
	"slices"

	"skillmaster/policy"
	"skillmaster/policy/transformer/internal/simd"
)

// worker samples a batch of sequences step by step. Each step computes some positions of each: the rest of a prompt, or
// the id just sampled.
type worker struct {
	sampler *Sampler
	slots   []*request

	// workspace of one step
	rows      []int // positions computed of each slot
	positions []int // of every row
	ids       []int32
	a         *activations
	scores    matrix // [rowBlock, keys]
	hidden    matrix // normed last rows of the slots that get an id [slots, D]
	logits    matrix
	choosing  []int // those slots
	chooser   chooser
	prefilled int
}

func newWorker(s *Sampler) *worker {
	c := s.weights.config
	return &worker{sampler: s, a: s.weights.newActivations(), hidden: newMatrix(c.Width), logits: newMatrix(c.Vocab)}
}

// run works until nothing is left to sample. After each step it lets others run: callers whose sample ended are likely
// to come back at once with the next request of their conversation.
func (w *worker) run() {
	for w.sampler.admit(w) {
		w.plan()
		w.compute()
		w.choose()
		w.settle()
		runtime.Gosched()
	}
}

// plan decides which positions to compute: at least one for each slot, then as much of the prompts as fits.
func (w *worker) plan() {
	w.rows, w.positions, w.ids = w.rows[:0], w.positions[:0], w.ids[:0]
	spare := stepRows - len(w.slots)
	for _, r := range w.slots {
		more := min(len(r.ids)-r.fed-1, spare)
		spare -= more
		w.rows = append(w.rows, 1+more)
		r.path = w.sampler.cache.extend(r.path, r.fed+1+more)
		for i := range 1 + more {
			w.positions = append(w.positions, r.fed+i)
			w.ids = append(w.ids, r.ids[r.fed+i])
		}
	}
}

// compute runs all rows through all layers; the result is in w.a.x.
func (w *worker) compute() {
	n := len(w.ids)
	w.a.grow(n)
	weights := w.sampler.weights
	weights.lookUp(w.a.x, w.ids)
	for layer := range weights.layers {
		weights.enter(layer, w.a, w.positions)
		first := 0
		for i, r := range w.slots {
			w.attend(layer, r, first, w.rows[i])
			first += w.rows[i]
		}
		weights.leave(layer, w.a, w.a.x, n)
	}
}

// attend remembers the keys and values of a slot's rows and fills their mixed.
func (w *worker) attend(layer int, r *request, first, rows int) {
	c, shape := w.sampler.weights.config, w.sampler.cache.shape
	for g := range c.KVHeads {
		keys, values := c.keyHead(w.a.qkv, g), c.valueHead(w.a.qkv, g)
		for i := range rows {
			at := r.fed + i
			shape.put(r.path[at/chunk].kv, layer, g, at%chunk, keys.row(first+i), values.row(first+i))
		}
	}
	growScores(&w.scores, len(r.path)*chunk)
	group := c.Heads / c.KVHeads
	for h := range c.Heads {
		q, out := c.queryHead(w.a.qkv, h), w.a.mixed.columns(h*c.HeadDim, c.HeadDim)
		if rows == 1 {
			if h%group == 0 { // the heads of a group are rows of one product
				heads := func(m matrix, row int) matrix { return matrix{m.v[row*m.ld+h*c.HeadDim:], c.HeadDim, c.HeadDim} }
				w.attendGroup(layer, r, h/group, group, heads(w.a.qkv, first), heads(w.a.mixed, first))
			}
			continue
		}
		for i := 0; i < rows; i += rowBlock {
			n := min(rowBlock, rows-i)
			w.attendRows(layer, r, h/group, q.from(first+i), out.from(first+i), r.fed+i, n, 1)
		}
	}
}

// attendGroup is attendRows for the heads of a group at one position, a block at a time.
func (w *worker) attendGroup(layer int, r *request, g, group int, q, out matrix) {
	for i := 0; i < group; i += rowBlock {
		w.attendRows(layer, r, g, q.from(i), out.from(i), r.fed, min(rowBlock, group-i), 0)
	}
}

// attendRows sets out to the attention of n queries of key head g, the first at a position and each advance positions
// after the one before. It rounds as attention.forwardHead does.
func (w *worker) attendRows(layer int, r *request, g int, q, out matrix, position, n, advance int) {
	d, shape, s := w.sampler.weights.config.HeadDim, w.sampler.cache.shape, w.scores
	seen := position + (n-1)*advance + 1
	for k := 0; k < seen; k += chunk {
		// Whole panels are cheaper than their parts; what is read past the keys is not used.
		keys := min(chunk, align32(seen-k))
		simd.Gemm(s.v[k:], s.ld, q.v, q.ld, n, keys, d, shape.keys(r.path[k/chunk].kv, layer, g), d, 0, false)
	}
	var sums [rowBlock]float32
	for i := range n {
		_, sums[i] = softmax(s.v[i*s.ld:][:seen], position+i*advance+1)
	}
	for k := 0; k < seen; k += chunk {
		values := shape.values(r.path[k/chunk].kv, layer, g)
		simd.Gemm(out.v, out.ld, s.v[k:], s.ld, n, d, min(chunk, seen-k), values, chunk, 0, k > 0)
	}
	for i := range n {
		simd.Scale(out.row(i), 1/sums[i])
	}
}

// align32 rounds up to whole panels.
func align32(n int) int { return (n + simd.PanelWidth - 1) / simd.PanelWidth * simd.PanelWidth }

// choose draws an id for every slot whose ids are all fed now.
func (w *worker) choose() {
	w.choosing = w.choosing[:0]
	weights := w.sampler.weights
	w.hidden.grow(len(w.slots))
	w.logits.grow(len(w.slots))
	last := -1
	for i, r := range w.slots {
		last += w.rows[i]
		w.sampler.cache.publish(r.path, r.fed, r.ids[r.fed:r.fed+w.rows[i]])
		w.count(r, w.rows[i])
		r.fed += w.rows[i]
		if r.fed == len(r.ids) {
			simd.RMSNorm(w.hidden.row(len(w.choosing)), w.a.x.row(last), weights.norm, float32(weights.config.NormEps))
			w.choosing = append(w.choosing, i)
		}
	}
	if len(w.choosing) == 0 {
		return
	}
	weights.head.forward(w.logits, w.hidden, len(w.choosing), matrix{})
	for row, i := range w.choosing {
		w.slots[i].extend(w.logits.row(row), &w.chooser)
	}
}

// count notes rows of a prompt; those of sampled ids were counted when they were sampled.
func (w *worker) count(r *request, rows int) {
	if r.fed < r.prompt {
		w.prefilled += min(rows, r.prompt-r.fed)
	}
}

// extend samples the next id.
func (r *request) extend(logits []float32, c *chooser) {
	id, logp, err := r.choose(logits, c)
	if err != nil {
		r.err = err
		return
	}
	r.ids = append(r.ids, id)
	r.sample.IDs = append(r.sample.IDs, id)
	r.sample.LogProbs = append(r.sample.LogProbs, logp)
}

// choose draws the next id among those that are left, and notes its log-probability among them.
func (r *request) choose(logits []float32, c *chooser) (id int32, logp float32, err error) {
	if r.left.left == nil {
		return c.choose(logits, r.p, r.random)
	}
	id, logp, among, err := c.chooseAmong(logits, r.left.ids(), r.p, r.random)
	if err == nil {
		r.left.take(id)
		r.sample.Among = append(r.sample.Among, among)
	}
	return id, logp, err
}

// over reports whether a request has come to its end, and notes why.
func (r *request) over(context int) bool {
	n := len(r.sample.IDs)
	switch {
	case r.err != nil:
	case r.ctx.Err() != nil:
		r.err = r.ctx.Err()
	case n > 0 && slices.Contains(r.p.Stop, r.sample.IDs[n-1]), r.left.made():
		r.sample.Stop = policy.Stopped
	case n == r.p.MaxTokens:
		r.sample.Stop = policy.Length
	case len(r.ids) == context:
		r.sample.Stop = policy.NoContext
	default:
		return false
	}
	return true
}

// settle takes the requests that ended out of their slots and hands them to their callers.
func (w *worker) settle() {
	s := w.sampler
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counters.Steps++
	s.counters.Prefilled += w.prefilled
	s.counters.Decoded += len(w.choosing)
	w.prefilled = 0
	kept := w.slots[:0]
	for _, r := range w.slots {
		over := r.over(s.weights.config.Context)
		if !over && s.closed {
			over, r.err = true, ErrClosed
		}
		if r.reading && (over || r.fed >= r.prompt) {
			r.reading = false
			s.reading = slices.DeleteFunc(s.reading, func(o *request) bool { return o == r })
		}
		if !over {
			kept = append(kept, r)
			continue
		}
		s.cache.close(r.path)
		s.active--
		s.counters.Samples++
		r.end(r.err)
	}
	clear(w.slots[len(kept):])
	w.slots = kept
}
