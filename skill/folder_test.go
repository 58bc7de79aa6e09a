package skill

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// onDisk is the file system that an export would make, with what else may lie there.
func onDisk(all []Folder) fstest.MapFS {
	fsys := fstest.MapFS{"README.md": {Data: []byte("no skill")}, ".git/config": {Data: []byte("none")}}
	for _, f := range all {
		fsys[f.Name+"/"+skillFile] = &fstest.MapFile{Data: f.File}
	}
	return fsys
}

// readBack reads folders that must be readable, and sorts their skills by id.
func readBack(t testing.TB, all []Folder) []Skill {
	t.Helper()
	found, refused, err := ReadFolders(onDisk(all))
	if err != nil || len(refused) > 0 {
		t.Fatalf("refused %v (%v)", refused, err)
	}
	skills := []Skill{}
	for _, f := range found {
		if f.Note != "" {
			t.Errorf("%s: %s", f.File, f.Note)
		}
		skills = append(skills, f.Skill)
	}
	sortByID(skills)
	return skills
}

func sortByID(all []Skill) {
	slices.SortFunc(all, func(a, b Skill) int { return strings.Compare(a.ID, b.ID) })
}

// awkward is a bank whose texts look like what they stand in.
func awkward(t testing.TB) Bank {
	return must(t,
		Skill{"dyn_001", General, `"Quoted": # - 'x'`, "--- a", ""},
		Skill{"dyn_002", "cool", "- leading \U0001f600: {a} [b] & *c*", "Say: #no, \\n and \"yes\".", "when: it's > 3"},
		Skill{"a.b", "cool", "好", "好 好", ""},
		Skill{"a-b", "cool", "好 好", "Other.", ""},
		Skill{"dyn_003", "cool", strings.Repeat("Long title ", 7), strings.Repeat("p", 400), strings.Repeat("w", 200)},
		Skill{strings.Repeat("x", 64), "cool", "## A", "## B.", "# when"},
		Skill{strings.Repeat("x", 63) + ".", "cool", "AA", "When to apply: never, BB.", ""},
		Skill{"A", "Cool", "A", "B.", ""}, Skill{"B", "c-o-o-l", "C", "D.", ""}, Skill{"C", "c_o_o_l", "E", "F.", ""},
		Skill{"D", strings.Repeat("y", 64), "G", "H.", ""}, Skill{"E", strings.Repeat("y", 63) + ".", "I", "J.", ""},
	)
}

