package train

import (
	"fmt"

	"skillmaster/episode"
	"skillmaster/grpo"
)

// sequences cuts a trajectory into its token sequences: one where every turn continues the one before, more where
// prompts were rebuilt.
func sequences(t episode.Trajectory) [][]episode.Turn {
	var out [][]episode.Turn
	for i, u := range t.Turns {
		if u.Continues && i > 0 {
			out[len(out)-1] = append(out[len(out)-1], u)
		} else {
			out = append(out, []episode.Turn{u})
		}
	}
	return out
}

// row lays turns over one token sequence. fill is called for each stretch of ids with its turn and whether the policy
// chose them; it sets what is to be learnt at positions [from, to).
func row(turns []episode.Turn, fill func(d *grpo.Datum, u episode.Turn, chosen bool, from, to int)) grpo.Datum {
	n := 0
	for _, u := range turns {
		n += len(u.Prompt) + len(u.Completion)
	}
	d := grpo.Datum{
		IDs: make([]int32, 0, n), Stream: make([]grpo.Stream, n), Weight: make([]float32, n), Advantage: make([]float32, n),
	}
	for _, u := range turns {
		from := len(d.IDs)
		d.IDs = append(d.IDs, u.Prompt...)
		fill(&d, u, false, from, len(d.IDs))
		from = len(d.IDs)
		d.IDs = append(d.IDs, u.Completion...)
		fill(&d, u, true, from, len(d.IDs))
	}
	return d
}

func streamOf(k episode.TurnKind) grpo.Stream {
	switch k {
	case episode.ActionTurn:
		return grpo.Action
	case episode.ReviewTurn:
		return grpo.Review
	default:
		panic(fmt.Sprintf("train: no stream for %v", k))
	}
}

// policyData lays the advantages of groups over the ids as they were sampled. advantages and trajectories correspond by
// index. Trajectories whose turns have no ids or no sampling log-probabilities are an error: nothing can be learnt
// from a message-only policy.
func policyData(ts []episode.Trajectory, adv []grpo.Advantage, a grpo.Aggregation, lambda float64) ([]grpo.Datum, error) {
	counts := make([]grpo.Counts, len(ts))
	for i, t := range ts {
		for k, u := range t.Turns {
			if len(u.Completion) == 0 || len(u.LogProbs) != len(u.Completion) {
				return nil, fmt.Errorf("turn %d of %s has %d ids and %d log-probabilities: learning needs a policy that gives both",
					k+1, t.Task.ID, len(u.Completion), len(u.LogProbs))
			}
			switch {
			case u.Kind == episode.ActionTurn:
				counts[i].Action = append(counts[i].Action, len(u.Completion))
			case adv[i].ReviewMeasured:
				counts[i].Review = len(u.Completion)
			}
		}
	}
	weights := grpo.Weigh(counts, a, lambda)
	var out []grpo.Datum
	for i, t := range ts {
		turn := 0
		for _, turns := range sequences(t) {
			var logProbs []float32
			d := row(turns, func(d *grpo.Datum, u episode.Turn, chosen bool, from, to int) {
				if !chosen {
					logProbs = append(logProbs, make([]float32, to-from)...)
					return
				}
				logProbs = append(logProbs, u.LogProbs...)
				var w, value float64
				switch {
				case u.Kind == episode.ActionTurn:
					w, value = weights[i].Action[turn], adv[i].Action
					turn++
				case adv[i].ReviewMeasured:
					w, value = weights[i].Review, adv[i].Review*weights[i].ReviewScale
				}
				for p := from; p < to; p++ {
					d.Stream[p], d.Weight[p], d.Advantage[p] = streamOf(u.Kind), float32(w), float32(value)
				}
			})
			d.LogProb = logProbs
			if err := checkRow(d); err != nil {
				return nil, fmt.Errorf("an episode of %s: %w", t.Task.ID, err)
			}
			out = append(out, d)
		}
	}
	return out, nil
}

// checkRow reports what must not reach a loss: arrays of unequal length, weight on an id that the policy did not choose, a
// sampling log-probability that is none.
func checkRow(d grpo.Datum) error {
	if err := d.Check(); err != nil {
		return err
	}
	for i, s := range d.Stream {
		if s == grpo.Context && d.Weight[i] != 0 {
			return fmt.Errorf("id %d of %d has weight %v, and the policy did not choose it", i, len(d.IDs), d.Weight[i])
		}
		if l := d.LogProb[i]; !(l <= 1e-3) || l-l != 0 { // rounding may leave a little above 0
			return fmt.Errorf("id %d of %d has the log-probability %v", i, len(d.IDs), l)
		}
	}
	return nil
}

// cloneData lays demonstrations out for cross-entropy: weight 1 on the expert's ids (not on deliberate mistakes), the
// given weight on what the world answered, 0 on the first prompt; a weighted mean over the batch. Sequences longer than
// context lose their tail; their number is returned.
func cloneData(ts []episode.Trajectory, observation float64, context int) (data []grpo.Datum, cut int) {
	var total float64
	for _, t := range ts {
		for _, turns := range sequences(t) {
			d := row(turns, func(d *grpo.Datum, u episode.Turn, chosen bool, from, to int) {
				w := 1.0
				switch {
				case chosen && u.Noise, !chosen && from == 0:
					w = 0
				case !chosen:
					w = observation
				}
				for p := from; p < to; p++ {
					if chosen {
						d.Stream[p] = streamOf(u.Kind)
					}
					d.Weight[p] = float32(w)
				}
			})
			if len(d.IDs) > context {
				cut++
				d.IDs, d.Stream, d.Weight, d.Advantage = d.IDs[:context], d.Stream[:context], d.Weight[:context], d.Advantage[:context]
			}
			for _, w := range d.Weight {
				total += float64(w)
			}
			data = append(data, d)
		}
	}
	for _, d := range data {
		for p := range d.Weight {
			d.Weight[p] = float32(float64(d.Weight[p]) / total)
		}
	}
	return data, cut
}
