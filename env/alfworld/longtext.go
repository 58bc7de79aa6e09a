package alfworld

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Game files are JSON objects that consist of one or three long texts and little else. encoding/json goes over a text
// several times; cutText goes over it once, and decoding the little that is left is then quick.

// cutText takes the text of a key out of a JSON object and leaves an empty one in its place; object is not changed. It
// returns false, with the object as it is, if it cannot: decode all of it then. It does not judge the object, and may cut
// a text out of something inside it: what it leaves has still to be decoded, and must have the empty text under the key.
func cutText(object []byte, key string) (rest []byte, text string, ok bool) {
	_, behind, found := bytes.Cut(object, []byte(`"`+key+`"`)) // no text can hold this: it would escape the quotes
	behind, colon := bytes.CutPrefix(bytes.TrimLeft(behind, " \t\r\n"), []byte(":"))
	behind, quote := bytes.CutPrefix(bytes.TrimLeft(behind, " \t\r\n"), []byte(`"`))
	if !found || !colon || !quote {
		return object, "", false
	}
	n := textEnd(behind)
	if n < 0 {
		return object, "", false
	}
	text, ok = unescape(behind[:n])
	if !ok {
		return object, "", false
	}
	start := len(object) - len(behind)
	rest = make([]byte, 0, len(object)-n)
	return append(append(rest, object[:start]...), behind[n:]...), text, true
}

// textEnd is where the closing quote stands, -1 if nowhere.
func textEnd(b []byte) int {
	for at := 0; ; at++ {
		q := bytes.IndexByte(b[at:], '"')
		if q < 0 {
			return -1
		}
		at += q
		escapes := 0
		for escapes < at && b[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
}

// unescape decodes the inside of a JSON text of plain ASCII with the usual short escapes; false if there is more in it.
func unescape(b []byte) (string, bool) {
	var s strings.Builder
	s.Grow(len(b))
	for {
		n := bytes.IndexByte(b, '\\')
		if n < 0 {
			s.Write(b)
			return s.String(), plain(b)
		}
		if !plain(b[:n]) || n+1 == len(b) {
			return "", false
		}
		s.Write(b[:n])
		i := strings.IndexByte(`nt"\/r`, b[n+1])
		if i < 0 {
			return "", false
		}
		s.WriteByte("\n\t\"\\/\r"[i])
		b = b[n+2:]
	}
}

// plain tells whether all bytes are printable ASCII.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// decodeAround decodes a JSON object with decode, the texts of some keys apart; each goes where its key points. The texts
// that are cut out hold no line feeds, so that lines stay what they are. A key that is given twice, in any case, is an
// error.
func decodeAround(object []byte, texts map[string]*string, decode func([]byte) error) error {
	rest, apart := object, map[string]string{}
	for _, key := range []string{"pddl_problem", "pddl_domain", "grammar"} {
		if texts[key] == nil {
			continue
		}
		if r, text, ok := cutText(rest, key); ok {
			rest, apart[key] = r, text
		}
	}
	members, twice := membersOf(rest)
	if twice != "" {
		return fmt.Errorf("key %.60q is given twice", twice)
	}
	for key := range apart {
		if string(members[key]) != `""` || bytes.Count(rest, []byte(`"`+key+`"`)) > 1 {
			return decode(object) // what was cut out may have been inside something else
		}
	}
	if err := decode(rest); err != nil {
		return err
	}
	for key, text := range apart {
		*texts[key] = text
	}
	return nil
}

// encodingError is a place where a text is not UTF-8.
type encodingError struct {
	at   int
	what string
}

func (e *encodingError) Error() string { return e.what }

// checkUTF8 returns an encodingError for what decoding would pass over.
func checkUTF8(text []byte) error {
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return &encodingError{0, "it begins with a byte-order mark (save it as UTF-8 without one)"}
	case bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")):
		return &encodingError{0, "it is UTF-16 (save it as UTF-8)"}
	}
	if at := bytes.IndexByte(text, 0); at >= 0 {
		return &encodingError{at, "it holds a zero byte: it is no text, or not UTF-8"}
	}
	if utf8.Valid(text) {
		return nil
	}
	at := 0
	for r, size := utf8.DecodeRune(text); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(text[at:]) {
		at += size
	}
	return &encodingError{at, "it is not UTF-8 (save it as UTF-8)"}
}

// membersOf are the keys of an object and their values, and a key that it has twice, in any case; "" if none. What is no
// object has no members: decoding it will say so.
func membersOf(object []byte) (members map[string]json.RawMessage, twice string) {
	d := json.NewDecoder(bytes.NewReader(object))
	members = map[string]json.RawMessage{}
	folded := map[string]bool{}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return members, ""
	}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			break
		}
		if folded[strings.ToLower(key)] {
			return members, key
		}
		members[key], folded[strings.ToLower(key)] = value, true
	}
	return members, ""
}
