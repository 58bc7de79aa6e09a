package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Mode says how a reply is read.
type Mode uint8

// The modes.
const (
	Strict     Mode = iota // <tool_call>{"name":…,"arguments":{…}}</tool_call>
	Lenient                // as Strict, and repairs what it can, marking what it repaired
	XML                    // <tool_call><function=…><parameter=…>…</parameter></function></tool_call>, as strict
	LenientXML             // as XML, and repairs what it can
	modes                  // their number
)

var modeNames = [modes]string{"json", "json-lenient", "xml", "xml-lenient"}

// String returns the mode's name.
func (m Mode) String() string {
	if m < modes {
		return modeNames[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// MarshalText writes the mode by name.
func (m Mode) MarshalText() ([]byte, error) {
	if m >= modes {
		return nil, fmt.Errorf("no such mode: %d", uint8(m))
	}
	return []byte(modeNames[m]), nil
}

// UnmarshalText reads what MarshalText writes.
func (m *Mode) UnmarshalText(text []byte) error {
	for i, name := range modeNames {
		if name == string(text) {
			*m = Mode(i)
			return nil
		}
	}
	return fmt.Errorf("no such mode: %q: it is one of %s", text, strings.Join(modeNames[:], ", "))
}

// xml tells whether calls are in the XML form.
func (m Mode) xml() bool { return m == XML || m == LenientXML }

// Call is what a review turn's reply asks for.
type Call struct {
	Edit    Edit    // what was asked for, its texts as written: [Bank.Apply] cleans and judges them
	Outcome Outcome // of reading: Kept if the call is well formed, whatever its tool; else the fault's kind
	Fault   string  // what is wrong, in words; empty if the call is well formed
	Offset  int     // byte of the reply where the call begins or, if it cannot be read, where reading stopped
	Raw     string  // the call as written, tags included; where there is not one call, the reply from the first on
	Tool    string  // the tool's name as written
	Nearest string  // the known tool whose name is most like that of an unknown one
	Prose   bool    // there is text besides closed reasoning and complete calls
	// Repaired names, in alphabetical order, what a lenient reading mended: such a reply earns no format reward.
	Repaired []string
}

// Parsed tells whether the reply holds exactly one well-formed call, so that its edit may be applied.
func (c Call) Parsed() bool { return c.Fault == "" }

// What Lenient repairs, as it stands in Call.Repaired.
const (
	Deduplicated = "deduplicated" // the same object several times, byte for byte
	Fenced       = "fenced"       // a Markdown fence about the object
	Quoted       = "quoted"       // arguments written as a string that holds the object
	Trailing     = "trailing"     // text between the object and the closing tag
	Unclosed     = "unclosed"     // reasoning or call without its closing tag
	Untagged     = "untagged"     // an object without the call's opening tag
)

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	callOpen   = "<tool_call>"
	callClose  = "</tool_call>"
)

// field is one argument of a tool.
type field struct {
	name     string
	required bool
	place    func(*Edit) *string
}

// tool is one way to call. All arguments are strings.
type tool struct {
	name   string
	op     Op
	fields []field // in the order in which they are written
}

var tools = []tool{
	{"propose_skill", Propose, []field{
		{"category", true, func(e *Edit) *string { return &e.Category }},
		{"title", true, func(e *Edit) *string { return &e.Title }},
		{"principle", true, func(e *Edit) *string { return &e.Principle }},
		{"when_to_apply", true, func(e *Edit) *string { return &e.When }},
		{"evidence", false, func(e *Edit) *string { return &e.Reason }},
	}},
	{"update_skill", Update, []field{
		{"skill_id", true, func(e *Edit) *string { return &e.ID }},
		{"title", true, func(e *Edit) *string { return &e.Title }},
		{"principle", true, func(e *Edit) *string { return &e.Principle }},
		{"when_to_apply", true, func(e *Edit) *string { return &e.When }},
		{"reason", false, func(e *Edit) *string { return &e.Reason }},
	}},
	{"keep_skill", Keep, []field{
		{"reason", false, func(e *Edit) *string { return &e.Reason }},
	}},
}

// ParseCall reads the one tool call of a review reply. It never panics on a reply.
//
// Reasoning is what stands between <think> and </think>, and all before a </think> that nothing opened (the template
// did). Calls in closed reasoning do not count. A call is its tag, a JSON object, and the closing tag; braces and tags in
// the object's strings mean nothing. Text around the call, braces and bare tags in it too, is passed over and noted.
//
// Faults, strictly read, by outcome:
//
//	Unparsable        no call that can be read to its end, none with a tool's name, or reasoning is left open
//	MultipleCalls     more than one call, the same twice and one that cannot be read to its end included
//	UnknownTool       a name that is none of propose_skill, update_skill and keep_skill
//	InvalidArguments  text between object and closing tag; keys missing, repeated, unknown or of the wrong type
//
// Empty, over-long and hostile texts are left to [Bank.Apply].
//
// Lenient takes what Strict takes. Otherwise it looks for objects outside closed reasoning that are well-formed calls,
// whatever stands around them, and takes the one there is, if they are all the same. LenientXML does the same with
// functions, whose last closing tags may be missing. Of a reply with many beginnings of a call the first are looked at.
//
// In the XML form a parameter's value is the text between its tags, less one line break at each end.
func ParseCall(reply string, mode Mode) Call {
	if mode >= modes {
		panic(fmt.Sprintf("skill: unknown mode %d", mode))
	}
	c := scan(reply, mode).choose()
	if lenient := mode == Lenient || mode == LenientXML; lenient && !c.Parsed() {
		c = repair(reply, mode, c)
	}
	return c
}

// Tagged tells whether a reply has the tag of a call, whatever is behind it.
func Tagged(reply string) bool { return strings.Contains(reply, callOpen) }

// attempt is a call's tag in a reply with what came of reading on from there.
type attempt struct {
	Call
	state state
}

type state uint8

const (
	mentioned state = iota // no call behind the tag
	begun                  // one that cannot be read to its end
	complete               // one that can, well formed or not
)

// scanner walks through a reply once, as far as a second call.
type scanner struct {
	reply    string
	places   places
	mode     Mode
	attempts []attempt
	open     int // where reasoning was left open; −1 if it was not
	prose    bool
}

func scan(reply string, mode Mode) *scanner {
	s := &scanner{reply: reply, places: places{}, mode: mode, open: -1}
	at, calls := templateReasoning(reply), 0
	for at < len(reply) && calls < 2 {
		think, call := s.places.find(reply, thinkOpen, at), s.places.find(reply, callOpen, at)
		next := min(think, call)
		s.prose = s.prose || strings.TrimSpace(reply[at:next]) != ""
		switch end := s.places.find(reply, thinkClose, next); {
		case next == len(reply):
			at = next
		case next == call:
			at = s.attempt(call)
			if s.attempts[len(s.attempts)-1].state != mentioned {
				calls++
			}
		case end < len(reply):
			at = end + len(thinkClose)
		default:
			s.open, at = think, think+len(thinkOpen)
		}
	}
	return s
}

// places remembers where tags were found by one who looks ever further on, so that looking takes no longer than reading.
type places map[string]int

func (p places) find(reply, tag string, from int) int {
	if at, ok := p[tag]; !ok || at < from {
		p[tag] = find(reply, tag, from)
	}
	return p[tag]
}

// find returns the place of the next tag, the reply's end if there is none.
func find(reply, tag string, from int) int {
	if i := strings.Index(reply[from:], tag); i >= 0 {
		return from + i
	}
	return len(reply)
}

// templateReasoning returns the end of the reasoning that the template opened; 0 if there is none.
func templateReasoning(reply string) int {
	end := find(reply, thinkClose, 0)
	if end == len(reply) || find(reply, thinkOpen, 0) < end {
		return 0
	}
	return end + len(thinkClose)
}

// attempt reads the call whose tag stands at the place given and returns where to go on.
func (s *scanner) attempt(at int) int {
	read := readJSON
	if s.mode.xml() {
		read = readXML
	}
	a, end := read(s.reply, at)
	if a.state == complete {
		a.Raw = s.reply[at:end]
	} else {
		end = at + len(callOpen)
		s.prose = true
	}
	s.attempts = append(s.attempts, a)
	return end
}

// choose makes one call of the attempts.
func (s *scanner) choose() Call {
	byState := map[state][]Call{}
	var calls []Call // of state begun or complete, in order
	for _, a := range s.attempts {
		byState[a.state] = append(byState[a.state], a.Call)
		if a.state != mentioned {
			calls = append(calls, a.Call)
		}
	}
	c := Call{Outcome: Unparsable, Fault: "no " + callOpen, Offset: len(s.reply), Raw: s.reply}
	switch {
	case s.open >= 0:
		c.Fault, c.Offset = thinkOpen+" is not closed", s.open
	case len(calls) > 1:
		c = Call{Outcome: MultipleCalls, Fault: "more than one call, exactly one is wanted", Offset: calls[1].Offset, Raw: s.reply}
	case len(byState[complete]) == 1:
		c = byState[complete][0]
	case len(s.attempts) > 0:
		c = append(byState[begun], byState[mentioned]...)[0]
		c.Raw = s.reply
	}
	c.Prose = s.prose
	return c
}

// readJSON reads the call at the place given; the second result is its end if it is complete.
func readJSON(reply string, at int) (attempt, int) {
	i := skipSpace(reply, at+len(callOpen))
	if i == len(reply) || reply[i] != '{' {
		fault := "no object behind " + callOpen
		if strings.HasPrefix(reply[i:], functionOpen) {
			fault += ", but a call in the XML form"
		}
		return unreadable(mentioned, i, fault), 0
	}
	raw, n, err := firstObject(reply[i:])
	if err != nil {
		return unreadable(begun, i+n, err.Error()), 0
	}
	end := find(reply, callClose, i+n)
	if end == len(reply) {
		return unreadable(begun, i+n, "no "+callClose), 0
	}
	a := attempt{decodeCall(raw), complete}
	a.Offset = at
	if rest := skipSpace(reply, i+n); rest != end {
		fault, begins := "text between the object and "+callClose, InvalidArguments
		if reply[rest] == '{' {
			fault, begins = "several objects in one call, exactly one is wanted", MultipleCalls
		}
		a.Call = Call{Edit: a.Edit, Tool: a.Tool, Outcome: begins, Fault: fault, Offset: rest}
	}
	return a, end + len(callClose)
}

func unreadable(s state, at int, fault string) attempt {
	return attempt{Call{Outcome: Unparsable, Fault: fault, Offset: at}, s}
}

func skipSpace(s string, at int) int {
	for at < len(s) && strings.IndexByte(" \t\r\n", s[at]) >= 0 {
		at++
	}
	return at
}

// firstObject reads the JSON value a text begins with. n is its length or, with an error, where the fault is.
func firstObject(text string) (raw []byte, n int, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	var value json.RawMessage
	err = d.Decode(&value)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return value, int(d.InputOffset()), nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, len(text), errors.New("the object is cut off")
	case errors.As(err, &syntax):
		return nil, max(0, min(len(text), int(syntax.Offset))-1), fmt.Errorf("not JSON: %w", err)
	}
	return nil, 0, fmt.Errorf("not JSON: %w", err)
}

// decodeCall reads a call's object. Offset and Raw are the caller's to set.
func decodeCall(raw []byte) Call {
	ms, err := members(raw)
	if err != nil {
		return Call{Outcome: InvalidArguments, Fault: err.Error()}
	}
	c := Call{}
	args := member{key: "arguments", value: []byte("{}")}
	for _, m := range ms {
		switch m.key {
		case "name":
			if c.Tool, err = m.text(); err != nil {
				return Call{Outcome: InvalidArguments, Fault: err.Error()}
			}
		case "arguments":
			args = m
		default:
			return Call{Outcome: InvalidArguments, Fault: fmt.Sprintf("unknown key %q beside name and arguments", m.key)}
		}
	}
	if c.Tool == "" {
		return Call{Outcome: Unparsable, Fault: "the object names no tool"}
	}
	given, err := members(args.value)
	if err != nil {
		err = fmt.Errorf("arguments: %w", err)
	}
	return fill(c.Tool, given, err)
}

// fill makes the edit of a tool and its arguments; err is what was wrong with those, if anything.
func fill(tool string, given []member, err error) Call {
	c := Call{Tool: tool}
	t, known := toolNamed(tool)
	if !known {
		c.Nearest = nearest(tool)
		c.Outcome, c.Fault = UnknownTool, fmt.Sprintf("no tool %q, perhaps %s is meant", tool, c.Nearest)
		return c
	}
	c.Edit.Op = t.op
	if err == nil {
		err = t.take(&c.Edit, given)
	}
	if err != nil {
		c.Edit = Edit{Op: t.op}
		c.Outcome, c.Fault = InvalidArguments, err.Error()
	}
	return c
}

func toolNamed(name string) (tool, bool) {
	for _, t := range tools {
		if t.name == name {
			return t, true
		}
	}
	return tool{}, false
}

// take puts the arguments in the edit's fields.
func (t tool) take(e *Edit, given []member) error {
	places := map[string]*string{}
	for _, f := range t.fields {
		places[f.name] = f.place(e)
	}
	has := map[string]bool{}
	for _, m := range given {
		place, known := places[m.key]
		if !known {
			return fmt.Errorf("%s has no argument %q", t.name, m.key)
		}
		var err error
		if *place, err = m.text(); err != nil {
			return err
		}
		has[m.key] = true
	}
	for _, f := range t.fields {
		if f.required && !has[f.name] {
			return fmt.Errorf("%s lacks the argument %s", t.name, f.name)
		}
	}
	return nil
}

// nearest is the tool whose name takes the fewest insertions, deletions and replacements of bytes to reach.
func nearest(name string) string {
	if len(name) > 200 {
		name = name[:200]
	}
	best := tools[0].name
	for _, t := range tools[1:] {
		if distance(name, t.name) < distance(name, best) {
			best = t.name
		}
	}
	return best
}

func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// FormatCall is Format in the JSON form.
func FormatCall(e Edit) string { return Strict.Format(e) }

// Format writes the reply whose reading in the mode is the edit: arguments in the order of the tool, optional ones left
// out where empty. In the JSON form it is one line, with "<" escaped so that no text can end the call or the reasoning. The
// XML form has no escapes: a text's own "</parameter>" becomes "< /parameter>". No tool retires or pins a skill or moves
// it to another category: the first two are a panic, the last is not written. Texts must be valid UTF-8.
func (m Mode) Format(e Edit) string {
	i := slices.IndexFunc(tools, func(t tool) bool { return t.op == e.Op })
	if i < 0 {
		panic(fmt.Sprintf("skill: no tool does %v", e.Op))
	}
	var args []entry
	for _, f := range tools[i].fields {
		if text := *f.place(&e); text != "" || f.required {
			args = append(args, entry{f.name, text})
		}
	}
	return m.format(tools[i].name, args)
}

func (m Mode) format(name string, args []entry) string {
	if m.xml() {
		var out strings.Builder
		fmt.Fprintf(&out, "%s\n%s%s>\n", callOpen, functionOpen, name)
		for _, a := range args {
			text := strings.ReplaceAll(fmt.Sprint(a.value), parameterClose, "< /parameter>")
			fmt.Fprintf(&out, "%s%s>\n%s\n%s\n", parameterOpen, a.key, text, parameterClose)
		}
		return out.String() + functionClose + "\n" + callClose
	}
	call, err := object{{"name", name}, {"arguments", object(args)}}.MarshalJSON()
	if err != nil {
		panic(fmt.Sprintf("skill: %v", err)) // strings always encode
	}
	return callOpen + string(bytes.ReplaceAll(call, []byte("<"), []byte(`\u003c`))) + callClose
}

// Tools shows how each tool is called in the mode's form, optional arguments included, one after another.
func (m Mode) Tools() string {
	var calls []string
	for _, t := range tools {
		var args []entry
		for _, f := range t.fields {
			args = append(args, entry{f.name, "…"})
		}
		calls = append(calls, m.format(t.name, args))
	}
	return strings.Join(calls, "\n")
}
