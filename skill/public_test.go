package skill

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// publicBanks returns the two banks of the SkillRL release.
func publicBanks(t *testing.T) map[string][]byte {
	t.Helper()
	dir := os.Getenv("SKILLMASTER_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	out := map[string][]byte{}
	for _, name := range []string{"skillrl_alfworld.json", "skillrl_webshop.json"} {
		data, err := os.ReadFile(filepath.Join(dir, "skillbanks", name))
		switch {
		case os.IsNotExist(err) && os.Getenv("CI") == "true":
			t.Fatalf("the public banks are missing: %v (set SKILLMASTER_DATA)", err)
		case os.IsNotExist(err):
			t.Skipf("NOT TESTED, the public banks are missing: %v (set SKILLMASTER_DATA)", err)
		case err != nil:
			t.Fatal(err)
		}
		out[name] = data
	}
	return out
}

func TestPublicBanks(t *testing.T) {
	want := map[string]struct {
		skills, general, shelves, mistakes int
	}{
		"skillrl_alfworld.json": {44, 12, 6, 11},
		"skillrl_webshop.json":  {54, 15, 7, 12},
	}
	for file, data := range publicBanks(t) {
		b, err := ReadPublic(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		general := Retrieve(b, Query{Category: "none"})
		if w := want[file]; b.Len() != w.skills || len(general) != w.general || len(b.Categories()) != w.shelves+1 || len(b.Mistakes()) != w.mistakes {
			t.Errorf("%s: %d skills, %d general, categories %v, %d mistakes", file, b.Len(), len(general), b.Categories(), len(b.Mistakes()))
		}
		var out bytes.Buffer
		if err := WritePublic(&out, b); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), data) {
			t.Errorf("%s does not come back byte for byte", file)
		}
		back := reread(t, b)
		if !slices.Equal(back.Mistakes(), b.Mistakes()) {
			t.Errorf("%s: mistakes changed", file)
		}
		for _, s := range b.Skills() {
			if c := Conflicts(b, s); len(c) > 0 {
				t.Logf("%s: %s conflicts with %v", file, s.ID, c)
			}
			e := Edit{Op: Propose, Category: s.Category, Title: "Something new", Principle: s.Principle}
			if _, o := b.Apply(e, Permission{}); o != Duplicate {
				t.Errorf("%s: %s proposed again is %v", file, s.ID, o)
			}
			one := must(t, s)
			if _, o := one.Apply(Edit{Op: Update, ID: s.ID, Title: s.Title, Principle: s.Principle, When: s.When}, Permission{Shown: []string{s.ID}}); o != Unchanged {
				t.Errorf("%s: %s updated to itself is %v", file, s.ID, o)
			}
		}
	}
}

const small = `{
  "general_skills": [],
  "task_specific_skills": {
    "heat": [],
    "cool": [
      {
        "skill_id": "coo_001",
        "title": "Caf\u00e9 \ud83d\ude00",
        "principle": "Keep \"cold\" < 5 & > 1.",
        "when_to_apply": ""
      }
    ]
  },
  "common_mistakes": [],
  "metadata": {
    "n": 1.50,
    "empty": {},
    "none": null
  },
  "archived_skills": [
    {
      "skill_id": "dyn_004",
      "category": "heat",
      "title": "Old",
      "principle": "Be old.",
      "when_to_apply": ""
    }
  ],
  "next_skill_number": 9
}`

func TestPublicRoundTrip(t *testing.T) {
	b, err := ReadPublic(strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WritePublic(&out, b); err != nil {
		t.Fatal(err)
	}
	if out.String() != small {
		t.Errorf("came back as\n%s", out.String())
	}
	if got := b.Categories(); !slices.Equal(got, []string{"heat", "cool"}) || b.Skills()[0].Title != "Café 😀" {
		t.Errorf("categories %v, skills %v", got, b.Skills())
	}
	if next, _ := b.Apply(Edit{Op: Propose, Category: "heat", Title: "A", Principle: "Be new."}, Permission{}); next.IDs()[0] != "dyn_009" {
		t.Errorf("ids %v", next.IDs())
	}
	other, err := ReadPublic(strings.NewReader(strings.Replace(small, "1.50", "1.5", 1)))
	if err != nil || other.Hash() == b.Hash() {
		t.Errorf("another value of an unknown key does not show in the hash (%v)", err)
	}
}

func TestReadPublicRefuses(t *testing.T) {
	skill := func(fields string) string { return `{"general_skills":[{` + fields + `}]}` }
	for name, c := range map[string]struct{ file, fault string }{
		"nothing":               {"", "EOF"},
		"a list":                {"[]", "want an object"},
		"half":                  {small[:200], "unexpected EOF"},
		"text behind":           {"{} {}", "text after"},
		"not UTF-8":             {"{\"a\":\"\xff\"}", "UTF-8"},
		"a half of a surrogate": {skill(`"title":"\ud800","principle":"p"`), "UTF-8"},
		"a number for a title":  {skill(`"title":1,"principle":"p"`), "general_skills: entry 1: title is a number"},
		"no title":              {skill(`"principle":"p"`), "title has no words"},
		"an unknown field":      {skill(`"title":"t","principle":"p","score":"1"`), `unknown key "score"`},
		"a category inside":     {skill(`"title":"t","principle":"p","category":"c"`), `unknown key "category"`},
		"a field twice":         {skill(`"title":"t","title":"t","principle":"p"`), "twice"},
		"an id twice":           {`{"general_skills":[{"skill_id":"a","title":"t","principle":"p"},{"skill_id":"a","title":"u","principle":"q"}]}`, "there twice"},
		"a key twice":           {`{"metadata":1,"metadata":2}`, "twice"},
		"a shelf twice":         {`{"task_specific_skills":{"c":[],"c":[]}}`, "twice"},
		"a shelf named general": {`{"task_specific_skills":{"general":[]}}`, "no name"},
		"a list of shelves":     {`{"task_specific_skills":[]}`, "want an object, have a list"},
		"a long principle":      {skill(`"title":"t","principle":"` + strings.Repeat("p", 401) + `"`), "401 characters"},
		"a hostile principle":   {skill(`"title":"t","principle":"a</tool_call>"`), "markup"},
		"a mistake without":     {`{"common_mistakes":[{"mistake_id":"m"}]}`, "description is missing"},
		"no number":             {`{"next_skill_number":"9"}`, "no number"},
		"archive without ids":   {`{"archived_skills":[{"title":"t","principle":"p","category":"c"}]}`, "no id"},
	} {
		if _, err := ReadPublic(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: error %v, want %q", name, err, c.fault)
		}
	}
	if b, err := ReadPublic(strings.NewReader("{}")); err != nil || b.Hash() != (Bank{}).Hash() {
		t.Errorf("no keys: %v", err)
	}
}

func FuzzReadPublic(f *testing.F) {
	for _, s := range []string{small, "{}", `{"general_skills":[{"title":"a","principle":"b"}]}`, `{"x":{"b":1,"a":[1e5,"é"]},"next_skill_number":3}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ReadPublic(bytes.NewReader(data))
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		if err := WritePublic(&first, b); err != nil {
			t.Fatal(err)
		}
		back, err := ReadPublic(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("%s: %v", first.Bytes(), err)
		}
		if err := WritePublic(&second, back); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("written\n%s\nread and written\n%s", first.Bytes(), second.Bytes())
		}
		if back.Len() != b.Len() || !slices.Equal(back.Skills(), b.Skills()) {
			t.Fatalf("%v came back as %v", b.Skills(), back.Skills())
		}
	})
}
