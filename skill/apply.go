package skill

import "slices"

// Permission says what an edit may touch.
type Permission struct {
	// Shown are the ids of the skills that may be updated or retired: those the author saw. nil: none.
	Shown []string
	// Category and Categories are those a proposal may name besides General. With neither, any.
	Category   string
	Categories []string
	Limits     Limits // zero: the defaults
}

func (p Permission) allows(category string) bool {
	if category == General || p.Category == "" && len(p.Categories) == 0 {
		return true
	}
	return category != "" && (category == p.Category || slices.Contains(p.Categories, category))
}

// Apply returns the bank with the edit applied, and what came of it; the bank is b itself unless the outcome is Added,
// Updated or Retired. b never changes.
//
//   - Propose adds a skill under a new id at the end of its shelf.
//   - Update replaces the text of a skill. One that leaves every text the same but for case, punctuation and white space
//     is Unchanged.
//   - Retire moves a skill to the archive, unless it is pinned: then it is Unchanged. Archived skills are found by no
//     edit and retrieved for no task.
//   - Pin and Unpin say whether a skill may be retired.
//
// Skills are named by id or by exact title, among those shown: a title that two of them bear is Ambiguous, a skill that
// was not shown is NotFound. Texts are cleaned first: white space is collapsed, and a text that is not UTF-8, holds
// control characters or markup, is missing or too long makes the edit InvalidArguments, as does a category that is
// not allowed.
//
// Propose and Update are Duplicate if another skill that can stand in the same prompt (same category, or one of the two
// general) has the same title or the same principle in words (case and punctuation aside), or a principle that shares at
// least [Limits.Similarity] of its words, articles and the like left out, without contradicting it (see [Conflicts]).
// The release compares exact texts only, over all categories, and for proposals alone.
func (b Bank) Apply(e Edit, p Permission) (Bank, Outcome) {
	p.Limits = p.Limits.orDefault()
	switch e.Op {
	case Keep:
		return b, Kept
	case Propose:
		return b.propose(e, p)
	case Update:
		return b.update(e, p)
	case Retire:
		return b.retire(e, p)
	case Pin, Unpin:
		return b.pin(e, p)
	}
	return b, InvalidArguments
}

func (b Bank) propose(e Edit, p Permission) (Bank, Outcome) {
	s := Skill{Category: e.Category, Title: e.Title, Principle: e.Principle, When: e.When}
	if validate(&s, p.Limits) != nil || !p.allows(s.Category) {
		return b, InvalidArguments
	}
	if b.repeats(s, p.Limits) != "" {
		return b, Duplicate
	}
	c := *b.content()
	s.ID = c.id()
	c.skills = append(slices.Clone(c.skills), s)
	return Bank{c.seal()}, Added
}

func (b Bank) update(e Edit, p Permission) (Bank, Outcome) {
	s := Skill{Category: e.Category, Title: e.Title, Principle: e.Principle, When: e.When}
	if s.Category == "" {
		s.Category = General // stands for "its own" until the skill is found
	}
	if validate(&s, p.Limits) != nil || !p.allows(s.Category) {
		return b, InvalidArguments
	}
	i, outcome := b.find(e.ID, p.Shown)
	if i < 0 {
		return b, outcome
	}
	old := b.skills()[i]
	s.ID = old.ID
	if e.Category == "" {
		s.Category = old.Category
	}
	if s.Category == old.Category && normal(s.Title) == normal(old.Title) && normal(s.Principle) == normal(old.Principle) && normal(s.When) == normal(old.When) {
		return b, Unchanged
	}
	if b.repeats(s, p.Limits) != "" {
		return b, Duplicate
	}
	c := *b.content()
	c.skills = slices.Clone(c.skills)
	c.skills[i] = s
	return Bank{c.seal()}, Updated
}

func (b Bank) retire(e Edit, p Permission) (Bank, Outcome) {
	if e.ID == "" {
		return b, InvalidArguments
	}
	i, outcome := b.find(e.ID, p.Shown)
	if i < 0 {
		return b, outcome
	}
	if b.Pinned(b.skills()[i].ID) {
		return b, Unchanged
	}
	return b.archive(i), Retired
}

// archive moves the skill at a place to the archive.
func (b Bank) archive(i int) Bank {
	c := *b.content()
	c.archived = append(slices.Clone(c.archived), c.skills[i])
	c.skills = slices.Delete(slices.Clone(c.skills), i, i+1)
	return Bank{c.seal()}
}

func (b Bank) pin(e Edit, p Permission) (Bank, Outcome) {
	i, outcome := b.find(e.ID, p.Shown)
	if i < 0 {
		return b, outcome
	}
	id := b.skills()[i].ID
	if b.Pinned(id) == (e.Op == Pin) {
		return b, Unchanged
	}
	c := *b.content()
	if c.pins = slices.Clone(c.pins); e.Op == Pin {
		c.pins = append(c.pins, id)
	} else {
		c.pins = slices.DeleteFunc(c.pins, func(p string) bool { return p == id })
	}
	return Bank{c.seal()}, Updated
}

// find returns the place of the shown skill with the id or, failing that, the exact title; −1 and why if there is not
// exactly one.
func (b Bank) find(ref string, shown []string) (int, Outcome) {
	if ref == "" {
		return -1, InvalidArguments
	}
	if i := b.index(ref); i >= 0 && slices.Contains(shown, ref) {
		return i, Kept
	}
	found, outcome := -1, NotFound
	for i, s := range b.skills() {
		if s.Title != ref || !slices.Contains(shown, s.ID) {
			continue
		}
		if found >= 0 {
			return -1, Ambiguous
		}
		found, outcome = i, Kept
	}
	return found, outcome
}

// repeats returns the id of the first other skill that says what s says; empty if there is none.
func (b Bank) repeats(s Skill, l Limits) string {
	for _, o := range b.skills() {
		if o.ID == s.ID || !meet(o.Category, s.Category) {
			continue
		}
		if normal(o.Title) == normal(s.Title) || normal(o.Principle) == normal(s.Principle) {
			return o.ID
		}
		if similarity(content(o.Principle), content(s.Principle)) >= l.Similarity && !contradict(o.Principle, s.Principle) {
			return o.ID
		}
	}
	return ""
}
