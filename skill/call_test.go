package skill

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	keepCall    = `<tool_call>{"name":"keep_skill","arguments":{"reason":"covered"}}</tool_call>`
	proposeArgs = `{"category":"cool","title":"Find the mug","principle":"Look for a mug in the cabinet first.","when_to_apply":""}`
	proposeCall = `<tool_call>{"name":"propose_skill","arguments":` + proposeArgs + `}</tool_call>`
)

var proposed = Edit{Op: Propose, Category: "cool", Title: "Find the mug", Principle: "Look for a mug in the cabinet first."}

func TestParseCall(t *testing.T) {
	kept := Edit{Op: Keep, Reason: "covered"}
	for _, c := range []struct {
		name   string
		reply  string
		want   Outcome
		fault  string // part of it; empty: well formed
		edit   Edit
		offset int
		prose  bool
	}{
		{"keep", keepCall, Kept, "", kept, 0, false},
		{"propose", proposeCall, Kept, "", proposed, 0, false},
		{"reasoning", "<think>hm {x}</think>\n" + keepCall, Kept, "", kept, 22, false},
		{"only the closing tag of reasoning", "so I keep {it}</think>" + keepCall, Kept, "", kept, 22, false},
		{"a call in reasoning", "<think>" + proposeCall + "</think>" + keepCall, Kept, "", kept, 15 + len(proposeCall), false},
		{"a call in the template's reasoning", proposeCall + "</think>" + keepCall, Kept, "", kept, 8 + len(proposeCall), false},
		{"nothing but a call in reasoning", "<think>" + keepCall + "</think>", Unparsable, "no <tool_call>", Edit{}, 15 + len(keepCall), false},
		{"reasoning left open", "<think>" + keepCall, Unparsable, "not closed", Edit{}, 0, false},
		{"reasoning behind the call", keepCall + "<think>x</think>", Kept, "", kept, 0, false},
		{"white space in the tags", "<tool_call>\n{\"name\": \"keep_skill\"}\n</tool_call>\n", Kept, "", Edit{Op: Keep}, 0, false},
		{"prose with braces", "I {about travel} say: " + keepCall + " done", Kept, "", kept, 22, true},
		{"the tag in prose", "In <tool_call> tags: " + keepCall, Kept, "", kept, 21, true},
		{
			"braces and tags in strings", `<tool_call>{"name":"keep_skill","arguments":{"reason":"a {b,c </tool_call> <think> }} \" {"}}</tool_call>`, Kept, "",
			Edit{Op: Keep, Reason: `a {b,c </tool_call> <think> }} " {`},
			0, false,
		},
		{"an open shell expansion", `<tool_call>{"name":"keep_skill","arguments":{"reason":"mv a{.txt,.bak"}}</tool_call>`, Kept, "", Edit{Op: Keep, Reason: "mv a{.txt,.bak"}, 0, false},
		{"a reason kept byte for byte", `<tool_call>{"name":"keep_skill","arguments":{"reason":" \n\t\u00e9 "}}</tool_call>`, Kept, "", Edit{Op: Keep, Reason: " \n\té "}, 0, false},

		{"nothing", "", Unparsable, "no <tool_call>", Edit{}, 0, false},
		{"prose", "I keep it.", Unparsable, "no <tool_call>", Edit{}, 10, true},
		{"no tags", `{"name":"keep_skill"}`, Unparsable, "no <tool_call>", Edit{}, 21, true},
		{"half an object", `<tool_call>{"name":"propose_skill","argu`, Unparsable, "cut off", Edit{}, 40, true},
		{"no closing tag", `<tool_call>{"name":"keep_skill"}`, Unparsable, "no </tool_call>", Edit{}, 32, true},
		{"single quotes", `<tool_call>{'name':'keep_skill','arguments':{'reason':'it\'s'}}</tool_call>`, Unparsable, "not JSON", Edit{}, 12, true},
		{"a fence", "<tool_call>```json\n{\"name\":\"keep_skill\"}\n```</tool_call>", Unparsable, "no object", Edit{}, 11, true},
		{"a list", `<tool_call>[]</tool_call>`, Unparsable, "no object", Edit{}, 11, true},
		{"no name", `<tool_call>{"arguments":{}}</tool_call>`, Unparsable, "names no tool", Edit{}, 0, false},
		{"the XML form", "<tool_call>\n<function=keep_skill>\n</function>\n</tool_call>", Unparsable, "XML form", Edit{}, 12, true},

		{"two calls", keepCall + proposeCall, MultipleCalls, "more than one", Edit{}, len(keepCall), false},
		{"the same call twice", keepCall + keepCall, MultipleCalls, "more than one", Edit{}, len(keepCall), false},
		{"two objects in one call", `<tool_call>{"name":"keep_skill"}{"name":"keep_skill"}</tool_call>`, MultipleCalls, "several objects", Edit{Op: Keep}, 32, false},
		{"a second one cut off", keepCall + `<tool_call>{"name":"keep`, MultipleCalls, "more than one", Edit{}, len(keepCall) + 24, true},
		{"a faulty one first", `<tool_call>{"name":"fly"}</tool_call>` + keepCall, MultipleCalls, "more than one", Edit{}, 37, false},

		{"a doubled name", `<tool_call>{"name":"keep_skillkeep_skill","arguments":{}}</tool_call>`, UnknownTool, "perhaps keep_skill", Edit{}, 0, false},
		{"an action as a tool", `<tool_call>{"name":"go to fridge 1","arguments":{}}</tool_call>`, UnknownTool, "no tool", Edit{}, 0, false},
		{"a name in capitals", `<tool_call>{"name":"Keep_Skill"}</tool_call>`, UnknownTool, "perhaps keep_skill", Edit{}, 0, false},

		{"text behind the object", `<tool_call>{"name":"keep_skill"} ok</tool_call>`, InvalidArguments, "text between", Edit{Op: Keep}, 33, false},
		{"a name that is a number", `<tool_call>{"name":1}</tool_call>`, InvalidArguments, "name is a number", Edit{}, 0, false},
		{"a key besides", `<tool_call>{"name":"keep_skill","id":"1"}</tool_call>`, InvalidArguments, "unknown key", Edit{}, 0, false},
		{"a key twice", `<tool_call>{"name":"keep_skill","name":"keep_skill"}</tool_call>`, InvalidArguments, "twice", Edit{}, 0, false},
		{"arguments as a string", `<tool_call>{"name":"keep_skill","arguments":"{}"}</tool_call>`, InvalidArguments, "want an object, have a string", Edit{Op: Keep}, 0, false},
		{"arguments null", `<tool_call>{"name":"keep_skill","arguments":null}</tool_call>`, InvalidArguments, "have null", Edit{Op: Keep}, 0, false},
		{"a null argument", `<tool_call>{"name":"keep_skill","arguments":{"reason":null}}</tool_call>`, InvalidArguments, "reason is null", Edit{Op: Keep}, 0, false},
		{"a list argument", `<tool_call>{"name":"keep_skill","arguments":{"reason":["a"]}}</tool_call>`, InvalidArguments, "reason is a list", Edit{Op: Keep}, 0, false},
		{"an argument twice", `<tool_call>{"name":"keep_skill","arguments":{"reason":"a","reason":"b"}}</tool_call>`, InvalidArguments, "twice", Edit{Op: Keep}, 0, false},
		{"an unknown argument", `<tool_call>{"name":"keep_skill","arguments":{"why":"a"}}</tool_call>`, InvalidArguments, `no argument "why"`, Edit{Op: Keep}, 0, false},
		{"an argument in capitals", `<tool_call>{"name":"keep_skill","arguments":{"Reason":"a"}}</tool_call>`, InvalidArguments, "no argument", Edit{Op: Keep}, 0, false},
		{"a missing argument", `<tool_call>{"name":"propose_skill","arguments":{"category":"c","title":"t","principle":"p"}}</tool_call>`, InvalidArguments, "lacks the argument when_to_apply", Edit{Op: Propose}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ParseCall(c.reply, Strict)
			if got.Outcome != c.want || !strings.Contains(got.Fault, c.fault) || (got.Fault == "") != (c.fault == "") {
				t.Errorf("outcome %v, fault %q; want %v, %q", got.Outcome, got.Fault, c.want, c.fault)
			}
			if got.Edit != c.edit || got.Offset != c.offset || got.Prose != c.prose || got.Parsed() != (c.fault == "") {
				t.Errorf("edit %+v at %d (prose %v); want %+v at %d (%v)", got.Edit, got.Offset, got.Prose, c.edit, c.offset, c.prose)
			}
			if len(got.Repaired) > 0 {
				t.Errorf("a strict reading repaired %v", got.Repaired)
			}
		})
	}
}

