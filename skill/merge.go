package skill

import (
	"fmt"
	"slices"
)

// Merge takes in a skill that somebody else wrote: one with the id of an active skill updates that one, any other comes as
// a new one, under its own id if it has one. Limits and the duplicate test are those of [Bank.Apply]. The error says why
// the skill was not taken; without one the outcome is Added, Updated or Unchanged.
func (b Bank) Merge(s Skill, l Limits) (Bank, Outcome, error) {
	l = l.orDefault()
	if err := validate(&s, l); err != nil {
		return b, InvalidArguments, err
	}
	if slices.ContainsFunc(b.content().archived, func(o Skill) bool { return o.ID == s.ID }) {
		return b, InvalidArguments, fmt.Errorf("%s is the id of a retired skill", s.ID)
	}
	if other := b.repeats(s, l); other != "" {
		return b, Duplicate, fmt.Errorf("%s says the same", other)
	}
	if _, ok := b.Skill(s.ID); ok {
		next, outcome := b.Apply(
			Edit{Op: Update, ID: s.ID, Category: s.Category, Title: s.Title, Principle: s.Principle, When: s.When},
			Permission{Shown: []string{s.ID}, Limits: l},
		)
		return next, outcome, nil
	}
	c := *b.content()
	if s.ID == "" {
		s.ID = c.id()
	}
	c.skills = append(slices.Clone(c.skills), s)
	c.next = max(c.next, 1+lastNumber(c.skills))
	return Bank{c.seal()}, Added, nil
}
