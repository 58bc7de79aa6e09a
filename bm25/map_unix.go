//go:build unix

package bm25

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// MapFile maps a file to read, for what is kept beside an index, too.
func MapFile(path string) (image []byte, unmap func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return nil, func() error { return nil }, nil // no file that can be mapped: none of ours
	}
	image, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, &os.PathError{Op: "map", Path: path, Err: err}
	}
	return image, func() error { return unix.Munmap(image) }, nil
}

// Release lets the pages of a mapped file go that were read so far; they come back when they are read again.
func Release(image []byte) error { return unix.Madvise(image, unix.MADV_DONTNEED) }
