package skill

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func ids(skills []Skill) []string {
	var out []string
	for _, s := range skills {
		out = append(out, s.ID)
	}
	return out
}

// shelves is a bank of 12 general skills and 6 for cool; the newest of each come last.
func shelves(t testing.TB) Bank {
	var skills []Skill
	for i := range 12 {
		skills = append(skills, Skill{fmt.Sprintf("gen_%03d", i+1), General, fmt.Sprint("G", i), fmt.Sprintf("General advice %d.", i), ""})
	}
	for i := range 6 {
		skills = append(skills, Skill{fmt.Sprintf("coo_%03d", i+1), "cool", fmt.Sprint("C", i), fmt.Sprintf("Cold advice %d.", i), ""})
	}
	return must(t, append(skills, Skill{"hea_001", "heat", "H", "Hot advice.", ""})...)
}

func TestRetrieve(t *testing.T) {
	b := shelves(t)
	all := b.IDs()[:18]
	words := func(line string) int { return len(strings.Fields(line)) }
	for _, c := range []struct {
		name string
		q    Query
		want []string
	}{
		{"no budget", Query{Category: "cool"}, all},
		{"the newest of the shelf first", Query{Category: "cool", MaxSkills: 2}, []string{"coo_005", "coo_006"}},
		{"then general", Query{Category: "cool", MaxSkills: 8}, []string{"gen_011", "gen_012", "coo_001", "coo_002", "coo_003", "coo_004", "coo_005", "coo_006"}},
		{"a guaranteed slot", Query{Category: "cool", MaxSkills: 2, Must: []string{"gen_001"}}, []string{"gen_001", "coo_006"}},
		{"more guarantees than slots", Query{Category: "cool", MaxSkills: 1, Must: []string{"coo_002", "gen_001"}}, []string{"coo_002"}},
		{"a guarantee given twice", Query{Category: "cool", MaxSkills: 2, Must: []string{"coo_002", "coo_002"}}, []string{"coo_002", "coo_006"}},
		{"not of the category", Query{Category: "cool", MaxSkills: 1, Must: []string{"hea_001", "none"}}, []string{"coo_006"}},
		{"unknown category", Query{Category: "x"}, all[:12]},
		{"characters for two", Query{Category: "cool", Budget: 2 * len("[coo_006] C5: Cold advice 5.\n")}, []string{"coo_005", "coo_006"}},
		{"one too few", Query{Category: "cool", Budget: 2*len("[coo_006] C5: Cold advice 5.\n") - 1}, []string{"coo_006"}},
		{"a guarantee however long", Query{Category: "cool", Budget: 1, Must: []string{"coo_001"}}, []string{"coo_001"}},
		{"tokens", Query{Category: "cool", Budget: 11, Cost: words}, []string{"coo_005", "coo_006"}},
		{"tokens of the whole line", Query{Category: "cool", Budget: 11, Cost: words, Line: func(s Skill) string { return line(s) + " When: it is cold" }}, []string{"coo_006"}},
		{"by embedding", Query{How: Embedded, Category: "cool", MaxSkills: 2, Scores: map[string]float64{"gen_002": 0.9, "coo_003": 0.8, "hea_001": 1, "gen_001": -1}}, []string{"gen_002", "coo_003"}},
		{"by embedding, ties as on the shelf", Query{How: Embedded, Category: "cool", MaxSkills: 2}, []string{"coo_005", "coo_006"}},
		{"release", Query{How: Prefix, Category: "cool", TopK: 13}, all},
		{"release, top 6", Query{How: Prefix, Category: "cool", TopK: 6}, append(slices.Clone(all[:6]), all[12:]...)},
		{"by text", Query{How: Ranked, Category: "cool", Text: "advice 3", MaxSkills: 2}, []string{"gen_004", "coo_004"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 3 {
				if got := ids(Retrieve(b, c.q)); !slices.Equal(got, c.want) {
					t.Fatalf("got %v, want %v", got, c.want)
				}
			}
		})
	}
}

