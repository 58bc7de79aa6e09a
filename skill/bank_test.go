package skill

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func must(t testing.TB, skills ...Skill) Bank {
	t.Helper()
	b, err := New(skills, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// kitchen is a bank of one general skill and two shelves.
func kitchen(t testing.TB) Bank {
	return must(t,
		Skill{"cle_001", "clean", "Wash first", "Wash a dirty plate in the sink.", "the task says clean"},
		Skill{"gen_001", General, "Look around", "Visit every closed place once.", ""},
		Skill{"coo_001", "cool", "Find the mug", "Look for a mug in the coffeemachine first.", "the task names a mug"},
		Skill{"coo_002", "cool", "Find the apple", "Look for an apple in the fridge first.", ""},
	)
}

var anyone = Permission{Shown: []string{"cle_001", "gen_001", "coo_001", "coo_002"}, Category: "cool"}

func TestBankOrder(t *testing.T) {
	b := kitchen(t)
	if got, want := b.IDs(), []string{"gen_001", "cle_001", "coo_001", "coo_002"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if got, want := b.Categories(), []string{General, "clean", "cool"}; !slices.Equal(got, want) {
		t.Errorf("categories %v, want %v", got, want)
	}
	b, outcome := b.Apply(Edit{Op: Propose, Category: General, Title: "Count", Principle: "Count what was put away."}, anyone)
	if got, want := b.IDs(), []string{"gen_001", "dyn_001", "cle_001", "coo_001", "coo_002"}; outcome != Added || !slices.Equal(got, want) {
		t.Errorf("after a general proposal %v (%v), want %v", got, outcome, want)
	}
}

func TestZeroBank(t *testing.T) {
	var b Bank
	if b.Len() != 0 || b.Hash() != must(t).Hash() || b.Changed(b) != "" || len(b.IDs()) != 0 {
		t.Errorf("the zero bank is not the empty one: %v, %v", b.Len(), b.Hash())
	}
	data, err := json.Marshal(b)
	var back Bank
	if err != nil || json.Unmarshal(data, &back) != nil || back.Hash() != b.Hash() {
		t.Errorf("the zero bank does not come back: %s, %v", data, err)
	}
}

func TestApplyOutcomes(t *testing.T) {
	b := kitchen(t)
	propose := func(category, title, principle string) Edit {
		return Edit{Op: Propose, Category: category, Title: title, Principle: principle}
	}
	update := func(id, title, principle, when string) Edit {
		return Edit{Op: Update, ID: id, Title: title, Principle: principle, When: when}
	}
	for _, c := range []struct {
		name string
		edit Edit
		want Outcome
	}{
		{"keep", Edit{Op: Keep, Reason: "covered"}, Kept},
		{"propose", propose("cool", "Open it", "Open the fridge before you cool anything."), Added},
		{"propose to general", propose(General, "Open it", "Open what is closed."), Added},
		{"propose to another shelf", propose("heat", "Open it", "Open what is closed."), InvalidArguments},
		{"propose without category", propose("", "Open it", "Open what is closed."), InvalidArguments},
		{"propose without title", propose("cool", " \n", "Open what is closed."), InvalidArguments},
		{"propose without words", propose("cool", "Open it", "…!?"), InvalidArguments},
		{"propose a long title", propose("cool", strings.Repeat("é", 81), "Open."), InvalidArguments},
		{"propose a title that just fits", propose("cool", strings.Repeat("é", 80), "Open."), Added},
		{"propose a long principle", propose("cool", "Open", strings.Repeat("a", 401)), InvalidArguments},
		{"propose a title that is there", propose("cool", "  find THE mug! ", "Something else altogether."), Duplicate},
		{"propose a principle that is there", propose("cool", "Mugs", "look for a mug in the coffeemachine first"), Duplicate},
		{"propose it in almost the same words", propose("cool", "Mugs", "First, look for the mug in a coffeemachine."), Duplicate},
		{"propose what general says", propose("cool", "Wander", "Visit every closed place once."), Duplicate},
		{"propose for general what a shelf says", propose(General, "Wash first", "Use soap."), Duplicate},
		{"propose what another shelf says", propose("cool", "Wash first", "Wash a dirty plate in the sink."), Added},
		{"propose another place", propose("cool", "Mugs again", "Look for a mug in the cabinet first."), Added},
		{"update by id", update("coo_001", "Find the mug", "Look for a mug in the cabinet first.", ""), Updated},
		{"update by title", update("Find the mug", "Find the mug", "Look for a mug in the cabinet first.", ""), Updated},
		{"update what is not there", update("coo_009", "A", "Be quick.", ""), NotFound},
		{"update by a title in another case", update("find the mug", "A", "Be quick.", ""), NotFound},
		{"update without id", update("", "A", "Be quick.", ""), InvalidArguments},
		{"update without principle", update("coo_001", "A", "", ""), InvalidArguments},
		{"update to nothing new", update("coo_001", "find the mug.", " Look for a mug in the coffeemachine first ", "The task names a mug"), Unchanged},
		{"update the condition alone", update("coo_001", "Find the mug", "Look for a mug in the coffeemachine first.", ""), Updated},
		{"update to another's title", update("coo_001", "Find the apple", "Look in the cabinet.", ""), Duplicate},
		{"update to another's principle", update("coo_001", "Find the mug", "Look for an apple in the fridge first.", ""), Duplicate},
		{"move to another shelf", Edit{Op: Update, ID: "coo_001", Category: "clean", Title: "Find the mug", Principle: "Look."}, InvalidArguments},
		{"move to general", Edit{Op: Update, ID: "coo_001", Category: General, Title: "Find the mug", Principle: "Look for a mug."}, Updated},
		{"retire", Edit{Op: Retire, ID: "coo_001"}, Retired},
		{"retire what is not there", Edit{Op: Retire, ID: "x"}, NotFound},
		{"retire nothing", Edit{Op: Retire}, InvalidArguments},
		{"no such operation", Edit{Op: 9}, InvalidArguments},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, hash := b.Skills(), b.Hash()
			after, got := b.Apply(c.edit, anyone)
			if got != c.want {
				t.Fatalf("outcome %v, want %v", got, c.want)
			}
			if !slices.Equal(b.Skills(), before) || b.Hash() != hash || b.content().sum() != hash {
				t.Error("the bank itself changed")
			}
			changed := got == Added || got == Updated || got == Retired
			if (after.Hash() != hash) != changed {
				t.Errorf("hash before %s, after %s", hash, after.Hash())
			}
		})
	}
}

func TestOnlyWhatWasShownMayChange(t *testing.T) {
	b := kitchen(t)
	for _, e := range []Edit{
		{Op: Update, ID: "coo_002", Title: "A", Principle: "Be quick."},
		{Op: Update, ID: "Find the apple", Title: "A", Principle: "Be quick."},
		{Op: Retire, ID: "coo_002"},
	} {
		if _, o := b.Apply(e, Permission{Shown: []string{"coo_001"}, Category: "cool"}); o != NotFound {
			t.Errorf("%+v: %v", e, o)
		}
		if _, o := b.Apply(e, Permission{Category: "cool"}); o != NotFound {
			t.Errorf("nothing shown, %+v: %v", e, o)
		}
	}
}

func TestAmbiguousTitle(t *testing.T) {
	b := must(t,
		Skill{"a", "heat", "Find the mug", "Look for a mug in the drawer first.", ""},
		Skill{"b", "cool", "Find the mug", "Look for a mug in the cabinet first.", ""})
	e := Edit{Op: Update, ID: "Find the mug", Title: "Find the mug", Principle: "Look for a mug on the shelf first."}
	if _, o := b.Apply(e, Permission{Shown: []string{"a", "b"}}); o != Ambiguous {
		t.Errorf("two bear the title: %v", o)
	}
	after, o := b.Apply(e, Permission{Shown: []string{"b"}})
	if o != Updated || after.Changed(b) != "b" {
		t.Errorf("one that bears the title was shown: %v", o)
	}
}

func TestCategories(t *testing.T) {
	e := Edit{Op: Propose, Category: "heat", Title: "A", Principle: "Be quick."}
	for _, c := range []struct {
		p    Permission
		want Outcome
	}{
		{Permission{}, Added},
		{Permission{Category: "heat"}, Added},
		{Permission{Categories: []string{"cool", "heat"}}, Added},
		{Permission{Category: "cool"}, InvalidArguments},
		{Permission{Category: "cool", Categories: []string{"clean"}}, InvalidArguments},
	} {
		if _, o := (Bank{}).Apply(e, c.p); o != c.want {
			t.Errorf("%+v: %v, want %v", c.p, o, c.want)
		}
	}
}

func TestLimits(t *testing.T) {
	e := Edit{Op: Propose, Category: "c", Title: "A", Principle: "Take the cheapest red shoe that is left over here."}
	b, o := (Bank{}).Apply(e, Permission{Limits: Limits{Principle: 20}})
	if o != InvalidArguments {
		t.Errorf("a principle over the limit: %v", o)
	}
	b, _ = b.Apply(e, Permission{})
	e.Title, e.Principle = "B", "Take the cheapest blue shoe that is left over here."
	if _, o := b.Apply(e, Permission{Limits: Limits{Similarity: 0.7}}); o != Duplicate {
		t.Errorf("alike at 0.7: %v", o)
	}
	if _, o := b.Apply(e, Permission{}); o != Added {
		t.Errorf("not alike at 0.9: %v", o)
	}
}

// Two banks, three rounds of three proposals each, retirements between: no id twice, also after going back to an
// earlier bank and through a file.
func TestIDsAreNeverReused(t *testing.T) {
	seen := map[string]bool{}
	b := must(t, Skill{"dyn_007", "c", "Old", "Be old.", ""})
	old := b
	seen["dyn_007"] = true
	n := 0
	for round := range 4 {
		for range 3 {
			n++
			next, o := b.Apply(Edit{Op: Propose, Category: "c", Title: fmt.Sprint("T", n), Principle: fmt.Sprint("P", n)}, Permission{})
			id := next.Changed(b)
			if o != Added || seen[id] {
				t.Fatalf("round %d: %v, id %q again", round, o, id)
			}
			seen[id], b = true, next
		}
		next, o := b.Apply(Edit{Op: Retire, ID: b.IDs()[b.Len()-1]}, Permission{Shown: b.IDs()})
		if o != Retired {
			t.Fatal(o)
		}
		b = next
		switch round {
		case 1:
			b = reread(t, b)
		case 2:
			b = reread(t, old.Continue(b))
		}
	}
	if len(seen) != 13 {
		t.Errorf("%d ids, want 13", len(seen))
	}
}

func reread(t *testing.T, b Bank) Bank {
	t.Helper()
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var back Bank
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if back.Hash() != b.Hash() || !slices.Equal(back.Skills(), b.Skills()) || !slices.Equal(back.Archived(), b.Archived()) {
		t.Fatalf("the bank came back changed: %s", data)
	}
	return back
}

func TestRetireArchives(t *testing.T) {
	b := kitchen(t)
	after, _ := b.Apply(Edit{Op: Retire, ID: "coo_001"}, anyone)
	if a := after.Archived(); len(a) != 1 || a[0].ID != "coo_001" || after.Len() != 3 {
		t.Errorf("archive %v of %d skills", a, after.Len())
	}
	if _, ok := after.Skill("coo_001"); ok {
		t.Error("an archived skill is found")
	}
	for _, s := range Retrieve(after, Query{Category: "cool", Must: []string{"coo_001"}}) {
		if s.ID == "coo_001" {
			t.Error("an archived skill is retrieved")
		}
	}
	if _, o := after.Apply(Edit{Op: Update, ID: "coo_001", Title: "A", Principle: "Be quick."}, anyone); o != NotFound {
		t.Errorf("update of an archived skill: %v", o)
	}
	reread(t, after)
}

// Candidates of one bank share nothing that either of them can change.
func TestCandidatesAreApart(t *testing.T) {
	b := Bank{}
	propose := func(b Bank, category string) Bank {
		after, o := b.Apply(Edit{Op: Propose, Category: category, Title: "Of " + category, Principle: "About " + category}, Permission{})
		if o != Added {
			t.Fatal(o)
		}
		return after
	}
	for i := range 20 {
		x, y := propose(b, fmt.Sprint("x", i)), propose(b, fmt.Sprint("y", i))
		if x.content().sum() != x.Hash() || x.Skills()[i].Category != fmt.Sprint("x", i) {
			t.Fatalf("%d skills: the second candidate changed the first", i)
		}
		b = []Bank{x, y}[i%2]
	}
}

// The hash of this bank is part of every journal: if it changes, so does the format, and its version has to.
func TestHashIsStable(t *testing.T) {
	const want = "4b18022c9dad8c11d97f24da4eb066a097b3566686df504cd82b26bd36c8b1fe"
	if got := kitchen(t).Hash(); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
	skills := kitchen(t).Skills()
	slices.Reverse(skills)
	if must(t, skills...).Hash() == want {
		t.Error("the order of skills does not show in the hash")
	}
}

// Any sequence of edits leaves a bank that is sound, comes back from JSON and owes nothing to the banks before it.
func TestRandomEdits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		return []string{"mug", "plate", "drawer", "never", "first", "open", "</think>", "\x00"}[r.IntN(8)]
	}
	var b Bank
	counts := map[Outcome]int{}
	for range 1500 {
		e := Edit{Op: Op(r.IntN(4)), Category: []string{"a", "b", General, "x y"}[r.IntN(4)], Title: word() + " " + word(), Principle: word() + " " + word() + " " + word()}
		if n := b.Len(); n > 0 && r.IntN(4) > 0 {
			s := b.Skills()[r.IntN(n)]
			e.ID = []string{s.ID, s.Title, "none"}[r.IntN(3)]
			if r.IntN(8) == 0 {
				e.Title, e.Principle, e.Category = s.Title, s.Principle, ""
				if e.Op == Propose {
					e.Category = s.Category
				}
			}
		}
		before := b.Hash()
		after, o := b.Apply(e, Permission{Shown: b.IDs()})
		counts[o]++
		if b.content().sum() != before {
			t.Fatal("an edit changed its bank")
		}
		if _, err := New(after.Skills(), nil); err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		b = after
	}
	reread(t, b)
	for _, o := range []Outcome{Kept, Added, Updated, Retired, Unchanged, Duplicate, NotFound, InvalidArguments} {
		if counts[o] == 0 {
			t.Errorf("no edit came out as %v", o)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	good := Skill{"a", "c", "Title", "Principle.", ""}
	for name, change := range map[string]func(*Skill){
		"no title":      func(s *Skill) { s.Title = "" },
		"no principle":  func(s *Skill) { s.Principle = "" },
		"no category":   func(s *Skill) { s.Category = "" },
		"bad category":  func(s *Skill) { s.Category = "a\nb" },
		"bad id":        func(s *Skill) { s.ID = "a]b" },
		"hostile title": func(s *Skill) { s.Title = "<|im_end|>" },
	} {
		s := good
		change(&s)
		if _, err := New([]Skill{s}, nil); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if _, err := New([]Skill{good, good}, nil); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("an id that is there twice: %v", err)
	}
	if _, err := New(nil, []Mistake{{Description: "a\x1bb"}}); err == nil {
		t.Error("a mistake with an escape character passes")
	}
	b := must(t, Skill{Category: "c", Title: "A", Principle: "Be quick."}, Skill{"dyn_004", "c", "B", "Be slow.", ""})
	if got := b.IDs(); !slices.Equal(got, []string{"dyn_005", "dyn_004"}) {
		t.Errorf("ids given: %v", got)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		" a\n\tb \r\n": "a b", "a\u2028b\u00a0c\u0085": "a b c", "price < $50 & > 3": "price < $50 & > 3", "né 好": "né 好",
		"family \U0001f468\u200d\U0001f469": "family \U0001f468\u200d\U0001f469", "put [Target_Object] down": "put [Target_Object] down", "a | b": "a | b", "{about travel} {{.}}": "{about travel} {{.}}",
	} {
		got, err := clean(in, 80)
		if err != nil || got != want {
			t.Errorf("clean(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{
		"a\x00b", "a\x1b[31mb", "\xff", "a\ufffdb", "a\u200bb", "a\u202eb", "a\ufeff", "\U000e0041", "\ue000",
		"</tool_call>", "< / not", "<think>", "<tool_call", "<|im_end|>", "<|", "< |x| >", "|>", "<｜end▁of▁sentence｜>", "<s>", "<start_of_turn>",
		"<!--", "<?xml", "[INST]", "[/INST]", "<<SYS>>", "[TOOL_CALLS]", `{"name":"keep_skill"}`, "a { \"b\": {} }",
	} {
		if got, err := clean(in, 80); err == nil && in != "< / not" {
			t.Errorf("clean(%q) = %q passes", in, got)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"a\nb", "<|x|>", "a\u200db", "\xff", "< | >"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, err := clean(s, 100)
		if err != nil {
			return
		}
		if twice, err := clean(once, 100); err != nil || twice != once {
			t.Errorf("%q is cleaned to %q and that to %q (%v)", s, once, twice, err)
		}
		if strings.ContainsAny(once, "\n\r\x00") || strings.Contains(once, "</") || strings.Contains(once, "<|") {
			t.Errorf("%q is let through as %q", s, once)
		}
	})
}

func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b Skill
		want bool
	}{
		{"always and never", Skill{"a", "c", "A", "Always open the fridge first.", "cooling"}, Skill{"b", "c", "B", "Never open the fridge first.", "cooling"}, true},
		{"do and don't", Skill{"a", "c", "A", "Close the drawer behind you.", ""}, Skill{"b", "c", "B", "Don't close the drawer behind you.", ""}, true},
		{"two first places", Skill{"a", "c", "A", "Look for a mug in the drawer first.", ""}, Skill{"b", "c", "B", "Look for a mug in the cabinet first.", ""}, true},
		{"the other order", Skill{"a", "c", "A", "Search the drawer first, then the shelf.", ""}, Skill{"b", "c", "B", "Search the shelf first, then the drawer.", ""}, true},
		{"the same place", Skill{"a", "c", "A", "Look for a mug in the drawer first.", ""}, Skill{"b", "c", "B", "First look for the mug in the drawer.", ""}, false},
		{"other things", Skill{"a", "c", "A", "Look for a mug in the drawer first.", ""}, Skill{"b", "c", "B", "Look for a plate in the cabinet first.", ""}, false},
		{"other shelves", Skill{"a", "c", "A", "Always open the fridge.", ""}, Skill{"b", "d", "B", "Never open the fridge.", ""}, false},
		{"general and a shelf", Skill{"a", General, "A", "Always open the fridge.", ""}, Skill{"b", "d", "B", "Never open the fridge.", ""}, true},
		{"other times", Skill{"a", "c", "A", "Always open the fridge.", "cooling an apple"}, Skill{"b", "c", "B", "Never open the fridge.", "heating soup"}, false},
		{"both negative", Skill{"a", "c", "A", "Never open the fridge.", ""}, Skill{"b", "c", "B", "Do not open the fridge.", ""}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := must(t, c.a)
			want := []string(nil)
			if c.want {
				want = []string{"a"}
			}
			if got := Conflicts(b, c.b); !slices.Equal(got, want) {
				t.Errorf("conflicts %v, want %v", got, want)
			}
			if got := Conflicts(must(t, c.b), c.a); (len(got) > 0) != c.want {
				t.Errorf("the other way round: %v", got)
			}
			e := Edit{Op: Propose, Category: c.b.Category, Title: c.b.Title, Principle: c.b.Principle, When: c.b.When}
			if _, o := b.Apply(e, Permission{}); c.want && o != Added {
				t.Errorf("a contradiction is refused as %v", o)
			}
		})
	}
	if got := Conflicts(kitchen(t), kitchen(t).Skills()[2]); len(got) != 0 {
		t.Errorf("a skill contradicts itself: %v", got)
	}
}

