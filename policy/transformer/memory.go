package transformer

// Memory is what a learner holds, in bytes. It grows to what the largest batch so far needed, and the Go runtime's own
// overhead comes on top of it.
type Memory struct {
	Weights     int64 `json:"weights"`     // parameters in memory, of an adapter too
	Packed      int64 `json:"packed"`      // weights as the kernels read them
	Moments     int64 `json:"moments"`     // AdamW's two
	Gradients   int64 `json:"gradients"`   // of every lane
	Activations int64 `json:"activations"` // kept for the backward pass by all workers, see Config.ActivationBytes
	Work        int64 `json:"work"`        // the workers' other scratch: backward pass, attention blocks, rows of the head
}

// Total is their sum.
func (m Memory) Total() int64 {
	return m.Weights + m.Packed + m.Moments + m.Gradients + m.Activations + m.Work
}

// Memory returns what the learner holds now.
func (l *Learner) Memory() Memory {
	_, trained := l.model.trained()
	m := Memory{
		Weights: floats(l.model.values), Packed: l.weights.bytes(), Moments: floats(l.means, l.squares), Gradients: floats(l.lanes...),
	}
	if l.model.adapter != nil {
		m.Weights += floats(trained)
	}
	for _, p := range l.passes {
		m.Activations += p.kept()
		m.Work += p.work()
	}
	return m
}

// bytes are those of the packed matrices and the angles.
func (w *weights) bytes() int64 {
	n := w.head.bytes() + floats(w.rotary.cos, w.rotary.sin, w.rotary.queryCos, w.rotary.querySin)
	for i := range w.layers {
		y := &w.layers[i]
		n += y.qkv.bytes() + y.out.bytes() + y.gateUp.bytes() + y.down.bytes()
	}
	return n
}

func (l *linear) bytes() int64 {
	n := l.forth.bytes() + l.back.bytes()
	for i := range l.low {
		n += l.low[i].a.bytes() + l.low[i].b.bytes()
	}
	return n
}

func (p *packing) bytes() int64 { return floats(p.floats) + 4*int64(len(p.pairs)) }

// kept is what a pass's activations take.
func (p *pass) kept() (bytes int64) {
	seen := map[*activations]bool{}
	for _, a := range p.layers {
		if seen[a] {
			continue
		}
		seen[a] = true
		bytes += matrices(a.x, a.h1, a.qkv, a.mixed, a.x2, a.h2, a.gateUp, a.act, a.lse, a.raw, a.invHeads, a.low)
		bytes += floats(a.inv1, a.inv2)
	}
	return bytes + matrices(p.inputs...) + matrices(p.last)
}

// work is what the rest of a pass takes.
func (p *pass) work() int64 {
	b, t, h := &p.back, &p.attention, &p.head
	return matrices(b.dx, b.dh, b.dQKV, b.dMixed, b.dGU, b.dAct, b.u, b.du) + floats(b.dHeads, b.unused) + b.packed.bytes() +
		matrices(t.scores, t.dScore) + floats(t.keysT, t.values, t.keys, t.valuesT, t.queries, t.dMix) +
		matrices(h.hidden, h.logits, h.grad, h.dHidden) + floats(h.inverse) + h.packed.bytes()
}

func floats(vs ...[]float32) (bytes int64) {
	for _, v := range vs {
		bytes += 4 * int64(len(v))
	}
	return bytes
}

func matrices(ms ...matrix) (bytes int64) {
	for _, m := range ms {
		bytes += floats(m.v)
	}
	return bytes
}
