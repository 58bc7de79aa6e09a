// Package store keeps a run in a directory: run.db (SQLite: what was asked for, the bank's journal, trajectories,
// verdicts, metrics, evaluations, the list of checkpoints), checkpoints/NNNNNN.safetensors (the learner's state), and
// copies for people (config.json, tokenizer.json). One process writes, any number reads at the same time.
package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"skillmaster/episode"
	"skillmaster/skill"
	"skillmaster/train"
)

// Format is the version of the run directory that this package writes and reads.
const Format = 4

const application = 0x736b6d72 // "skmr" in the header of run.db: this file is ours

// Manifest is what a run is and how it was asked for. It does not change after Create.
type Manifest struct {
	Program string          `json:"program"` // version of the program that made it
	Config  json.RawMessage `json:"config"`
	Seed    episode.Seed    `json:"seed"`    // root
	World   string          `json:"world"`   // in words
	Command []string        `json:"command"` // the command line
	Panels  []Panel         `json:"panels"`
	Bank    skill.Bank      `json:"bank"` // the run starts with it
	Created time.Time       `json:"created"`
}

// Panel is a panel of a run by its content.
type Panel struct {
	Name  string   `json:"name"`
	Hash  string   `json:"hash"`
	Tasks []string `json:"tasks"` // ids, in order
}

// PanelOf returns the record of a panel.
func PanelOf(p episode.Panel) Panel {
	out := Panel{Name: p.Name, Hash: p.Hash(), Tasks: make([]string, len(p.Tasks))}
	for i, t := range p.Tasks {
		out.Tasks[i] = t.ID
	}
	return out
}

// Run is an open run directory. Safe for concurrent use. Close it.
type Run struct {
	dir  string
	db   *sql.DB
	lock *lock // nil: opened by View
	now  func() time.Time
	disk disk

	mu sync.Mutex // held by whoever writes
}

var _ train.Keeper = (*Run)(nil)

// Create makes a run directory and opens it for writing. A directory that holds a run already is ErrExists and stays
// as it is. After a crash inside Create the directory holds no run, and Create may be called again. Created is taken
// from now, whatever the manifest says.
func Create(ctx context.Context, dir string, m Manifest, now func() time.Time) (*Run, error) {
	return create(ctx, dir, m, now, disk{})
}

func create(ctx context.Context, dir string, m Manifest, now func() time.Time, d disk) (*Run, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make run directory: %w", explain(err))
	}
	l, err := acquire(ctx, dir, 0)
	if err != nil {
		return nil, err
	}
	r := &Run{dir: dir, lock: l, now: now, disk: d}
	if err := r.lay(ctx, m); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if r.db, err = connect(ctx, r.path("run.db")); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// lay writes a new run's files. run.db comes last and whole, so that a directory either holds a run or does not.
