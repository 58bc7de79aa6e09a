package skill

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
)

// Bank is an immutable set of skills, named by the hash of its content. The zero value is the empty bank. Copies share
// their content; all methods are safe for concurrent use.
//
// The order of skills is part of the bank: the general ones first, then shelf by shelf, each in the order in which it
// came in.
type Bank struct {
	c *bankContent
}

// bankContent is what a bank is made of. Nobody changes one after seal.
type bankContent struct {
	skills   []Skill
	archived []Skill  // retired; their ids are not given again
	shelves  []string // categories but General, in order, some perhaps without skills
	pins     []string // ids of skills that are never retired, in order
	mistakes []Mistake
	extra    []member // top-level keys of a public file that we do not know
	next     int      // number of the next id
	hash     string
}

var empty = (&bankContent{}).seal()

func (b Bank) content() *bankContent {
	if b.c == nil {
		return empty
	}
	return b.c
}

func (b Bank) skills() []Skill { return b.content().skills }

// New returns a bank of the given skills and mistakes within the default limits; see [NewWithin].
func New(skills []Skill, mistakes []Mistake) (Bank, error) {
	return NewWithin(Limits{}, skills, mistakes)
}

// NewWithin returns a bank of the given skills and mistakes. A skill without an id gets one. Text is cleaned as by Apply;
// skills that say the same are let through, for people may want them. All faults are reported, joined.
func NewWithin(l Limits, skills []Skill, mistakes []Mistake) (Bank, error) {
	return build(bankContent{skills: slices.Clone(skills), mistakes: slices.Clone(mistakes)}, l)
}

// build checks and completes a draft, and makes it a bank.
func build(c bankContent, l Limits) (Bank, error) {
	l = l.orDefault()
	var faults []error
	seen := map[string]bool{}
	check := func(kind string, list []Skill) {
		for i := range list {
			if err := validate(&list[i], l); err != nil {
				faults = append(faults, fmt.Errorf("%s %d (id %q): %w", kind, i+1, list[i].ID, err))
			}
			if id := list[i].ID; id != "" {
				if seen[id] {
					faults = append(faults, fmt.Errorf("%s %d: the id %q is there twice", kind, i+1, id))
				}
				seen[id] = true
			}
		}
	}
	check("skill", c.skills)
	check("archived skill", c.archived)
	for i := range c.mistakes {
		if err := validateMistake(&c.mistakes[i]); err != nil {
			faults = append(faults, fmt.Errorf("mistake %d (id %q): %w", i+1, c.mistakes[i].ID, err))
		}
	}
	for i, id := range c.pins {
		if slices.Contains(c.pins[:i], id) || !slices.ContainsFunc(c.skills, func(s Skill) bool { return s.ID == id }) {
			faults = append(faults, fmt.Errorf("pin %d: %q is not the id of a skill, or is pinned twice", i+1, id))
		}
	}
	if len(faults) > 0 {
		return Bank{}, errors.Join(faults...)
	}
	c.next = max(c.next, 1+lastNumber(c.skills), 1+lastNumber(c.archived))
	for i := range c.skills {
		if c.skills[i].ID == "" {
			c.skills[i].ID = c.id()
		}
	}
	return Bank{c.seal()}, nil
}

func validate(s *Skill, l Limits) error {
	if s.ID != "" && !name.MatchString(s.ID) {
		return errors.New("the id is not made of at most 64 letters, digits, '_', '-' and '.'")
	}
	if !name.MatchString(s.Category) {
		return fmt.Errorf("the category %q is not made of at most 64 letters, digits, '_', '-' and '.'", s.Category)
	}
	var err error
	for _, f := range []struct {
		name  string
		text  *string
		limit int
	}{{"title", &s.Title, l.Title}, {"principle", &s.Principle, l.Principle}, {"when_to_apply", &s.When, l.When}} {
		if *f.text, err = clean(*f.text, f.limit); err != nil {
			return fmt.Errorf("%s %w", f.name, err)
		}
		if f.text != &s.When && normal(*f.text) == "" {
			return fmt.Errorf("%s has no words", f.name)
		}
	}
	return nil
}

func validateMistake(m *Mistake) error {
	if m.ID != "" && !name.MatchString(m.ID) {
		return errors.New("the id is not made of at most 64 letters, digits, '_', '-' and '.'")
	}
	var err error
	for _, f := range []*string{&m.Description, &m.Why, &m.Remedy} {
		if *f, err = clean(*f, stored.Principle); err != nil {
			return fmt.Errorf("text %w", err)
		}
	}
	if m.Description == "" {
		return errors.New("the description is missing")
	}
	return nil
}

// id takes the next id.
func (c *bankContent) id() string {
	c.next++
	return fmt.Sprintf("dyn_%03d", c.next-1)
}

// lastNumber is the largest number of an id that was given by a bank; 0 for none.
func lastNumber(skills []Skill) int {
	last := 0
	for _, s := range skills {
		if digits, ours := strings.CutPrefix(s.ID, "dyn_"); ours {
			if n, err := strconv.Atoi(digits); err == nil && n < 1<<31 {
				last = max(last, n)
			}
		}
	}
	return last
}

