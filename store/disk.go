package store

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// disk does what a kill or a full disk may interrupt, one named step after another.
type disk struct {
	before func(step string) error // called before each step; an error takes its place. nil: nothing
}

func (d disk) do(step string, f func() error) error {
	if d.before != nil {
		if err := d.before(step); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	if err := f(); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

// sum is what a file must be to be whole.
type sum struct {
	size   int64
	sha256 string
}

// write puts a file in its place as a whole: beside, synced, renamed, the folder synced. After an error the file that
// was there before is still there.
func (d disk) write(path string, fill func(io.Writer) error) (sum, error) {
	name, beside := filepath.Base(path), path+".tmp"
	var s sum
	err := d.do("write "+name, func() (err error) {
		s, err = fillFile(beside, fill)
		return err
	})
	if err == nil {
		err = d.do("rename "+name, func() error { return os.Rename(beside, path) })
	}
	if err != nil {
		return sum{}, explain(errors.Join(err, removeIfThere(beside)))
	}
	if err := d.do("sync folder of "+name, func() error { return syncDir(filepath.Dir(path)) }); err != nil {
		return sum{}, explain(err)
	}
	return s, nil
}

func fillFile(path string, fill func(io.Writer) error) (s sum, err error) {
	f, err := os.Create(path)
	if err != nil {
		return sum{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	b := bufio.NewWriterSize(io.MultiWriter(f, h), 1<<20)
	if err := fill(b); err != nil {
		return sum{}, err
	}
	if err := b.Flush(); err != nil {
		return sum{}, err
	}
	if err := f.Sync(); err != nil {
		return sum{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return sum{}, err
	}
	return sum{info.Size(), hex.EncodeToString(h.Sum(nil))}, nil
}

// check reports how a file differs from what it must be.
func (s sum) check(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	switch {
	case err != nil:
		return err
	case n != s.size:
		return fmt.Errorf("%w: it has %d bytes of %d", ErrDamaged, n, s.size)
	case hex.EncodeToString(h.Sum(nil)) != s.sha256:
		return fmt.Errorf("%w: its SHA-256 is not the recorded one", ErrDamaged)
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir makes renames in a folder last. Windows has no such call and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func bytesWriter(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// indent lays JSON out for people; text that is not JSON stays as it is.
func indent(b []byte) []byte {
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return b
	}
	out.WriteByte('\n')
	return out.Bytes()
}
