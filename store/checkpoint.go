package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"skillmaster/skill"
	"skillmaster/train"
)

// Saved is a checkpoint as it lies on the disk.
type Saved struct {
	train.Checkpoint
	Number int    // from 1
	Path   string // of the learner's state
	Report int    // sequence number of the report it was kept with
	Warm   bool   // it ends the warm start
	Best   bool   // it was the first to reach the best score
	Kept   time.Time

	sum sum
}

// Verify reads the file and returns ErrDamaged if it is not the one that was written.
func (s Saved) Verify() error {
	if err := s.sum.check(s.Path); err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	return nil
}

// Hash is the SHA-256 of the file that was written, in hexadecimal: equal for equal states of the learner.
func (s Saved) Hash() string { return s.sum.sha256 }

// saving is a checkpoint whose file is written and whose row is not.
type saving struct {
	train.Checkpoint
	number int
	record string
	sum    sum
}

func (r *Run) checkpointPath(number int) string {
	return filepath.Join(r.dir, "checkpoints", fmt.Sprintf("%06d.safetensors", number))
}

func (r *Run) writeCheckpoint(ctx context.Context, c train.Checkpoint, weights func(io.Writer) error) (*saving, error) {
	s := &saving{Checkpoint: c}
	rest := c
	rest.Bank = skill.Bank{}
	var err error
	if s.record, err = text(rest); err != nil {
		return nil, err
	}
	if err := r.db.QueryRowContext(ctx, "SELECT coalesce(max(number), 0) + 1 FROM checkpoints").Scan(&s.number); err != nil {
		return nil, err
	}
	path := r.checkpointPath(s.number)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	s.sum, err = r.disk.write(path, weights)
	return s, err
}

func (p *prepared) putCheckpoint(ctx context.Context, tx *sql.Tx) error {
	c := p.checkpoint
	if c == nil {
		return nil
	}
	if got := c.Bank.Hash(); got != p.Bank {
		return fmt.Errorf("the checkpoint has bank %s, the report %s", got, p.Bank)
	}
	var before sql.NullFloat64
	if err := tx.QueryRowContext(ctx, "SELECT max(score) FROM checkpoints").Scan(&before); err != nil {
		return err
	}
	best := c.Best > 0 && (!before.Valid || c.Best > before.Float64)
	if best {
		if _, err := tx.ExecContext(ctx, "UPDATE checkpoints SET best = 0"); err != nil {
			return err
		}
	}
	warm := p.Phase == train.WarmStart && c.Phase != train.WarmStart
	if _, err := tx.ExecContext(ctx, `INSERT INTO checkpoints (number, report, size, sha256, bank, score, warm, best, record, kept)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.number, p.seq, c.sum.size, c.sum.sha256, p.Bank, c.Best, warm, best, c.record, p.kept); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE checkpoints SET removed = 1 WHERE NOT removed AND NOT warm AND NOT best AND number NOT IN
		(SELECT number FROM checkpoints ORDER BY number DESC LIMIT ?)`, keepNewest)
	return err
}

var checkpointName = regexp.MustCompile(`^(\d{6,})\.safetensors$`)

