package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCompletionWords(t *testing.T) {
	for line, want := range map[string][]string{
		"ba":                            {"bank"},
		"bank sh":                       {"show"},
		"train --pres":                  {"--preset"},
		"train --preset sm":             {"smoke"},
		"train --preset = sm":           {"smoke"}, // as bash cuts it
		"train --preset =":              presets,
		"train --preset=sm":             {"--preset=smoke"},
		"train --resume --ablation no-": {"no-review", "no-skills", "no-utility"},
		"train --set train.gate.al":     {"train.gate.alpha="},
		"eval --retrieval ":             {"on", "off"},
		"eval --run runs/x --retr":      {"--retrieval"},
		"bank export --run ":            nil, // a folder: the shell completes it
		"completion ":                   {"bash", "zsh", "fish"},
		"nonsense ":                     nil,
		"bank nonsense --":              {"--help", "--version"},
	} {
		out, _ := must(t, 0, append([]string{"completion", "words", "--"}, strings.Split(line, " ")...)...)
		var got []string
		for l := range strings.Lines(out) {
			word, _, _ := strings.Cut(l, "\t")
			got = append(got, word)
		}
		if line == "nonsense " && len(got) > 5 { // as if nothing stood there
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %q come %q, want %q", line, got, want)
		}
	}
}

// Real shells complete command lines with the scripts.
func TestCompletionInShells(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "skillmaster")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SKILLMASTER_TEST_AS_PROGRAM", "1")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("HOME", dir)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, _ := must(t, 0, "completion", shell)
		if err := os.WriteFile(filepath.Join(dir, "script."+shell), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines := map[string]string{
		"skillmaster bank sh": "show", "skillmaster train --preset sm": "smoke", "skillmaster eval --retri": "--retrieval",
		"skillmaster train --preset=sm": "smoke", "skillmaster train --set train.gate.al": "train.gate.alpha=",
	}
	for shell, complete := range map[string]func(line string) string{
		"bash": func(line string) string { // as readline calls the function, with its word breaks
			words := strings.Fields(strings.ReplaceAll(line, "=", " = "))
			return `source "$0/script.bash"; COMP_WORDS=(` + strings.Join(words, " ") + `); COMP_CWORD=$((${#COMP_WORDS[@]}-1))
				compopt() { :; }; "$(complete -p skillmaster | sed 's/.* -F \([^ ]*\) .*/\1/')"; printf '%s\n' "${COMPREPLY[@]}"`
		},
		"zsh": func(line string) string { // at a terminal, by the tab key
			return `zmodload zsh/zpty; zpty z zsh -f -i
				zpty -w z "PS1=; autoload -Uz compinit; compinit -u -d $0/dump; source $0/script.zsh
				shown() { print -r -- \"GOT<\$BUFFER>\" }; zle -N shown; bindkey '^X' shown"
				zpty -w -n z $'` + line + `\t\C-x'
				zpty -r z out "*GOT<skillmaster*>*"; print -r -- ${out##*GOT}`
		},
		"fish": func(line string) string { return `source "` + dir + `/script.fish"; complete -C '` + line + `'` },
	} {
		t.Run(shell, func(t *testing.T) {
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("NOT TESTED: there is no %s on this machine (apt-get install %s)", shell, shell)
			}
			for line, want := range lines {
				args := []string{"-c", complete(line), dir}
				if shell == "fish" {
					args = args[:2]
				}
				out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("%q is completed by %q (%v), want %s", line, out, err, want)
				}
			}
		})
	}
}
