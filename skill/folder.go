package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Folder is a skill as an Agent Skill: a folder that holds a SKILL.md.
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

// The keys of our metadata.
const (
	idMeta       = "skillmaster.id"
	categoryMeta = "skillmaster.category"
)

const whenLabel = "When to apply: "

// Folders returns the skills as Agent Skills, in the bank's order, with names that differ. The description is the
// principle and its condition; where that is over 1024 characters it is cut and ends in "…". Archived skills, mistakes and
// unknown keys have no place in the format and are left out; the order is not kept by a file system.
func Folders(b Bank) []Folder {
	taken := map[string]bool{}
	var out []Folder
	for _, s := range b.skills() {
		n := folderName(s, "")
		for k := 2; taken[n]; k++ {
			n = folderName(s, fmt.Sprintf("-%d", k))
		}
		taken[n] = true
		out = append(out, Folder{n, skillMD(n, s)})
	}
	return out
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

func slug(s string, limit int) string {
	s = strings.Trim(notSlug.ReplaceAllString(strings.ToLower(s), "-"), "-")
	return strings.Trim(s[:min(len(s), max(0, limit))], "-")
}

// folderName is title and id in few letters, and a suffix that tells it from others.
func folderName(s Skill, suffix string) string {
	id := slug(s.ID, maxFolderName-len(suffix)) + suffix
	if title := slug(s.Title, maxFolderName-1-len(id)); title != "" {
		return title + "-" + id
	}
	return id
}

func skillMD(name string, s Skill) []byte {
	description := s.Principle
	if s.When != "" {
		description += " " + whenLabel + s.When
	}
	if utf8.RuneCountInString(description) > maxDescription {
		description = string([]rune(description)[:maxDescription-1]) + "…"
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "---\nname: %s\ndescription: %s\nmetadata:\n  %s: %s\n  %s: %s\n---\n", quote(name), quote(description), idMeta, quote(s.ID), categoryMeta, quote(s.Category))
	fmt.Fprintf(&out, "\n# %s\n\n%s\n", s.Title, s.Principle)
	if s.When != "" {
		fmt.Fprintf(&out, "\n%s%s\n", whenLabel, s.When)
	}
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

// ReadFolders reads the Agent Skills that lie as folders in fsys, by name, whoever wrote them. Ours come back as they
// were. Others become general skills without an id whose title is the first heading, or else the name, and whose
// principle is the description; the rest of their text, and every other file, is left out. Folders without a
// SKILL.md are passed over. A file that cannot be read as a skill is a joined error that names it; the skills of the
// others come all the same.
//
// Their text is as untrusted as any: [New] checks it.
func ReadFolders(fsys fs.FS) ([]Skill, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var skills []Skill
	var faults []error
	for _, e := range entries {
		file := path.Join(e.Name(), skillFile)
		data, err := fs.ReadFile(fsys, file)
		switch {
		case !e.IsDir() || errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		s, err := readSkillMD(string(data))
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", file, err))
			continue
		}
		skills = append(skills, s)
	}
	return skills, errors.Join(faults...)
}

func readSkillMD(text string) (Skill, error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	front, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if !ok || !strings.HasPrefix(text, "---\n") {
		return Skill{}, errors.New("no front matter between two lines of ---")
	}
	fields, err := frontMatter(front)
	if err != nil {
		return Skill{}, err
	}
	s := Skill{ID: fields[idMeta], Category: fields[categoryMeta]}
	paragraphs := strings.Split(strings.Trim(body, "\n"), "\n\n")
	title, headed := strings.CutPrefix(paragraphs[0], "# ")
	if s.ID != "" && s.Category != "" && headed && len(paragraphs) >= 2 {
		s.Title, s.Principle = title, paragraphs[1]
		if len(paragraphs) > 2 {
			s.When = strings.TrimPrefix(paragraphs[2], whenLabel)
		}
		return s, nil
	}
	s = Skill{Category: General, Title: fields["name"], Principle: fields["description"]}
	if headed {
		s.Title, _, _ = strings.Cut(title, "\n")
	}
	if s.Title == "" || s.Principle == "" {
		return Skill{}, errors.New("no name or no description")
	}
	return s, nil
}

// frontMatter reads the part of YAML that front matter is written in: keys with plain, quoted or block scalars, and maps
// of such keys one level down, whose keys stand beside the others. A plain scalar ends at its line, whatever it holds:
// many files have an unquoted ": " in their description. Lists and anything deeper are passed over.
func frontMatter(text string) (map[string]string, error) {
	fields := map[string]string{}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if line == "" || line[0] == '#' || line[0] == '-' {
			continue
		}
		key, rest, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("line %d of the front matter has no key", i+1)
		}
		rest = strings.TrimSpace(rest)
		if rest != "" && strings.Trim(rest, ">|-+") == "" {
			var block []string
			for i+1 < len(lines) && (strings.HasPrefix(lines[i+1], " ") || lines[i+1] == "") {
				i++
				block = append(block, strings.TrimSpace(lines[i]))
			}
			fields[key] = strings.TrimSpace(strings.Join(block, " "))
			continue
		}
		value, err := scalar(rest)
		if err != nil {
			return nil, fmt.Errorf("line %d of the front matter: %w", i+1, err)
		}
		fields[strings.TrimSpace(key)] = value
	}
	return fields, nil
}

func scalar(s string) (string, error) {
	switch {
	case len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"':
		var text string
		if err := json.Unmarshal([]byte(s), &text); err != nil {
			return "", fmt.Errorf("%s is no quoted text", s)
		}
		return text, nil
	case len(s) > 1 && s[0] == '\'' && s[len(s)-1] == '\'':
		return strings.ReplaceAll(s[1:len(s)-1], "''", "'"), nil
	}
	text, _, _ := strings.Cut(s, " #")
	return strings.TrimSpace(text), nil
}
