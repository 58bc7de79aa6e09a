package webshop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// part is one text of a page.
type part struct {
	text string
	kind partKind
}

type partKind uint8

const (
	plainPart   partKind = iota
	buttonPart           // can be clicked
	productPart          // a product that can be clicked
	visitedPart          // one that was
	optionPart           // a value that can be chosen
	chosenPart           // one that was
)

// separator parts the texts of a page.
const separator = " [SEP] "

// Text is the page as one line: its texts, trimmed. What was chosen does not show.
func (s *Session) Text() string {
	ps := s.parts()
	size := 0
	for _, p := range ps {
		size += len(p.text) + len(separator)
	}
	var b strings.Builder
	b.Grow(size)
	for i, p := range ps {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(trim(p.text))
	}
	return b.String()
}

// Rich is the page as lines that mark buttons, and which of them were clicked.
func (s *Session) Rich() string {
	var b, clicked strings.Builder
	line := func(mark, text string) {
		b.WriteString("[" + mark + "] " + text + " [" + mark + "_]\n")
	}
	var head []string
	for _, p := range s.parts() {
		switch p.kind {
		case plainPart:
			b.WriteString(p.text + "\n")
		case buttonPart:
			line("button", p.text)
		case productPart:
			b.WriteByte('\n')
			line("button", p.text)
		case visitedPart:
			b.WriteByte('\n')
			line("clicked button", p.text)
		case optionPart:
			b.WriteString("  ")
			line("button", p.text)
		case chosenPart:
			b.WriteString("  ")
			line("clicked button", p.text)
			head = append(head, "You have clicked "+p.text+".\n")
		default:
			panic("no such part of a page")
		}
	}
	for _, h := range slices.Backward(head) {
		clicked.WriteString(h)
	}
	return clicked.String() + b.String()
}

// parts are the texts of the page, in order.
func (s *Session) parts() []part {
	ps := make([]part, 0, 48)
	say := func(texts ...string) {
		for _, t := range texts {
			ps = append(ps, part{t, plainPart})
		}
	}
	press := func(names ...string) {
		for _, n := range names {
			ps = append(ps, part{n, buttonPart})
		}
	}
	switch s.at {
	case indexPage:
		say("WebShop", "Instruction: ", s.goal.Instruction)
		press("Search")
		return ps
	case donePage:
		return s.receipt(ps)
	case resultsPage, itemPage, descriptionPage, featuresPage, reviewsPage, attributesPage:
	default:
		panic("no such page")
	}
	say("Instruction:", s.goal.Instruction)
	press("Back to Search")
	if s.at == resultsPage {
		return s.results(ps)
	}
	press("< Prev")
	p := s.shop.product(int(s.product))
	switch s.at {
	case itemPage:
		ps = s.options(ps, p)
		say(p.Title, "Price: "+p.Price.String(), "Rating: N.A.")
		press("Description", "Features", "Reviews")
		if s.attributes {
			press("Attributes")
		}
		press("Buy Now")
	case descriptionPage:
		if !absent(p.Description) {
			say(p.Description)
		}
	case featuresPage:
		for _, f := range p.Bullets {
			if f = " " + f; !absent(f) {
				say(f)
			}
		}
	case attributesPage:
		for _, a := range p.Attributes {
			if a = " " + a; !absent(a) {
				say(a)
			}
		}
		for _, text := range []string{p.Category, p.Query, p.Path} {
			if !absent(text) {
				say(text)
			}
		}
	}
	return ps
}

// absent tells texts that the original's page reader drops: none, and white space with a line break in it.
func absent(text string) bool {
	return text == "" || strings.Contains(text, "\n") && strings.TrimFunc(text, func(r rune) bool { return r < 128 && unicode.IsSpace(r) }) == ""
}

func (s *Session) results(ps []part) []part {
	ps = append(ps, part{"Page " + strconv.Itoa(s.number) + " (Total results: " + strconv.Itoa(len(s.hits)) + ")", plainPart})
	if s.number > 1 {
		ps = append(ps, part{"< Prev", buttonPart})
	}
	ps = append(ps, part{"Next >", buttonPart})
	for _, i := range s.onPage() {
		kind := productPart
		if slices.Contains(s.visited, i) {
			kind = visitedPart
		}
		ps = append(ps, part{s.asin(i), kind}, part{s.shop.title(int(i)), plainPart}, part{s.shop.row(int(i)).price.String(), plainPart})
	}
	return ps
}

// options shows the choices. The original marks as chosen what stands in quotes in the JSON of what was chosen: a value
// that JSON has to escape never is, and one that is also chosen in another group, or names one, is.
func (s *Session) options(ps []part, p *Product) []part {
	var written string
	if len(s.chosen) > 0 {
		written = pythonJSON(s.chosen)
	}
	for _, g := range p.Options {
		ps = append(ps, part{g.Name, plainPart})
		for _, v := range g.Values {
			kind := optionPart
			if written != "" && strings.Contains(written, `"`+v+`"`) {
				kind = chosenPart
			}
			ps = append(ps, part{v, kind})
		}
	}
	return ps
}

// receipt is the last page. It says what was bought, but not what was asked for.
func (s *Session) receipt(ps []part) []part {
	sorted := slices.Clone(s.chosen)
	slices.SortFunc(sorted, func(a, b GoalOption) int { return strings.Compare(a.Group, b.Group) })
	options := htmlSafe.Replace(pythonJSON(sorted))
	for _, t := range []string{
		"Thank you for shopping with us!", "Your code: ", "None", " (Paste it in your MTurk interface.)",
		"Purchased", "asin", s.asin(s.product), "options", options, "attrs", "None", "category", "None", "query", "None", "product category", "None",
		"Target", "asin", "options", "attrs", "price upper", "instuction text", "category", "product category", "query",
		"Goal ", "None", "Reward", "Your score (min 0.0, max 1.0)", float(s.score.Total), "Reward Details ", "None",
	} {
		ps = append(ps, part{t, plainPart})
	}
	return ps
}

// htmlSafe escapes what could end a script.
var htmlSafe = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "'", `\u0027`)

// pythonJSON writes options as json.dumps writes a dictionary.
func pythonJSON(options []GoalOption) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, o := range options {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(pythonQuote(o.Group) + ": " + pythonQuote(o.Value))
	}
	b.WriteByte('}')
	return b.String()
}

// pythonQuote writes a string as json.dumps does: ASCII alone.
func pythonQuote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case strings.ContainsRune("\b\f\n\r\t", r):
			quoted, _ := json.Marshal(string(r)) // a string cannot fail
			b.Write(quoted[1 : len(quoted)-1])
		case r >= ' ' && r < 127:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
