package skill

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// folders is the file system that an export would make.
func folders(b Bank) fstest.MapFS {
	fsys := fstest.MapFS{"README.md": {Data: []byte("no skill")}, "empty/notes.txt": {Data: []byte("none")}}
	for _, f := range Folders(b) {
		fsys[f.Name+"/"+skillFile] = &fstest.MapFile{Data: f.File}
	}
	return fsys
}

func TestFoldersRoundTrip(t *testing.T) {
	b := must(t,
		Skill{"dyn_001", General, `"Quoted": # - 'x'`, "--- a", ""},
		Skill{"dyn_002", "cool", "- leading \U0001f600: {a} [b] & *c*", "Say: #no, \\n and \"yes\".", "when: it's > 3"},
		Skill{"a.b", "cool", "好", "好 好", ""},
		Skill{"a-b", "cool", "好 好", "Other.", ""},
		Skill{"dyn_003", "cool", strings.Repeat("Long title ", 7), strings.Repeat("p", 400), strings.Repeat("w", 200)},
		Skill{strings.Repeat("x", 64), "cool", "A", "B.", ""},
		Skill{strings.Repeat("x", 63) + ".", "cool", "AA", "BB.", ""},
	)
	fsys := folders(b)
	if len(fsys) != b.Len()+2 {
		t.Fatalf("%d files of %d skills", len(fsys)-2, b.Len())
	}
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, f := range Folders(b) {
		if !name.MatchString(f.Name) || len(f.Name) > maxFolderName {
			t.Errorf("name %q", f.Name)
		}
		fields, err := frontMatter(strings.Split(string(f.File), "\n---\n")[0][4:])
		if err != nil || fields["name"] != f.Name || fields["description"] == "" {
			t.Errorf("%s: %v, %v", f.Name, fields, err)
		}
	}
	skills, err := ReadFolders(fsys)
	if err != nil {
		t.Fatal(err)
	}
	byID := func(a, b Skill) int { return strings.Compare(a.ID, b.ID) }
	want := b.Skills()
	slices.SortFunc(want, byID)
	slices.SortFunc(skills, byID)
	if !slices.Equal(skills, want) {
		t.Errorf("got  %q\nwant %q", skills, want)
	}
}

func TestFolderGolden(t *testing.T) {
	const want = `---
name: "find-the-mug-dyn-003"
description: "Look for a \"mug\" first. When to apply: the task names a mug"
metadata:
  skillmaster.id: "dyn_003"
  skillmaster.category: "cool"
---

# Find the mug

Look for a "mug" first.

When to apply: the task names a mug
`
	b := must(t, Skill{"dyn_003", "cool", "Find the mug", `Look for a "mug" first.`, "the task names a mug"})
	if got := string(Folders(b)[0].File); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestLongDescriptionIsCutVisibly(t *testing.T) {
	b, err := NewWithin(Limits{Principle: 2000}, []Skill{{"a", "c", "T", strings.Repeat("é", 1100), ""}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	fields, err := frontMatter(strings.Split(string(Folders(b)[0].File), "\n---\n")[0][4:])
	if d := []rune(fields["description"]); err != nil || len(d) != maxDescription || d[maxDescription-1] != '…' {
		t.Errorf("description of %d characters, %v", len(d), err)
	}
	if skills, err := ReadFolders(folders(b)); err != nil || skills[0].Principle != strings.Repeat("é", 1100) {
		t.Errorf("the principle was cut: %v", err)
	}
}

func TestReadForeignFolders(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want Skill
	}{
		"plain, colon unquoted": {"---\nname: pdf\ndescription: Reads PDF: text and tables # really\n---\nBody\n", Skill{"", General, "pdf", "Reads PDF: text and tables", ""}},
		"quoted":                {"---\nname: 'it''s'\ndescription: \"a\\u00e9\"\n---\n", Skill{"", General, "it's", "aé", ""}},
		"folded, with a heading": {
			"---\r\nname: x\r\ndescription: >-\r\n  one\r\n  two\r\nallowed-tools:\r\n  - a\r\n---\r\n# Read PDF\r\nBody\r\n",
			Skill{"", General, "Read PDF", "one two", ""},
		},
	} {
		got, err := ReadFolders(fstest.MapFS{"f/SKILL.md": {Data: []byte(c.file)}})
		if err != nil || len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	got, err := ReadFolders(fstest.MapFS{
		"a/SKILL.md": {Data: []byte("no front matter")}, "b/SKILL.md": {Data: []byte("---\nname: b\n---\n")},
		"c/SKILL.md": {Data: []byte("---\nname: c\ndescription: d\n---\n")}, "d/SKILL.md": {Data: []byte("---\nname\n---\n")},
		"e/SKILL.md": {Data: []byte("---\nname: \"\\q\"\n---\n")},
	})
	if len(got) != 1 || got[0].Title != "c" || err == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, file := range []string{"a/SKILL.md", "b/SKILL.md", "d/SKILL.md", "e/SKILL.md"} {
		if !strings.Contains(err.Error(), file) {
			t.Errorf("no word of %s: %v", file, err)
		}
	}
}

func FuzzReadSkillMD(f *testing.F) {
	f.Add("---\nname: a\ndescription: b\n---\n# T\n\nP\n")
	f.Add("---\nname: >\n  a\nmetadata:\n  skillmaster.id: \"x\"\n  skillmaster.category: c\ndescription: ''\n---\n# T\n\nP\n\nWhen to apply: w")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := readSkillMD(text)
		if err != nil {
			return
		}
		b, err := New([]Skill{s}, nil)
		if err != nil {
			return
		}
		back, err := ReadFolders(folders(b))
		if err != nil || len(back) != 1 || back[0] != b.Skills()[0] {
			t.Fatalf("%+v came back as %+v (%v)", b.Skills()[0], back, err)
		}
	})
}
