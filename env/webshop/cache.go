package webshop

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	"skillmaster/bm25"

	"golang.org/x/sync/errgroup"
)

// A cache is two files: the products, laid out as a shelf, and their index. The first says what it was made of and which
// index belongs to it, and is put there last, so that both are there or the cache does not count.
const (
	productsEnding = ".products"
	indexEnding    = ".index"
)

// fingerprint says which files a catalogue is made of: their names, sizes and times, and how many entries are read.
func (s *source) fingerprint(limit int) [32]byte {
	h := sha256.New()
	for _, f := range s.parts {
		if f == nil {
			fmt.Fprintln(h, "none")
			continue
		}
		fmt.Fprintf(h, "%q %d %d\n", f.info.Name(), f.info.Size(), f.info.ModTime().UnixNano())
	}
	fmt.Fprintln(h, "limit", limit)
	return [32]byte(h.Sum(nil))
}

// openCached opens the cache, or makes it first where there is none or one of other files.
func (s *source) openCached(ctx context.Context, o LoadOptions) (*Catalogue, Loaded, error) {
	mark := s.fingerprint(o.Limit)
	c, l, err := openCache(o.Cache, mark)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return c, l, err
	}
	if err := s.makeCache(ctx, o, mark); err != nil {
		return nil, Loaded{}, fmt.Errorf("catalogue in %s: %w", s.folder, err)
	}
	return openCache(o.Cache, mark)
}

// openCache opens a cache that was made of files of the given fingerprint; another one does not exist.
func openCache(path string, mark [32]byte) (*Catalogue, Loaded, error) {
	const again = "(delete it to have it made anew)"
	made, err := readFooter(path + productsEnding)
	if err != nil {
		return nil, Loaded{}, err
	}
	if made.source != mark {
		return nil, Loaded{}, fs.ErrNotExist
	}
	var c Catalogue
	var g errgroup.Group
	g.Go(func() (err error) {
		c.shelf, err = openShelf(path + productsEnding)
		return err
	})
	g.Go(func() (err error) {
		c.index, err = bm25.Open(path+indexEnding, made.index)
		return err
	})
	if err := g.Wait(); err != nil {
		if c.index != nil {
			err = errors.Join(err, c.index.Close())
		}
		if c.shelf != nil {
			err = errors.Join(err, c.unmap())
		}
		return nil, Loaded{}, fmt.Errorf("%w %s", err, again)
	}
	return &c, made.loaded, nil
}

// makeCache reads the catalogue's files into a cache.
func (s *source) makeCache(ctx context.Context, o LoadOptions, mark [32]byte) (err error) {
	if err := os.Remove(o.Cache + productsEnding); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(o.Cache), filepath.Base(o.Cache)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close(), os.Remove(file.Name()))
		}
	}()
	sum := crc32.New(castagnoli)
	w := bufio.NewWriterSize(file, 1<<20)
	f, err := s.pack(ctx, o, io.MultiWriter(w, sum))
	if err := errors.Join(err, w.Flush()); err != nil {
		return err
	}
	debug.FreeOSMemory() // what reading needed must not stand beside what indexing needs
	f.source = mark
	if f.index, err = indexFile(ctx, file.Name(), f, o); err != nil {
		return err
	}
	if _, err := file.Write(f.append(nil, sum.Sum32())); err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), o.Cache+productsEnding)
}

// pack reads the catalogue's files and writes them as a shelf, all but the footer, which it begins.
func (s *source) pack(ctx context.Context, o LoadOptions, w io.Writer) (f footer, err error) {
	files := s.files(&o)
	l := newLoader(o, w)
	if err := l.read(ctx, files); err != nil {
		return f, err
	}
	tables, err := l.packer.tables()
	if err != nil {
		return f, err
	}
	_, err = w.Write(tables)
	return footer{loaded: l.loaded, records: l.packer.written, products: uint64(l.loaded.Products)}, err
}

// indexFile makes the index of products that were written to a file, and returns the hash of its documents.
func indexFile(ctx context.Context, path string, f footer, o LoadOptions) (hash [32]byte, err error) {
	image, unmap, err := bm25.MapFile(path)
	if err != nil {
		return hash, err
	}
	defer func() { err = errors.Join(err, unmap()) }()
	shelf, err := newShelf(image, f.records, int(f.products))
	if err != nil {
		return hash, err
	}
	var released error
	index, err := shelf.buildIndex(ctx, func(n int) {
		released = errors.Join(released, bm25.Release(image)) // products are read once: their pages need not pile up beside the index
		if o.Progress != nil {
			o.Progress(Progress{Entries: f.loaded.Entries, Indexed: n, Products: shelf.len()})
		}
	})
	if err := errors.Join(err, released); err != nil {
		return hash, err
	}
	return index.Hash(), index.WriteFile(o.Cache + indexEnding)
}
