package transformer

import (
	"context"
	"fmt"
	"math"

	"skillmaster/grpo"
	"skillmaster/policy/transformer/internal/simd"
)

// headRows is how many positions the vocabulary product is made for at a time.
const headRows = 112

// head is the workspace of the vocabulary product. It works on gathered rows, so that positions nobody asks about cost
// nothing.
type head struct {
	hidden  matrix // [headRows, D] normed rows
	inverse []float32
	logits  matrix // [headRows, V]
	grad    matrix // exponentials, then gradients of the logits [headRows, V]
	dHidden matrix
	packed  packing
	asked   []int // positions t of the ids asked about; they are predicted at t−1
}

func newHead(c Config) head {
	return head{hidden: newMatrix(c.Width), logits: newMatrix(c.Vocab), grad: newMatrix(c.Vocab), dHidden: newMatrix(c.Width)}
}

func (h *head) grow(n int) {
	for _, m := range []*matrix{&h.hidden, &h.logits, &h.grad, &h.dHidden} {
		m.grow(n)
	}
	if len(h.inverse) < n {
		h.inverse = make([]float32, n)
	}
}

// predict computes the logits that predict the ids at the asked positions, at most headRows of them.
func (p *pass) predict(asked []int) {
	h := &p.head
	h.grow(len(asked))
	eps := float32(p.w.config.NormEps)
	for i, t := range asked {
		h.inverse[i] = simd.RMSNorm(h.hidden.row(i), p.last.row(t-1), p.w.norm, eps)
	}
	p.w.head.forward(h.logits, h.hidden, len(asked), matrix{})
}

// distribution is the softmax of a row of logits z.
type distribution struct {
	most, sum float32 // max z and Σ exp(z − most)
	logSum    float64 // log of sum
}

// exponentiate sets e to exp(z − max z). A distribution whose logSum is not finite comes from logits that are not.
func exponentiate(e, z []float32) distribution {
	copy(e, z)
	d := distribution{most: simd.Max(z)}
	d.sum = simd.ExpSum(e, d.most)
	d.logSum = math.Log(float64(d.sum))
	return d
}

// logProb is the log-probability of the id with logit z.
func (d distribution) logProb(z float32) float64 {
	return float64(z) - float64(d.most) - d.logSum
}

// entropy is −Σ p log p in nats, where e are the exponentials of z.
func (d distribution) entropy(e, z []float32) float64 {
	return math.Max(0, d.logSum+float64(d.most)-float64(simd.Dot(e, z))/float64(d.sum))
}

// tally sums what a sequence's positions came to.
type tally struct {
	loss, entropy, kl, drift float64
	trained, referred, timed int // positions with weight, those with a reference, those with a sampling log-probability
	clipped                  int
}

func (s *tally) add(o tally) {
	s.loss += o.loss
	s.entropy += o.entropy
	s.kl += o.kl
	s.drift += o.drift
	s.trained += o.trained
	s.referred += o.referred
	s.timed += o.timed
	s.clipped += o.clipped
}

// learn computes the loss of a sequence that went forward, leaves the gradient of the last layer's output in p.back.dx
// and adds those of the head and the last norm to grad. live is false if the gradient is zero throughout.
func (p *pass) learn(ctx context.Context, d grpo.Datum, loss grpo.Loss, y *layout, grad []float32) (s tally, live bool, err error) {
	h := &p.head
	h.asked = h.asked[:0]
	for t, w := range d.Weight {
		if w != 0 {
			h.asked = append(h.asked, t)
		}
	}
	p.startBackward(len(d.IDs))
	for rest := h.asked; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return s, false, err
		}
		asked := rest[:min(headRows, len(rest))]
		rest = rest[len(asked):]
		p.predict(asked)
		some := false
		for i, t := range asked {
			pulls, err := h.learnPosition(i, t, d, loss, &s)
			if err != nil {
				return s, false, err
			}
			some = some || pulls
		}
		if some {
			p.backwardHead(asked, y, grad)
			live = true
		}
	}
	return s, live, nil
}

// learnPosition turns row i of the logits, which predicts id t of the datum, into the gradient of the weighted loss, and
// adds it to the tally. pulls is false if that gradient is zero.
func (h *head) learnPosition(i, t int, d grpo.Datum, loss grpo.Loss, s *tally) (pulls bool, err error) {
	z, e, id, weight := h.logits.row(i), h.grad.row(i), d.IDs[t], float64(d.Weight[t])
	q := exponentiate(e, z)
	logp := q.logProb(z[id])
	if math.IsNaN(logp) || math.IsInf(logp, 0) {
		return false, fmt.Errorf("log-probability of id %d at position %d is %v", id, t, logp)
	}
	sampling, ref := at(d.LogProb, t), at(d.Ref, t)
	value, slope, clipped := loss.Token(logp, sampling, ref, float64(d.Advantage[t]))
	entropy := q.entropy(e, z)
	s.count(logp, sampling, ref, entropy, clipped)
	s.loss += weight * (value - loss.Entropy*entropy)
	if slope == 0 && loss.Entropy == 0 {
		clear(e)
		return false, nil
	}
	bonus := loss.Entropy * weight
	if bonus != 0 { // p·(log p + H), the gradient of −H
		simd.SoftmaxBackward(z, e, float32(float64(q.most)+q.logSum-entropy), float32(bonus/float64(q.sum)))
	}
	simd.Scale(e, float32(-weight*slope/float64(q.sum)))
	e[id] += float32(weight * slope)
	if bonus != 0 {
		simd.Add(e, z)
	}
	return true, nil
}

func (s *tally) count(logp, sampling, ref, entropy float64, clipped bool) {
	s.trained++
	s.entropy += entropy
	if clipped {
		s.clipped++
	}
	if !math.IsNaN(sampling) {
		s.timed++
		s.drift += math.Abs(logp - sampling)
	}
	if !math.IsNaN(ref) {
		s.referred++
		k3, _ := grpo.K3(logp, ref)
		s.kl += k3
	}
}

// at returns v[t], NaN if there is no v.
func at(v []float32, t int) float64 {
	if v == nil {
		return math.NaN()
	}
	return float64(v[t])
}

// backwardHead goes from the gradients of the logits down to p.back.dx.
func (p *pass) backwardHead(asked []int, y *layout, grad []float32) {
	h, w, n := &p.head, p.w, len(asked)
	w.head.backward(h.dHidden, h.grad, n, false)
	if y.head.size > 0 {
		w.head.gradient(y.head.of(grad), h.grad, h.hidden, n, &h.packed)
	}
	norm := p.back.gradient(y.norm, grad, len(w.norm))
	for i, t := range asked {
		simd.RMSNormBackward(p.back.dx.row(t-1), norm, h.dHidden.row(i), p.last.row(t-1), w.norm, h.inverse[i])
	}
}

// logProbs sets out[t] to the log-probability of ids[t] for t ≥ 1, after the sequence went forward.
func (p *pass) logProbs(ctx context.Context, ids []int32, out []float32) error {
	h := &p.head
	for first := 1; first < len(ids); first += headRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		h.asked = h.asked[:0]
		for t := first; t < min(first+headRows, len(ids)); t++ {
			h.asked = append(h.asked, t)
		}
		p.predict(h.asked)
		for i, t := range h.asked {
			z := h.logits.row(i)
			logp := exponentiate(h.grad.row(i), z).logProb(z[ids[t]])
			if math.IsNaN(logp) || math.IsInf(logp, 0) {
				return fmt.Errorf("log-probability of id %d at position %d is %v", ids[t], t, logp)
			}
			out[t] = float32(logp)
		}
	}
	return nil
}
