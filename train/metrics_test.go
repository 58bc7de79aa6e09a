package train

import (
	"math"
	"testing"

	"skillmaster/probe"
	"skillmaster/skill"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Two skills before, one added and one retired since: churn 2/2.
func TestBankMetricsByHand(t *testing.T) {
	var b skill.Bank
	for _, title := range []string{"Open", "Wash"} {
		b, _ = b.Apply(skill.Edit{Op: skill.Propose, Category: "c", Title: title, Principle: title + " it."}, skill.Permission{})
	}
	m := map[string]float64{}
	bankMetrics(m, 2, b, nil, []skill.Commit{{Outcome: skill.Added}, {Outcome: skill.Retired}})
	want := map[string]float64{"bank/skills": 2, "bank/archived": 0, "bank/change_added": 1, "bank/change_retired": 1, "bank/churn": 1}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
}

// Utilities of 1 and 3 have the mean 2 and, with the divisor n − 1, the deviation √2; what was not measured is in neither.
func TestProbeMetricsByHand(t *testing.T) {
	pair := func(before, after bool) probe.Pair {
		return probe.Pair{Before: probe.Score{Success: before, Steps: 5}, After: probe.Score{Success: after, Steps: 5}}
	}
	vs := []probe.Verdict{
		{Measured: true, Utility: 1, Mean: 0.5, Wins: 1, Unplayed: 2, Pairs: []probe.Pair{pair(false, true), pair(true, true)}},
		{Measured: true, Utility: 3, Mean: -0.5, Losses: 1, Hidden: 1, Pairs: []probe.Pair{pair(true, false)}},
		probe.NotMeasured("no room"),
	}
	for i := range vs {
		for k, p := range vs[i].Pairs {
			vs[i].Pairs[k].Delta = indicator(p.After.Success) - indicator(p.Before.Success)
		}
	}
	cfg := probe.Default()
	cfg.Horizon = 50
	m := map[string]float64{}
	probeMetrics(m, vs, probe.NewJudge(nil, cfg, 1))
	want := map[string]float64{
		"probe/edits": 3, "probe/measured": 2, "probe/measured_share": 2. / 3, "probe/played": 0, "probe/reused": 0, "probe/hidden": 1, "probe/unplayed": 2,
		"probe/flips_won": 1, "probe/flips_lost": 1, "probe/wins": 1, "probe/losses": 1,
		"probe/utility_mean": 2, "probe/utility_sd": math.Sqrt2, "probe/delta_mean": 0, "probe/pair_correlation": -0.5,
	}
	if diff := cmp.Diff(want, m, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Error(diff)
	}
}
