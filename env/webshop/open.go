package webshop

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Size says which of the original's catalogues to read.
type Size uint8

// The catalogues of the original.
const (
	Small Size = iota // 1,000 products
	Full              // 1.18 million
)

func (s Size) String() string { return nameOf(s, "size", "small", "full") }

// fileNames are those of the original: products, attributes, human instructions. The small catalogue's own file of human
// instructions has those of its products alone.
var fileNames = map[Size][3][]string{
	Small: {{"items_shuffle_1000.json"}, {"items_ins_v2_1000.json"}, {"items_human_ins_subset13.json", "items_human_ins.json"}},
	Full:  {{"items_shuffle.json"}, {"items_ins_v2.json"}, {"items_human_ins.json"}},
}

// FileNames are the names of a catalogue's files: products, attributes, human instructions and nouns.
func FileNames(size Size) [4]string {
	n := fileNames[size]
	return [4]string{n[0][0], n[1][0], n[2][len(n[2])-1], nounsFile}
}

// nounsFile brings the nouns of titles; see Nouns. It may be missing.
const nounsFile = "title_nouns.jsonl"

// OpenCatalogue reads a catalogue of the original from the files in a folder or in webshop/ under it, packed (.gz) or
// not. Human instructions and nouns are read if they are there.
func OpenCatalogue(ctx context.Context, dir string, size Size, o LoadOptions) (c *Catalogue, l Loaded, err error) {
	names, ok := fileNames[size]
	if !ok {
		return nil, l, fmt.Errorf("there is no catalogue of %v", size)
	}
	folder := filepath.Join(dir, "webshop")
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		folder = dir
	}
	var f Files
	var opened opened
	defer func() { err = errors.Join(err, opened.close()) }()
	if f.Products, err = opened.need(folder, names[0]); err == nil {
		f.Attributes, err = opened.need(folder, names[1])
	}
	if err == nil {
		f.Human, err = opened.find(folder, names[2])
	}
	if err == nil {
		f.Nouns, err = opened.find(folder, []string{nounsFile})
	}
	if err != nil {
		return nil, l, err
	}
	if c, l, err = Read(ctx, f, o); err != nil {
		err = fmt.Errorf("catalogue in %s: %w", folder, err)
	}
	return c, l, err
}

// opened are files to be closed.
type opened []io.Closer

func (o *opened) close() error {
	var errs []error
	for _, c := range *o {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// need opens a file that must be there.
func (o *opened) need(folder string, names []string) (io.Reader, error) {
	r, err := o.find(folder, names)
	if err == nil && r == nil {
		err = fmt.Errorf("no %s (or .gz) in %s: name the folder of the shop's files", strings.Join(names, ", "), folder)
	}
	return r, err
}

// find opens the first file of a name that is there, packed or not; nil if none is.
func (o *opened) find(folder string, names []string) (io.Reader, error) {
	for _, name := range names {
		for _, suffix := range []string{"", ".gz"} {
			f, err := os.Open(filepath.Join(folder, name+suffix))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			*o = append(*o, f)
			if suffix == "" {
				return f, nil
			}
			z, err := gzip.NewReader(f)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name(), err)
			}
			return z, nil
		}
	}
	return nil, nil
}
