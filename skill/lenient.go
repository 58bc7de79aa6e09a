package skill

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// repair looks for the one call that a reply may mean. strict is what a strict reading made of it, and stays if there is
// none or more than one.
func repair(reply string, mode Mode, strict Call) Call {
	loose := looseObject
	if mode.xml() {
		loose = looseFunction
	}
	body, at := reply, templateReasoning(reply)
	var found []Call
	tags := places{}
	for tries := 0; at < len(body) && tries < maxTries; {
		next := strings.IndexAny(body[at:], "{<")
		if next < 0 {
			break
		}
		at += next
		if strings.HasPrefix(body[at:], thinkOpen) {
			if end := tags.find(body, thinkClose, at); end < len(body) {
				at = end + len(thinkClose)
				continue
			}
		}
		if !begins(body[at:], mode) {
			at++
			continue
		}
		tries++
		c, n, ok := loose(body[at:])
		if ok {
			c.Offset, c.Raw = at, body[at:at+n]
			found = append(found, c)
			at += n
			continue
		}
		at++
	}
	if len(found) == 0 {
		return strict
	}
	for _, c := range found[1:] {
		if c.Raw != found[0].Raw {
			return strict
		}
	}
	c := found[0]
	c.Prose = strict.Prose
	c.Repaired = append(c.Repaired, mended(reply, found)...)
	if len(c.Repaired) == 0 {
		c.Repaired = []string{Trailing}
	}
	slices.Sort(c.Repaired)
	c.Repaired = slices.Compact(c.Repaired)
	return c
}

// maxTries is how many beginnings of a call are followed in a reply that is to be repaired: each may be read to the end.
const maxTries = 64

// begins tells whether a text may begin with a call.
func begins(text string, mode Mode) bool {
	if mode.xml() {
		return strings.HasPrefix(text, functionOpen)
	}
	rest := text[skipSpace(text, 1):]
	return text[0] == '{' && (strings.HasPrefix(rest, `"name"`) || strings.HasPrefix(rest, `"arguments"`))
}

// looseObject reads the object a text begins with, if it is a well-formed call.
func looseObject(text string) (Call, int, bool) {
	raw, n, err := firstObject(text)
	if err != nil {
		return Call{}, 0, false
	}
	c := decodeCall(raw)
	if c.Parsed() {
		return c, n, true
	}
	if plain, mends := unquote(raw); mends != nil {
		c = decodeCall(plain)
		c.Repaired = mends
	}
	return c, n, c.Parsed()
}

// looseFunction reads the function tag that a text begins with, if it is a well-formed call: its closing tags may be
// missing where the text or the call ends.
func looseFunction(text string) (Call, int, bool) {
	name, i, err := tagName(text, 0, functionOpen)
	if err != nil {
		return Call{}, 0, false
	}
	var given []member
	end := i
	for i = skipSpace(text, i); strings.HasPrefix(text[i:], parameterOpen); i = skipSpace(text, end) {
		var m member
		if m, end, err = parameter(text, i); err != nil {
			return Call{}, 0, false
		}
		given = append(given, m)
	}
	var mends []string
	switch {
	case strings.HasPrefix(text[i:], functionClose):
		end = i + len(functionClose)
	case i == len(text) || strings.HasPrefix(text[i:], callClose):
		mends = []string{Unclosed}
	default:
		return Call{}, 0, false
	}
	c := fill(name, given, repeated(given))
	c.Repaired = mends
	return c, end, c.Parsed()
}

// unquote puts arguments that are a string in place of it: an object, or the same one several times. The second result is
// nil if they are not that.
func unquote(raw []byte) ([]byte, []string) {
	var call struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	if json.Unmarshal(raw, &call) != nil {
		return nil, nil
	}
	first, n, err := firstObject(call.Arguments)
	if err != nil || kind(first) != "an object" {
		return nil, nil
	}
	mends := []string{Quoted}
	for rest := strings.TrimSpace(call.Arguments[n:]); rest != ""; rest = strings.TrimSpace(rest[n:]) {
		var again []byte
		if again, n, err = firstObject(rest); err != nil || !bytes.Equal(again, first) {
			return nil, nil
		}
		mends = []string{Deduplicated, Quoted}
	}
	plain, err := object{{"name", call.Name}, {"arguments", json.RawMessage(first)}}.MarshalJSON()
	if err != nil {
		return nil, nil
	}
	return plain, mends
}

// mended names what is amiss around the objects found.
func mended(reply string, found []Call) []string {
	var around strings.Builder // the reply without the objects
	at := 0
	for _, c := range found {
		around.WriteString(reply[at:c.Offset])
		around.WriteString("\x00")
		at = c.Offset + len(c.Raw)
	}
	around.WriteString(reply[at:])
	text := around.String()
	var out []string
	note := func(what string, is bool) {
		if is {
			out = append(out, what)
		}
	}
	tagged, ended := strings.Count(text, callOpen), strings.Count(text, callClose)
	note(Deduplicated, len(found) > 1)
	note(Fenced, strings.Contains(text, "```"))
	note(Untagged, tagged == 0)
	note(Unclosed, tagged > ended || strings.Count(text, thinkOpen) > strings.Count(text, thinkClose))
	return out
}
