package main

import (
	"strings"
	"testing"

	"skillmaster/train"
)

func TestEvaluationWithoutSuccessIsPrintedSo(t *testing.T) {
	e := train.Evaluation{Panel: "report", Results: []train.Result{{Task: "t", Family: "f", Steps: 50}}}
	var out strings.Builder
	if err := (&evalCmd{}).print(&out, []scored{{Evaluation: e, Summaries: e.Summaries()}}); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[2:] {
		if !strings.HasSuffix(strings.TrimSpace(line), "–") {
			t.Errorf("%q: steps of no success are a number", line)
		}
	}
}