func TestFoldersRoundTrip(t *testing.T) {
	b := awkward(t)
	want := b.Skills()
	sortByID(want)
	for name, all := range map[string][]Folder{"folders": Folders(b), "bundles": Bundles(b)} {
		n := map[string]int{"folders": b.Len(), "bundles": len(b.Categories())}[name]
		if len(onDisk(all)) != n+2 {
			t.Fatalf("%s: %d files, want %d", name, len(onDisk(all))-2, n)
		}
		for _, f := range all {
			if !folderNamed.MatchString(f.Name) || len(f.Name) > maxFolderName {
				t.Errorf("%s: name %q", name, f.Name)
			}
		}
		if got := readBack(t, all); !slices.Equal(got, want) {
			t.Errorf("%s: got  %q\nwant %q", name, got, want)
		}
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

func TestBundleGolden(t *testing.T) {
	const want = `---
name: "skills-cool"
description: "Skills for cool: Find the mug; Be quick"
metadata:
  skillmaster.bundle: "1"
  skillmaster.category: "cool"
---

# cool

## Find the mug

<!-- skillmaster.id: dyn_003 -->

Look for a mug first.

When to apply: the task names a mug

## Be quick

<!-- skillmaster.id: dyn_004 -->

Waste no step.
`
	b := must(t, Skill{"dyn_003", "cool", "Find the mug", "Look for a mug first.", "the task names a mug"}, Skill{"dyn_004", "cool", "Be quick", "Waste no step.", ""})
	if got := string(Bundles(b)[0].File); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestLongDescriptionIsCutVisibly(t *testing.T) {
	b, err := NewWithin(Limits{Principle: 2000}, []Skill{{"a", "c", "T", strings.Repeat("é", 1100), ""}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	top, _, err := frontMatter(strings.Split(string(Folders(b)[0].File), "\n---\n")[0][4:])
	if d := []rune(top["description"]); err != nil || len(d) != maxDescription || d[maxDescription-1] != '…' {
		t.Errorf("description of %d characters, %v", len(d), err)
	}
	if back := readBack(t, Folders(b)); back[0].Principle != strings.Repeat("é", 1100) {
		t.Error("the principle was cut")
	}
}

func TestReadForeignFolders(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want Skill
		note string
	}{
		"plain":  {"---\nname: f\ndescription: Reads PDF # really\n---\nBody\n", Skill{"", General, "f", "Reads PDF", ""}, "1 lines"},
		"quoted": {"---\nname: 'f'\ndescription: \"a\\u00e9: b\"\nversion: 1.0\n---\n", Skill{"", General, "f", "aé: b", ""}, ""},
		"folded, with a heading, from another system": {
			"\ufeff---\r\nname: f\r\ndescription: >-\r\n  one\r\n  two\r\nallowed-tools:\r\n  - a\r\n---\r\n# Read PDF\r\nBody\r\n---\r\nmore\r\n",
			Skill{"", General, "Read PDF", "one two", ""},
			"3 lines",
		},
		"no line end": {"---\nname: f\ndescription: d\n---", Skill{"", General, "f", "d", ""}, ""},
	} {
		found, refused, err := ReadFolders(fstest.MapFS{"f/SKILL.md": {Data: []byte(c.file)}})
		if err != nil || len(refused) > 0 || len(found) != 1 || found[0].Skill != c.want || !strings.HasPrefix(found[0].Note, c.note) || (found[0].Note == "") != (c.note == "") {
			t.Errorf("%s: %+v, refused %v, %v", name, found, refused, err)
		}
	}
	found, _, err := ReadFolders(fstest.MapFS{skillFile: {Data: []byte("---\nname: any\ndescription: d\n---\n")}})
	if err != nil || len(found) != 1 || found[0].Skill.Title != "any" {
		t.Errorf("a folder that is a skill itself: %+v, %v", found, err)
	}
}

func TestReadFoldersRefuses(t *testing.T) {
	front := func(text string) string { return "---\n" + text + "\n---\n" }
	ours := "name: f\ndescription: d\nmetadata:\n  skillmaster.category: c\n"
	for name, c := range map[string]struct{ file, why string }{
		"no front matter":          {"name: f", "no front matter"},
		"not closed":               {"---\nname: f\ndescription: d\n", "no front matter"},
		"empty":                    {front(""), "empty"},
		"a list":                   {front("- a"), "keys with values"},
		"no description":           {front("name: f"), "description has 0 characters"},
		"a long description":       {front("name: f\ndescription: " + strings.Repeat("é", 1025)), "1025 characters"},
		"another name":             {front("name: g\ndescription: d"), "not that of its folder"},
		"a name in capitals":       {front("name: F\ndescription: d"), "a–z"},
		"a doubled hyphen":         {front("name: a--b\ndescription: d"), "a–z"},
		"a long name":              {front("name: " + strings.Repeat("a", 65) + "\ndescription: d"), "64"},
		"a colon without quotes":   {front("name: f\ndescription: Reads PDF: all"), "double quotes"},
		"a description twice":      {front("name: f\ndescription: a\ndescription: b"), "twice"},
		"a number for a text":      {front("name: f\ndescription: 5"), "not a text"},
		"a list for a text":        {front("name: f\ndescription: [a]"), "not a text"},
		"an alias":                 {front("name: &x f\ndescription: *x"), "not a text"},
		"a bad escape":             {front("name: f\ndescription: \"\\q\""), "escape"},
		"not UTF-8":                {front("name: f\ndescription: a\xff"), "UTF-8"},
		"too long":                 {front("name: f\ndescription: d") + strings.Repeat("a\n", 1<<19), "more than"},
		"long front matter":        {front("name: f\nx: " + strings.Repeat("a", 1<<16)), "more than"},
		"deep":                     {front("name: f\nx: " + strings.Repeat("[", 30000)), ""},
		"ours without a heading":   {front(ours+"  skillmaster.id: a") + "text\n", "heading"},
		"ours without a principle": {front(ours+"  skillmaster.id: a") + "# T\n", "principle is missing"},
		"ours with more":           {front(ours+"  skillmaster.id: a") + "# T\n\nP\n\nmore\n", "more than heading"},
		"a section without an id":  {front(ours+"  skillmaster.bundle: \"1\"") + "# c\n\n## T\n\nP\n", "no line"},
		"a section without more":   {front(ours+"  skillmaster.bundle: \"1\"") + "# c\n\n## T\n", "section 1"},
	} {
		found, refused, err := ReadFolders(fstest.MapFS{"f/SKILL.md": {Data: []byte(c.file)}})
		if err != nil || len(found) > 0 || len(refused) != 1 || refused[0].File != "f/SKILL.md" || !strings.Contains(refused[0].Why, c.why) {
			t.Errorf("%s: found %+v, refused %v, %v; want %q", name, found, refused, err, c.why)
		}
	}
	found, refused, err := ReadFolders(fstest.MapFS{"a/SKILL.md": {Data: []byte("x")}, "b/notes": {}, "c/SKILL.md": {Data: []byte("---\nname: c\ndescription: d\n---\n")}})
	if err != nil || len(found) != 1 || len(refused) != 2 || refused[1].File != "b/SKILL.md" {
		t.Errorf("found %v, refused %v, %v", found, refused, err)
	}
}

func TestMerge(t *testing.T) {
	b := kitchen(t)
	b, _ = b.Apply(Edit{Op: Propose, Category: "cool", Title: "Gone", Principle: "Be gone."}, anyone)
	b, o := b.Apply(Edit{Op: Retire, ID: "dyn_001"}, Permission{Shown: b.IDs()})
	if o != Retired {
		t.Fatal(o)
	}
	for name, c := range map[string]struct {
		s    Skill
		want Outcome
		why  string
	}{
		"new":              {Skill{"", "heat", "Heat it", "Use the microwave.", ""}, Added, ""},
		"new with an id":   {Skill{"dyn_009", "heat", "Heat it", "Use the microwave.", ""}, Added, ""},
		"changed":          {Skill{"coo_001", "cool", "Find the mug", "Look in the cabinet.", ""}, Updated, ""},
		"moved":            {Skill{"coo_001", "heat", "Find the mug", "Look for a mug in the coffeemachine first.", "the task names a mug"}, Updated, ""},
		"the same":         {b.Skills()[2], Unchanged, ""},
		"said already":     {Skill{"x", "cool", "Mugs", "Look for a mug in the coffeemachine first", ""}, Duplicate, "coo_001 says the same"},
		"a retired one":    {Skill{"dyn_001", "cool", "Gone", "Be gone.", ""}, InvalidArguments, "retired"},
		"a long principle": {Skill{"", "cool", "A", strings.Repeat("a", 401), ""}, InvalidArguments, "401 characters"},
		"markup":           {Skill{"", "cool", "A", "Say <b>.", ""}, InvalidArguments, "markup"},
	} {
		got, outcome, err := b.Merge(c.s, Limits{})
		if outcome != c.want || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, %v; want %v, %q", name, outcome, err, c.want, c.why)
		}
		if changed := outcome == Added || outcome == Updated; (got.Hash() != b.Hash()) != changed {
			t.Errorf("%s: the bank changed: %v", name, !changed)
		}
	}
	with, _, _ := b.Merge(Skill{"dyn_009", "heat", "Heat it", "Use the microwave.", ""}, Limits{})
	if next, _ := with.Apply(Edit{Op: Propose, Category: "cool", Title: "New", Principle: "Be new."}, anyone); !slices.Contains(next.IDs(), "dyn_010") {
		t.Errorf("ids %v", next.IDs())
	}
}

func FuzzReadSkillMD(f *testing.F) {
	f.Add("---\nname: a\ndescription: b\n---\n# T\n\nP\n")
	f.Add("---\nname: >\n  a\nmetadata:\n  skillmaster.id: \"x\"\n  skillmaster.category: c\ndescription: ''\n---\n# T\n\nP\n\nWhen to apply: w")
	for _, all := range [][]Folder{Folders(awkward(f)), Bundles(awkward(f))} {
		for _, one := range all {
			f.Add(string(one.File))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		skills, _, err := readSkillMD(text, ".")
		if err != nil {
			return
		}
		b, err := New(skills, nil)
		if err != nil {
			return
		}
		want := b.Skills()
		sortByID(want)
		for _, all := range [][]Folder{Folders(b), Bundles(b)} {
			if back := readBack(t, all); !slices.Equal(back, want) {
				t.Fatalf("%+v came back as %+v", want, back)
			}
		}
	})
}
