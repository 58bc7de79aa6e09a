package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"skillmaster/skill"
)

// Kind says how a commit came about.
type Kind string

// The kinds of commit.
const (
	Edited     Kind = "edit"   // by training
	Amended    Kind = "hand"   // an edit by a person
	Judged     Kind = "judged" // an edit from outside that passed the gate
	RolledBack Kind = "rollback"
	Imported   Kind = "import"
)

// Entry is a commit in the journal.
type Entry struct {
	skill.Commit
	Number int // from 1, the oldest
	Kind   Kind
	Report int // sequence number of the newest report when it was made
	Made   time.Time
}

// newest commit's bank, or the one the run began with.
const headQuery = "SELECT coalesce((SELECT hash FROM commits ORDER BY seq DESC LIMIT 1), (SELECT bank FROM manifest))"

func (p *prepared) putCommits(ctx context.Context, tx *sql.Tx) error {
	for i, c := range p.Commits {
		if got := c.Bank.Hash(); got != c.Hash {
			return fmt.Errorf("commit %d says its bank is %s, it is %s", i, c.Hash, got)
		}
		if err := putCommit(ctx, tx, c, p.commits[i], Edited, p.kept); err != nil {
			return err
		}
	}
	var head string
	if err := tx.QueryRowContext(ctx, headQuery).Scan(&head); err != nil {
		return err
	}
	if head != p.Bank {
		return fmt.Errorf("the round ends with bank %s, the journal with %s: %w", p.Bank, head, ErrConflict)
	}
	return nil
}

