// Package track gives a run's records to the tools that others keep experiments in: TensorBoard, MLflow, Prometheus, and
// whatever reads JSON lines or Parquet. Every form is made from what the run has stored, so that it may be made again at
// any time: what a tool has already is not given twice, and what the run took back is taken back, where the tool can.
package track

import (
	"maps"
	"slices"
	"time"

	"skillmaster/report"
	"skillmaster/store"
)

// Round is what one round came to, as points of curves. Other tools call a point's place its step: here, that is the
// report's sequence number.
type Round struct {
	store.Kept
	Values    map[string]float64 // finite numbers; what was not measured is not there
	NotFinite []string           // keys that were measured and came to no finite number, sorted
}

// Keys are those of the values, sorted.
func (r Round) Keys() []string { return slices.Sorted(maps.Keys(r.Values)) }

// Rounds are a run's rounds, in their order: metrics, wall times, and the panel scores of evaluations that training made
// itself, as panel/NAME_success and panel/NAME_steps (means over the panel's tasks). Evaluations made apart belong to no
// round and are not there.
func Rounds(h *report.History) []Round {
	out := make([]Round, len(h.Rounds))
	place := map[int]int{}
	for i, n := range h.Rounds {
		values := maps.Clone(n.Metrics)
		if values == nil {
			values = map[string]float64{}
		}
		maps.Copy(values, n.Seconds)
		out[i] = Round{Kept: n.Kept, Values: values, NotFinite: n.NotFinite}
		place[n.Report] = i
	}
	for _, e := range h.Valid() {
		i, known := place[e.Report]
		if !known || len(e.Results) == 0 {
			continue // of a round that was kept after the others were read, or without tasks: it has no mean
		}
		s := e.Summary()
		out[i].Values["panel/"+e.Panel+"_success"], out[i].Values["panel/"+e.Panel+"_steps"] = s.Rate, s.Steps
	}
	return out
}

// seconds is a moment as Unix time.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
