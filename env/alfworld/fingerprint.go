package alfworld

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Texts are the two rule texts that a game file carries. They belong to ALFWorld and are read from its files.
type Texts struct {
	Domain  string // pddl_domain, alfred.pddl
	Grammar string // grammar, alfred.twl2
}

// ReadTexts reads alfred.pddl and alfred.twl2 from a folder ($ALFWORLD_DATA/logic has them) and checks that they are
// texts this package plays.
func ReadTexts(folder string) (Texts, error) {
	domain, err := os.ReadFile(filepath.Join(folder, "alfred.pddl"))
	if err != nil {
		return Texts{}, fmt.Errorf("read the domain: %w", err)
	}
	grammar, err := os.ReadFile(filepath.Join(folder, "alfred.twl2"))
	if err != nil {
		return Texts{}, fmt.Errorf("read the grammar: %w", err)
	}
	t := Texts{Domain: string(domain), Grammar: string(grammar)}
	if _, err := t.Wording(); err != nil {
		return Texts{}, fmt.Errorf("texts in %s: %w", folder, err)
	}
	return t, nil
}

// WriteTexts writes alfred.pddl and alfred.twl2 into a folder, which it makes; ReadTexts reads them.
func WriteTexts(folder string, t Texts) error {
	t, err := t.with("UNKNOWN GOAL.")
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "alfred.pddl"), []byte(t.Domain), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "alfred.twl2"), []byte(t.Grammar), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the rule texts: %w", err)
	}
	return nil
}

// ErrTexts marks rule texts that are not the released ones.
var ErrTexts = errors.New("not the released domain and grammar")

// Fingerprints of the released texts, as normalDomain and normalGrammar leave them.
const (
	domainPrint  = "b0b8259a4e11c9f4"
	grammarPrint = "15a27850c9c8fd5e"
	helpPrint    = "330196a673330024" // of the package's own text
	helpInline   = "98f595b485670c53" // of the game files
)

// Wording recognises the released texts, whatever their task, and says which wording they speak. All else is
// ErrTexts.
func (t Texts) Wording() (Wording, error) {
	if fingerprint(normalDomain(t.Domain)) != domainPrint {
		return 0, fmt.Errorf("%w: the domain differs", ErrTexts)
	}
	grammar, help, old := normalGrammar(t.Grammar)
	if fingerprint(grammar) != grammarPrint {
		return 0, fmt.Errorf("%w: the grammar differs", ErrTexts)
	}
	switch h := fingerprint(help); {
	case old && help == "":
		return Put, nil
	case !old && (h == helpPrint || h == helpInline):
		return Move, nil
	default:
		return 0, fmt.Errorf("%w: the grammar mixes the wordings of two releases", ErrTexts)
	}
}

func fingerprint(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:8])
}

// normalDomain leaves out what does not change the game: comments, white space, the action "help" (the grammar tells
// whether a player may say it), and a sink type in one condition, which no receptacle of a released game has.
func normalDomain(text string) string {
	var words []string
	for w := (wordReader{text: text}); ; {
		word := w.next()
		if word == "" {
			break
		}
		words = append(words, strings.ToLower(word))
	}
	normal := strings.Join(words, " ")
	normal = strings.Replace(normal, "( receptacletype ?r sinktype ) ", "", 1)
	return strings.Replace(normal, "( :action help :parameters ( ?a - agent ) :precondition ( ) :effect ( and ( checked ?a ) ) ) ", "", 1)
}

// inWords are the phrases that releases word differently, before and since 0.4.
var inWords = [][2]string{
	{"You arrive at {lend.name}.", "You arrive at {r.name}."},
	{"put {o} in/on {r}", "move {o} to {r}"},
	{"You put the {o.name} in/on the {r.name}.", "You move the {o.name} to the {r.name}."},
}

const taskRule = `"Your task is to: `

// normalGrammar leaves out white space, the task's sentence and the action "help", which it returns by itself, and puts
// the phrases of before release 0.4 in those since; old says that it found all of them and none of the others.
func normalGrammar(text string) (grammar, help string, old bool) {
	if before, rest, ok := strings.Cut(text, taskRule); ok {
		if _, after, ok := strings.Cut(rest, `"`); ok {
			text = before + taskRule + `"` + after
		}
	}
	text, help, _ = strings.Cut(text, "action help {")
	old = true
	for _, p := range inWords {
		old = old && strings.Contains(text, p[0]) && !strings.Contains(text, p[1])
	}
	if old {
		for _, p := range inWords {
			text = strings.ReplaceAll(text, p[0], p[1])
		}
	}
	return strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(help), " "), old
}

// sentence finds what a grammar says after "Your task is to: ", up to the end of the rule.
func (t Texts) sentence() (string, error) {
	_, rest, ok := strings.Cut(t.Grammar, taskRule)
	sentence, _, closed := strings.Cut(rest, `"`)
	if !ok || !closed || sentence == "" {
		return "", errors.New("the grammar has no task: want a rule that starts with \"Your task is to: \"")
	}
	return sentence, nil
}

// fit gives texts in the wording of a game that is older than they are; others stay as they are.
func (t Texts) fit(w Wording) (Texts, error) {
	if w != Put || strings.Contains(t.Grammar, inWords[0][0]) {
		return t, nil
	}
	for _, p := range inWords {
		t.Grammar = strings.ReplaceAll(t.Grammar, p[1], p[0])
	}
	t.Grammar, _, _ = strings.Cut(t.Grammar, "action help {")
	before, behind, _ := strings.Cut(t.Domain, "(:action help")
	for depth := 1; depth > 0 && behind != ""; behind = behind[1:] {
		switch behind[0] {
		case '(':
			depth++
		case ')':
			depth--
		}
	}
	t.Domain = before + behind
	if got, err := t.Wording(); got != w {
		return Texts{}, fmt.Errorf("put the rule texts in the wording before release 0.4: %w", err)
	}
	return t, nil
}

// with puts another sentence in.
func (t Texts) with(sentence string) (Texts, error) {
	if i := strings.IndexAny(sentence, "\"\\#{}[]|<>;\n"); i >= 0 || sentence == "" {
		return Texts{}, fmt.Errorf("task %q: a grammar cannot say it", sentence)
	}
	old, err := t.sentence()
	if err != nil {
		return Texts{}, err
	}
	t.Grammar = strings.Replace(t.Grammar, taskRule+old, taskRule+sentence, 1)
	return t, nil
}