// seal puts the skills in the bank's order and computes the hash.
func (c bankContent) seal() *bankContent {
	c.next = max(c.next, 1)
	c.skills, c.shelves = slices.Clone(c.skills), slices.Clone(c.shelves)
	for _, s := range c.skills {
		if s.Category != General && !slices.Contains(c.shelves, s.Category) {
			c.shelves = append(c.shelves, s.Category)
		}
	}
	place := func(s Skill) int { return slices.Index(c.shelves, s.Category) } // General: −1
	slices.SortStableFunc(c.skills, func(a, b Skill) int { return place(a) - place(b) })
	c.pins = slices.Sorted(slices.Values(c.pins))
	c.hash = c.sum()
	return &c
}

// sum hashes all that a bank is made of, each text behind its length.
func (c *bankContent) sum() string {
	h := sha256.New()
	put(h, "skillmaster bank 1", strconv.Itoa(c.next))
	for _, list := range [][]Skill{c.skills, c.archived} {
		put(h, strconv.Itoa(len(list)))
		for _, s := range list {
			put(h, s.ID, s.Category, s.Title, s.Principle, s.When)
		}
	}
	put(h, strconv.Itoa(len(c.shelves)))
	put(h, c.shelves...)
	put(h, strconv.Itoa(len(c.mistakes)))
	for _, m := range c.mistakes {
		put(h, m.ID, m.Description, m.Why, m.Remedy)
	}
	for _, m := range c.extra {
		put(h, m.key, string(m.value))
	}
	if len(c.pins) > 0 { // banks without pins keep the name they always had
		put(h, pinsKey)
		put(h, c.pins...)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func put(h hash.Hash, texts ...string) {
	for _, t := range texts {
		h.Write(binary.AppendUvarint(nil, uint64(len(t))))
		h.Write([]byte(t))
	}
}

// Hash names the bank: 64 hexadecimal digits of SHA-256 over all it holds (skills and their order, archive, mistakes,
// pins, the next id, unknown keys of its file). The same on every machine and in every process. The order counts because
// retrieval and rendering follow it.
func (b Bank) Hash() string { return b.content().hash }

// Len is the number of skills, archived ones not counted.
func (b Bank) Len() int { return len(b.skills()) }

// Skills returns the skills in the bank's order. The caller owns the slice.
func (b Bank) Skills() []Skill { return slices.Clone(b.skills()) }

// Archived returns the retired skills, the first retired first. The caller owns the slice.
func (b Bank) Archived() []Skill { return slices.Clone(b.content().archived) }

// Pinned tells whether the skill with the id may not be retired.
func (b Bank) Pinned(id string) bool { return slices.Contains(b.content().pins, id) }

// Pins returns the ids of the pinned skills, sorted. The caller owns the slice.
func (b Bank) Pins() []string { return slices.Clone(b.content().pins) }

// Mistakes returns the mistakes in file order. The caller owns the slice. The release shows the first five.
func (b Bank) Mistakes() []Mistake { return slices.Clone(b.content().mistakes) }

// Categories returns General, if any skill is general, and then the shelves in order, empty ones of a file included.
func (b Bank) Categories() []string {
	var out []string
	if s := b.skills(); len(s) > 0 && s[0].Category == General {
		out = append(out, General)
	}
	return append(out, b.content().shelves...)
}

// IDs returns the ids of the skills in the bank's order.
func (b Bank) IDs() []string {
	ids := make([]string, 0, b.Len())
	for _, s := range b.skills() {
		ids = append(ids, s.ID)
	}
	return ids
}

// Skill returns the skill with the id; false if there is none or it is archived.
func (b Bank) Skill(id string) (Skill, bool) {
	if i := b.index(id); i >= 0 {
		return b.skills()[i], true
	}
	return Skill{}, false
}

func (b Bank) index(id string) int {
	return slices.IndexFunc(b.skills(), func(s Skill) bool { return s.ID == id })
}

// Changed returns the id of the first skill, in the bank's order, that parent lacks or has in other words; empty if
// there is none.
func (b Bank) Changed(parent Bank) string {
	for _, s := range b.skills() {
		if old, ok := parent.Skill(s.ID); !ok || old != s {
			return s.ID
		}
	}
	return ""
}

// Continue returns b with new ids that go on after those of prior: for going back to an earlier bank without giving
// later ids a second time.
func (b Bank) Continue(prior Bank) Bank {
	c := *b.content()
	c.next = max(c.next, prior.content().next)
	return Bank{c.seal()}
}

// MarshalJSON writes the bank in the public form (see [WritePublic]) on one line.
func (b Bank) MarshalJSON() ([]byte, error) { return b.public().MarshalJSON() }

// UnmarshalJSON reads what MarshalJSON writes. It is as strict as [ReadPublic], but lets through texts that are longer
// than the default limits, since the bank may have been made under others.
func (b *Bank) UnmarshalJSON(data []byte) error {
	read, err := decodeBank(data, stored)
	if err != nil {
		return err
	}
	*b = read
	return nil
}
