package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"skillmaster/skill"
)

// schema of format 4. What a round brought hangs on its row in reports and goes with it. A change here is a new Format.
const schema = `
CREATE TABLE manifest (
	id INTEGER PRIMARY KEY CHECK (id = 1), program TEXT NOT NULL, config TEXT NOT NULL, seed TEXT NOT NULL,
	world TEXT NOT NULL, command TEXT NOT NULL, bank TEXT NOT NULL REFERENCES banks, created TEXT NOT NULL
) STRICT;
CREATE TABLE panels (place INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, hash TEXT NOT NULL, tasks TEXT NOT NULL) STRICT;
CREATE TABLE documents (name TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT;
CREATE TABLE banks (hash TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT;
CREATE TABLE reports (
	seq INTEGER PRIMARY KEY, phase TEXT NOT NULL, round INTEGER NOT NULL, policy_version INTEGER NOT NULL,
	bank TEXT NOT NULL, kept TEXT NOT NULL
) STRICT;
CREATE TABLE metrics ( -- value NULL: measured, but not a finite number
	report INTEGER NOT NULL REFERENCES reports ON DELETE CASCADE, key TEXT NOT NULL, value REAL, PRIMARY KEY (report, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE seconds (
	report INTEGER NOT NULL REFERENCES reports ON DELETE CASCADE, key TEXT NOT NULL, value REAL, PRIMARY KEY (report, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE trajectories ( -- record: the whole of it as JSON, gzip
	report INTEGER NOT NULL REFERENCES reports ON DELETE CASCADE, in_group INTEGER NOT NULL, member INTEGER NOT NULL,
	task TEXT NOT NULL, family TEXT NOT NULL, category TEXT NOT NULL, success INTEGER NOT NULL, steps INTEGER NOT NULL,
	env_return REAL NOT NULL, bank TEXT NOT NULL, policy_version INTEGER NOT NULL, seed TEXT NOT NULL, stop TEXT NOT NULL,
	outcome TEXT, tokens INTEGER NOT NULL, record BLOB NOT NULL, PRIMARY KEY (report, in_group, member)
) STRICT;
CREATE INDEX trajectories_by_task ON trajectories (task);
CREATE INDEX trajectories_by_family ON trajectories (report, family, success, steps); -- success by family without the records
CREATE TABLE uses ( -- episodes of a report with a skill in their prompt
	report INTEGER NOT NULL REFERENCES reports ON DELETE CASCADE, skill TEXT NOT NULL, family TEXT NOT NULL,
	episodes INTEGER NOT NULL, success INTEGER NOT NULL, PRIMARY KEY (report, skill, family)
) STRICT, WITHOUT ROWID;
CREATE TABLE judgements (
	report INTEGER NOT NULL REFERENCES reports ON DELETE CASCADE, place INTEGER NOT NULL, in_group INTEGER NOT NULL,
	member INTEGER NOT NULL, measured INTEGER NOT NULL, utility REAL, wins INTEGER NOT NULL, losses INTEGER NOT NULL,
	record TEXT NOT NULL, PRIMARY KEY (report, place)
) STRICT;
CREATE TABLE tests ( -- of pending edits at the gate; iteration and seed name the episode whose review wrote the edit
	report INTEGER NOT NULL REFERENCES reports ON DELETE CASCADE, place INTEGER NOT NULL, iteration INTEGER NOT NULL,
	seed TEXT NOT NULL, decision TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (report, place)
) STRICT;
CREATE INDEX tests_by_edit ON tests (iteration, seed);
CREATE TABLE commits ( -- report: the newest one when it was made; kind: edit (by that round), rollback or import (by hand)
	seq INTEGER PRIMARY KEY, report INTEGER NOT NULL, kind TEXT NOT NULL, parent TEXT NOT NULL,
	hash TEXT NOT NULL REFERENCES banks, outcome TEXT NOT NULL, reason TEXT NOT NULL, record TEXT NOT NULL, made TEXT NOT NULL
) STRICT;
CREATE TABLE guests ( -- edits from outside, in quarantine until they are judged; no policy sees them before
	seq INTEGER PRIMARY KEY, edit TEXT NOT NULL, outcome TEXT NOT NULL, author TEXT NOT NULL, state TEXT NOT NULL,
	why TEXT NOT NULL, tests TEXT NOT NULL, made TEXT NOT NULL
) STRICT;
CREATE TABLE feedback ( -- what others say came of skills; success NULL: they do not know
	seq INTEGER PRIMARY KEY, skills TEXT NOT NULL, success INTEGER, task TEXT NOT NULL, note TEXT NOT NULL, author TEXT NOT NULL,
	bank TEXT NOT NULL, made TEXT NOT NULL
) STRICT;
CREATE TABLE evaluations ( -- report NULL: made apart from training
	id INTEGER PRIMARY KEY, report INTEGER REFERENCES reports ON DELETE CASCADE, panel TEXT NOT NULL, panel_hash TEXT NOT NULL,
	bank TEXT NOT NULL, policy_version INTEGER NOT NULL, retrieval INTEGER NOT NULL, online INTEGER NOT NULL,
	seed TEXT NOT NULL, temperature REAL NOT NULL, constrained INTEGER NOT NULL, command TEXT, made TEXT NOT NULL
) STRICT;
CREATE TABLE results (
	evaluation INTEGER NOT NULL REFERENCES evaluations ON DELETE CASCADE, place INTEGER NOT NULL, task TEXT NOT NULL,
	family TEXT NOT NULL, success INTEGER NOT NULL, steps INTEGER NOT NULL, env_return REAL NOT NULL,
	inadmissible INTEGER NOT NULL, malformed INTEGER NOT NULL, stop TEXT NOT NULL, actions TEXT NOT NULL,
	PRIMARY KEY (evaluation, place)
) STRICT;
CREATE TABLE checkpoints ( -- record: the checkpoint as JSON but for its bank; removed: its file was, to save space
	number INTEGER PRIMARY KEY, report INTEGER NOT NULL REFERENCES reports ON DELETE CASCADE, size INTEGER NOT NULL,
	sha256 TEXT NOT NULL, bank TEXT NOT NULL REFERENCES banks, score REAL NOT NULL, warm INTEGER NOT NULL,
	best INTEGER NOT NULL, removed INTEGER NOT NULL DEFAULT 0, record TEXT NOT NULL, kept TEXT NOT NULL
) STRICT;
`

