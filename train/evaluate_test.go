package train

import (
	"encoding/json"
	"strings"
	"testing"

	"skillmaster/env/envtest"
	"skillmaster/episode"
	"skillmaster/rollout"
	"skillmaster/skill"
)

// The steps of successes that did not happen are not measured, and not 0.
func TestStepsOfNoSuccess(t *testing.T) {
	e := Evaluation{Results: []Result{{Family: "f", Success: true, Steps: 8}, {Family: "f", Steps: 50}, {Family: "g", Steps: 50}}}
	all := e.Summaries()
	for i, want := range []string{`"won":8`, `"won":8`, ""} {
		b, err := json.Marshal(all[i])
		if err != nil {
			t.Fatal(err)
		}
		if want == "" && strings.Contains(string(b), "won") || !strings.Contains(string(b), want) {
			t.Errorf("family %s: %s", all[i].Family, b)
		}
	}
}

// The policy's version is that of the episodes that it took a turn in, whichever comes last.
func TestEvaluationNamesItsPolicy(t *testing.T) {
	ts := []episode.Trajectory{{PolicyVersion: 7}, {PolicyVersion: -1, Stop: episode.ContextFull}}
	e := evaluation(&rollout.Player{Suite: envtest.World{}}, episode.Panel{}, skill.Bank{}, 1, ts, false)
	if e.PolicyVersion != 7 {
		t.Errorf("policy version %d, want 7", e.PolicyVersion)
	}
}