func TestNames(t *testing.T) {
	for _, o := range Outcomes() {
		data, err := json.Marshal(o)
		var back Outcome
		if err != nil || json.Unmarshal(data, &back) != nil || back != o || string(data) != `"`+o.String()+`"` {
			t.Errorf("%v came back as %v", o, back)
		}
	}
	for o := range ops {
		data, err := json.Marshal(o)
		var back Op
		if err != nil || json.Unmarshal(data, &back) != nil || back != o {
			t.Errorf("%v came back as %v", o, back)
		}
	}
	var o Outcome
	var p Op
	var how Retrieval
	for m := range modes {
		data, err := json.Marshal(m)
		var back Mode
		if err != nil || json.Unmarshal(data, &back) != nil || back != m {
			t.Errorf("%v came back as %v", m, back)
		}
	}
	for _, bad := range []string{`"Added"`, `""`, `3`} {
		if json.Unmarshal([]byte(bad), &o) == nil || json.Unmarshal([]byte(bad), &p) == nil || json.Unmarshal([]byte(bad), &how) == nil {
			t.Errorf("%s passes", bad)
		}
	}
	if _, err := json.Marshal(outcomes); err == nil {
		t.Error("an outcome that is none is written")
	}
	var s Skill
	for _, bad := range []string{`{"skill_id":1}`, `{"Title":"a"}`, `{"title":"a","title":"b"}`, `[]`, `{"utility":"1"}`} {
		if json.Unmarshal([]byte(bad), &s) == nil {
			t.Errorf("the skill %s passes", bad)
		}
	}
	want := kitchen(t).Skills()[1]
	if data, err := json.Marshal(want); err != nil || json.Unmarshal(data, &s) != nil || s != want {
		t.Errorf("a skill came back as %+v", s)
	}
}
