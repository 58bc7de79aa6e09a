package skill

import (
	"strings"
	"testing"
)

func TestSearch(t *testing.T) {
	b, err := New([]Skill{
		{ID: "a", Category: General, Title: "Drawers", Principle: "Look through closed drawers."},
		{ID: "b", Category: "clean", Title: "Wash plates", Principle: "Plates are washed at the sink."},
		{ID: "c", Category: "heat", Title: "Warm plates", Principle: "Put them into the microwave."},
		{ID: "d", Category: "heat", Title: "Warm plates slowly", Principle: "Put them into the microwave."},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		category, text string
		limit          int
		want           string
	}{
		{"", "washing a plate", 9, "bcd"}, {"", "washing a plate", 1, "b"}, {"heat", "washing a plate", 9, "cd"}, {"heat", "drawer", 9, "a"},
		{"", "nothing of the sort", 9, ""}, {"", "", 9, ""}, {"", "plates", 0, ""}, {"nowhere", "plates", 9, ""},
	} {
		got := strings.Join(ids(Search(b, c.category, c.text, c.limit)), "")
		if got != c.want {
			t.Errorf("Search(%q, %q, %d) finds %q, want %q", c.category, c.text, c.limit, got, c.want)
		}
	}
	if got := Search(Bank{}, "", "plates", 9); len(got) != 0 {
		t.Errorf("an empty bank has %v", got)
	}
}
