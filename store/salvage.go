package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"skillmaster/skill"
)

// Salvage reads what can be read of the banks of a damaged database, the oldest first, from a copy: the file stays as it
// is. Every bank has the hash it was stored under. lost says what could not be read, in words. ErrDamaged means that
// nothing could.
func Salvage(ctx context.Context, file string) (banks []skill.Bank, lost []string, err error) {
	dir, err := os.MkdirTemp("", "skillmaster-salvage-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	copied := filepath.Join(dir, "run.db")
	for _, part := range []string{"", "-wal"} {
		if err := copyFile(file+part, copied+part); err != nil && (part == "" || !errors.Is(err, fs.ErrNotExist)) {
			return nil, nil, err
		}
	}
	db, err := sql.Open("sqlite", dsn(copied, "rw", time.Second))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	banks, lost = readRows(ctx, db)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if len(banks) == 0 {
		return nil, lost, fmt.Errorf("%s: %w: no bank in it can be read", file, ErrDamaged)
	}
	return banks, lost, nil
}

// patience is how many rows without anything to read end the search for more.
const patience = 200

// readRows reads banks one by one, so that a bad page costs those that lie on it alone.
func readRows(ctx context.Context, db *sql.DB) (banks []skill.Bank, lost []string) {
	for row, missing := 1, 0; missing < patience && ctx.Err() == nil; row++ {
		var hash, content string
		err := db.QueryRowContext(ctx, "SELECT hash, content FROM banks NOT INDEXED WHERE rowid = ?", row).Scan(&hash, &content)
		if errors.Is(err, sql.ErrNoRows) {
			missing++
			continue
		}
		var b skill.Bank
		if err == nil {
			b, err = decodeBank(hash, content)
		}
		if err != nil {
			missing++
			lost = append(lost, fmt.Sprintf("bank %d: %v", row, err))
			continue
		}
		missing = 0
		banks = append(banks, b)
	}
	if n := len(lost); n >= patience { // the end of the table is not known: what came after it was never there
		lost = append(lost[:min(n, 3)], fmt.Sprintf("… and perhaps more: the table's pages are damaged (%d rows tried)", n))
	}
	return banks, lost
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
