// Package skill holds the bank: an immutable set of skills named by its content, and the edits that make a new one.
package skill

// Skill is a piece of advice in words.
type Skill struct {
	ID        string
	Category  string // a category of the world, or General
	Title     string
	Principle string
	When      string // when to apply it; may be empty
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
)

// Edit is a change to a bank, as a value. Keep uses none of the fields; Propose all but ID; Update all; Retire ID.
type Edit struct {
	Op        Op
	ID        string // of the skill to change, or its exact title
	Category  string
	Title     string
	Principle string
	When      string
	Reason    string // the author's own; kept, never judged
}

// Outcome is what came of an edit.
type Outcome uint8

// The outcomes of an edit.
const (
	Kept Outcome = iota
	Added
	Updated
	Retired
	Unchanged        // an update that changes nothing
	Duplicate        // says what another skill says already
	NotFound         // no such skill, or not shown in the episode
	Ambiguous        // a title that several skills bear
	InvalidArguments // missing, empty, over-long or of the wrong type
	UnknownTool
	MultipleCalls
	Unparsable
	outcomes // their number
)