// removeFiles removes the checkpoint files that the records do not speak of any more.
func (r *Run) removeFiles(ctx context.Context) error {
	kept, err := query(ctx, r.db, func(rows *sql.Rows) (n int, err error) { return n, rows.Scan(&n) },
		"SELECT number FROM checkpoints WHERE NOT removed")
	if err != nil {
		return err
	}
	keep := map[int]bool{}
	for _, n := range kept {
		keep[n] = true
	}
	files, err := os.ReadDir(r.path("checkpoints"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, f := range files {
		m := checkpointName.FindStringSubmatch(f.Name())
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || keep[n] {
			continue
		}
		if err := r.disk.do("remove "+f.Name(), func() error { return os.Remove(filepath.Join(r.path("checkpoints"), f.Name())) }); err != nil {
			return err
		}
	}
	return nil
}

// Checkpoints lists those whose file is kept, the newest first, without looking at the files.
func (r *Run) Checkpoints(ctx context.Context) ([]Saved, error) {
	type row struct {
		Saved
		bank, record, kept string
	}
	rows, err := query(ctx, r.db, func(rows *sql.Rows) (x row, err error) {
		return x, rows.Scan(&x.Number, &x.Report, &x.sum.size, &x.sum.sha256, &x.bank, &x.Warm, &x.Best, &x.record, &x.kept)
	}, "SELECT number, report, size, sha256, bank, warm, best, record, kept FROM checkpoints WHERE NOT removed ORDER BY number DESC")
	if err != nil {
		return nil, err
	}
	out := make([]Saved, len(rows))
	for i, x := range rows {
		s := x.Saved
		s.Path = r.checkpointPath(s.Number)
		if err := json.Unmarshal([]byte(x.record), &s.Checkpoint); err != nil {
			return nil, fmt.Errorf("checkpoint %d: %w", s.Number, err)
		}
		if s.Bank, err = r.Bank(ctx, x.bank); err != nil {
			return nil, fmt.Errorf("checkpoint %d: %w", s.Number, err)
		}
		if s.Kept, err = unstamp(x.kept); err != nil {
			return nil, fmt.Errorf("checkpoint %d: %w", s.Number, err)
		}
		out[i] = s
	}
	return out, nil
}

// Damage is a checkpoint that could not be used.
type Damage struct {
	Path  string
	Why   error
	Aside string // where the file was moved; empty if it was not
}

func (d Damage) String() string {
	if d.Aside == "" {
		return d.Why.Error()
	}
	return fmt.Sprintf("%v (set aside as %s)", d.Why, filepath.Base(d.Aside))
}

// Latest finds the newest checkpoint whose file is whole, and says which newer ones are not. With the run open for
// writing, a damaged file is set aside under another name, never deleted. Give the checkpoint to Rewind before going
// on from it. ErrNoCheckpoint means that none was ever written; if there were some and none is whole, that is ErrDamaged.
func (r *Run) Latest(ctx context.Context) (Saved, []Damage, error) {
	return r.newest(ctx, func(Saved) bool { return true })
}

// Best finds the checkpoint that first reached the best score. ErrNotFound if there is none or its file is not whole.
func (r *Run) Best(ctx context.Context) (Saved, error) {
	return r.tagged(ctx, "best", func(s Saved) bool { return s.Best })
}

// Warm finds the checkpoint that ends the warm start, like Best.
func (r *Run) Warm(ctx context.Context) (Saved, error) {
	return r.tagged(ctx, "warm-start", func(s Saved) bool { return s.Warm })
}

func (r *Run) tagged(ctx context.Context, name string, is func(Saved) bool) (Saved, error) {
	s, damage, err := r.newest(ctx, is)
	switch {
	case len(damage) > 0:
		return Saved{}, fmt.Errorf("%s checkpoint: %w", name, damage[0].Why)
	case errors.Is(err, ErrNoCheckpoint):
		return Saved{}, fmt.Errorf("%s checkpoint: %w", name, ErrNotFound)
	}
	return s, err
}

func (r *Run) newest(ctx context.Context, is func(Saved) bool) (Saved, []Damage, error) {
	all, err := r.Checkpoints(ctx)
	if err != nil {
		return Saved{}, nil, explain(err)
	}
	var damage []Damage
	for _, s := range all {
		if !is(s) {
			continue
		}
		err := s.Verify()
		switch {
		case err == nil:
			return s, damage, nil
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, os.ErrNotExist):
			return Saved{}, damage, err // cannot be read: not the same as damaged
		}
		d, err := r.setAside(s, err)
		if err != nil {
			return Saved{}, damage, err
		}
		damage = append(damage, d)
	}
	if len(damage) > 0 {
		return Saved{}, damage, fmt.Errorf("%s: every checkpoint is %w (the newest: %w); start a new run in another directory", r.dir, ErrDamaged, damage[0].Why)
	}
	return Saved{}, nil, fmt.Errorf("%s: %w", r.dir, ErrNoCheckpoint)
}

// setAside gives a damaged file a name that nothing overwrites.
func (r *Run) setAside(s Saved, why error) (Damage, error) {
	d := Damage{Path: s.Path, Why: why}
	if r.lock == nil || errors.Is(why, os.ErrNotExist) {
		return d, nil
	}
	aside, err := asideName(s.Path)
	if err != nil {
		return d, err
	}
	if err := r.disk.do("set aside "+filepath.Base(s.Path), func() error { return os.Rename(s.Path, aside) }); err != nil {
		return d, err
	}
	d.Aside = aside
	return d, nil
}

// asideName is a name for a damaged file that nothing has yet.
func asideName(path string) (string, error) {
	aside := path + damagedSuffix
	for n := 2; ; n++ {
		if _, err := os.Lstat(aside); errors.Is(err, os.ErrNotExist) {
			return aside, nil
		} else if err != nil {
			return "", err
		}
		aside = path + damagedSuffix + strconv.Itoa(n)
	}
}

const damagedSuffix = ".damaged"

// Rewound says what Rewind took back.
type Rewound struct {
	Reports int
	ByHand  int // commits a person made after the checkpoint; their banks can still be read and committed again
}

// Rewind makes the records those of the moment the checkpoint was kept: what later rounds brought is removed, since
// they will be played again. The zero Saved takes back every round.
func (r *Run) Rewind(ctx context.Context, s Saved) (Rewound, error) {
	if r.lock == nil {
		return Rewound{}, ErrReadOnly
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var w Rewound
	err := r.disk.transact(ctx, r.db, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM reports WHERE seq > ?1), (SELECT count(*) FROM commits WHERE report > ?1 AND kind <> ?2)",
			s.Report, string(Edited)).Scan(&w.Reports, &w.ByHand); err != nil {
			return err
		}
		for _, del := range []string{"DELETE FROM commits WHERE report > ?", "DELETE FROM reports WHERE seq > ?"} {
			if _, err := tx.ExecContext(ctx, del, s.Report); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Rewound{}, fmt.Errorf("rewind: %w", explain(err))
	}
	return w, r.removeFiles(ctx)
}
