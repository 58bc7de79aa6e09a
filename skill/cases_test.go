package skill_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"skillmaster/skill"
)

// reported is a failure that users of other systems reported, as input with the right behaviour.
type reported struct {
	ID, Source, Area, Input, Expected string
}

// cases maps the reported failures of skill's areas to what checks them here; those of other areas are checked by the
// packages they concern.
var cases = map[string]func(t *testing.T){
	"peer-001": func(t *testing.T) { // a fence about the call's object
		fenced := "<tool_call>\n```json\n" + object(keep) + "\n```\n</tool_call>"
		if c := skill.ParseCall(fenced, skill.Lenient); !c.Parsed() || c.Edit != keep || !slices.Equal(c.Repaired, []string{skill.Fenced}) || !strings.Contains(fenced, c.Raw) {
			t.Errorf("%+v", c)
		}
	},
	"peer-002": func(t *testing.T) { // braces in prose before the call
		for _, mode := range []skill.Mode{skill.Strict, skill.Lenient} {
			if c := skill.ParseCall("I thought of it {about travel} {}. "+skill.FormatCall(keep), mode); !c.Parsed() || c.Edit != keep {
				t.Errorf("%+v", c)
			}
		}
		if c := skill.ParseCall("{about travel} "+object(keep), skill.Lenient); !c.Parsed() || c.Edit != keep {
			t.Errorf("without tags: %+v", c)
		}
	},
	"peer-003": func(t *testing.T) { // single quotes
		reply := `<tool_call>{'name':'keep_skill','arguments':{'reason':'it\'s'}}</tool_call>`
		if c := skill.ParseCall(reply, skill.Strict); c.Outcome != skill.Unparsable || c.Offset != 12 || c.Raw != reply {
			t.Errorf("%+v", c)
		}
		if c := skill.ParseCall(reply, skill.Lenient); c.Parsed() && len(c.Repaired) == 0 {
			t.Errorf("repaired without a word: %+v", c)
		}
	},
	"peer-005": func(t *testing.T) { // two calls
		reply := skill.FormatCall(keep) + "\n" + skill.FormatCall(skill.Edit{Op: skill.Propose, Category: "c", Title: "t", Principle: "p"})
		for _, mode := range []skill.Mode{skill.Strict, skill.Lenient} {
			if c := skill.ParseCall(reply, mode); c.Outcome != skill.MultipleCalls || c.Parsed() || c.Raw != reply {
				t.Errorf("%+v", c)
			}
		}
	},
	"peer-006": func(t *testing.T) { // the same arguments three times in one string
		args := `{\"reason\":\"covered\"}`
		same := `<tool_call>{"name":"keep_skill","arguments":"` + args + args + args + `"}</tool_call>`
		if c := skill.ParseCall(same, skill.Strict); c.Parsed() {
			t.Errorf("strict: %+v", c)
		}
		if c := skill.ParseCall(same, skill.Lenient); c.Edit != keep || !slices.Contains(c.Repaired, skill.Deduplicated) {
			t.Errorf("lenient: %+v", c)
		}
		differ := `<tool_call>{"name":"keep_skill","arguments":"` + args + `{\"reason\":\"other\"}"}</tool_call>`
		if c := skill.ParseCall(differ, skill.Lenient); c.Parsed() {
			t.Errorf("repeats that differ: %+v", c)
		}
	},
	"peer-007": func(t *testing.T) { // a doubled name
		for _, mode := range []skill.Mode{skill.Strict, skill.Lenient} {
			if c := skill.ParseCall(`<tool_call>{"name":"keep_skillkeep_skill","arguments":{}}</tool_call>`, mode); c.Outcome != skill.UnknownTool || c.Nearest != "keep_skill" {
				t.Errorf("%+v", c)
			}
		}
	},
	"peer-009": func(t *testing.T) { // unbalanced braces in a string
		want := skill.Edit{Op: skill.Keep, Reason: "mv file{.txt,.bak, {a} }}{"}
		for _, mode := range []skill.Mode{skill.Strict, skill.Lenient} {
			if c := skill.ParseCall(skill.FormatCall(want), mode); !c.Parsed() || c.Edit != want {
				t.Errorf("%+v", c)
			}
		}
	},
	"peer-010": func(t *testing.T) { // the XML form; rollout warns when the wrong form is read
		reply := "<tool_call>\n<function=keep_skill>\n<parameter=reason>\n\none\ntwo\n\n</parameter>\n</function>\n</tool_call>"
		want := skill.Edit{Op: skill.Keep, Reason: "\none\ntwo\n"}
		if c := skill.ParseCall(reply, skill.XML); !c.Parsed() || c.Edit != want {
			t.Errorf("%+v", c)
		}
		if c := skill.ParseCall(reply, skill.Strict); c.Parsed() || !strings.Contains(c.Fault, "XML form") {
			t.Errorf("read as JSON: %+v", c)
		}
	},
	"peer-012": func(t *testing.T) { // reasoning that the template opened
		reply := "It is covered {so} <tool_call>{\"name\":\"fly\"}</tool_call></think>\n" + skill.FormatCall(keep)
		for _, mode := range []skill.Mode{skill.Strict, skill.Lenient} {
			if c := skill.ParseCall(reply, mode); !c.Parsed() || c.Edit != keep {
				t.Errorf("%+v", c)
			}
		}
	},
	"peer-013": func(t *testing.T) { // cut off; rollout says truncated where the length was the reason
		reply := `<tool_call>{"name":"propose_skill","argum`
		for _, mode := range []skill.Mode{skill.Strict, skill.Lenient} {
			if c := skill.ParseCall(reply, mode); c.Outcome != skill.Unparsable || c.Raw != reply {
				t.Errorf("%+v", c)
			}
		}
	},
	"peer-042": func(t *testing.T) { // ids are given once, whatever is deleted or restarted in between
		var b skill.Bank
		given := map[string]bool{}
		for round := range 3 {
			for i := range 3 {
				next, o := b.Apply(skill.Edit{Op: skill.Propose, Category: "c", Title: fmt.Sprint("T", round, i), Principle: fmt.Sprintf("Do r%d and then i%d, for w%d.", round, i, 3*round+i)}, skill.Permission{})
				if o != skill.Added || given[next.Changed(b)] {
					t.Fatalf("round %d: %v as %s", round, o, next.Changed(b))
				}
				given[next.Changed(b)] = true
				b = next
			}
			newest := b.IDs()[b.Len()-1]
			b, _ = b.Apply(skill.Edit{Op: skill.Retire, ID: newest}, skill.Permission{Shown: []string{newest}})
			data, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			var restarted skill.Bank
			if err := json.Unmarshal(data, &restarted); err != nil {
				t.Fatal(err)
			}
			b = restarted
		}
		if len(given) != 9 {
			t.Errorf("%d ids", len(given))
		}
	},
	"peer-043": nil, // failure is the success flag's word: rollout's TestReviewSaysFailureByTheFlag, train's TestPeerFailures
	"peer-044": func(t *testing.T) { // contradictions are flagged and not both active
		b, err := skill.New([]skill.Skill{{ID: "a", Category: "cool", Title: "Open", Principle: "Always open the fridge first.", When: "cooling"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		after, o := b.Apply(skill.Edit{Op: skill.Propose, Category: "cool", Title: "Shut", Principle: "Never open the fridge first.", When: "cooling"}, skill.Permission{})
		s, _ := after.Skill(after.Changed(b))
		if o != skill.Added || !slices.Equal(skill.Conflicts(after, s), []string{"a"}) {
			t.Errorf("%v, conflicts %v", o, skill.Conflicts(after, s))
		}
		if judged, gone := after.Supersede(s.ID); !slices.Equal(gone, []string{"a"}) || judged.Len() != 1 {
			t.Errorf("active together: %v", judged.IDs())
		}
	},
	"peer-045": func(t *testing.T) { // awkward texts as SKILL.md
		title := "- \"q\": # \U0001f600 'x' " + strings.Repeat("é", 80)
		s := skill.Skill{ID: "dyn_001", Category: "c", Title: string([]rune(title)[:80]), Principle: "a --- b: " + strings.Repeat("p", 1091), When: "--- : #"}
		b, err := skill.NewWithin(skill.Limits{Principle: 2000}, []skill.Skill{s}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, all := range [][]skill.Folder{skill.Folders(b), skill.Bundles(b)} {
			found, refused, err := skill.ReadFolders(fstest.MapFS{all[0].Name + "/SKILL.md": {Data: all[0].File}})
			if err != nil || len(refused) > 0 || len(found) != 1 || found[0].Skill != s {
				t.Errorf("%v, %v, %v", found, refused, err)
			}
		}
		if file := string(skill.Folders(b)[0].File); !strings.Contains(file, "…\"\n") {
			t.Error("the description was cut without a word")
		}
		if _, o := b.Apply(skill.Edit{Op: skill.Propose, Category: "c", Title: "two\nlines", Principle: "Go on."}, skill.Permission{}); o != skill.Added {
			t.Errorf("a title of two lines is %v", o)
		}
	},
}

var keep = skill.Edit{Op: skill.Keep, Reason: "covered"}

// object is a call without its tags.
func object(e skill.Edit) string {
	return strings.TrimSuffix(strings.TrimPrefix(skill.FormatCall(e), "<tool_call>"), "</tool_call>")
}

// Every failure reported in the areas of this package is checked.
func TestReportedFailures(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range reportedFailures(t, "tool-call parse", "skill bank", "skill export") {
		check, known := cases[r.ID]
		if !known {
			t.Errorf("%s (%s) is not checked: %s", r.ID, r.Source, r.Input)
		}
		seen[r.ID] = true
		if check != nil {
			t.Run(r.ID, check)
		}
	}
	for id := range cases {
		if !seen[id] {
			t.Errorf("%s is checked and not reported", id)
		}
	}
}

// reportedFailures reads those of some areas.
func reportedFailures(t *testing.T, areas ...string) (out []reported) {
	t.Helper()
	dir := os.Getenv("SKILLMASTER_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(dir, "..", "cases", "peer_failures.jsonl"))
	switch {
	case os.IsNotExist(err) && os.Getenv("CI") == "true":
		t.Fatalf("the reported failures are missing: %v (set SKILLMASTER_DATA)", err)
	case os.IsNotExist(err):
		t.Skipf("NOT TESTED, the reported failures are missing: %v (set SKILLMASTER_DATA)", err)
	case err != nil:
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r reported
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(areas, func(a string) bool { return strings.HasPrefix(r.Area, a) }) {
			out = append(out, r)
		}
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		t.Fatalf("%d failures, %v", len(out), err)
	}
	return out
}
