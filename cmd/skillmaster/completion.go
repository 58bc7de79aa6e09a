package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCmd makes shells complete this program's command lines. The scripts ask the program itself what may follow.
type completionCmd struct {
	Bash  completionShell `cmd:"" help:"Print what makes bash complete."`
	Zsh   completionShell `cmd:"" help:"Print what makes zsh complete."`
	Fish  completionShell `cmd:"" help:"Print what makes fish complete."`
	Words completionWords `cmd:"" help:"Print what may stand in place of the last word." hidden:""`
}

// Help is shown under --help.
func (completionCmd) Help() string {
	return `Commands, flags, their values and the names of settings.

Examples:
  skillmaster completion bash > ~/.local/share/bash-completion/completions/skillmaster
  skillmaster completion zsh > "${fpath[1]}/_skillmaster"
  skillmaster completion fish > ~/.config/fish/completions/skillmaster.fish`
}

// completionScripts ask for candidates, a line each, with what it is behind a tab. Where there is none they complete
// names of files. No space follows what ends with =.
var completionScripts = map[string]string{
	"bash": `_skillmaster() {
	local IFS=$'\n'
	COMPREPLY=($("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
	[[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace
}
complete -o default -F _skillmaster skillmaster
`,
	"zsh": `#compdef skillmaster
_skillmaster() {
	local line
	local -a found texts
	for line in "${(@f)$("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
		[[ -z $line ]] && continue
		found+=("${line%%$'\t'*}")
		texts+=("${line/$'\t'/  }")
	done
	if (( ! $#found )); then
		_files
	elif [[ $found[1] == *= ]]; then
		compadd -S '' -l -d texts -a found
	else
		compadd -l -d texts -a found
	fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
	_skillmaster "$@"
else
	compdef _skillmaster skillmaster
fi
`,
	"fish": `function __skillmaster_words
	set -l words (commandline -opc)
	$words[1] completion words -- $words[2..] (commandline -ct) 2>/dev/null
end
complete -c skillmaster -f -n '__skillmaster_words | string length -q' -a '(__skillmaster_words)'
`,
}

type completionShell struct{}

// Help is shown under --help.
func (completionShell) Help() string { return completionCmd{}.Help() }

// Execute prints the script of the shell that the command line ends with.
func (completionShell) Execute(_ context.Context, command []string, stdout, _ io.Writer) error {
	_, err := io.WriteString(stdout, completionScripts[command[len(command)-1]])
	return err
}

type completionWords struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

func (c *completionWords) Execute(_ context.Context, stdout, _ io.Writer) error {
	parser, err := newParser(&commands{}, io.Discard, io.Discard, func(int) {})
	if err != nil {
		return err
	}
	if len(c.Words) > 0 && c.Words[0] == "--" {
		c.Words = c.Words[1:]
	}
	for _, x := range completions(parser.Model.Node, c.Words) {
		if _, err := fmt.Fprintf(stdout, "%s\t%s\n", x.word, x.text); err != nil {
			return err
		}
	}
	return nil
}

// completion is a word that may stand next.
type completion struct{ word, text string }

// completions are the words that may stand in place of the last one. bash makes "=" a word of its own.
func completions(at *kong.Node, words []string) []completion {
	if len(words) == 0 {
		return nil
	}
	last := words[len(words)-1]
	var open *kong.Flag // whose value comes next
	for _, w := range words[:len(words)-1] {
		switch {
		case w == "=" && open != nil:
		case open != nil:
			open = nil
		case strings.HasPrefix(w, "-"):
			if name, _, whole := strings.Cut(w, "="); !whole {
				if f := flagOf(at, name); f != nil && !f.IsBool() {
					open = f
				}
			}
		default:
			if i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == w }); i >= 0 {
				at = at.Children[i]
			}
		}
	}
	if last == "=" {
		last = ""
	}
	name, begun, whole := strings.Cut(last, "=")
	var all []completion
	switch {
	case open != nil:
		all = valuesOf(open)
	case whole && strings.HasPrefix(last, "-"):
		if f := flagOf(at, name); f != nil {
			for _, v := range valuesOf(f) {
				all = append(all, completion{name + "=" + v.word, v.text})
			}
		}
		last = name + "=" + begun
	case strings.HasPrefix(last, "-"):
		for _, group := range at.AllFlags(true) {
			for _, f := range group {
				all = append(all, completion{"--" + f.Name, f.Help})
			}
		}
	default:
		for _, n := range at.Children {
			if !n.Hidden {
				all = append(all, completion{n.Name, n.Help})
			}
		}
		for _, p := range at.Positional {
			for _, v := range p.EnumSlice() {
				all = append(all, completion{v, ""})
			}
		}
	}
	return slices.DeleteFunc(all, func(c completion) bool { return !strings.HasPrefix(c.word, last) })
}

// flagOf is a flag of a command or of those above it, nil if there is none.
func flagOf(at *kong.Node, name string) *kong.Flag {
	for _, group := range at.AllFlags(false) {
		for _, f := range group {
			if "--"+f.Name == name || f.Short != 0 && "-"+string(f.Short) == name {
				return f
			}
		}
	}
	return nil
}

// valuesOf are the values of a flag that can be told, none where any text will do.
func valuesOf(f *kong.Flag) (out []completion) {
	var words []string
	switch {
	case f.Enum != "":
		words = f.EnumSlice()
	case f.Name == "preset":
		words = presets
	case f.Name == "ablation":
		words = slices.Sorted(maps.Keys(ablations))
	case f.Name == "env":
		words = worlds
	case f.Name == "set":
		c, err := preset(household, "default")
		if err != nil {
			return nil
		}
		text, err := json.Marshal(c)
		if err != nil {
			return nil
		}
		var tree map[string]any
		if json.Unmarshal(text, &tree) == nil {
			words = paths("", tree)
		}
	}
	for _, w := range words {
		if w != "" {
			out = append(out, completion{word: w})
		}
	}
	return out
}

// paths are the names of all leaves of a tree, with = behind them.
func paths(above string, tree map[string]any) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		if below, ok := tree[key].(map[string]any); ok && len(below) > 0 {
			out = append(out, paths(above+key+".", below)...)
			continue
		}
		out = append(out, above+key+"=")
	}
	return out
}
