package skill

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"skillmaster/bm25"
)

// Retrieval says how skills are chosen.
type Retrieval uint8

// The ways to choose.
const (
	// Shelf takes the skills of the task's category, then the general ones, the newest of each first, as far as the
	// budget goes.
	Shelf Retrieval = iota
	// Ranked takes the same skills in the order of their BM25 score against Query.Text, ties as by Shelf.
	Ranked
	// Prefix is the release: the first TopK general skills in the bank's order and all of the task's category. New
	// general skills come last and so are never seen once there are TopK older ones. The budget and Must do not count.
	Prefix
	// Embedded takes the skills that Shelf takes in the order of Query.Scores, ties as by Shelf.
	Embedded
	// Matched is Ranked among the skills whose condition speaks of the task: see [Skill.Applies]. Must does not help others.
	Matched
	retrievals
)

var retrievalNames = [retrievals]string{"shelf", "ranked", "prefix", "embedding", "matched"}

// String returns the name of the way.
func (r Retrieval) String() string {
	if r < retrievals {
		return retrievalNames[r]
	}
	return fmt.Sprintf("retrieval %d", uint8(r))
}

// MarshalText writes the way by name.
func (r Retrieval) MarshalText() ([]byte, error) {
	if r >= retrievals {
		return nil, fmt.Errorf("no such retrieval: %d", uint8(r))
	}
	return []byte(retrievalNames[r]), nil
}

// UnmarshalText reads what MarshalText writes.
func (r *Retrieval) UnmarshalText(text []byte) error {
	for i, name := range retrievalNames {
		if name == string(text) {
			*r = Retrieval(i)
			return nil
		}
	}
	return fmt.Errorf("no such retrieval: %q", text)
}

// Query asks for the skills of one task.
type Query struct {
	How       Retrieval
	Category  string   // the task's
	Text      string   // what the task asks for; read by Ranked and Matched
	MaxSkills int      // 0: no limit
	Must      []string // ids that come before all others, if they are of the category or general
	TopK      int      // of Prefix
	// Budget limits the sum of Cost over the lines of the skills as they stand in the prompt, line breaks included; 0: no
	// limit. Cost counts tokens; nil: characters.
	Budget int
	Cost   func(line string) int
	Line   func(Skill) string // a skill as it stands in the prompt; nil: as Render has it
	Scores map[string]float64 // of Embedded, by id: see [Vectors.Scores]; a skill without one counts as 0
}

func (q Query) cost(s Skill) int {
	text := line(s)
	if q.Line != nil {
		text = q.Line(s)
	}
	if q.Cost == nil {
		return utf8.RuneCountInString(text) + 1
	}
	return q.Cost(text + "\n")
}

// Retrieve chooses skills for a task. Only those of the query's category and general ones come into question. They come
// in the bank's order, whatever order they were chosen in, so that a new skill moves no other.
//
// Slots are given to the ids of Must first, in the order given: they count against MaxSkills but are never left out for
// their length. Then Query.How decides; a skill too long for what is left of Budget is passed over and shorter ones
// after it may still fit. The same arguments give the same skills.
func Retrieve(b Bank, q Query) []Skill {
	if b.Len() == 0 {
		return []Skill{} // ten thousand episodes that begin at once need not read the goal for it
	}
	var shelf []int
	for i, s := range b.skills() {
		if (s.Category == General || s.Category == q.Category) && (q.How != Matched || s.Applies(q.Text)) {
			shelf = append(shelf, i)
		}
	}
	var chosen []int
	switch q.How {
	case Shelf, Ranked, Embedded, Matched:
		chosen = b.fill(b.priority(shelf, q), q)
	case Prefix:
		general := 0
		for _, i := range shelf {
			if b.skills()[i].Category == General {
				if general++; general > q.TopK {
					continue
				}
			}
			chosen = append(chosen, i)
		}
	default:
		panic(fmt.Sprintf("skill: unknown retrieval %d", q.How))
	}
	slices.Sort(chosen)
	out := make([]Skill, 0, len(chosen))
	for _, i := range chosen {
		out = append(out, b.skills()[i])
	}
	return out
}

