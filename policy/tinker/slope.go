package tinker

import (
	"fmt"
	"math"

	"skillmaster/grpo"
	"skillmaster/policy"
)

// slopes are the derivatives of the weighted loss with respect to the log-probability of each position of a batch, and what
// an update of it comes to, given those log-probabilities logProbs [batch][T]. Entropy is not measured: it needs
// whole distributions.
func slopes(batch []grpo.Datum, logProbs [][]float32, l grpo.Loss) ([][]float32, policy.Stats, error) {
	var s policy.Stats
	var kl, drift float64
	clipped, referred, timed := 0, 0, 0
	all := make([][]float32, len(batch))
	for i, d := range batch {
		all[i] = make([]float32, len(d.IDs))
		s.Tokens += len(d.IDs)
		for t, w := range d.Weight {
			if w == 0 {
				continue
			}
			logp, sampling, ref := float64(logProbs[i][t]), at(d.LogProb, t), at(d.Ref, t)
			value, slope, cut := l.Token(logp, sampling, ref, float64(d.Advantage[t]))
			s.Loss += float64(w) * value
			all[i][t] = float32(float64(w) * slope)
			if bad := float64(all[i][t]); math.IsNaN(bad) || math.IsInf(bad, 0) {
				return nil, s, fmt.Errorf("datum %d: the loss has slope %v at position %d", i, bad, t)
			}
			s.Trained++
			if cut {
				clipped++
			}
			if !math.IsNaN(sampling) {
				timed++
				drift += math.Abs(logp - sampling)
			}
			if !math.IsNaN(ref) {
				referred++
				k3, _ := grpo.K3(logp, ref)
				kl += k3
			}
		}
	}
	if math.IsNaN(s.Loss) || math.IsInf(s.Loss, 0) {
		return nil, s, fmt.Errorf("loss is %v", s.Loss)
	}
	s.Entropy, s.GradNorm = math.NaN(), math.NaN()
	s.KL, s.Drift = kl/float64(referred), drift/float64(timed)
	s.ClipShare = float64(clipped) / float64(s.Trained)
	return all, s, nil
}

// at returns v[t], NaN if there is no v.
func at(v []float32, t int) float64 {
	if v == nil {
		return math.NaN()
	}
	return float64(v[t])
}
