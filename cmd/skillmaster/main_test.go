package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// anyFile takes files and folders that are not there, for command lines that are only read.
func anyFile(ctx *kong.DecodeContext, target reflect.Value) error {
	for {
		var s string
		if err := ctx.Scan.PopValueInto("file", &s); err != nil {
			return err
		}
		if target.Kind() != reflect.Slice {
			target.SetString(s)
			return nil
		}
		target.Set(reflect.Append(target, reflect.ValueOf(s)))
		if ctx.Value.Flag != nil || !ctx.Scan.Peek().IsValue() {
			return nil
		}
	}
}

// readable reports what is wrong with a command line as a line of text.
func readable(line string) error {
	line, _, _ = strings.Cut(line, " #")
	line, _, _ = strings.Cut(line, " > ")
	line, _, _ = strings.Cut(line, " | ")
	parser, err := newParser(&commands{}, io.Discard, io.Discard, func(int) {},
		kong.NamedMapper("existingfile", kong.MapperFunc(anyFile)), kong.NamedMapper("existingdir", kong.MapperFunc(anyFile)))
	if err != nil {
		return err
	}
	args := regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`).FindAllString(line, -1)
	for i, a := range args {
		a = strings.NewReplacer(`"`, "", "'", "").Replace(a)
		args[i] = strings.Trim(a, "[]") // what may be left out
		if a == "…" || a == "..." {
			args = args[:i]
			break
		}
	}
	_, err = parser.Parse(args)
	return err
}

// Every command explains itself with examples, and they are command lines that this program takes.
func TestHelp(t *testing.T) {
	out, _ := must(t, 0, "--help")
	for _, want := range []string{"Exit codes", "130"} {
		if !strings.Contains(out, want) {
			t.Errorf("--help does not speak of %s:\n%s", want, out)
		}
	}
	parser, err := newParser(&commands{}, io.Discard, io.Discard, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile(`(?m)^ +(?:claude mcp add \S+ -- )?skillmaster (.+)$`)
	seen := 0
	var look func(n *kong.Node)
	look = func(n *kong.Node) {
		if n.Hidden {
			return
		}
		for _, below := range n.Children {
			look(below)
		}
		path := strings.Fields(n.Path())
		if n.Type != kong.CommandNode {
			return
		}
		var words []string
		for _, w := range path {
			if !strings.HasPrefix(w, "<") && !strings.HasPrefix(w, "[") && w != "skillmaster" {
				words = append(words, w)
			}
		}
		name := strings.Join(words, " ")
		help, _ := must(t, 0, append(words, "--help")...)
		examples := example.FindAllStringSubmatch(wide(help), -1)
		own := false
		for _, m := range examples {
			own = own || strings.HasPrefix(m[1], strings.TrimSuffix(name, " write"))
			if err := readable(m[1]); err != nil {
				t.Errorf("%s --help has the example %q: %v", name, m[1], err)
			}
		}
		if !own {
			t.Errorf("%s --help has no example of it:\n%s", name, help)
		}
		seen++
	}
	look(parser.Model.Node)
	if seen < 40 {
		t.Errorf("%d commands were found", seen)
	}
	if out, _ := must(t, 0, "--version"); !strings.Contains(out, version) {
		t.Errorf("--version prints %q", out)
	}
}

// wide undoes line breaks within examples, as --help makes them for narrow terminals.
func wide(help string) string {
	return regexp.MustCompile(`\n {2,6}(--?\w)`).ReplaceAllString(help, " $1")
}

// Command lines in the documents are such as this program takes.
func TestDocumentedCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	indented := regexp.MustCompile(`(?m)^    (?:[A-Z_]+=\S+ )*(?:go run \./cmd/)?skillmaster +((?:.*\\\n)*.*)$`)
	inline := regexp.MustCompile("`skillmaster ([^`…]+)`")
	seen := 0
	for _, page := range append(pages, "../../README.md", "../../examples/README.md") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		for _, m := range append(indented.FindAllStringSubmatch(text, -1), inline.FindAllStringSubmatch(text, -1)...) {
			seen++
			line := strings.ReplaceAll(m[1], "\\\n", " ")
			err := readable(line) // half a command line is often all that a sentence needs
			if err != nil && !regexp.MustCompile("^(missing flags|expected )|missing value").MatchString(err.Error()) {
				t.Errorf("%s: skillmaster %s: %v", page, line, err)
			}
		}
	}
	if seen < 60 {
		t.Errorf("%d command lines were found", seen)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	if code := execute(ctx, []string{"bench", "probe"}, nil, &out, &out); code != exitInterrupted {
		t.Errorf("exit code %d after an interrupt, want %d\n%s", code, exitInterrupted, out.String())
	}
}
