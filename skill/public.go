package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// The public form of a bank is that of the SkillRL release, one JSON object:
//
//	general_skills        list of {skill_id, title, principle, when_to_apply}
//	task_specific_skills  object: category → such a list
//	common_mistakes       list of {mistake_id, description, why_it_happens, how_to_avoid}
//	…                     keys we do not know, kept as they are
//	archived_skills       ours, where there are any: list of {skill_id, category, title, principle, when_to_apply}
//	pinned_skills         ours, where there are any: list of ids, sorted
//	next_skill_number     ours, where the ids do not tell it: number of the next dyn_ id
const (
	generalKey  = "general_skills"
	shelvesKey  = "task_specific_skills"
	mistakesKey = "common_mistakes"
	archiveKey  = "archived_skills"
	pinsKey     = "pinned_skills"
	nextKey     = "next_skill_number"
)

// ReadPublic reads a bank in the public form. A missing list is an empty one and a missing when_to_apply an empty text; a
// skill without an id gets one. Anything else that is not as described is an error that says where: unknown or repeated
// keys in a skill, values of the wrong type, over-long or hostile text (see [Bank.Apply]), an id that is there twice.
func ReadPublic(r io.Reader) (Bank, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return Bank{}, err
	}
	return decodeBank(data, Limits{})
}

// WritePublic writes a bank in the public form, indented by two spaces, ASCII only, without a line break at the end: the
// format of the public banks, which come back from ReadPublic byte for byte. So does any file that Python's
// json.dumps(indent=2) wrote with the known keys first, all keys of a skill in the order above, the white space of its
// texts in order and no categories or lists missing. From other files the content comes back.
func WritePublic(w io.Writer, b Bank) error {
	flat, err := b.MarshalJSON()
	if err != nil {
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, flat, "", "  "); err != nil {
		return err
	}
	_, err = w.Write(ascii(indented.Bytes()))
	return err
}

// ascii escapes what is not ASCII, which in JSON stands only in strings.
func ascii(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r < utf8.RuneSelf:
			out = append(out, data[0])
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		data = data[n:]
	}
	return out
}

func decodeBank(data []byte, l Limits) (Bank, error) {
	if !utf8.Valid(data) {
		return Bank{}, errors.New("bank: not valid UTF-8")
	}
	ms, err := members(data)
	if err != nil {
		return Bank{}, fmt.Errorf("bank: %w", err)
	}
	var c bankContent
	for _, m := range ms {
		if err := c.take(m); err != nil {
			return Bank{}, fmt.Errorf("bank: %s: %w", m.key, err)
		}
	}
	b, err := build(c, l)
	if err != nil {
		return Bank{}, fmt.Errorf("bank: %w", err)
	}
	return b, nil
}

// take reads one top-level key.
func (c *bankContent) take(m member) error {
	var err error
	switch m.key {
	case generalKey:
		return c.takeShelf(m, General)
	case shelvesKey:
		var shelves []member
		if shelves, err = members(m.value); err != nil {
			return err
		}
		for _, s := range shelves {
			if s.key == General || !name.MatchString(s.key) {
				return fmt.Errorf("%q is no name for a category", s.key)
			}
			c.shelves = append(c.shelves, s.key)
			if err := c.takeShelf(s, s.key); err != nil {
				return fmt.Errorf("%s: %w", s.key, err)
			}
		}
		return nil
	case mistakesKey:
		c.mistakes, err = decodeList(m, decodeMistake)
		return err
	case archiveKey:
		c.archived, err = decodeList(m, decodeSkill)
		for _, s := range c.archived {
			if s.ID == "" && err == nil {
				err = errors.New("an archived skill has no id")
			}
		}
		return err
	case pinsKey:
		c.pins, err = decodeList(m, func(raw []byte) (string, error) { return member{"id", raw}.text() })
		return err
	case nextKey:
		if c.next, err = strconv.Atoi(string(m.value)); err != nil || c.next < 1 || c.next > 1<<31 {
			return fmt.Errorf("%s is no number of a skill", m.value)
		}
		return nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, m.value); err != nil {
		return err
	}
	c.extra = append(c.extra, member{m.key, compact.Bytes()})
	return nil
}

func (c *bankContent) takeShelf(m member, category string) error {
	skills, err := decodeList(m, decodeSkill)
	for i := range skills {
		if skills[i].Category != "" {
			return fmt.Errorf("skill %d: unknown key %q", i+1, "category")
		}
		skills[i].Category = category
	}
	c.skills = append(c.skills, skills...)
	return err
}

func decodeList[T any](m member, decode func([]byte) (T, error)) ([]T, error) {
	raws, err := m.list()
	if err != nil {
		return nil, err
	}
	out := make([]T, 0, len(raws))
	for i, raw := range raws {
		v, err := decode(raw)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		out = append(out, v)
	}
	return out, nil
}

func decodeSkill(data []byte) (s Skill, err error) {
	err = texts(data, map[string]*string{
		"skill_id": &s.ID, "category": &s.Category, "title": &s.Title, "principle": &s.Principle, "when_to_apply": &s.When,
	})
	return s, err
}

func decodeMistake(data []byte) (m Mistake, err error) {
	err = texts(data, map[string]*string{
		"mistake_id": &m.ID, "description": &m.Description, "why_it_happens": &m.Why, "how_to_avoid": &m.Remedy,
	})
	return m, err
}

// UnmarshalJSON reads a skill strictly: unknown or repeated keys and values that are no strings are errors.
func (s *Skill) UnmarshalJSON(data []byte) (err error) {
	*s, err = decodeSkill(data)
	return err
}

// listed is a skill as it stands on a shelf, whose name is its category.
type listed struct {
	ID        string `json:"skill_id"`
	Title     string `json:"title"`
	Principle string `json:"principle"`
	When      string `json:"when_to_apply"`
}

// public returns the bank as an object in the public form.
func (b Bank) public() object {
	c := b.content()
	shelf := func(category string) []listed {
		out := []listed{}
		for _, s := range c.skills {
			if s.Category == category {
				out = append(out, listed{s.ID, s.Title, s.Principle, s.When})
			}
		}
		return out
	}
	shelves := object{}
	for _, category := range c.shelves {
		shelves = append(shelves, entry{category, shelf(category)})
	}
	o := object{{generalKey, shelf(General)}, {shelvesKey, shelves}, {mistakesKey, append([]Mistake{}, c.mistakes...)}}
	for _, m := range c.extra {
		o = append(o, entry{m.key, m.value})
	}
	if len(c.archived) > 0 {
		o = append(o, entry{archiveKey, c.archived})
	}
	if len(c.pins) > 0 {
		o = append(o, entry{pinsKey, c.pins})
	}
	if c.next > 1+max(lastNumber(c.skills), lastNumber(c.archived)) {
		o = append(o, entry{nextKey, c.next})
	}
	return o
}

// object is a JSON object with its keys in order.
type object []entry

type entry struct {
	key   string
	value any
}

// MarshalJSON writes the object on one line, leaving <, > and & as they are.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	write := func(v any) error {
		err := enc.Encode(v)
		out.Truncate(out.Len() - 1) // the line break
		return err
	}
	out.WriteByte('{')
	for i, e := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := write(e.key); err != nil {
			return nil, err
		}
		out.WriteByte(':')
		if err := write(e.value); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
