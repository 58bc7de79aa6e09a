package skill

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Folder is a skill, or a category of them, as an Agent Skill: a folder that holds a SKILL.md.
type Folder struct {
	Name string // of the folder and in the file: 1–64 of a–z, 0–9 and single inner hyphens
	File []byte // SKILL.md
}

// skillFile is the name of the one file of a folder.
const skillFile = "SKILL.md"

// The limits of the Agent Skills format.
const (
	maxFolderName  = 64
	maxDescription = 1024
)

// The keys of our metadata. A bundle has bundleMeta in place of idMeta.
const (
	idMeta       = "skillmaster.id"
	categoryMeta = "skillmaster.category"
	bundleMeta   = "skillmaster.bundle"
)

const (
	whenLabel = "When to apply: "
	idOpen    = "<!-- " + idMeta + ": " // no skill may hold it
	idClose   = " -->"
)

// Folders returns the skills as Agent Skills, one for each, in the bank's order, with names that differ. The description is
// the principle and its condition; where that is over 1024 characters it is cut and ends in "…". Archived skills, pins,
// mistakes and unknown keys have no place in the format and are left out; the order is not kept by a file system.
func Folders(b Bank) []Folder {
	taken := map[string]bool{}
	var out []Folder
	for _, s := range b.skills() {
		id, title := slug(s.ID), slug(s.Title)
		n := folderName(title, id, taken)
		description := s.Principle
		if s.When != "" {
			description += " " + whenLabel + s.When
		}
		body := "# " + s.Title + "\n" + bodyOf(s)
		out = append(out, Folder{n, skillMD(n, description, body, idMeta, s.ID, categoryMeta, s.Category)})
	}
	return out
}

// Bundles returns the skills as Agent Skills, one for each category that has any, in the bank's order: a section for each
// skill. What is left out and cut is as in Folders.
func Bundles(b Bank) []Folder {
	taken := map[string]bool{}
	var out []Folder
	for _, category := range b.Categories() {
		var titles []string
		var body strings.Builder
		fmt.Fprintf(&body, "# %s\n", category)
		for _, s := range b.skills() {
			if s.Category == category {
				titles = append(titles, s.Title)
				fmt.Fprintf(&body, "\n## %s\n\n%s%s%s\n%s", s.Title, idOpen, s.ID, idClose, bodyOf(s))
			}
		}
		if len(titles) == 0 {
			continue
		}
		n := folderName("skills", slug(category), taken)
		description := "Skills for " + category + ": " + strings.Join(titles, "; ")
		out = append(out, Folder{n, skillMD(n, description, body.String(), bundleMeta, "1", categoryMeta, category)})
	}
	return out
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slug is text in the letters of a folder's name.
func slug(s string) string {
	return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(s), "-"), "-")
}

// folderName is title and id in at most 64 letters, told from the names taken by a number.
func folderName(title, id string, taken map[string]bool) string {
	for k := 1; ; k++ {
		end := id
		if k > 1 {
			end = fmt.Sprintf("%s-%d", cut(id, maxFolderName-8), k)
		}
		name := cut(end, maxFolderName)
		if t := cut(title, maxFolderName-1-len(name)); t != "" {
			name = t + "-" + name
		}
		if !taken[name] {
			taken[name] = true
			return name
		}
	}
}

// cut shortens a slug.
func cut(s string, limit int) string { return strings.Trim(s[:min(len(s), max(0, limit))], "-") }

// bodyOf is what a skill says, as paragraphs, with an empty line before each.
func bodyOf(s Skill) string {
	text := "\n" + s.Principle + "\n"
	if s.When != "" {
		text += "\n" + whenLabel + s.When + "\n"
	}
	return text
}

// skillMD writes a SKILL.md; metadata are keys and values in turn.
func skillMD(name, description, body string, metadata ...string) []byte {
	if utf8.RuneCountInString(description) > maxDescription {
		description = string([]rune(description)[:maxDescription-1]) + "…"
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "---\nname: %s\ndescription: %s\nmetadata:\n", quote(name), quote(description))
	for i := 0; i < len(metadata); i += 2 {
		fmt.Fprintf(&out, "  %s: %s\n", metadata[i], quote(metadata[i+1]))
	}
	fmt.Fprintf(&out, "---\n\n%s", body)
	return out.Bytes()
}

// quote writes a YAML scalar: YAML's double-quoted strings take in JSON's.
func quote(s string) string {
	data, err := object{{"", s}}.MarshalJSON()
	if err != nil {
		panic(fmt.Sprintf("skill: %v", err)) // strings always encode
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(data), `{"":`), "}")
}

// readBody reads the skills of a file of ours behind its front matter.
func readBody(meta map[string]string, body string) ([]Skill, error) {
	lines := strings.Split(strings.Trim(body, "\n"), "\n\n")
	title, headed := strings.CutPrefix(lines[0], "# ")
	if !headed {
		return nil, errors.New("the text does not begin with a heading")
	}
	if id, single := meta[idMeta]; single {
		s := Skill{ID: id, Category: meta[categoryMeta], Title: title}
		rest, err := s.takeBody(lines[1:])
		if err == nil && len(rest) > 0 {
			err = errors.New("there is more than heading, principle and condition")
		}
		return []Skill{s}, err
	}
	var out []Skill
	for lines = lines[1:]; len(lines) > 0; {
		s := Skill{Category: meta[categoryMeta]}
		if s.Title, headed = strings.CutPrefix(lines[0], "## "); !headed || len(lines) < 2 {
			return nil, fmt.Errorf("section %d does not begin with a heading and an id", len(out)+1)
		}
		id, opened := strings.CutPrefix(lines[1], idOpen)
		id, closed := strings.CutSuffix(id, idClose)
		if !opened || !closed {
			return nil, fmt.Errorf("section %q has no line %s…%s", s.Title, idOpen, idClose)
		}
		s.ID = id
		var err error
		if lines, err = s.takeBody(lines[2:]); err != nil {
			return nil, fmt.Errorf("section %q: %w", s.Title, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// takeBody reads principle and condition and returns the paragraphs behind them.
func (s *Skill) takeBody(paragraphs []string) ([]string, error) {
	if len(paragraphs) == 0 {
		return nil, errors.New("the principle is missing")
	}
	s.Principle, paragraphs = paragraphs[0], paragraphs[1:]
	if len(paragraphs) > 0 {
		if when, ok := strings.CutPrefix(paragraphs[0], whenLabel); ok {
			s.When, paragraphs = when, paragraphs[1:]
		}
	}
	return paragraphs, nil
}
