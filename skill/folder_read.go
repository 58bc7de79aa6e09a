package skill

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Found is a skill that a file holds. Its text is as untrusted as any: [Bank.Merge] and [New] check it.
type Found struct {
	File  string
	Skill Skill
	Note  string // what of the file was left out; empty: nothing
}

// Refused is a file, or a skill in one, that was not taken, and why.
type Refused struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Limits to what is read of a SKILL.md, in bytes.
const (
	maxSkillFile   = 1 << 20
	maxFrontMatter = 1 << 16
)

// ReadFolders reads the Agent Skills that lie as folders in fsys, or the one that fsys is, by name, whoever wrote them.
// Ours come back as they were, whether a skill or a bundle. Others become general skills without an id whose title is the
// first heading, or else the name, and whose principle is the description; the rest of their text, and every other
// file, is left out.
//
// Files are read as the format has them: UTF-8, YAML front matter with a name that is the folder's and a description
// of 1 to 1024 characters. One that is not is refused, and said so; hidden folders are passed over.
func ReadFolders(fsys fs.FS) ([]Found, []Refused, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, nil, err
	}
	var found []Found
	var refused []Refused
	read := func(folder string) {
		file := path.Join(folder, skillFile)
		more, err := readFolder(fsys, folder, file)
		if err != nil {
			refused = append(refused, Refused{file, err.Error()})
		}
		found = append(found, more...)
	}
	for _, e := range entries {
		switch {
		case e.Name() == skillFile && !e.IsDir():
			read(".")
		case e.IsDir() && !strings.HasPrefix(e.Name(), "."):
			read(e.Name())
		}
	}
	return found, refused, nil
}

func readFolder(fsys fs.FS, folder, file string) ([]Found, error) {
	f, err := fsys.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("the folder has no such file")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSkillFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSkillFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxSkillFile)
	}
	skills, note, err := readSkillMD(string(data), folder)
	found := make([]Found, len(skills))
	for i, s := range skills {
		found[i] = Found{file, s, note}
	}
	return found, err
}

var folderNamed = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// readSkillMD reads a SKILL.md of the folder ("." for one whose name is not known).
func readSkillMD(text, folder string) (skills []Skill, note string, err error) {
	if !utf8.ValidString(text) {
		return nil, "", errors.New("it is not valid UTF-8: save it as UTF-8")
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n") + "\n"
	front, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if !ok || !strings.HasPrefix(text, "---\n") {
		return nil, "", errors.New("no front matter between two lines of ---")
	}
	top, meta, err := frontMatter(front)
	if err != nil {
		return nil, "", fmt.Errorf("front matter: %w", err)
	}
	name, description := top["name"], top["description"]
	switch n := utf8.RuneCountInString(description); {
	case len(name) > maxFolderName || !folderNamed.MatchString(name):
		return nil, "", fmt.Errorf("the name %q is not 1 to %d of a–z, 0–9 and single inner hyphens", name, maxFolderName)
	case folder != "." && name != folder:
		return nil, "", fmt.Errorf("the name %q is not that of its folder, %q", name, folder)
	case n == 0 || n > maxDescription:
		return nil, "", fmt.Errorf("the description has %d characters, 1 to %d are allowed", n, maxDescription)
	}
	if meta[categoryMeta] != "" {
		skills, err := readBody(meta, body)
		if err != nil {
			return nil, "", fmt.Errorf("it is said to be ours, but %w", err)
		}
		return skills, "", nil
	}
	s := Skill{Category: General, Title: name, Principle: description}
	body = strings.TrimSpace(body)
	heading, rest, _ := strings.Cut(body, "\n")
	if title, headed := strings.CutPrefix(heading, "# "); headed {
		s.Title, body = title, strings.TrimSpace(rest)
	}
	if body != "" {
		note = fmt.Sprintf("%d lines of text were left out: a skill here is a title and a principle", 1+strings.Count(body, "\n"))
	}
	return []Skill{s}, note, nil
}

// frontMatter reads name, description and the metadata of front matter; other keys may hold anything. It is as strict as
// YAML, and more so: no key twice, no anchors, and texts must be texts.
func frontMatter(text string) (top, meta map[string]string, err error) {
	if len(text) > maxFrontMatter {
		return nil, nil, fmt.Errorf("it has more than %d bytes", maxFrontMatter)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, nil, fmt.Errorf("%w (a text with \": \" or \" #\" in it needs double quotes)", err)
	}
	if len(doc.Content) != 1 {
		return nil, nil, errors.New("it is empty")
	}
	all, err := mapping(doc.Content[0])
	if err != nil {
		return nil, nil, err
	}
	top, meta = map[string]string{}, map[string]string{}
	for _, key := range []string{"name", "description"} {
		if n, ok := all[key]; ok {
			if top[key], err = scalarText(n); err != nil {
				return nil, nil, fmt.Errorf("%s %w", key, err)
			}
		}
	}
	if n, ok := all["metadata"]; ok {
		values, err := mapping(n)
		if err != nil {
			return nil, nil, fmt.Errorf("metadata: %w", err)
		}
		for _, key := range []string{idMeta, categoryMeta, bundleMeta} {
			if v, ok := values[key]; ok {
				if meta[key], err = scalarText(v); err != nil {
					return nil, nil, fmt.Errorf("metadata: %s %w", key, err)
				}
			}
		}
	}
	return top, meta, nil
}

func mapping(n *yaml.Node) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: keys with values are wanted", n.Line)
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key that is no text", key.Line)
		}
		if out[key.Value] != nil {
			return nil, fmt.Errorf("line %d: the key %q is there twice", key.Line, key.Value)
		}
		out[key.Value] = n.Content[i+1]
	}
	return out, nil
}

func scalarText(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || n.Anchor != "" {
		return "", fmt.Errorf("(line %d) is not a text: put it in double quotes", n.Line)
	}
	return n.Value, nil
}
