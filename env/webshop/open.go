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
	folder := folderOf(dir)
	s, err := findSource(folder, size)
	if err != nil {
		return nil, l, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if o.Cache != "" {
		return s.openCached(ctx, o)
	}
	if c, l, err = Read(ctx, s.files(&o), o); err != nil {
		err = fmt.Errorf("catalogue in %s: %w", folder, err)
	}
	return c, l, err
}

// Paths are where the files of a catalogue lie in a folder or in webshop/ under it, in the order of FileNames; "" for one that
// may be missing and is.
func Paths(dir string, size Size) (paths [4]string, err error) {
	s, err := findSource(folderOf(dir), size)
	if err != nil {
		return paths, err
	}
	for i, f := range s.parts {
		if f != nil {
			paths[i] = f.Name()
		}
	}
	return paths, s.close()
}

// folderOf is webshop/ under a folder if it is there, else the folder.
func folderOf(dir string) string {
	folder := filepath.Join(dir, "webshop")
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return dir
	}
	return folder
}

// source is a catalogue's files: products, attributes, human instructions and nouns. The last two may be missing.
type source struct {
	folder string
	parts  [4]*sourceFile
}

// sourceFile is an open file. It counts what is read of it.
type sourceFile struct {
	*os.File
	info fs.FileInfo
	read int64
	text io.Reader // unpacked
}

func (f *sourceFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	f.read += int64(n)
	return n, err
}

func findSource(folder string, size Size) (_ *source, err error) {
	names, ok := fileNames[size]
	if !ok {
		return nil, fmt.Errorf("there is no catalogue of %v", size)
	}
	s := &source{folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	for i, candidates := range [4][]string{names[0], names[1], names[2], {nounsFile}} {
		if s.parts[i], err = openFirst(folder, candidates); err != nil {
			return nil, err
		}
		if s.parts[i] == nil && i < 2 {
			return nil, fmt.Errorf("no %s (or .gz) in %s: name the folder of the shop's files, or take the generated shop (shop), which needs none", strings.Join(candidates, ", "), folder)
		}
	}
	return s, nil
}

// openFirst opens the first file of a name that is there, packed or not; nil if none is.
func openFirst(folder string, names []string) (*sourceFile, error) {
	for _, name := range names {
		for _, suffix := range []string{"", ".gz"} {
			file, err := os.Open(filepath.Join(folder, name+suffix))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			f := &sourceFile{File: file}
			f.text = f
			if f.info, err = file.Stat(); err == nil && suffix != "" {
				f.text, err = gzip.NewReader(f)
			}
			if err != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", file.Name(), err), file.Close())
			}
			return f, nil
		}
	}
	return nil, nil
}

// files are the texts to read. Progress is told how much of the products' file was read.
func (s *source) files(o *LoadOptions) Files {
	products := s.parts[0]
	if tell := o.Progress; tell != nil {
		o.Progress = func(p Progress) {
			p.Read, p.Size = products.read, products.info.Size()
			tell(p)
		}
	}
	f := Files{Products: products.text, Attributes: s.parts[1].text}
	if h := s.parts[2]; h != nil {
		f.Human = h.text
	}
	if n := s.parts[3]; n != nil {
		f.Nouns = n.text
	}
	return f
}

func (s *source) close() error {
	var errs []error
	for _, f := range s.parts {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
