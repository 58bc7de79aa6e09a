package skillmaster_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every difference from the paper and its release is shown by a test, and there are the tests that the page names.
func TestDifferencesAreTested(t *testing.T) {
	b, err := os.ReadFile("docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z/]+)\\.((?:Test|Fuzz)[A-Za-z]+)`")
	rows := 0
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 || !strings.HasPrefix(line, "| ") || strings.Contains(line, "shown by") {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if tests == nil {
			t.Errorf("no test shows this: %s", line)
		}
		for _, m := range tests {
			if !slices.Contains(testsOf(t, m[1]), m[2]) {
				t.Errorf("there is no test %s in %s", m[2], m[1])
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d differences were found: the page's form has changed", rows)
	}
}

// testsOf are the tests of a package.
func testsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil {
				names = append(names, d.Name.Name)
			}
		}
	}
	return names
}

// What a page of the documents links to is there.
func TestLinksOfDocuments(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no documents", err)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, page := range append(pages, "README.md", "examples/README.md") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

// Every package that others may use has an example that runs.
func TestPackagesHaveExamples(t *testing.T) {
	for pkg := range plan {
		if strings.Contains(pkg, "internal") || strings.HasPrefix(pkg, "examples") {
			continue
		}
		if !slices.ContainsFunc(testsOf(t, pkg), func(name string) bool { return strings.HasPrefix(name, "Example") }) {
			t.Errorf("%s has no example", pkg)
		}
	}
}