// putCommit appends to the journal if the commit's parent is its end.
func putCommit(ctx context.Context, tx *sql.Tx, c skill.Commit, record string, k Kind, made string) error {
	var head string
	if err := tx.QueryRowContext(ctx, headQuery).Scan(&head); err != nil {
		return err
	}
	if c.Parent != head {
		return fmt.Errorf("%w: the commit changes bank %s, the current one is %s; read it again and repeat", ErrConflict, c.Parent, head)
	}
	if err := putBank(ctx, tx, c.Bank); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO commits (seq, report, kind, parent, hash, outcome, reason, record, made)
		VALUES ((SELECT coalesce(max(seq), 0) + 1 FROM commits), (SELECT coalesce(max(seq), 0) FROM reports), ?, ?, ?, ?, ?, ?, ?)`,
		string(k), c.Parent, c.Hash, c.Outcome.String(), c.Reason, record, made)
	return err
}

// Commit is Append of a whole bank.
func (r *Run) Commit(ctx context.Context, parent string, b skill.Bank, k Kind, reason string) error {
	return r.Append(ctx, skill.Commit{Parent: parent, Hash: b.Hash(), Reason: reason, Bank: b}, k)
}

// Append makes a commit's bank the current one because a person says so; its parent is the bank it was made from, and
// ErrConflict means that it is not the current one any more. The newest checkpoint gets the new bank with it, so that
// training goes on from it. Rounds that came after that checkpoint are ErrLoose: call Latest and Rewind first. The journal
// keeps what was before.
func (r *Run) Append(ctx context.Context, c skill.Commit, k Kind) error {
	if r.lock == nil {
		return ErrReadOnly
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := c.Bank.Hash(); got != c.Hash {
		return fmt.Errorf("the commit says its bank is %s, it is %s", c.Hash, got)
	}
	record, err := text(c)
	if err != nil {
		return err
	}
	err = r.disk.transact(ctx, r.db, func(tx *sql.Tx) error {
		var loose int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM reports WHERE seq > (SELECT coalesce(max(report), 0) FROM checkpoints)").Scan(&loose); err != nil {
			return err
		}
		if loose > 0 {
			return fmt.Errorf("%w: %d", ErrLoose, loose)
		}
		if err := putCommit(ctx, tx, c, record, k, stamp(r.now())); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "UPDATE checkpoints SET bank = ? WHERE number = (SELECT max(number) FROM checkpoints)", c.Hash)
		return err
	})
	if err != nil {
		return fmt.Errorf("commit bank: %w", explain(err))
	}
	return nil
}

// Head is the hash of the current bank.
func (r *Run) Head(ctx context.Context) (string, error) {
	var head string
	err := r.db.QueryRowContext(ctx, headQuery).Scan(&head)
	return head, explain(err)
}

// Bank returns the bank with a hash or with the only hash that begins so (4 characters at least). ErrNotFound if there is none.
func (r *Run) Bank(ctx context.Context, hash string) (skill.Bank, error) {
	full, err := r.fullHash(ctx, hash)
	if err != nil {
		return skill.Bank{}, err
	}
	return readBank(ctx, r.db, full)
}

func (r *Run) fullHash(ctx context.Context, hash string) (string, error) {
	found, err := query(ctx, r.db, scanText,
		"SELECT hash FROM banks WHERE substr(hash, 1, ?) = ? ORDER BY hash", len(hash), hash)
	switch {
	case err != nil:
		return "", explain(err)
	case len(found) == 0 || len(hash) < 4:
		return "", fmt.Errorf("bank %q: %w; skillmaster bank list names those there are", hash, ErrNotFound)
	case len(found) > 1:
		return "", fmt.Errorf("bank %q: %w: several begin so (%s); give more of it", hash, ErrNotFound, strings.Join(found, ", "))
	}
	return found[0], nil
}

func scanText(rows *sql.Rows) (s string, err error) { return s, rows.Scan(&s) }

func readBank(ctx context.Context, db querier, hash string) (skill.Bank, error) {
	var content string
	err := db.QueryRowContext(ctx, "SELECT content FROM banks WHERE hash = ?", hash).Scan(&content)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return skill.Bank{}, fmt.Errorf("bank %s: %w", hash, ErrNotFound)
	case err != nil:
		return skill.Bank{}, explain(err)
	}
	return decodeBank(hash, content)
}

// decodeBank reads a bank that is stored under a hash.
func decodeBank(hash, content string) (skill.Bank, error) {
	var b skill.Bank
	if err := json.Unmarshal([]byte(content), &b); err != nil {
		return skill.Bank{}, fmt.Errorf("bank %s: %w (%w)", hash, ErrDamaged, err)
	}
	if got := b.Hash(); got != hash {
		return skill.Bank{}, fmt.Errorf("bank %s: %w: its content has the hash %s", hash, ErrDamaged, got)
	}
	return b, nil
}

// Commits lists the journal, the oldest first, with the banks.
func (r *Run) Commits(ctx context.Context) ([]Entry, error) {
	type row struct {
		Entry
		kind, record, made string
	}
	rows, err := query(ctx, r.db, func(rows *sql.Rows) (x row, err error) {
		return x, rows.Scan(&x.Number, &x.Report, &x.kind, &x.record, &x.made)
	}, "SELECT seq, report, kind, record, made FROM commits ORDER BY seq")
	if err != nil {
		return nil, explain(err)
	}
	out := make([]Entry, len(rows))
	for i, x := range rows {
		e := x.Entry
		e.Kind = Kind(x.kind)
		if err := json.Unmarshal([]byte(x.record), &e.Commit); err != nil {
			return nil, fmt.Errorf("commit %d: %w (%w)", e.Number, ErrDamaged, err)
		}
		if e.Commit.Bank, err = readBank(ctx, r.db, e.Hash); err != nil {
			return nil, fmt.Errorf("commit %d: %w", e.Number, err)
		}
		if e.Made, err = unstamp(x.made); err != nil {
			return nil, fmt.Errorf("commit %d: %w (%w)", e.Number, ErrDamaged, err)
		}
		out[i] = e
	}
	return out, nil
}

// CheckBanks verifies the journal: every bank has the hash it is stored under, every commit starts from the bank before
// it, every round and checkpoint speaks of a stored bank. It returns what is wrong, in words, and how much it looked at.
func (r *Run) CheckBanks(ctx context.Context) (wrong []string, banks, commits int, err error) {
	err = r.read(ctx, func(tx *sql.Tx) error {
		hashes, err := query(ctx, tx, scanText, "SELECT hash FROM banks ORDER BY hash")
		if err != nil {
			return err
		}
		banks = len(hashes)
		for _, h := range hashes {
			if _, err := readBank(ctx, tx, h); errors.Is(err, ErrDamaged) {
				wrong = append(wrong, err.Error())
			} else if err != nil {
				return err
			}
		}
		chain, n, err := checkChain(ctx, tx)
		commits = n
		wrong = append(wrong, chain...)
		if err != nil {
			return err
		}
		lost, err := query(ctx, tx, scanText, `
			SELECT 'report ' || seq || ' speaks of bank ' || bank || ', which is not stored' FROM reports WHERE bank NOT IN (SELECT hash FROM banks)
			UNION ALL SELECT 'checkpoint ' || number || ' speaks of bank ' || bank || ', which is not stored' FROM checkpoints WHERE bank NOT IN (SELECT hash FROM banks)`)
		wrong = append(wrong, lost...)
		return err
	})
	return wrong, banks, commits, err
}

func checkChain(ctx context.Context, tx *sql.Tx) (wrong []string, n int, err error) {
	var head string
	if err := tx.QueryRowContext(ctx, "SELECT bank FROM manifest").Scan(&head); err != nil {
		return nil, 0, err
	}
	type link struct {
		seq                  int
		parent, hash, record string
	}
	links, err := query(ctx, tx, func(rows *sql.Rows) (l link, err error) { return l, rows.Scan(&l.seq, &l.parent, &l.hash, &l.record) },
		"SELECT seq, parent, hash, record FROM commits ORDER BY seq")
	if err != nil {
		return nil, 0, err
	}
	for i, l := range links {
		var c skill.Commit
		switch err := json.Unmarshal([]byte(l.record), &c); {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("commit %d: %v", l.seq, err))
		case c.Parent != l.parent || c.Hash != l.hash:
			wrong = append(wrong, fmt.Sprintf("commit %d: its record says %s → %s, its row %s → %s", l.seq, c.Parent, c.Hash, l.parent, l.hash))
		}
		if l.seq != i+1 {
			wrong = append(wrong, fmt.Sprintf("commit %d: it stands at place %d, one is missing", l.seq, i+1))
		}
		if l.parent != head {
			wrong = append(wrong, fmt.Sprintf("commit %d: it starts from bank %s, the one before it ends with %s", l.seq, l.parent, head))
		}
		head = l.hash
	}
	return wrong, len(links), nil
}
