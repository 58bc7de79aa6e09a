package store

import (
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What can be wrong with a run directory. Errors of this package wrap them and say what to do.
var (
	ErrNoRun        = errors.New("no run here")
	ErrExists       = errors.New("there is a run here already")
	ErrVersion      = errors.New("the run was made by another version")
	ErrDamaged      = errors.New("damaged")
	ErrLocked       = errors.New("another process has the run open for writing")
	ErrReadOnly     = errors.New("the run is open for reading only")
	ErrNoCheckpoint = errors.New("the run has no checkpoint yet")
	ErrNotFound     = errors.New("not found")
	ErrConflict     = errors.New("the bank is not the current one any more")
	ErrLoose        = errors.New("rounds came after the newest checkpoint: rewind to it first")
	ErrFull         = errors.New("the disk is full: free some space and resume the run; its last checkpoint is whole")
)

// explain puts the package's name on an error of the disk or of SQLite where it has one.
func explain(err error) error {
	var e *sqlite.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrFull), errors.Is(err, ErrDamaged):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w (%w)", ErrFull, err)
	case !errors.As(err, &e):
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w (%w)", ErrFull, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w (%w)", ErrDamaged, err)
	default:
		return err
	}
}

func isSQLite(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e)
}

func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}
