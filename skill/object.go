package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// member is one key of a JSON object with its value as written.
type member struct {
	key   string
	value json.RawMessage
}

// members reads a JSON object, its keys in order and exactly as spelt. A key that is there twice, anything but an
// object, and anything behind it but white space are errors.
func members(data []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	start, err := d.Token()
	if err != nil {
		return nil, err
	}
	if start != json.Delim('{') {
		return nil, fmt.Errorf("want an object, have %s", kind(data))
	}
	var out []member
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: key.(string)}
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		if seen[m.key] {
			return nil, fmt.Errorf("the key %q is there twice", m.key)
		}
		seen[m.key] = true
		out = append(out, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if rest := bytes.TrimSpace(data[d.InputOffset():]); len(rest) > 0 {
		return nil, errors.New("text after the object")
	}
	return out, nil
}

// kind names the type of a JSON value.
func kind(data []byte) string {
	switch s := strings.TrimSpace(string(data)); {
	case s == "":
		return "nothing"
	case s[0] == '{':
		return "an object"
	case s[0] == '[':
		return "a list"
	case s[0] == '"':
		return "a string"
	case s[0] == 't' || s[0] == 'f':
		return "a truth value"
	case s[0] == 'n':
		return "null"
	}
	return "a number"
}

// text reads a JSON string.
func (m member) text() (string, error) {
	if kind(m.value) != "a string" {
		return "", fmt.Errorf("%s is %s, a string is wanted", m.key, kind(m.value))
	}
	var s string
	err := json.Unmarshal(m.value, &s)
	return s, err
}

// list reads a JSON list, each element as written.
func (m member) list() ([]json.RawMessage, error) {
	if kind(m.value) != "a list" {
		return nil, fmt.Errorf("%s is %s, a list is wanted", m.key, kind(m.value))
	}
	var all []json.RawMessage
	err := json.Unmarshal(m.value, &all)
	return all, err
}

// texts reads an object whose values are strings into the places given by key. An unknown key is an error.
func texts(data []byte, places map[string]*string) error {
	ms, err := members(data)
	if err != nil {
		return err
	}
	for _, m := range ms {
		place, known := places[m.key]
		if !known {
			return fmt.Errorf("unknown key %q", m.key)
		}
		if *place, err = m.text(); err != nil {
			return err
		}
	}
	return nil
}