func TestParseCallKeepsTheRawText(t *testing.T) {
	if got := ParseCall("x "+keepCall+" y", Strict).Raw; got != keepCall {
		t.Errorf("raw %q", got)
	}
	for _, reply := range []string{"prose", keepCall + keepCall, `<tool_call>{"name":`, "<think>" + keepCall} {
		if got := ParseCall(reply, Strict).Raw; got != reply {
			t.Errorf("raw of %q is %q", reply, got)
		}
	}
	c := ParseCall(`<tool_call>{"name":"keep_skill","arguments":3}</tool_call>`, Strict)
	if c.Raw == "" || c.Tool != "keep_skill" {
		t.Errorf("%+v", c)
	}
}

func TestParseCallLenient(t *testing.T) {
	kept := Edit{Op: Keep, Reason: "covered"}
	object := `{"name":"keep_skill","arguments":{"reason":"covered"}}`
	args := `{\"reason\":\"covered\"}`
	for _, c := range []struct {
		name     string
		reply    string
		repaired []string
	}{
		{"nothing to repair", keepCall, nil},
		{"fence for tags", "```json\n" + object + "\n```", []string{Fenced, Untagged}},
		{"fence in the tags", "<tool_call>\n```json\n" + object + "\n```\n</tool_call>", []string{Fenced}},
		{"no tags, prose with braces", "I {about travel} say " + object, []string{Untagged}},
		{"no closing tag", "<tool_call>" + object, []string{Unclosed}},
		{"reasoning left open", "<think>" + keepCall, []string{Unclosed}},
		{"the same call thrice", keepCall + keepCall + keepCall, []string{Deduplicated}},
		{"the same object twice", "<tool_call>" + object + object + "</tool_call>", []string{Deduplicated}},
		{"text behind the object", "<tool_call>" + object + "!</tool_call>", []string{Trailing}},
		{"quoted arguments", `<tool_call>{"name":"keep_skill","arguments":"` + args + `"}</tool_call>`, []string{Quoted}},
		{"quoted thrice", `<tool_call>{"name":"keep_skill","arguments":"` + args + args + args + `"}</tool_call>`, []string{Deduplicated, Quoted}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ParseCall(c.reply, Lenient)
			if !got.Parsed() || got.Edit != kept || !slices.Equal(got.Repaired, c.repaired) {
				t.Errorf("%+v; want repairs %v", got, c.repaired)
			}
			if strict := ParseCall(c.reply, Strict); strict.Parsed() != (c.repaired == nil) {
				t.Errorf("strictly read: %+v", strict)
			}
		})
	}
	for name, c := range map[string]struct {
		reply string
		want  Outcome
	}{
		"two calls":                    {keepCall + proposeCall, MultipleCalls},
		"two objects":                  {object + `{"name":"keep_skill"}`, Unparsable},
		"arguments that differ":        {`<tool_call>{"name":"keep_skill","arguments":"` + args + `{}"}</tool_call>`, InvalidArguments},
		"a doubled name":               {`<tool_call>{"name":"keep_skillkeep_skill"}</tool_call>`, UnknownTool},
		"single quotes":                {`{'name':'keep_skill'}`, Unparsable},
		"an object in reasoning":       {"<think>" + object + "</think>", Unparsable},
		"an object in other reasoning": {object + "</think>", Unparsable},
		"nothing":                      {"", Unparsable},
	} {
		if got := ParseCall(c.reply, Lenient); got.Parsed() || got.Outcome != c.want || len(got.Repaired) > 0 {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
}

func TestParseCallXML(t *testing.T) {
	reply := "<think>x</think>\n<tool_call>\n<function=propose_skill>\n<parameter=category>\ncool\n</parameter>\n<parameter=title>Find the mug</parameter>\n" +
		"<parameter=principle>\n\nLook {first}\nthere.\n\n</parameter>\n<parameter=when_to_apply>\n</parameter>\n</function>\n</tool_call>"
	want := Edit{Op: Propose, Category: "cool", Title: "Find the mug", Principle: "\nLook {first}\nthere.\n"}
	if got := ParseCall(reply, XML); !got.Parsed() || got.Edit != want || got.Offset != 17 || got.Prose {
		t.Errorf("%+v", got)
	}
	begin, end := "<tool_call><function=keep_skill>", "</function></tool_call>"
	for name, c := range map[string]struct {
		reply string
		want  Outcome
		fault string
	}{
		"keep":                   {begin + end, Kept, ""},
		"the JSON form":          {keepCall, Unparsable, "JSON form"},
		"twice":                  {begin + end + begin + end, MultipleCalls, "more than one"},
		"cut off in a parameter": {begin + "<parameter=reason>a", Unparsable, "no </parameter>"},
		"cut off in a tag":       {"<tool_call><function=keep", Unparsable, "not a tag"},
		"no function close":      {begin + "</tool_call>", Unparsable, "no </function>"},
		"no call close":          {begin + "</function>", Unparsable, "no </tool_call>"},
		"text inside":            {begin + "</function>!</tool_call>", InvalidArguments, "text between"},
		"a parameter twice":      {begin + "<parameter=reason>a</parameter><parameter=reason>b</parameter>" + end, InvalidArguments, "twice"},
		"an unknown parameter":   {begin + "<parameter=why>a</parameter>" + end, InvalidArguments, "no argument"},
		"an unknown tool":        {"<tool_call><function=keep>" + end, UnknownTool, "perhaps keep_skill"},
	} {
		got := ParseCall(c.reply, XML)
		if got.Outcome != c.want || !strings.Contains(got.Fault, c.fault) || (c.fault == "") != got.Parsed() {
			t.Errorf("%s: %+v, want %v (%s)", name, got, c.want, c.fault)
		}
	}
}

func TestParseCallLenientXML(t *testing.T) {
	kept := Edit{Op: Keep, Reason: "covered"}
	function := "<function=keep_skill>\n<parameter=reason>\ncovered\n</parameter>\n</function>"
	open := strings.TrimSuffix(function, "\n</function>")
	for _, c := range []struct {
		name     string
		reply    string
		repaired []string
	}{
		{"nothing to repair", "<tool_call>\n" + function + "\n</tool_call>", nil},
		{"fence in the tags", "<tool_call>\n```xml\n" + function + "\n```\n</tool_call>", []string{Fenced}},
		{"no tags", "I keep it: " + function, []string{Untagged}},
		{"no closing tag", "<tool_call>" + function, []string{Unclosed}},
		{"no function close", "<tool_call>" + open + "</tool_call>", []string{Unclosed}},
		{"neither", "<tool_call>" + open, []string{Unclosed}},
		{"reasoning left open", "<think><tool_call>" + function + "</tool_call>", []string{Unclosed}},
		{"twice", "<tool_call>" + function + "</tool_call>\n<tool_call>" + function + "</tool_call>", []string{Deduplicated}},
		{"text behind the function", "<tool_call>" + function + "!</tool_call>", []string{Trailing}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ParseCall(c.reply, LenientXML)
			if !got.Parsed() || got.Edit != kept || !slices.Equal(got.Repaired, c.repaired) {
				t.Errorf("%+v; want repairs %v", got, c.repaired)
			}
			if strict := ParseCall(c.reply, XML); strict.Parsed() != (c.repaired == nil) {
				t.Errorf("strictly read: %+v", strict)
			}
		})
	}
	for name, reply := range map[string]string{
		"two functions":         "<tool_call>" + function + "</tool_call><tool_call><function=keep_skill></function></tool_call>",
		"a function in reason":  "<think>" + function + "</think>",
		"a parameter cut off":   "<tool_call><function=keep_skill><parameter=reason>cov",
		"text among parameters": "<tool_call>" + open + " well </tool_call>",
		"an unknown tool":       "<tool_call><function=fly></function></tool_call>",
		"the JSON form":         keepCall,
	} {
		if got := ParseCall(reply, LenientXML); got.Parsed() {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A reply that is long and full of beginnings is read in time.
func TestParseCallIsQuick(t *testing.T) {
	for name, piece := range map[string]string{
		"braces": "{", "objects": `{"a":`, "calls": "<tool_call>{", "tags": "<tool_call>", "reasoning": "<think>", "functions": "<tool_call><function=a><parameter=b>", "quoted": `{"name":"keep_skill","arguments":"`, "nested": `{"name":`, "open calls": `<tool_call>{"name":[`,
	} {
		reply := strings.Repeat(piece, (64<<10)/len(piece))
		for _, mode := range []Mode{Strict, Lenient, XML, LenientXML} {
			began := time.Now()
			if c := ParseCall(reply, mode); c.Parsed() {
				t.Errorf("%s: %+v", name, c)
			}
			if d := time.Since(began); d > 10*time.Second {
				t.Errorf("%s, %v: %v", name, mode, d)
			} else {
				t.Logf("%s, %v: %v", name, mode, d)
			}
		}
	}
}

func TestTools(t *testing.T) {
	for _, mode := range []Mode{Strict, XML} {
		shown := mode.Tools()
		if n := strings.Count(shown, callOpen); n != len(tools) {
			t.Errorf("%v shows %d tools:\n%s", mode, n, shown)
		}
		for i, call := range strings.SplitAfter(shown, callClose)[:len(tools)] {
			if c := ParseCall(call, mode); !c.Parsed() || c.Tool != tools[i].name || c.Edit.Reason != "…" {
				t.Errorf("%v: %+v", mode, c)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{"keep_skillkeep_skill": "keep_skill", "update": "update_skill", "propose_skills": "propose_skill", "": "keep_skill"} {
		if got := nearest(name); got != want {
			t.Errorf("nearest(%q) = %s, want %s", name, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "abc", 3}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"abc", "", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestFormatCall(t *testing.T) {
	if got := FormatCall(Edit{Op: Keep, Reason: "covered"}); got != keepCall {
		t.Errorf("got %s", got)
	}
	if got := FormatCall(proposed); got != proposeCall {
		t.Errorf("got %s", got)
	}
	if got, want := FormatCall(Edit{Op: Keep}), `<tool_call>{"name":"keep_skill","arguments":{}}</tool_call>`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What FormatCall writes, ParseCall reads, whatever the texts, in every mode for JSON and behind any reasoning.
func TestFormatCallRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	pieces := []string{"a", " ", "{", "}", `"`, `\`, "\n", "</think>", "<think>", "</tool_call>", "<tool_call>", "é", "&", "\U0001f600", "\x00", "\u2028", "```"}
	text := func() string {
		var s strings.Builder
		for range r.IntN(6) {
			s.WriteString(pieces[r.IntN(len(pieces))])
		}
		return s.String()
	}
	for range 1500 {
		e := Edit{Op: Op(r.IntN(3)), Reason: text()}
		switch e.Op {
		case Propose:
			e.Category, e.Title, e.Principle, e.When = text(), text(), text(), text()
		case Update:
			e.ID, e.Title, e.Principle, e.When = text(), text(), text(), text()
		}
		for _, reply := range []string{FormatCall(e), "<think>why</think>" + FormatCall(e), "why</think>\n" + FormatCall(e) + "\n"} {
			for _, mode := range []Mode{Strict, Lenient} {
				if got := ParseCall(reply, mode); got.Edit != e || !got.Parsed() || got.Prose || len(got.Repaired) > 0 {
					t.Fatalf("%q is read as %+v", reply, got)
				}
			}
		}
	}
}

// The same in the XML form, but that a parameter's own closing tag is broken, and that bytes that end lines stay.
func TestFormatCallRoundTripXML(t *testing.T) {
	for _, text := range []string{"", "a", "\n", "\n\na\n", " <think> </think> ", "<tool_call>", "</tool_call>", "</function>", "{\"a\"", "a</parameter>b"} {
		e := Edit{Op: Propose, Category: text, Title: text, Principle: text, When: text, Reason: text}
		want := strings.ReplaceAll(text, "</parameter>", "< /parameter>")
		for _, mode := range []Mode{XML, LenientXML} {
			got := ParseCall("<think>why</think>"+mode.Format(e), mode)
			if g := got.Edit; !got.Parsed() || g.Title != want || g.Category != want || g.When != want || g.Reason != want {
				t.Errorf("%q is read as %+v", text, got)
			}
		}
	}
}

func FuzzParseCall(f *testing.F) {
	for _, s := range []string{
		keepCall, proposeCall, keepCall + keepCall, "<think>{</think>" + keepCall, "a</think>" + proposeCall, "```json\n{\"name\":\"keep_skill\"}\n```",
		`<tool_call>{"name":"keep_skillkeep_skill","arguments":{}}</tool_call>`, `<tool_call>{"name":"keep_skill","arguments":"{}{}"}</tool_call>`,
		`<tool_call>{'name':'keep_skill'}</tool_call>`, `<tool_call>{"name":"propose_skill","arg`, "<tool_call><function=keep_skill><parameter=reason>\na\n</parameter></function></tool_call>",
		"<think><tool_call>{\"a\":\"</think>\"}", "\xff<tool_call>{\"name\":\"\\ud800\"}</tool_call>", "{{{{{{{{{{",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		for _, mode := range []Mode{Strict, Lenient, XML, LenientXML} {
			c := ParseCall(reply, mode)
			if c.Outcome >= outcomes || c.Offset < 0 || c.Offset > len(reply) || c.Parsed() != (c.Outcome == Kept) {
				t.Fatalf("mode %d: %+v", mode, c)
			}
			if mode != Lenient && mode != LenientXML && len(c.Repaired) > 0 || !strings.Contains(reply, c.Raw) {
				t.Fatalf("mode %d: %+v", mode, c)
			}
			if !c.Parsed() {
				continue
			}
			if again := ParseCall(FormatCall(c.Edit), Strict); again.Edit != c.Edit {
				t.Fatalf("%+v is read again as %+v", c.Edit, again)
			}
			b, o := (Bank{}).Apply(c.Edit, Permission{})
			if o == Added && b.Len() != 1 {
				t.Fatalf("%+v makes %d skills", c.Edit, b.Len())
			}
		}
	})
}
