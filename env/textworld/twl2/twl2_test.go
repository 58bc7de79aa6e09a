package twl2

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// yard is a state with three sheds and what is in them.
var yard = &world{
	Types:    map[string]string{"shed": "object", "tool": "object", "saw": "tool"},
	Entities: map[string]string{"s1": "shed", "s2": "shed", "s3": "shed", "axe": "tool", "rip": "saw", "bow": "saw"},
	Names:    map[string]string{"s1": "red shed", "rip": "rip saw", "bow": "bow saw"},
	Facts:    []string{"in axe s1", "in rip s2", "in bow s2", "open s2", "not_open s1"},
}

const yardGrammar = `# a yard
grammar :: """
{
  "intro": [{"rhs": "\nYou see [{s.indefinite + ' ' + s.name | at(s:shed)}]."}],
  "inside": [
    {"condition": "open(s:shed)", "rhs": "In the {s.name}: [{#tool# | in(t:tool, s:shed)}]."},
    {"condition": "!open(s:shed)", "rhs": "The {s.name} was closed."},
    {"rhs": "The {s.name or s.id} is closed."}
  ],
  "tool": [{"rhs": "{t.name.upper() if t.type == 'saw' else t.name}"}],
  "list_empty": [{"rhs": "nothing"}], "list_separator": [{"rhs": ", "}], "list_last_separator": [{"rhs": ", and "}]
}
""";
action Open { # a shed
  feedback :: "You open the {s.name}. #inside#";
  template :: "open {s}";
  pddl :: """(:action open)""";
}
action look { template :: "look"; feedback :: "#look#";
  grammar :: """
  # the same everywhere
  {"look": [{"rhs": "A yard."}]}
  """; }
`

