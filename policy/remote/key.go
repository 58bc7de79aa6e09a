// Package remote is what clients and servers of policies on other machines share: keys, addresses, connections, refusals,
// and who may ask.
package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
)

// Key gives the secret that a server knows us by. It is asked before every request, so that a changed one counts at
// once, and what it gives is never kept, printed or recorded. nil: there is none.
type Key func() (string, error)

// EnvKey is the key in an environment variable.
func EnvKey(name string) Key {
	return func() (string, error) {
		if key := os.Getenv(name); key != "" {
			return key, nil
		}
		return "", fmt.Errorf("the environment variable %s is not set: it should hold the server's key", name)
	}
}

// FileKey is the key in a file, spaces and line ends around it left out.
func FileKey(path string) Key {
	return func() (string, error) {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("the server's key: %w", err)
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, 1<<16))
		if err != nil {
			return "", fmt.Errorf("the server's key: %w", err)
		}
		if key := strings.TrimSpace(string(data)); key != "" {
			return key, nil
		}
		return "", fmt.Errorf("%s is empty: it should hold the server's key", path)
	}
}

// shortest is how many characters a key has at least: a shorter one could not be struck out of texts.
const shortest = 4

// Secret asks for the key; "" if there is none.
func (k Key) Secret() (string, error) {
	if k == nil {
		return "", nil
	}
	key, err := k()
	if err != nil {
		return "", err
	}
	if len(key) < shortest {
		return "", fmt.Errorf("the server's key has %d characters, it needs %d; leave it out where the server wants none", len(key), shortest)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("the server's key has characters that no key has (spaces, line ends, letters beyond ASCII): was the right text copied?")
	}
	return key, nil
}

// Scrubbed is an error whose text does not hold the key. It goes on being what it was for errors.Is and errors.As.
func Scrubbed(err error, key string) error {
	if err == nil || key == "" {
		return err
	}
	if text := err.Error(); Strike(text, key) != text {
		return struck{err, Strike(text, key)}
	}
	return err
}

// struck is an error with other words.
type struck struct {
	error
	text string
}

func (s struck) Error() string { return s.text }
func (s struck) Unwrap() error { return s.error }

// Strike takes a key out of a text, in the ways it may be written there.
func Strike(text, key string) string {
	if key == "" {
		return text
	}
	quoted, _ := json.Marshal(key) // a string can be
	for _, form := range []string{key, strings.Trim(string(quoted), `"`), url.QueryEscape(key), url.PathEscape(key)} {
		text = strings.ReplaceAll(text, form, "[key]")
	}
	return text
}
