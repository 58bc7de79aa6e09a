package alfworld

import (
	"fmt"
	"strings"
)

// sentence is what the sentence of a task says. Class names are in lower case.
type sentence struct {
	family         Family
	object, target string
}

// sentenceForms are the two sentences of each family, as ALFWorld words them; % stands for the object, then for the
// receptacle or lamp.
var sentenceForms = [families][2]string{
	PickAndPlace:  {"put a % in %", "put some % on %"},
	LookInLight:   {"look at % under the %", "examine the % with the %"},
	CleanAndPlace: {"put a clean % in %", "clean some % and put it in %"},
	HeatAndPlace:  {"put a hot % in %", "heat some % and put it in %"},
	CoolAndPlace:  {"put a cool % in %", "cool some % and put it in %"},
	PickTwo:       {"put two % in %", "find two % and put them in %"},
}

// sentence is what the game's own sentence says if it is in the usual words.
func (g *Game) sentence() sentence {
	return sentence{g.Goal.Family, strings.ToLower(g.Goal.Object), strings.ToLower(g.Goal.Target)}
}

// text words the sentence in the first or second form of its family, with the period.
func (s sentence) text(form int) string {
	text := strings.Replace(sentenceForms[s.family][form], "%", s.object, 1)
	return strings.Replace(text, "%", s.target, 1) + "."
}

// readSentence reads what text writes, or, as far as it goes, a sentence of a person's own. stands tells which receptacles
// the room has.
func readSentence(text string, stands func(class string) bool) (sentence, error) {
	if s, ok := parseSentence(text); ok {
		return s, nil
	}
	s, err := understand(text, stands)
	if err != nil {
		return s, fmt.Errorf("task %q: %w (the search player reads sentences that name an object and a receptacle of the room, such as %q)",
			strings.TrimSpace(text), err, sentence{PickAndPlace, "mug", "cabinet"}.text(0))
	}
	return s, nil
}

// parseSentence reads what text writes; false for any other sentence.
func parseSentence(text string) (sentence, bool) {
	text = strings.TrimSuffix(strings.TrimSpace(text), ".")
	for _, f := range Families() {
		for _, form := range sentenceForms[f] {
			if object, target, ok := matchForm(text, form); ok {
				return sentence{f, object, target}, true
			}
		}
	}
	return sentence{}, false
}

// matchForm matches text with a form whose two % each stand for one word.
func matchForm(text, form string) (first, second string, ok bool) {
	head, rest, _ := strings.Cut(form, "%")
	middle, tail, _ := strings.Cut(rest, "%")
	text, ok = strings.CutPrefix(text, head)
	if !ok {
		return "", "", false
	}
	if text, ok = strings.CutSuffix(text, tail); !ok {
		return "", "", false
	}
	first, second, ok = strings.Cut(text, middle)
	return first, second, ok && oneWord(first) && oneWord(second)
}

func oneWord(s string) bool { return s != "" && !strings.Contains(s, " ") }
