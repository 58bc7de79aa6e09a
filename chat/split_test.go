package chat

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func cutAll(c cutter, s string) []string {
	var all []string
	pieces(s, []cutter{c}, func(p string) { all = append(all, p) })
	return all
}

// The patterns of well-known models by hand; equality with Hugging Face on many texts is TestIDsEqualHuggingFace.
func TestWellKnownPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          []string
	}{
		{GPT2Pattern, "It's  12 o'clock!\n\nOK ", []string{"It", "'s", " ", " 12", " o", "'", "clock", "!", "\n", "\n", "OK", " "}},
		{QwenPattern, "It'S  12 o'clock!\n\nOK ", []string{"It", "'S", " ", " ", "1", "2", " o", "'clock", "!\n\n", "OK", " "}},
		{QwenPattern, "x'LLy x'ſa'Db 'tis", []string{"x", "'LL", "y", " x", "'ſ", "a", "'D", "b", " '", "tis"}},
		{Llama3Pattern, "1234 (a)\n  \n  b", []string{"123", "4", " (", "a", ")\n", "  \n", " ", " b"}},
	} {
		f, err := cutterFor(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := cutAll(f, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q by %s:\n got %q\nwant %q", c.text, c.pattern, got, c.want)
		}
	}
}

func TestEntityPattern(t *testing.T) {
	corpus := []string{"a cabinet 3, a cabinet 12, a pot 1, a pot 2, a potato 4, a potato 5", "most 3 in step 100, step 200; cup1 2 cup 3", "x9 4 x9 5"}
	got := EntityPattern(slices.Values(corpus), 2, "two", "pot", "clean", "not-a-word", "")
	want := ` ?\b(?:cabinet|potato|pot)(?: [0-9]{1,2})?\b| ?\b(?:clean|two)\b| ?[0-9]{1,2}|\n+`
	if got != want {
		t.Errorf("EntityPattern = %s\nwant            %s", got, want)
	}
	if got := EntityPattern(slices.Values([]string{"nothing here"}), 1); got != entityTail {
		t.Errorf("EntityPattern without nouns = %s, want %s", got, entityTail)
	}
}

func TestEntityPieces(t *testing.T) {
	f, err := cutterFor(` ?\b(?:cabinet|potato|pot)(?: [0-9]{1,2})?\b| ?\b(?:clean|two)\b| ?[0-9]{1,2}|\n+`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"On the cabinet 3, you see a pot 1, and a potato 12.", []string{"On the", " cabinet 3", ", you see a", " pot 1", ", and a", " potato 12", "."}},
		{"put a clean potato in cabinet.", []string{"put a", " clean", " potato", " in", " cabinet", "."}},
		{"teapot 3 pots potable", []string{"teapot", " 3", " pots potable"}},
		{"cabinet 123 cabinet  3", []string{"cabinet", " 12", "3", " cabinet", " ", " 3"}},
		{"a\n\n\ncabinet 3", []string{"a", "\n\n\n", "cabinet 3"}},
		{"", nil},
		{" ", []string{" "}},
	} {
		if got := cutAll(f, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q:\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

// regexpPieces cuts as Split with behavior Isolated does.
func regexpPieces(re *regexp.Regexp, s string) []string {
	var all []string
	from := 0
	for _, m := range re.FindAllStringIndex(s, -1) {
		if m[0] > from {
			all = append(all, s[from:m[0]])
		}
		all = append(all, s[m[0]:m[1]])
		from = m[1]
	}
	if from < len(s) {
		all = append(all, s[from:])
	}
	return all
}

// On ASCII, where Go and Oniguruma agree about words, the cutter by hand is the regular expression.
func TestEntityCutterEqualsItsPattern(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	parts := []string{" ", "pot", "potato", "cabinet", "clean", "1", "23", "\n", ",", "_", "a", "S", "-", "  ", "two"}
	for _, pattern := range []string{
		` ?\b(?:cabinet|potato|pot)(?: [0-9]{1,2})?\b| ?\b(?:clean|two)\b| ?[0-9]{1,2}|\n+`,
		` ?\b(?:pot|a)(?: [0-9]{1,2})?\b| ?[0-9]{1,2}|\n+`,
		` ?\b(?:clean|pot)\b| ?[0-9]{1,2}|\n+`,
		` ?[0-9]{1,2}|\n+`,
	} {
		e, ok := parseEntities(pattern)
		if !ok {
			t.Fatalf("%s is no entity pattern", pattern)
		}
		re := regexp.MustCompile(pattern)
		for range 5000 {
			var b strings.Builder
			for range r.IntN(10) {
				b.WriteString(parts[r.IntN(len(parts))])
			}
			if got, want := cutAll(e.cut, b.String()), regexpPieces(re, b.String()); !slices.Equal(got, want) {
				t.Fatalf("%q by %s:\n got %q\nwant %q", b.String(), pattern, got, want)
			}
		}
	}
}

func TestCommonPatterns(t *testing.T) {
	f, err := cutterFor(`(?i:the)| ?[a-z]+|\d{1,2}|[^\s\d]`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := cutAll(f, "The cat\u00a0 12\u0663!"), []string{"The", " cat", "\u00a0 ", "12", "\u0663", "!"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for pattern, reason := range map[string]string{
		`\bx`: `\b`, `\w+`: `\w`, `[\S]`: `\S`, `^x`: "anchor ^", `x$`: "anchor $", `x(?!y)`: "(?!y", `(?P<n>x)`: "(?P<", `(?s:.)`: "(?s:",
		`[a[b]]`: "classes within", `[[:alpha:]]`: "classes within", `[a&&b]`: "classes within", `[]a]`: "starts with ]", `a*`: "empty text",
		`a++`: "nested repetition", `(`: "missing closing", `\h`: `\h`, `\A`: `\A`, `[^]a]`: "starts with ]",
	} {
		if _, err := cutterFor(pattern); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: error %v, want one that says %q", pattern, err, reason)
		}
	}
}

func FuzzPieces(f *testing.F) {
	f.Add("It's a cabinet 3,\r\n \u00a0x\xff 'LL")
	f.Add(" pot 12\n\n'\u017f")
	var cuts []cutter
	for _, p := range []string{GPT2Pattern, QwenPattern, Llama3Pattern, ` ?\b(?:pot)(?: [0-9]{1,2})?\b| ?[0-9]{1,2}|\n+`, `\s+| ?\p{L}+`} {
		c, err := cutterFor(p)
		if err != nil {
			f.Fatal(err)
		}
		cuts = append(cuts, c)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for i, c := range cuts {
			all := cutAll(c, s)
			if strings.Join(all, "") != s || slices.Contains(all, "") {
				t.Errorf("cutter %d cuts %q into %q", i, s, all)
			}
		}
	})
}