func parsed(t testing.TB, text string) *Grammar {
	t.Helper()
	g, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestYard(t *testing.T) {
	g := parsed(t, yardGrammar)
	say := func(text string, err error) string {
		if err != nil {
			t.Error(err)
		}
		return text
	}
	shed := func(id string) map[string]Arg { return map[string]Arg{"s": {id, "shed"}} }
	for _, c := range []struct{ got, want string }{
		{say(g.Expand("intro", nil, yard, yard)), "You see nothing."},
		{say(g.Command("open", shed("s1"), yard, yard)), "open red shed"},
		{say(g.Command("OPEN", shed("s2"), yard, yard)), "open s2"},
		{say(g.Feedback("open", shed("s1"), yard, yard)), "You open the red shed. The red shed was closed."},
		{say(g.Feedback("open", shed("s2"), yard, yard)), "You open the s2. In the s2: BOW SAW, and RIP SAW."},
		{say(g.Feedback("open", shed("s3"), yard, yard)), "You open the s3. The s3 is closed."},
		{say(g.Command("look", nil, yard, yard)), "look"},
		{say(g.Feedback("look", nil, yard, yard)), "A yard."},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestActions(t *testing.T) {
	g := parsed(t, yardGrammar+`action LOOK { template :: "stare"; feedback :: "Still."; }`)
	want := []Action{{"open", "open {s}", "You open the {s.name}. #inside#"}, {"look", "stare", "Still."}}
	if got := g.Actions(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !g.Has("intro") || g.Has("Intro") {
		t.Errorf("got intro %v, Intro %v, want only the first", g.Has("intro"), g.Has("Intro"))
	}
}

// TestQueries counts what can be reached, through lists and rules, and nothing else.
func TestQueries(t *testing.T) {
	g := parsed(t, `grammar :: """{
"intro": [{"rhs": "[{x.name | a(x:t)}]", "condition": "b() & !c(x:t, y:u)"}], "lost": [{"rhs": "{x | d()}"}],
"list_empty": [{"rhs": "{#far# | e(x)}"}], "far": [{"rhs": "#intro#", "condition": "not_f(x:a)"}]
}""";
action go { template :: "go {x | g(x:t)}"; feedback :: ""; }`)
	var got []string
	for _, q := range g.Queries() {
		got = append(got, fmt.Sprintf("%d:%d %s %v", q.Line, q.Column, q.Predicate, q.Types))
	}
	want := []string{"2:31 a [t]", "2:56 b []", "2:62 not_c [t u]", "3:34 e [x]", "3:85 not_f [a]", "5:34 g [t]"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestNotes(t *testing.T) {
	g := parsed(t, `grammar :: """{"x": [{"rhs": "a\"\u00e9\n; rest", "wieght": [1]}],
 "y": [{"rhs": "é #gone# {#x# | p()} }"}]}""";
action go { template :: "go < there"; feedback :: "#gone#"; }`)
	want := []string{
		`line 1, column 32: rule x ends before "\"é\n; rest": TextWorld drops it and all behind it`,
		`line 1, column 52: field "wieght" of rule x means nothing`,
		`line 2, column 20: no rule for #gone#`,
		`line 2, column 38: rule y ends before "}": TextWorld drops it and all behind it`,
		`line 3, column 29: template of action go ends before "< there": TextWorld drops it and all behind it`,
	}
	var got []string
	for _, n := range g.Notes() {
		got = append(got, n.String())
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPlaceOfFaults(t *testing.T) {
	for text, want := range map[string]string{
		"grammar :: \"\"\"{}\"\"\";\nanswer":                                         `line 2, column 1: got "answer", want grammar or action`,
		`grammar :: """{"x": [{"rhs": "\u00e9\n\\é {1}"}]}""";`:                      "line 1, column 44: expression of rule x",
		"grammar :: \"\"\"{\n \"x\": [{\"rhs\": \"\", \"condition\": \"p(é:t) p\"}]": `line 1, column 12: a grammar block is not closed`,
		"grammar :: \"\"\"{\n\"x\": [{\"rhs\": \"{y | p(y:t, y:u)}\"}]}\"\"\";":      "line 2, column 28: query of rule x at \"y:u)\": variable y has the types t and u",
		"# é\naction go { template :: \"{x.nam}\"; feedback :: \"\"; }":              "line 2, column 29: expression of template of action go",
		"é\xff": "line 1, column 2: byte 0xff is not UTF-8",
		"action go { template :: \"a\"; feedback :: \"b\"; template": "line 1, column 47: action go has two template clauses",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q\ngot error %v\nwant one with %q", text, err, want)
		}
	}
}

// TestFaultsOfUse are errors that only an expansion can find.
func TestFaultsOfUse(t *testing.T) {
	g := parsed(t, `grammar :: """{"none": [{"condition": "p()", "rhs": "a"}], "unbound": [{"rhs": "{x.name}"}], "lost": [{"rhs": "#gone#"}],
"sum": [{"rhs": "{x.noun + 'a' | in(x:tool, y:shed)}"}], "type": [{"rhs": "{x | in(x:spade, y:shed)}"}], "list": [{"rhs": "[{x | p(x)}]"}],
"ascii": [{"rhs": "{'é'.upper()}"}]}""";`)
	for symbol, want := range map[string]string{
		"none": "no alternative of the rule holds", "unbound": "line 1, column 82: nothing is bound to x here", "lost": "#gone#: not in the grammar",
		"sum": "line 2, column 19: None where a string is needed", "type": `in: no type "spade"`, "list": `no type "x"`, "ascii": "only ASCII", "nowhere": "not in the grammar",
	} {
		if got, err := g.Expand(symbol, nil, yard, yard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, error %v, want one with %q", symbol, got, err, want)
		}
	}
	for _, err := range []error{second(g.Expand("nowhere", nil, yard, yard)), second(g.Expand("lost", nil, yard, yard)), second(g.Command("go", nil, yard, yard)), second(g.Feedback("go", nil, yard, yard))} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("got %v, want ErrUnknown", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestEndless expands grammars without an end, or with one far away.
func TestEndless(t *testing.T) {
	many := &world{Types: map[string]string{"t": "object"}, Entities: map[string]string{}}
	for i := range 300 {
		id := fmt.Sprintf("e%03d", i)
		many.Entities[id] = "t"
		many.Facts = append(many.Facts, "p "+id)
	}
	for name, rules := range map[string]string{
		"itself":    `"x": [{"rhs": "#x#"}]`,
		"circle":    `"x": [{"rhs": "a#y#"}], "y": [{"rhs": "{#x# | p(a:t)}"}]`,
		"growth":    `"x": [{"rhs": "#a##a##a#"}], "a": [{"rhs": "#b##b##b#"}], "b": [{"rhs": "#c##c##c#"}], "c": [{"rhs": "#x##x##x#"}]`,
		"search":    `"x": [{"rhs": "{'a' | p(a:t) & p(b:t) & p(c:t) & p(d:t) & q()}"}]`,
		"matches":   `"x": [{"rhs": "{'' | p(a:t) & p(b:t) & p(c:t)}"}]`,
		"condition": `"x": [{"rhs": "a", "condition": "p(a:t) & p(b:t) & p(c:t) & p(d:t) & q()"}]`,
		"output":    `"x": [{"rhs": "{#y# | p(a:t)}"}], "y": [{"rhs": "{#z# | p(b:t)}"}], "z": [{"rhs": "0123456789ABCDEF"}]`,
		"list":      `"x": [{"rhs": "[{#x# | p(a:t)}]"}], "list_separator": [{"rhs": "#x#"}]`,
		"empty":     `"x": [{"rhs": "[{'' | q()}]"}], "list_empty": [{"rhs": "#x#"}]`,
	} {
		g := parsed(t, `grammar :: """{`+rules+`}""";`)
		if got, err := g.Expand("x", nil, many, many); !errors.Is(err, ErrEndless) {
			t.Errorf("%s: got %.40q, error %v, want ErrEndless", name, got, err)
		}
	}
}

// TestHostile reads long texts that a careless reader would take for ever on, or fall over.
func TestHostile(t *testing.T) {
	const long = 1 << 17
	rhs := func(text string) string { return `grammar :: """{"x": [{"rhs": "` + text + `"}]}""";` }
	for name, c := range map[string]struct {
		text string
		bad  bool
	}{
		"brackets":       {strings.Repeat("[", long), true},
		"too long":       {strings.Repeat("[", MaxText+1), true},
		"open blocks":    {strings.Repeat(`grammar :: """`, long/16), true},
		"objects":        {`grammar :: """` + strings.Repeat(`{"x":`, long/4) + `""";`, true},
		"deep weight":    {`grammar :: """{"x": [{"weight": ` + strings.Repeat("[", long) + `}]}""";`, true},
		"lists":          {rhs(strings.Repeat("[", long)), false},
		"braces":         {rhs(strings.Repeat("{", long)), false},
		"brackets in":    {rhs(strings.Repeat("[{x}", long/4)), false},
		"pieces":         {rhs(strings.Repeat("{x}", long/4)), false},
		"escaped pieces": {rhs(strings.Repeat(`{x}\n`, long/4)), false},
		"queries":        {rhs(strings.Repeat(`\"a\"{x | p(x:tool)}`, long/16)), false},
		"hashes":         {rhs(strings.Repeat("#x", long/2)), false},
		"blank lines":    {rhs(strings.Repeat(`\n`, long/2)), false},
		"tabs":           {rhs(strings.Repeat(`{x}\t\t`, long/8)), false},
		"parentheses":    {rhs("{" + strings.Repeat("(", long) + "}"), true},
		"not":            {rhs("{" + strings.Repeat("not ", long/4) + "x}"), false},
		"sum":            {rhs("{x.id" + strings.Repeat(" + x.id", long/8) + "}"), false},
		"or":             {rhs("{x.id" + strings.Repeat(" or x.id", long/8) + "}"), false},
		"choices":        {rhs("{" + strings.Repeat("x if x else ", long/16) + "x}"), true},
		"calls":          {rhs("{x.id" + strings.Repeat(".upper()", long/8) + "}"), true},
		"strings":        {rhs("{" + strings.Repeat("'a' ", long/4) + "}"), false},
		"atoms":          {rhs("{x | " + strings.Repeat("p() & ", long/8) + "p()}"), true},
		"variables":      {rhs("{x | p(a" + strings.Repeat("'", long/8) + ":shed, b:shed" + strings.Repeat(", b:shed", long/8) + ")}"), false},
		"notes":          {`grammar :: """{` + strings.Repeat(`"x": [{"rhs": ";"}],`, long/16) + `"x": []}""";`, false},
		"cut names":      {"action " + strings.Repeat("a", long), true},
		"clauses":        {"action a {" + strings.Repeat("pddl ", long/8), true},
		"comments":       {strings.Repeat("#\n", long/2), false},
		"white space":    {strings.Repeat(" ", long), false},
	} {
		g, err := Parse(c.text)
		if (err != nil) != c.bad {
			t.Errorf("%s: got error %.200v, want one: %v", name, err, c.bad)
		}
		if err == nil {
			bound := map[string]Arg{"x": {"axe", "tool"}}
			if _, err := g.Expand("x", bound, yard, yard); err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrEndless) {
				t.Errorf("%s: %v", name, err)
			}
		} else if !strings.Contains(err.Error(), "line 1, column") && !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%s: got error %v, want its place", name, err)
		}
	}
}

// TestCutAnywhere cuts a file at every byte: what is left is an error with its place, or still a grammar.
func TestCutAnywhere(t *testing.T) {
	whole := 0
	for i := range yardGrammar {
		switch _, err := Parse(yardGrammar[:i]); {
		case err == nil:
			whole++
		case !strings.HasPrefix(err.Error(), "grammar line "):
			t.Errorf("cut at %d: got %v, want the place", i, err)
		}
	}
	if whole == 0 || whole > 80 { // between the parts, and in comments there
		t.Errorf("%d cuts are grammars", whole)
	}
}

func TestManyAtOnce(t *testing.T) {
	g := parsed(t, yardGrammar)
	want, err := g.Feedback("open", map[string]Arg{"s": {"s2", "shed"}}, yard, yard)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 50 {
				got, err := g.Feedback("open", map[string]Arg{"s": {"s2", "shed"}}, yard, yard)
				if got != want || err != nil {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			}
		})
	}
	wait.Wait()
}

// FuzzGrammar reads any text, and says whatever it can say.
func FuzzGrammar(f *testing.F) {
	f.Add(yardGrammar)
	f.Add(`grammar :: """{"intro": [{"rhs": "\"q\"[{x.name + 'a' | in(x:tool, y:shed)}]#intro#"}]}""";`)
	f.Add("action a { template :: \"{x}\"; feedback :: \"[{#a#| p()}]\"; } #")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := Parse(text)
		if err != nil {
			return
		}
		bound := map[string]Arg{"s": {"s2", "shed"}, "x": {"axe", "tool"}}
		for symbol := range g.rules {
			sound(t, second(g.Expand(symbol, bound, yard, yard)))
		}
		for _, a := range g.Actions() {
			sound(t, second(g.Command(a.Name, bound, yard, yard)))
			sound(t, second(g.Feedback(a.Name, bound, yard, yard)))
		}
		if len(g.Queries()) > len(text) || len(g.Notes()) > len(text) {
			t.Errorf("%d queries and %d notes in %d bytes", len(g.Queries()), len(g.Notes()), len(text))
		}
	})
}

// sound fails for an error without a place.
func sound(t *testing.T, err error) {
	t.Helper()
	if err != nil && !strings.Contains(err.Error(), "line ") {
		t.Errorf("got %v, want its place", err)
	}
}

// FuzzRule is FuzzGrammar for one text with one condition.
func FuzzRule(f *testing.F) {
	f.Add("[{t.name or 'x' | in(t:tool, s:shed)}]", "!open(s:shed)")
	f.Add("\"a\"\t#x# // {s}", "in(t, s:shed) & p()")
	f.Add("{s.name.upper() if not s == x else None}", "")
	f.Fuzz(func(t *testing.T, rhs, condition string) {
		g, err := Parse(`grammar :: """{"x": [{"rhs": ` + quote(rhs) + `, "condition": ` + quote(condition) + `}, {"rhs": ""}]}""";`)
		if err != nil {
			return
		}
		sound(t, second(g.Expand("x", map[string]Arg{"s": {"s2", "shed"}, "x": {"axe", "tool"}}, yard, yard)))
	})
}

// quote makes a JSON string without three quotation marks in a row.
func quote(s string) string {
	var b strings.Builder
	for _, c := range s {
		fmt.Fprintf(&b, "\\u%04x", min(c, 0xd7ff))
	}
	return `"` + b.String() + `"`
}

func BenchmarkTemplate(b *testing.B) {
	g := parsed(b, yardGrammar)
	bound := map[string]Arg{"s": {"s1", "shed"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Command("open", bound, yard, yard); err != nil {
			b.Fatal(err)
		}
	}
}