// A skill stands in the prompts of tasks that its condition speaks of, by stems and whatever it is guaranteed; one without a
// condition in all.
func TestMatched(t *testing.T) {
	b := must(t,
		Skill{"a_001", General, "Find the mug", "Look for a mug in the sink first.", "the task names a mug"},
		Skill{"a_002", General, "Find the plate", "Look for a plate on the shelf first.", "the task names two plates"},
		Skill{"a_003", General, "Doors", "Open doors.", " "},
		Skill{"a_004", General, "Chill", "Cool things in the fridge.", "cooling is asked for"},
		Skill{"a_005", "heat", "Warm", "Warm things.", "mugs"},
	)
	for goal, want := range map[string][]string{
		"put a mug on the desk":                {"a_001", "a_003"},
		"Put two Mugs on the desk.":            {"a_001", "a_002", "a_003"},
		"put a cool plate's lid on the task":   {"a_001", "a_002", "a_003", "a_004"}, // "task" is a word like others
		"look at the book under the desklamp.": {"a_003"},
		"":                                     {"a_001", "a_002", "a_003", "a_004"}, // nobody says what for
	} {
		if got := ids(Retrieve(b, Query{How: Matched, Category: "cool", Text: goal, Must: []string{"a_005"}})); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", goal, got, want)
		}
	}
	if got := ids(Retrieve(b, Query{How: Matched, Category: "cool", Text: "a mug", MaxSkills: 1, Must: []string{"a_003", "a_002"}})); !slices.Equal(got, []string{"a_003"}) {
		t.Errorf("with a guarantee: %v", got)
	}
}

// Of new general skills the release sees only what fits under its top 13; ours are seen at once.
func TestPrefixHidesNewGeneralSkills(t *testing.T) {
	b := shelves(t)
	for i := range 3 {
		b, _ = b.Apply(Edit{Op: Propose, Category: General, Title: fmt.Sprint("N", i), Principle: fmt.Sprint("New ", i)}, Permission{})
	}
	sees := func(q Query, id string) bool { return slices.Contains(ids(Retrieve(b, q)), id) }
	release, ours := Query{How: Prefix, Category: "cool", TopK: 13}, Query{Category: "cool", MaxSkills: 10}
	if !sees(release, "dyn_001") || sees(release, "dyn_002") || sees(release, "dyn_003") {
		t.Errorf("release: %v", ids(Retrieve(b, release)))
	}
	if !sees(ours, "dyn_001") || !sees(ours, "dyn_002") || !sees(ours, "dyn_003") {
		t.Errorf("ours: %v", ids(Retrieve(b, ours)))
	}
}

// Two skills, k1 = 0.9: the weight of a word that one of them has is log 2, doubled as it is asked for twice; its length
// is the average, so a word that stands there twice gives 2/(2 + 0.9) of it.
func TestRankByHand(t *testing.T) {
	b := must(t, Skill{"a", "c", "Mug", "Find mugs.", ""}, Skill{"b", "c", "Plate", "Wash plate.", ""})
	got := b.rank([]int{0, 1}, "a mug, a mug")
	const want = 2 * 0.6931471805599453 * 2 / (2 + 0.9)
	if d := got[0] - want; d > 1e-6 || d < -1e-6 || got[1] != 0 {
		t.Errorf("scores %v, want %v and 0", got, want)
	}
}

func TestRender(t *testing.T) {
	b := kitchen(t)
	skills := []Skill{b.Skills()[2], b.Skills()[0]}
	mistakes := []Mistake{{Description: "Looping.", Remedy: "Stop."}, {Description: "Waiting."}}
	want := "[coo_001] Find the mug: Look for a mug in the coffeemachine first.\n[gen_001] Look around: Visit every closed place once.\nAvoid: Looping. Instead: Stop.\nAvoid: Waiting."
	if got := Render(skills, mistakes); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	want = "[coo_001] Find the mug: Look for a mug in the coffeemachine first. When: the task names a mug\n[gen_001] Look around: Visit every closed place once."
	if got := RenderFull(skills, nil); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Render(nil, nil); got != "" {
		t.Errorf("nothing renders as %q", got)
	}
}