func (r *Run) lay(ctx context.Context, m Manifest) error {
	if err := damagedBefore(r.dir); err != nil {
		return fmt.Errorf("%w: %w", ErrExists, err)
	}
	for _, name := range []string{"run.db", "checkpoints"} {
		_, err := os.Stat(r.path(name))
		switch {
		case err == nil:
			return fmt.Errorf("%s: %w (it has %s): resume that run, or choose another directory", r.dir, ErrExists, name)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	m.Created = r.now().UTC()
	fresh := r.path("run.db.new")
	for _, left := range []string{"", "-journal", "-wal", "-shm"} { // by a crash in here
		if err := os.Remove(fresh + left); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := r.disk.do("write run.db", func() error { return initialise(ctx, fresh, m) }); err != nil {
		return fmt.Errorf("make run.db: %w", explain(err))
	}
	if _, err := r.disk.write(r.path("config.json"), bytesWriter(indent(m.Config))); err != nil {
		return err
	}
	if err := r.disk.do("rename run.db", func() error { return os.Rename(fresh, r.path("run.db")) }); err != nil {
		return explain(err)
	}
	return r.disk.do("sync run directory", func() error { return syncDir(r.dir) })
}

// Open opens a run for writing; at most one process has it open so. If another has, Open waits for it as long as wait
// says, then fails with ErrLocked. A directory without a run is ErrNoRun, one of another format ErrVersion; then nothing is
// changed. A damaged database is ErrDamaged, and is set aside under another name: nothing writes to it again.
func Open(ctx context.Context, dir string, wait time.Duration, now func() time.Time) (*Run, error) {
	if err := holdsRun(dir); err != nil {
		return nil, err
	}
	l, err := acquire(ctx, dir, wait)
	if err != nil {
		return nil, err
	}
	r, err := open(ctx, dir, now)
	if err == nil {
		if err = r.quickCheck(ctx); err == nil {
			r.lock = l
			return r, nil
		}
		err = errors.Join(err, r.db.Close())
	}
	if errors.Is(err, ErrDamaged) && !errors.Is(err, errForeign) {
		err = setDatabaseAside(dir, err)
	}
	return nil, errors.Join(err, l.release())
}

// errForeign marks a database that somebody else's program made: it is not ours to move.
var errForeign = errors.New("it is not the database of a run")

// setDatabaseAside gives a damaged database, with the files that belong to it, a name that nothing overwrites, and adds
// that to the error.
func setDatabaseAside(dir string, why error) error {
	path := filepath.Join(dir, "run.db")
	aside, err := asideName(path)
	if err != nil {
		return errors.Join(why, err)
	}
	for _, part := range []string{"-wal", "-shm", ""} { // the database last: without it, the directory holds no run
		if err := os.Rename(path+part, aside+part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(why, err)
		}
	}
	return errors.Join(fmt.Errorf("%w; it was set aside as %s", why, filepath.Base(aside)), syncDir(dir))
}

// damagedBefore reports a database that was set aside.
func damagedBefore(dir string) error {
	found, err := filepath.Glob(filepath.Join(globEscape(dir), "run.db"+damagedSuffix+"*"))
	if err != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("%s: the run's database was %w and set aside as %s: put a good copy back as run.db, or read its banks with skillmaster bank salvage %s",
		dir, ErrDamaged, filepath.Base(found[0]), found[0])
}

// globEscape makes a path a pattern that matches it alone.
func globEscape(path string) string {
	if filepath.Separator == '\\' {
		return path // Windows: no file is named with *, ? or [ in a way that could be escaped
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// View opens a run for reading, also while another process writes it. What needs the run for itself fails with ErrReadOnly.
func View(ctx context.Context, dir string, now func() time.Time) (*Run, error) {
	if err := holdsRun(dir); err != nil {
		return nil, err
	}
	return open(ctx, dir, now)
}

func open(ctx context.Context, dir string, now func() time.Time) (*Run, error) {
	r := &Run{dir: dir, now: now}
	var err error
	if r.db, err = connect(ctx, r.path("run.db")); err != nil {
		return nil, fmt.Errorf("%s: %w", r.path("run.db"), err)
	}
	if err := r.checkHeader(ctx); err != nil {
		return nil, errors.Join(err, r.db.Close())
	}
	return r, nil
}

func holdsRun(dir string) error {
	info, err := os.Stat(filepath.Join(dir, "run.db"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := damagedBefore(dir); err != nil {
			return err
		}
		return fmt.Errorf("%s: %w (there is no run.db): give the directory of a run, or start one with skillmaster train --run %s", dir, ErrNoRun, dir)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w: run.db is not a file", dir, ErrDamaged)
	}
	return nil
}

func (r *Run) checkHeader(ctx context.Context) error {
	var app, format int
	if err := r.db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return r.damaged(err)
	}
	if err := r.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&format); err != nil {
		return r.damaged(err)
	}
	if app != application {
		why := errForeign
		if info, err := os.Stat(r.path("run.db")); err == nil && info.Size() == 0 {
			why = errors.New("it is empty")
		}
		return r.damaged(why)
	}
	if format != Format {
		var by string
		if err := r.db.QueryRowContext(ctx, "SELECT program FROM manifest").Scan(&by); err != nil {
			by = "unknown" // a later format need not have the column
		}
		return fmt.Errorf("%s: %w: it has format %d, this program reads format %d; use the version of skillmaster that made it (%s), or start a new run in another directory",
			r.dir, ErrVersion, format, Format, by)
	}
	return nil
}

// quickCheck reads the whole database and reports the first page that does not fit.
func (r *Run) quickCheck(ctx context.Context) error {
	var verdict string
	err := r.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict)
	if err == nil && verdict != "ok" {
		err = errors.New(verdict)
	}
	if err != nil {
		return r.damaged(err)
	}
	return nil
}

func (r *Run) damaged(err error) error {
	if e := explain(err); !errors.Is(e, ErrDamaged) && isSQLite(err) {
		return e // busy, full, no permission: not damage
	}
	return fmt.Errorf("%s: %w (%w); nothing in it was changed: put a copy of it back, or start a new run in another directory", r.path("run.db"), ErrDamaged, err)
}

// Close gives the run back. A second call does nothing.
func (r *Run) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	if r.db != nil {
		errs = append(errs, r.db.Close())
	}
	if r.lock != nil {
		errs = append(errs, r.lock.release())
	}
	return errors.Join(errs...)
}

// Dir is the run's directory.
func (r *Run) Dir() string { return r.dir }

func (r *Run) path(name string) string { return filepath.Join(r.dir, name) }

// connect opens a database file that exists.
func connect(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(path, "rw", 10*time.Second, "synchronous(FULL)", "foreign_keys(ON)"))
	if err != nil {
		return nil, err
	}
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(explain(err), db.Close())
	}
	return db, nil
}

// dsn names a database file with the pragmas that every connection to it starts with. Transactions that write take
// the write lock when they begin, so that none fails half-way because another was faster.
func dsn(path, mode string, wait time.Duration, pragmas ...string) string {
	q := url.Values{"mode": {mode}, "_txlock": {"immediate"}}
	q.Add("_pragma", "busy_timeout("+strconv.FormatInt(wait.Milliseconds(), 10)+")")
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	path = filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		path = "/" + path
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}
