package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"skillmaster/skill"
	"skillmaster/train"
)

// Guest is an edit that did not come from a review of the run: somebody else's, in quarantine until it is judged. No
// policy sees it before that.
type Guest struct {
	Number  int           `json:"number"` // from 1
	Edit    skill.Edit    `json:"edit"`
	Outcome skill.Outcome `json:"outcome"` // of applying it to the branch as it was
	Author  string        `json:"author"`  // as they call themselves
	Made    time.Time     `json:"made"`
	State   GuestState    `json:"state"`
	Why     string        `json:"why,omitempty"`   // it is in that state
	Tests   []train.Test  `json:"tests,omitempty"` // that decided on it
}

// GuestState says what became of a guest.
type GuestState string

// The states of a guest.
const (
	Waiting   GuestState = "waiting"
	Committed GuestState = "committed"
	Refused   GuestState = "refused"
)

// Feedback is what somebody outside says came of skills that they used.
type Feedback struct {
	Skills  []string `json:"skill_ids"`
	Success *bool    `json:"success"` // nil: they do not know
	Task    string   `json:"task,omitempty"`
	Note    string   `json:"note,omitempty"`
	Author  string   `json:"author"`
	Bank    string   `json:"bank"` // current when it was reported
	Made    time.Time
}

// Branch is the current bank with every waiting edit applied that still can be, in the order they came.
func (r *Run) Branch(ctx context.Context) (branch, head skill.Bank, err error) {
	err = r.read(ctx, func(tx *sql.Tx) error {
		branch, head, err = readBranch(ctx, tx)
		return err
	})
	return branch, head, err
}

func readBranch(ctx context.Context, tx *sql.Tx) (branch, head skill.Bank, err error) {
	var hash string
	if err := tx.QueryRowContext(ctx, headQuery).Scan(&hash); err != nil {
		return branch, head, err
	}
	if head, err = readBank(ctx, tx, hash); err != nil {
		return branch, head, err
	}
	guests, err := query(ctx, tx, scanGuest, guestQuery+" WHERE state = ? ORDER BY seq", string(Waiting))
	branch = head
	for _, g := range guests {
		branch, _ = branch.Apply(g.Edit, skill.Permission{Shown: head.IDs()})
	}
	return branch, head, err
}

// Propose puts an edit of somebody outside into quarantine, if it changes the branch; its outcome says so. Edits may
// update the skills of the current bank, not those of the branch. It may be called while another process trains.
func (r *Run) Propose(ctx context.Context, e skill.Edit, author string) (Guest, error) {
	g := Guest{Edit: e, Author: author, State: Waiting}
	record, err := text(e)
	if err != nil {
		return g, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g.Made = r.now().UTC().Truncate(time.Millisecond)
	err = r.disk.transact(ctx, r.db, func(tx *sql.Tx) error {
		branch, head, err := readBranch(ctx, tx)
		if err != nil {
			return err
		}
		var after skill.Bank
		if after, g.Outcome = branch.Apply(e, skill.Permission{Shown: head.IDs()}); after.Hash() == branch.Hash() {
			return nil
		}
		done, err := tx.ExecContext(ctx, "INSERT INTO guests (edit, outcome, author, state, why, tests, made) VALUES (?, ?, ?, ?, '', 'null', ?)",
			record, g.Outcome.String(), author, string(Waiting), stamp(g.Made))
		if err != nil {
			return err
		}
		id, err := done.LastInsertId()
		g.Number = int(id)
		return err
	})
	if err != nil {
		return g, fmt.Errorf("propose: %w", explain(err))
	}
	return g, nil
}

// Decide records what became of a waiting guest. ErrNotFound if there is none of that number.
func (r *Run) Decide(ctx context.Context, number int, s GuestState, why string, tests []train.Test) error {
	record, err := text(tests)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	done, err := r.db.ExecContext(ctx, "UPDATE guests SET state = ?, why = ?, tests = ? WHERE seq = ? AND state = ?", string(s), why, record, number, string(Waiting))
	if err == nil {
		var n int64
		if n, err = done.RowsAffected(); err == nil && n == 0 {
			err = ErrNotFound
		}
	}
	if err != nil {
		return fmt.Errorf("edit %d in quarantine: %w", number, explain(err))
	}
	return nil
}

const guestQuery = "SELECT seq, edit, outcome, author, state, why, tests, made FROM guests"

// Guests lists the edits that are or were in quarantine, the oldest first.
func (r *Run) Guests(ctx context.Context) ([]Guest, error) {
	out, err := query(ctx, r.db, scanGuest, guestQuery+" ORDER BY seq")
	return out, explain(err)
}

func scanGuest(rows *sql.Rows) (g Guest, err error) {
	var edit, outcome, state, tests, made string
	if err := rows.Scan(&g.Number, &edit, &outcome, &g.Author, &state, &g.Why, &tests, &made); err != nil {
		return g, err
	}
	g.State = GuestState(state)
	if err := errors.Join(json.Unmarshal([]byte(edit), &g.Edit), g.Outcome.UnmarshalText([]byte(outcome)), json.Unmarshal([]byte(tests), &g.Tests)); err != nil {
		return g, fmt.Errorf("edit %d in quarantine: %w (%w)", g.Number, ErrDamaged, err)
	}
	g.Made, err = unstamp(made)
	return g, err
}

// Hear records what somebody outside says came of skills. It changes nothing else: it is their word, not a measurement.
func (r *Run) Hear(ctx context.Context, f Feedback) error {
	skills, err := text(f.Skills)
	if err != nil {
		return err
	}
	var success any
	if f.Success != nil {
		success = *f.Success
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.db.ExecContext(ctx, "INSERT INTO feedback (skills, success, task, note, author, bank, made) VALUES (?, ?, ?, ?, ?, ("+headQuery+"), ?)",
		skills, success, f.Task, f.Note, f.Author, stamp(r.now()))
	return explain(err)
}

// Heard lists what was reported, the oldest first.
func (r *Run) Heard(ctx context.Context) ([]Feedback, error) {
	out, err := query(ctx, r.db, func(rows *sql.Rows) (f Feedback, err error) {
		var skills, made string
		var success sql.NullBool
		if err := rows.Scan(&skills, &success, &f.Task, &f.Note, &f.Author, &f.Bank, &made); err != nil {
			return f, err
		}
		if success.Valid {
			f.Success = &success.Bool
		}
		if err := json.Unmarshal([]byte(skills), &f.Skills); err != nil {
			return f, err
		}
		f.Made, err = unstamp(made)
		return f, err
	}, "SELECT skills, success, task, note, author, bank, made FROM feedback ORDER BY seq")
	return out, explain(err)
}
