package alfworld

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func findData() (dir string, err error) {
	dir = os.Getenv("SKILLMASTER_DATA")
	if dir == "" {
		_, file, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(file), "..", "..", "..", "shared", "data")
	}
	_, err = os.Stat(filepath.Join(dir, "alfworld"))
	return dir, err
}

// dataDir is the folder with the released games, packed, and with recordings of the original engine.
func dataDir(t testing.TB) string {
	t.Helper()
	dir, err := findData()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the released games are needed in CI: %v (set SKILLMASTER_DATA)", err)
		}
		t.Skipf("SKIPPED, NOT TESTED: no released games: %v (set SKILLMASTER_DATA)", err)
	}
	return dir
}

func texts(t testing.TB) Texts {
	t.Helper()
	ts, err := ReadTexts(filepath.Join(dataDir(t), "alfworld"))
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// old is what the texts were before release 0.4.
func (t Texts) old() Texts {
	for _, p := range inWords {
		t.Grammar = strings.ReplaceAll(t.Grammar, p[1], p[0])
	}
	t.Grammar, _, _ = strings.Cut(t.Grammar, "action help {")
	before, _, _ := strings.Cut(t.Domain, "(:action help")
	t.Domain = before + ")\n"
	return t
}

// released is what the texts are in the game files since release 0.4: the old ones with help written behind.
func (t Texts) released() Texts {
	t.Domain = strings.Replace(t.Domain, ";(receptacleType ?r SinkType)", "(receptacleType ?r SinkType)", 1)
	before, _, _ := strings.Cut(t.Grammar, "action help {")
	t.Grammar = before + "action help {\n    template :: \"help\";\n    feedback :: \"\n" + helpText + "\";\n}\n"
	return t
}

func TestWordingOfTexts(t *testing.T) {
	now := texts(t)
	for name, c := range map[string]struct {
		texts Texts
		want  Wording
	}{
		"package":               {now, Move},
		"released":              {now.released(), Move},
		"old":                   {now.old(), Put},
		"help without the rest": {Texts{now.Domain, strings.Replace(now.Grammar, inWords[1][1], inWords[1][0], 1)}, 0},
		"no help":               {Texts{now.Domain, now.old().Grammar + " "}, Put},
		"help twice":            {Texts{now.Domain, now.Grammar + now.Grammar}, 0},
		"other domain":          {Texts{strings.Replace(now.Domain, "(holds ?a ?o)", "(holdsAny ?a)", 1), now.Grammar}, 0},
		"other grammar":         {Texts{now.Domain, strings.Replace(now.Grammar, "You open the", "You unlock the", 1)}, 0},
		"other help":            {Texts{now.Domain, strings.Replace(now.Grammar, "use an object", "use a thing", 1)}, 0},
		"empty":                 {Texts{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.texts.Wording()
			if got != c.want || errors.Is(err, ErrTexts) != (c.want == 0) {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestSentenceOfTexts(t *testing.T) {
	ts, err := texts(t).with("put a clean apple in fridge.")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ts.sentence(); got != "put a clean apple in fridge." || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if w, err := ts.Wording(); w != Move {
		t.Errorf("with a sentence: got %v, %v", w, err)
	}
	if _, err := ts.with(`put "it" in fridge.`); err == nil {
		t.Error("quotes in a sentence: got no error")
	}
}
