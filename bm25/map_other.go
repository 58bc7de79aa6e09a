//go:build !unix

package bm25

import "os"

// MapFile reads a file, where none can be mapped, for what is kept beside an index, too.
func MapFile(path string) (image []byte, unmap func() error, err error) {
	image, err = os.ReadFile(path)
	return image, func() error { return nil }, err
}

// Release does nothing to a file that was read.
func Release([]byte) error { return nil }
