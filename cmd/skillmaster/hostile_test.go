package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"skillmaster/store/storetest"
)

// hostileTexts are put into every text of a run that a policy, a world or a person can write.
var hostileTexts = map[string]string{
	"tags":      `"><script>alert(1)</script><img src=x onerror=alert(1)>'`,
	"terminal":  "\x1b]0;title\x07\x1b[2J\u009b31m\r\b\x00\u202egnp.exe\u2066",
	"markers":   "<|im_end|><|im_start|>system</tool_call><think>[INST]<|eot_id|>",
	"bytes":     "\xff\xfe\xc3(",
	"markdown":  "|`*_~[x](javascript:alert(1))\n# heading\n```\n![](http://elsewhere.example/x.png)<b>",
	"templates": "{{.}}${x}%s%!d(MISSING)\\u0000",
	"length":    strings.Repeat("0123456789", 10<<10),
}

// raw is what no page, report, export or terminal may hold as it is: control characters but for line ends and tabs, and
// those that turn round the text around them.
var raw = regexp.MustCompile("[\\x00-\\x08\\x0b-\\x1f\\x7f\u0080-\u009f\u202a-\u202e\u2066-\u2069]")

// Whatever stands in a run, what is made of it is harmless: reports, exports and what terminals show.
func TestHostileRun(t *testing.T) {
	for name, text := range hostileTexts {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			out := filepath.Join(t.TempDir(), "out")
			if err := os.Mkdir(out, 0o700); err != nil {
				t.Fatal(err)
			}
			run, err := storetest.Make(t.Context(), dir, storetest.Shape{Seed: 1, Iterations: 7, Tasks: 2, Group: 2, Evaluate: 3, Panel: 3, Text: text})
			if err != nil {
				t.Fatal(err)
			}
			if err := run.Close(); err != nil {
				t.Fatal(err)
			}
			in := func(file string) string { return filepath.Join(out, file) }
			for _, args := range [][]string{
				{"report", dir, "--html", in("r.html"), "--markdown", in("r.md")},
				{"report", dir},
				{"report", "compare", dir, dir},
				{"bank", "list", "--run", dir},
				{"bank", "show", "--run", dir},
				{"bank", "log", "--run", dir},
				{"bank", "log", "--run", dir, "--json"},
				{"bank", "check", "--run", dir},
				{"bank", "export", "--run", dir, "--to", in("bank.json")},
				{"bank", "export", "--run", dir, "--form", "skills", "--to", in("skills")},
				{"bank", "export", "--run", dir, "--form", "bundles", "--to", in("bundles")},
				{"export", "jsonl", "--run", dir, "--to", in("metrics.jsonl")},
				{"export", "parquet", "--run", dir, "--to", in("episodes.parquet")},
				{"export", "tensorboard", "--run", dir, "--to", in("events")},
			} {
				code, said, errs := sm(t, "", args...)
				if code != exitDone && !(args[0] == "report" && len(args) == 4) {
					t.Errorf("%v ends with %d: %.300s", args, code, errs)
				}
				harmless(t, strings.Join(args[:2], " "), said+errs)
			}
			err = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				b, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				name, text := filepath.Base(path), string(b)
				if ext := filepath.Ext(name); ext != ".parquet" && !strings.HasPrefix(name, "events") { // those hold bytes
					harmless(t, name, text)
				}
				switch filepath.Ext(name) {
				case ".html":
					if m := regexp.MustCompile(`<script|<img|<b>|<[^>]*\sonerror|href="?javascript|src="?http`).FindString(text); m != "" {
						t.Errorf("%s has %q of the text", name, m)
					}
				case ".md":
					if filepath.Base(filepath.Dir(path)) == "out" {
						prose := regexp.MustCompile("``.*?``|`[^`\n]*`").ReplaceAllString(text, "") // code is shown as it is
						if m := regexp.MustCompile(`(?m)<script|<img|<b>|^# heading|[^\\]\]\(javascript|!\[\]\(http`).FindString(prose); m != "" {
							t.Errorf("%s has %q of the text", name, m)
						}
					}
				case ".json", ".jsonl":
					for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
						var v any
						if err := d.Decode(&v); err != nil {
							return fmt.Errorf("%s: %w", name, err)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func harmless(t *testing.T, where, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s is not UTF-8", where)
	}
	if at := raw.FindStringIndex(text); at != nil {
		t.Errorf("%s holds %q: %q", where, text[at[0]:at[1]], text[max(0, at[0]-40):min(len(text), at[1]+40)])
	}
}
