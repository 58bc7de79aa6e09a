// Package skill holds the bank: an immutable set of skills named by its content, and the edits that make a new one.
package skill

import "fmt"

// Skill is a piece of advice in words.
type Skill struct {
	ID        string `json:"skill_id"`
	Category  string `json:"category"` // a category of the world, or General
	Title     string `json:"title"`
	Principle string `json:"principle"`
	When      string `json:"when_to_apply"` // when to apply it; may be empty
}

// Mistake is a known error and its remedy. Banks bring them along; no edit changes them.
type Mistake struct {
	ID          string `json:"mistake_id"`
	Description string `json:"description"`
	Why         string `json:"why_it_happens"`
	Remedy      string `json:"how_to_avoid"`
}

// General is the category of skills that every task retrieves.
const General = "general"

// Op is what an edit does.
type Op uint8

// The operations.
const (
	Keep Op = iota
	Propose
	Update
	Retire
	Pin   // a pinned skill is never retired
	Unpin // undoes Pin
	ops   // their number
)

var opNames = [ops]string{"keep", "propose", "update", "retire", "pin", "unpin"}

// String returns the operation's name.
func (o Op) String() string {
	if o < ops {
		return opNames[o]
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// MarshalText writes the operation by name.
func (o Op) MarshalText() ([]byte, error) {
	if o >= ops {
		return nil, fmt.Errorf("no such operation: %d", uint8(o))
	}
	return []byte(opNames[o]), nil
}

// UnmarshalText reads what MarshalText writes.
func (o *Op) UnmarshalText(text []byte) error {
	for i, name := range opNames {
		if name == string(text) {
			*o = Op(i)
			return nil
		}
	}
	return fmt.Errorf("no such operation: %q", text)
}

// Edit is a change to a bank, as a value. Keep uses none of the fields; Propose all but ID; Update all, where no Category
// leaves the skill in its own; Retire, Pin and Unpin ID. No tool of a policy retires or pins.
type Edit struct {
	Op        Op     `json:"op"`
	ID        string `json:"skill_id,omitempty"` // of the skill to change, or its exact title
	Category  string `json:"category,omitempty"`
	Title     string `json:"title,omitempty"`
	Principle string `json:"principle,omitempty"`
	When      string `json:"when_to_apply,omitempty"`
	Reason    string `json:"reason,omitempty"` // the author's own; kept, never judged, never shown to a policy
}

// Outcome is what came of an edit.
type Outcome uint8

// The outcomes of an edit.
const (
	Kept Outcome = iota
	Added
	Updated
	Retired
	Unchanged        // an update or a pin that changes nothing, or the retirement of a pinned skill
	Duplicate        // says what another skill says already
	NotFound         // no such skill, or not shown in the episode
	Ambiguous        // a title that several skills bear
	InvalidArguments // missing, empty, over-long or of the wrong type
	UnknownTool
	MultipleCalls
	Unparsable
	outcomes // their number
)

var outcomeNames = [outcomes]string{
	"kept", "added", "updated", "retired", "unchanged", "duplicate", "not_found", "ambiguous", "invalid_arguments",
	"unknown_tool", "multiple_calls", "unparsable",
}

// Outcomes lists all outcomes, in the order of their constants.
func Outcomes() []Outcome {
	all := make([]Outcome, outcomes)
	for i := range all {
		all[i] = Outcome(i)
	}
	return all
}

// String returns the outcome's name.
func (o Outcome) String() string {
	if o < outcomes {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome %d", uint8(o))
}

// MarshalText writes the outcome by name.
func (o Outcome) MarshalText() ([]byte, error) {
	if o >= outcomes {
		return nil, fmt.Errorf("no such outcome: %d", uint8(o))
	}
	return []byte(outcomeNames[o]), nil
}

// UnmarshalText reads what MarshalText writes.
func (o *Outcome) UnmarshalText(text []byte) error {
	for i, name := range outcomeNames {
		if name == string(text) {
			*o = Outcome(i)
			return nil
		}
	}
	return fmt.Errorf("no such outcome: %q", text)
}
