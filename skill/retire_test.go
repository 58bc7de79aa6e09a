package skill

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
)

func TestPins(t *testing.T) {
	b := kitchen(t)
	all := Permission{Shown: b.IDs()}
	plain := b.Hash()
	apply := func(op Op, id string, want Outcome) {
		t.Helper()
		next, o := b.Apply(Edit{Op: op, ID: id}, all)
		if o != want || (next.Hash() != b.Hash()) != (o == Updated || o == Retired) {
			t.Fatalf("%v %s: %v, want %v", op, id, o, want)
		}
		b = next
	}
	apply(Unpin, "coo_001", Unchanged)
	apply(Pin, "nobody", NotFound)
	apply(Pin, "", InvalidArguments)
	apply(Pin, "Find the mug", Updated)
	apply(Pin, "coo_001", Unchanged)
	apply(Retire, "coo_001", Unchanged)
	apply(Pin, "cle_001", Updated)
	if got := b.Pins(); !slices.Equal(got, []string{"cle_001", "coo_001"}) || !b.Pinned("coo_001") || b.Pinned("coo_002") {
		t.Errorf("pins %v", got)
	}
	data, err := json.Marshal(b)
	var back Bank
	if err != nil || json.Unmarshal(data, &back) != nil || back.Hash() != b.Hash() || !slices.Equal(back.Pins(), b.Pins()) {
		t.Errorf("pins do not come back: %s (%v)", data, err)
	}
	apply(Unpin, "coo_001", Updated)
	apply(Unpin, "cle_001", Updated)
	if b.Hash() != plain {
		t.Error("a bank that was unpinned is not what it was")
	}
	apply(Retire, "coo_001", Retired)
	for _, bad := range []string{`{"pinned_skills":["x"]}`, `{"general_skills":[{"skill_id":"a","title":"t","principle":"p"}],"pinned_skills":["a","a"]}`, `{"pinned_skills":[1]}`, `{"pinned_skills":"a"}`} {
		if json.Unmarshal([]byte(bad), &back) == nil {
			t.Errorf("%s passes", bad)
		}
	}
}

func TestSurplus(t *testing.T) {
	b := kitchen(t) // gen_001, cle_001, coo_001, coo_002
	worth := map[string]Worth{
		"gen_001": {Uses: 50, Effect: -0.2}, "cle_001": {Uses: 9, Effect: -0.9}, "coo_001": {Uses: 10, Effect: 0.1}, "coo_002": {Uses: 80, Effect: math.NaN()},
	}
	pinned, _ := b.Apply(Edit{Op: Pin, ID: "gen_001"}, Permission{Shown: b.IDs()})
	for _, c := range []struct {
		name  string
		b     Bank
		limit int
		want  []string
	}{
		{"no limit", b, 0, nil},
		{"within the limit", b, 4, nil},
		{"one too many", b, 3, []string{"gen_001"}},
		{"the worst first", b, 2, []string{"gen_001", "coo_001"}},
		{"those without a measurement stay", b, 1, []string{"gen_001", "coo_001"}},
		{"a pinned one stays", pinned, 3, []string{"coo_001"}},
	} {
		if got := Surplus(c.b, c.limit, 10, worth); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestSupersede(t *testing.T) {
	b := must(t, Skill{"a", "c", "A", "Always open the fridge.", ""}, Skill{"b", "c", "B", "Close every drawer.", ""})
	after, o := b.Apply(Edit{Op: Propose, Category: "c", Title: "N", Principle: "Never open the fridge."}, Permission{})
	if o != Added {
		t.Fatal(o)
	}
	got, gone := after.Supersede("dyn_001")
	if !slices.Equal(gone, []string{"a"}) || !slices.Equal(got.IDs(), []string{"b", "dyn_001"}) || len(got.Archived()) != 1 {
		t.Errorf("superseded %v, left %v", gone, got.IDs())
	}
	if got.Changed(b) != "dyn_001" {
		t.Errorf("the changed skill is %q", got.Changed(b))
	}
	pinned, _ := after.Apply(Edit{Op: Pin, ID: "a"}, Permission{Shown: after.IDs()})
	if got, gone := pinned.Supersede("dyn_001"); len(gone) > 0 || got.Hash() != pinned.Hash() {
		t.Errorf("a pinned skill went: %v", gone)
	}
	if got, gone := after.Supersede("nobody"); len(gone) > 0 || got.Hash() != after.Hash() {
		t.Errorf("superseded by nobody: %v", gone)
	}
}