// Applies says whether a skill's condition speaks of a task: whether they share a word, by its stem and stop words left aside. A
// skill without a condition applies to every task, and to one whose goal nobody stated every skill does.
func (s Skill) Applies(goal string) bool {
	words := bm25.Terms(goal)
	if strings.TrimSpace(s.When) == "" || len(words) == 0 {
		return true
	}
	return slices.ContainsFunc(bm25.Terms(s.When), func(w string) bool { return slices.Contains(words, w) })
}

// priority orders the places of the shelf by who gets a slot first, Must left aside.
func (b Bank) priority(shelf []int, q Query) []int {
	all := b.skills()
	var score map[int]float64
	switch q.How {
	case Ranked, Matched:
		score = b.rank(shelf, q.Text)
	case Embedded:
		score = make(map[int]float64, len(shelf))
		for _, i := range shelf {
			score[i] = q.Scores[all[i].ID]
		}
	}
	order := slices.Clone(shelf)
	slices.SortFunc(order, func(i, j int) int {
		if c := cmp.Compare(score[j], score[i]); c != 0 {
			return c
		}
		if x, y := all[i].Category == General, all[j].Category == General; x != y {
			if y {
				return -1
			}
			return 1
		}
		return j - i
	})
	return order
}

// fill gives slots in order, Must first, as far as the budget goes.
func (b Bank) fill(order []int, q Query) []int {
	var chosen []int
	spent := 0
	room := func() bool { return q.MaxSkills == 0 || len(chosen) < q.MaxSkills }
	add := func(i, n int) { chosen, spent = append(chosen, i), spent+n }
	for _, id := range q.Must {
		if i := b.index(id); i >= 0 && slices.Contains(order, i) && !slices.Contains(chosen, i) && room() {
			add(i, q.cost(b.skills()[i]))
		}
	}
	for _, i := range order {
		if !room() || slices.Contains(chosen, i) {
			continue
		}
		if n := q.cost(b.skills()[i]); q.Budget == 0 || spent+n <= q.Budget {
			add(i, n)
		}
	}
	return chosen
}

// rank scores the skills at the places given against a text, with the given skills as the collection: bm25, its analysis and
// its constants (k1 = 0.9, b = 0.4), over title, principle and condition. So words count by their stems, and twice if the
// text says them twice.
func (b Bank) rank(places []int, query string) map[int]float64 {
	texts := func(yield func(string) bool) {
		for _, i := range places {
			if s := b.skills()[i]; !yield(s.Title + " " + s.Principle + " " + s.When) {
				return
			}
		}
	}
	x, err := bm25.Build(context.Background(), texts, 1)
	if err != nil {
		panic(fmt.Sprintf("skill: %v", err)) // only longer texts than a skill may have are refused
	}
	score := make(map[int]float64, len(places))
	for _, h := range x.Search(query, len(places)) {
		score[places[h.Document]] = float64(h.Score)
	}
	return score
}

// line is a skill on one line.
func line(s Skill) string { return "[" + s.ID + "] " + s.Title + ": " + s.Principle }

// Render puts skills and mistakes into words for a prompt, one a line and in the order given, each skill with the id that
// an update has to name: "[dyn_003] Find the mug: Look for a mug in the coffeemachine first." and "Avoid: … Instead: …".
// Conditions are left out, as in most of the release's prompts; [RenderFull] has them. No line break at the end; nothing
// gives the empty string.
func Render(skills []Skill, mistakes []Mistake) string {
	return render(skills, mistakes, line)
}

// RenderFull is Render with the condition of each skill that has one behind it: "… When: …".
func RenderFull(skills []Skill, mistakes []Mistake) string {
	return render(skills, mistakes, FullLine)
}

// FullLine is a skill as RenderFull has it.
func FullLine(s Skill) string {
	if s.When == "" {
		return line(s)
	}
	return line(s) + " When: " + s.When
}

func render(skills []Skill, mistakes []Mistake, line func(Skill) string) string {
	lines := make([]string, 0, len(skills)+len(mistakes))
	for _, s := range skills {
		lines = append(lines, line(s))
	}
	for _, m := range mistakes {
		text := "Avoid: " + m.Description
		if m.Remedy != "" {
			text += " Instead: " + m.Remedy
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}
