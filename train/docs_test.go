package train

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"skillmaster/chat"
	"skillmaster/env/alfworld"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/rollout"
	"skillmaster/skill"
)

var update = flag.Bool("update", false, "write the example of docs/method.md anew")

// The document lists every metric this package records, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	text := document(t, "metrics.md")
	rows := map[string]string{} // key → its row
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+/[^`]+)` \\|.*$").FindAllStringSubmatch(text, -1) {
		if rows[m[1]] != "" {
			t.Errorf("%s has two rows", m[1])
		}
		rows[m[1]] = m[0]
	}
	recorded := recordedKeys(t)
	for key, names := range recorded {
		if rows[key] == "" {
			t.Errorf("%s is recorded and not documented", key)
		}
		for _, name := range names {
			if !strings.Contains(rows[key], "`"+name+"`") {
				t.Errorf("the row of %s does not name %q", key, name)
			}
		}
	}
	for key := range rows {
		if _, ok := recorded[key]; !ok {
			t.Errorf("%s is documented and not recorded", key)
		}
	}
	for _, m := range regexp.MustCompile("`([a-z]+)/([^`]+)`").FindAllStringSubmatch(text, -1) {
		key := m[1] + "/" + m[2]
		if _, ok := recorded[key]; !ok && isStream(recorded, m[1]) && !isNamed(recorded, key) {
			t.Errorf("the text speaks of %s, which nothing records", key)
		}
	}
}

// What the document lists is recorded by a run of a few iterations, but for what such a run does not come to: of those
// the test says why, and that they are absent indeed. Wall times are tested with the store.
func TestDocumentedMetricsAreRecorded(t *testing.T) {
	absent := map[string]string{
		"gate/played":      "nothing is admitted here: TestUsefulEditsAreCommittedAndHarmfulOnesAreNot",
		"gate/committed":   "the same",
		"gate/rejected":    "the same: TestEditThatTheGateCannotMeasure",
		"bank/change_NAME": "nothing is committed here: TestBankMetricsByHand",
		"probe/utility_sd": "no iteration has two verdicts here: TestProbeMetricsByHand",
		"learn/kl_k3":      "there is no KL term here: TestReferencePolicy",
		"teacher/added":    "there is no teacher here: cmd/skillmaster.TestTeacher",
	}
	seen := map[string]bool{}
	for _, r := range wholeRun(t).reports {
		for key := range r.Metrics {
			seen[key] = true
		}
	}
	for key := range recordedKeys(t) {
		stem, named := strings.CutSuffix(key, "NAME")
		found := seen[key]
		for k := range seen {
			found = found || named && strings.HasPrefix(k, stem)
		}
		why, known := absent[key]
		switch {
		case strings.HasPrefix(key, "time/"):
		case !found && !known:
			t.Errorf("no round recorded %s", key)
		case found && known:
			t.Errorf("%s is recorded, though %s", key, why)
		}
	}
}

func isStream(recorded map[string][]string, stream string) bool {
	for key := range recorded {
		if strings.HasPrefix(key, stream+"/") {
			return true
		}
	}
	return false
}

// isNamed tells whether a key is one of a key with NAME in it.
func isNamed(recorded map[string][]string, key string) bool {
	for pattern, names := range recorded {
		for _, name := range names {
			if strings.Replace(pattern, "NAME", name, 1) == key {
				return true
			}
		}
	}
	return false
}

// recordedKeys are the metric keys written in this package's source. Keys that end with a name from a closed list stand
// there once, with NAME for it, and the names with them.
func recordedKeys(t *testing.T) map[string][]string {
	t.Helper()
	keys := map[string][]string{}
	looks := regexp.MustCompile(`^[a-z]+/[a-z0-9_]*$`)
	for _, f := range source(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "lap" {
					part, literal := unquoted(n.Args[0])
					if !literal {
						t.Error("a part of the wall time is not named by a literal")
					}
					keys["time/"+part+"_seconds"] = nil
				}
			case *ast.BasicLit:
				key, literal := unquoted(n)
				switch {
				case !literal || !looks.MatchString(key):
				case key == "time/": // with the parts above
				case key == "review/outcome_":
					keys[key+"NAME"] = outcomeNames()
				case key == "rollout/stop_":
					keys[key+"NAME"] = stopNames()
				case key == "bank/change_":
					keys[key+"NAME"] = []string{"added", "updated", "retired"}
				case key == "review/tool_":
					keys[key+"NAME"] = []string{"propose", "update", "keep", "retire", "none"}
				case key == "rollout/skills_used_", key == "warm/agreement_", strings.HasPrefix(key, "skill/"): // the name of a family, a kind or a skill comes last
					keys[key+"NAME"] = nil
				case strings.HasSuffix(key, "_") || strings.HasSuffix(key, "/"):
					t.Errorf("keys are put together from %q: this test has to be told of what", key)
				default:
					keys[key] = nil
				}
			}
			return true
		})
	}
	if len(keys) < 10 {
		t.Fatalf("only %d keys were found", len(keys))
	}
	return keys
}

func outcomeNames() (names []string) {
	for _, o := range skill.Outcomes() {
		names = append(names, o.String())
	}
	return names
}

func stopNames() (names []string) {
	for r := episode.Unfinished; ; r++ {
		name, err := r.MarshalText()
		if err != nil {
			return names
		}
		names = append(names, string(name))
	}
}