// initialise makes the database of a new run in a file that does not exist yet.
func initialise(ctx context.Context, path string, m Manifest) (err error) {
	db, err := sql.Open("sqlite", dsn(path, "rwc", time.Second, "synchronous(FULL)", "foreign_keys(ON)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	header := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", application, Format)
	if err := (disk{}).transact(ctx, db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, header+schema); err != nil {
			return err
		}
		return putManifest(ctx, tx, m)
	}); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA journal_mode = WAL") // kept in the file's header
	return err
}

func putManifest(ctx context.Context, tx *sql.Tx, m Manifest) error {
	if !json.Valid(m.Config) {
		return errors.New("the manifest's config is not JSON")
	}
	command, err := text(m.Command)
	if err != nil {
		return err
	}
	if err := putBank(ctx, tx, m.Bank); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO manifest (id, program, config, seed, world, command, bank, created) VALUES (1, ?, ?, ?, ?, ?, ?, ?)",
		m.Program, string(m.Config), seedText(uint64(m.Seed)), m.World, command, m.Bank.Hash(), stamp(m.Created)); err != nil {
		return err
	}
	for i, p := range m.Panels {
		tasks, err := text(p.Tasks)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO panels (place, name, hash, tasks) VALUES (?, ?, ?, ?)", i, p.Name, p.Hash, tasks); err != nil {
			return fmt.Errorf("panel %s: %w", p.Name, err)
		}
	}
	return nil
}

// putBank stores a bank once.
func putBank(ctx context.Context, tx *sql.Tx, b skill.Bank) error {
	content, err := text(b)
	if err != nil {
		return fmt.Errorf("bank %s: %w", b.Hash(), err)
	}
	_, err = tx.ExecContext(ctx, "INSERT OR IGNORE INTO banks (hash, content) VALUES (?, ?)", b.Hash(), content)
	return err
}

// transact runs f in one transaction that writes: all of it lasts, or nothing.
func (d disk) transact(ctx context.Context, db *sql.DB, f func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	err = d.do("write records", func() error { return f(tx) })
	if err == nil {
		err = d.do("commit records", tx.Commit)
	}
	if err != nil {
		if back := tx.Rollback(); !errors.Is(back, sql.ErrTxDone) {
			err = errors.Join(err, back)
		}
	}
	return err
}

// text is a value as JSON text for a column.
func text(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// stamp is a moment as text that sorts by time.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func unstamp(s string) (time.Time, error) { return time.Parse("2006-01-02T15:04:05.000Z", s) }

// seedText is a seed as decimal text: SQLite's integers end at 2⁶³ − 1.
func seedText(s uint64) string { return strconv.FormatUint(s, 10) }
