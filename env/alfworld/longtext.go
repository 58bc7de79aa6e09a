package alfworld

import (
	"bytes"
	"strings"
)

// Game files are JSON objects that consist of one or three long texts and little else. encoding/json goes over a text
// several times; cutText goes over it once, and decoding the little that is left is then quick.

// cutText takes the text of a key out of a JSON object and leaves an empty one in its place; object is not changed. It
// returns false, with the object as it is, if it cannot: decode all of it then. It does not judge the object: what it
// leaves has still to be decoded, and must have nothing but the empty text under the key.
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

// decodeAround decodes a JSON object with decode, the texts of some keys apart; each goes where its key points.
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
	if err := decode(rest); err != nil {
		return err
	}
	for key, text := range apart {
		if *texts[key] != "" { // the key is there twice
			return decode(object)
		}
		*texts[key] = text
	}
	return nil
}
