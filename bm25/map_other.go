//go:build !unix

package bm25

import "os"

// mapFile reads a file where none can be mapped.
func mapFile(path string) (image []byte, unmap func() error, err error) {
	image, err = os.ReadFile(path)
	return image, func() error { return nil }, err
}