// source is this package, without its tests.
func source(t *testing.T) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

func unquoted(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// document is a text in docs.
func document(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Settings that the documents name exist.
func TestDocumentedSettingsExist(t *testing.T) {
	named := regexp.MustCompile(`\btrain((?:\.[a-z_]+)+)`)
	known := settings(reflect.TypeFor[Config]())
	seen := 0
	for _, name := range []string{"metrics.md", "method.md", "reference.md", "faq.md"} {
		for _, m := range named.FindAllStringSubmatch(document(t, name), -1) {
			seen++
			if path := strings.TrimPrefix(m[1], "."); !slices.Contains(known, path) {
				t.Errorf("docs/%s names the setting train.%s; there are %v", name, path, known)
			}
		}
	}
	if seen == 0 {
		t.Error("no document names a setting: the test tests nothing")
	}
}

// Where a document gives a setting's default, in brackets behind it or in the column before it, it is that.
func TestDocumentedDefaults(t *testing.T) {
	text := document(t, "method.md")
	behind := regexp.MustCompile(`\b(train(?:\.[a-z_]+)+)`+"`?"+` \(([0-9.]+)\)`).FindAllStringSubmatch(text, -1)
	before := regexp.MustCompile(`\| [+−]?([0-9.]+) \| `+"`"+`(train(?:\.[a-z_]+)+)`).FindAllStringSubmatch(text, -1)
	for _, m := range before {
		behind = append(behind, []string{m[0], m[2], m[1]})
	}
	if len(before) < 5 || len(behind) < len(before)+5 {
		t.Fatalf("%d defaults were found, %d of them in tables", len(behind), len(before))
	}
	for _, m := range behind {
		want, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := defaultOf(t, m[1]); !ok || math.Abs(got) != want { // tables of prices write fines with their sign
			t.Errorf("docs/method.md says that %s is %v by default, it is %v", m[1], want, got)
		}
	}
}

// defaultOf is the default of the numeric setting with a path such as train.learn.rate.
func defaultOf(t *testing.T, path string) (float64, bool) {
	t.Helper()
	b, err := json.Marshal(map[string]Config{"train": Default()})
	if err != nil {
		t.Fatal(err)
	}
	var at any
	if err := json.Unmarshal(b, &at); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Split(path, ".") {
		group, _ := at.(map[string]any)
		at = group[key]
	}
	v, ok := at.(float64)
	return v, ok
}

// settings are the paths of a config's keys and of the groups they stand in.
func settings(c reflect.Type) []string {
	paths := map[string]bool{}
	for _, f := range reflect.VisibleFields(c) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		paths[key] = true
		if f.Type.Kind() == reflect.Struct {
			for _, below := range settings(f.Type) {
				paths[key+"."+below] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// The example is what the program shows and writes, with a line break before each role.
func TestMethodExample(t *testing.T) {
	text := document(t, "method.md")
	block := regexp.MustCompile("(?s)(<!-- example[^\n]*-->\n```\n)(.*?)(```\n<!-- end -->)")
	if n := len(block.FindAllString(text, -1)); n != 1 {
		t.Fatalf("docs/method.md has %d examples, want 1", n)
	}
	want := strings.TrimPrefix(strings.ReplaceAll(demonstrated(t), "\n<|end|>", "<|end|>"), "\n")
	if *update {
		fresh := block.ReplaceAllStringFunc(text, func(old string) string {
			m := block.FindStringSubmatch(old)
			return m[1] + want + m[3]
		})
		if err := os.WriteFile(filepath.Join("..", "docs", "method.md"), []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := block.FindStringSubmatch(text)[2]; got != want {
		t.Errorf("the example is not what the program does (-update writes it anew; read it then):\n%s\nwant\n%s", got, want)
	}
}

// demonstrated is the text of a demonstration: a small room, a task, and a skill about it that is wrong.
func demonstrated(t *testing.T) string {
	t.Helper()
	suite, err := alfworld.NewGenerated(alfworld.GeneratedOptions{Splits: map[string]int{"train": 43}})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := suite.Tasks("train")
	if err != nil {
		t.Fatal(err)
	}
	task, err := suite.Vary(tasks[18], 43)
	if err != nil {
		t.Fatal(err)
	}
	bank, err := skill.New([]skill.Skill{{
		Category: task.Category, Title: "Find the keychain", Principle: "Look for a keychain in the dresser first.", When: "the task names a keychain",
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := chat.Train(slices.Values([]string{"a"}), chat.TrainOptions{VocabSize: 300, Special: chat.Plain().Special(), Tags: chat.Tags()})
	if err != nil {
		t.Fatal(err)
	}
	c := Default()
	c.Warm.Noise = 0
	w, err := newWarm(c, suite, tasks, policy.NewChat(nil, tok, chat.Plain()))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := w.demo.Play(t.Context(), rollout.Start{Task: task, Bank: bank, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !tr.Success || tr.Review == nil || tr.Review.Outcome != skill.Updated {
		t.Errorf("the text about the example says that the review corrects the skill: %v, %+v", tr.Stop, tr.Review)
	}
	var ids []int32
	for _, u := range tr.Turns {
		ids = append(append(ids, u.Prompt...), u.Completion...)
	}
	return fmt.Sprintln(strings.ReplaceAll(tok.Decode(ids), "<|", "\n<|"))
}
