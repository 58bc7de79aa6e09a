package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skillmaster/skill"
	"skillmaster/store"
)

// What others propose is judged by the run's policy and gate: by the rule that asks for no evidence it becomes part of the
// bank, by the others it is refused with why; either way it is decided once.
func TestBankJudge(t *testing.T) {
	for rule, want := range map[string]store.GuestState{"always": store.Committed, "e-process": store.Refused} {
		t.Run(rule, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			must(t, 0, "train", "--preset", "smoke", "--run", dir, "--iterations", "1", "--set", "train.gate.rule="+rule, "--set", "train.gate.pairs=4", "--set", "train.gate.tasks=2",
				"--set", "train.warm.updates=2", "--set", "train.warm.round=2", "--set", `world.sizes={"gate":24,"probe":24,"report":12,"train":24,"valid":12,"warm":24}`, "--set", "train.probe.candidates=1")
			run, err := store.View(t.Context(), dir, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			before, err := run.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			guest := skill.Edit{Op: skill.Propose, Category: skill.General, Title: "Count saucers", Principle: "Count every saucer twice."}
			if _, err := run.Propose(t.Context(), guest, "somebody"); err != nil {
				t.Fatal(err)
			}
			if out, _ := must(t, 0, "bank", "judge", "--run", dir, "--list"); !strings.Contains(out, "waiting") {
				t.Errorf("it lists %s", out)
			}
			var got []store.Guest
			out, _ := must(t, 0, "bank", "judge", "--run", dir, "--json")
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || got[0].State != want || len(got[0].Tests) == 0 || (want == store.Refused) != (got[0].Why != "") {
				t.Errorf("%+v", got)
			}
			after, err := run.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if (after != before) != (want == store.Committed) {
				t.Errorf("the bank was %s and is %s", before, after)
			}
			if out, _ := must(t, 0, "bank", "judge", "--run", dir); !strings.Contains(out, "nothing is in quarantine") {
				t.Errorf("judged again: %s", out)
			}
			if out, _ := must(t, 0, "bank", "check", "--run", dir); out == "" {
				t.Error("bank check is silent")
			}
		})
	}
}
