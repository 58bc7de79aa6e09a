package web

import (
	"strings"

	"skillmaster/skill"
)

// change is what happened to one skill between two banks.
type change struct {
	Kind   string // added, changed, archived, removed
	ID     string
	Fields []fieldChange
}

// fieldChange is one text of a skill, before and after.
type fieldChange struct {
	Name  string
	Parts []part
}

// part is a stretch of words that stayed, went, or came.
type part struct {
	Kind string // "", "del", "ins"
	Text string
}

// changes lists what differs between two banks, skill by skill.
func changes(before, after skill.Bank) []change {
	var out []change
	for _, s := range after.Skills() {
		old, was := before.Skill(s.ID)
		switch {
		case !was:
			out = append(out, change{"added", s.ID, fields(skill.Skill{}, s)})
		case old != s:
			out = append(out, change{"changed", s.ID, fields(old, s)})
		}
	}
	archived := map[string]bool{}
	for _, s := range after.Archived() {
		archived[s.ID] = true
	}
	for _, s := range before.Skills() {
		if _, is := after.Skill(s.ID); is {
			continue
		}
		kind := "removed"
		if archived[s.ID] {
			kind = "archived"
		}
		out = append(out, change{kind, s.ID, fields(s, skill.Skill{})})
	}
	return out
}

func fields(a, b skill.Skill) []fieldChange {
	var out []fieldChange
	for _, f := range []struct{ name, a, b string }{
		{"title", a.Title, b.Title}, {"principle", a.Principle, b.Principle}, {"when to apply", a.When, b.When}, {"category", a.Category, b.Category},
	} {
		if f.a != "" || f.b != "" {
			out = append(out, fieldChange{f.name, diffWords(f.a, f.b)})
		}
	}
	return out
}

// most words that are compared one by one; longer texts are shown whole, before and after.
const mostWords = 600

// diffWords compares two texts word by word: the longest words in common stay.
func diffWords(a, b string) []part {
	x, y := strings.Fields(a), strings.Fields(b)
	if len(x) > mostWords || len(y) > mostWords {
		return []part{{"del", a}, {"ins", b}}
	}
	common := make([][]int, len(x)+1) // of the rests from i and j on
	for i := range common {
		common[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out []part
	add := func(kind, word string) {
		if n := len(out); n > 0 && out[n-1].Kind == kind {
			out[n-1].Text += " " + word
		} else {
			out = append(out, part{kind, word})
		}
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			add("", x[i])
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			add("del", x[i])
			i++
		default:
			add("ins", y[j])
			j++
		}
	}
	return out
}
