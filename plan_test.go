package skillmaster_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "skillmaster"

// plan says which of our packages each package may import.
// A package that is not on the plan may not exist; cmd/... may import anything.
var plan = map[string]string{
	// Ground: the nouns and the sums.
	"bm25":    "",
	"chat":    "",
	"grpo":    "",
	"plot":    "",
	"skill":   "bm25",
	"episode": "skill",
	// Contracts: what a world and a model must be able to do.
	"env":    "episode skill",
	"policy": "chat grpo",
	// Engine: how an episode is played, an edit is judged, a policy is trained.
	"probe":   "episode skill",
	"rollout": "chat env episode policy skill",
	"train":   "chat env episode grpo policy probe rollout skill",
	// Edge: one package for each technology.
	"store":                            "episode skill train",
	"web":                              "chat episode plot probe report skill store track train",
	"report":                           "episode plot probe skill store train",
	"track":                            "policy/remote report store",
	"mcp":                              "skill store",
	"fetch":                            "",
	"env/alfworld":                     "env env/textworld episode skill",
	"env/textworld":                    "env env/textworld/pddl env/textworld/twl2 episode",
	"env/textworld/pddl":               "",
	"env/textworld/twl2":               "",
	"env/webshop":                      "bm25 env episode skill",
	"env/openenv":                      "env episode",
	"policy/transformer":               "grpo policy policy/transformer/internal/simd",
	"policy/transformer/internal/simd": "",
	"policy/remote":                    "policy", // one place that handles keys, connections and refusals, for every protocol
	"policy/openai":                    "chat grpo policy policy/remote",
	"policy/tinker":                    "chat grpo policy policy/remote",
	"examples/world":                   "env env/openenv episode", // a world to begin one's own with
	// Conformance suites, for tests only.
	"env/envtest":       "env episode skill",
	"store/storetest":   "episode probe skill store train",
	"policy/policytest": "chat grpo policy",
}

func TestPlan(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || ownModule(path)) {
			return filepath.SkipDir
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || pkg == "." || strings.HasPrefix(pkg, "cmd/") {
			return nil
		}
		may, known := plan[pkg]
		if !known {
			t.Errorf("%s is not on the plan", pkg)
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if to, ours := strings.CutPrefix(imp, module+"/"); ours && !slices.Contains(strings.Fields(may), to) {
				t.Errorf("%s imports %s; the plan allows only [%s]", path, to, may)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ownModule says whether dir is the root of a module of its own, such as a generator.
func ownModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
