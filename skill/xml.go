package skill

import (
	"encoding/json"
	"fmt"
	"strings"
)

const (
	functionOpen   = "<function="
	functionClose  = "</function>"
	parameterOpen  = "<parameter="
	parameterClose = "</parameter>"
)

// readXML is readJSON for the form of the newer Qwen models, in which a call is a function tag with one tag for each
// argument.
func readXML(reply string, at int) (attempt, int) {
	i := skipSpace(reply, at+len(callOpen))
	if !strings.HasPrefix(reply[i:], functionOpen) {
		fault := "no " + functionOpen + "…> behind " + callOpen
		if strings.HasPrefix(reply[i:], "{") {
			fault += ", but a call in the JSON form"
		}
		return unreadable(mentioned, i, fault), 0
	}
	tool, i, err := tagName(reply, i, functionOpen)
	if err != nil {
		return unreadable(begun, i, err.Error()), 0
	}
	var given []member
	for i = skipSpace(reply, i); strings.HasPrefix(reply[i:], parameterOpen); i = skipSpace(reply, i) {
		var m member
		if m, i, err = parameter(reply, i); err != nil {
			return unreadable(begun, i, err.Error()), 0
		}
		given = append(given, m)
	}
	if !strings.HasPrefix(reply[i:], functionClose) {
		return unreadable(begun, i, "no "+functionClose), 0
	}
	i = skipSpace(reply, i+len(functionClose))
	end := find(reply, callClose, i)
	if end == len(reply) {
		return unreadable(begun, i, "no "+callClose), 0
	}
	a := attempt{fill(tool, given, repeated(given)), complete}
	a.Offset = at
	if i != end {
		a.Outcome, a.Fault, a.Offset = InvalidArguments, "text between "+functionClose+" and "+callClose, i
	}
	return a, end + len(callClose)
}

// tagName reads the name in a tag such as <function=name> and returns the place behind it.
func tagName(reply string, at int, open string) (string, int, error) {
	from := at + len(open)
	n := strings.IndexAny(reply[from:], "><\n")
	if n <= 0 || reply[from+n] != '>' {
		return "", at, fmt.Errorf("%s is not a tag with a name", open)
	}
	return reply[from : from+n], from + n + 1, nil
}

// parameter reads one argument as a member whose value is a JSON string.
func parameter(reply string, at int) (member, int, error) {
	key, from, err := tagName(reply, at, parameterOpen)
	if err != nil {
		return member{}, at, err
	}
	end := find(reply, parameterClose, from)
	if end == len(reply) {
		return member{}, at, fmt.Errorf("no %s", parameterClose)
	}
	text := strings.TrimSuffix(strings.TrimPrefix(reply[from:end], "\n"), "\n")
	value, err := json.Marshal(text)
	return member{key, value}, end + len(parameterClose), err
}

func repeated(given []member) error {
	seen := map[string]bool{}
	for _, m := range given {
		if seen[m.key] {
			return fmt.Errorf("the parameter %q is there twice", m.key)
		}
		seen[m.key] = true
	}
	return nil
}
