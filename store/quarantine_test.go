package store

import (
	"errors"
	"testing"

	"skillmaster/skill"
	"skillmaster/train"
)

// What others propose waits on a branch: the run's bank, its digest and what training goes on from stay as they are.
func TestQuarantine(t *testing.T) {
	r := newRun(t)
	keep(t, r, 0, 1, 2)
	digest := digestOf(t, r)
	headHash, err := r.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, err := View(t.Context(), r.Dir(), clock()) // another process
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	propose := func(e skill.Edit, want skill.Outcome) Guest {
		t.Helper()
		g, err := v.Propose(t.Context(), e, "somebody")
		if err != nil {
			t.Fatal(err)
		}
		if g.Outcome != want || (g.Number > 0) != (want == skill.Added || want == skill.Updated) {
			t.Errorf("%+v, want %v", g, want)
		}
		return g
	}
	added := propose(proposal(7), skill.Added)
	propose(proposal(7), skill.Duplicate)
	propose(skill.Edit{Op: skill.Update, ID: "dyn_002", Title: "T", Principle: "It is of the branch alone."}, skill.NotFound)
	updated := propose(skill.Edit{Op: skill.Update, ID: "dyn_001", Title: "Other", Principle: "Something else altogether."}, skill.Updated)
	propose(skill.Edit{Op: skill.Keep}, skill.Kept)
	branch, head, err := v.Branch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if head.Hash() != headHash || branch.Len() != head.Len()+1 {
		t.Errorf("the branch has %d skills, the bank %d", branch.Len(), head.Len())
	}
	if s, _ := branch.Skill("dyn_001"); s.Title != "Other" {
		t.Errorf("the branch has %+v", s)
	}
	if got := digestOf(t, r); got != digest {
		t.Error("quarantine changes the run's digest")
	}
	if err := v.Decide(t.Context(), updated.Number, Refused, "it does harm", []train.Test{{Why: "it does harm"}}); err != nil {
		t.Fatal(err)
	}
	if err := v.Decide(t.Context(), updated.Number, Committed, "", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("decided twice: %v", err)
	}
	guests, err := r.Guests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(guests) != 2 || guests[0].Number != added.Number || guests[0].State != Waiting || guests[1].State != Refused || len(guests[1].Tests) != 1 || !guests[0].Made.Equal(added.Made) {
		t.Errorf("%+v", guests)
	}
	if branch, _, _ = v.Branch(t.Context()); branch.Len() != head.Len()+1 {
		t.Error("what was refused is still on the branch, or what waits is not")
	}
	yes := true
	for _, f := range []Feedback{{Skills: []string{"dyn_001"}, Success: &yes, Author: "a"}, {Skills: []string{"x"}, Note: "n"}} {
		if err := v.Hear(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	heard, err := r.Heard(t.Context())
	if err != nil || len(heard) != 2 || heard[0].Success == nil || !*heard[0].Success || heard[1].Success != nil || heard[0].Bank != headHash {
		t.Errorf("%+v, %v", heard, err)
	}
}
