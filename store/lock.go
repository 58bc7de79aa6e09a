package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// lock keeps a second writer out of a run directory. It is SQLite's own file lock on an empty database, which works
// on every system and which the system drops when the process ends, however it ends.
type lock struct {
	db   *sql.DB
	conn *sql.Conn
	once sync.Once
	err  error
}

// acquire takes the lock of a run directory, waiting for it at most as long as wait says.
func acquire(ctx context.Context, dir string, wait time.Duration) (*lock, error) {
	path := filepath.Join(dir, "lock.db")
	db, err := sql.Open("sqlite", dsn(path, "rwc", wait))
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, explain(err)), db.Close())
	}
	if _, err := conn.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
		err = explain(err)
		if isBusy(err) {
			err = fmt.Errorf("%w: let it end, or stop it with Ctrl-C, then do this again", ErrLocked)
		}
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), conn.Close(), db.Close())
	}
	return &lock{db: db, conn: conn}, nil
}

// release gives the lock back; a second call does nothing.
func (l *lock) release() error {
	l.once.Do(func() {
		_, err := l.conn.ExecContext(context.Background(), "ROLLBACK")
		l.err = errors.Join(err, l.conn.Close(), l.db.Close())
	})
	return l.err
}
