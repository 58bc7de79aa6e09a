package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"skillmaster/env/alfworld"
)

type dataImportCmd struct {
	From []string `arg:"" help:"Folders in the official layout, or zip archives of them; what one lacks is looked for in the next." placeholder:"PATH"`
	To   string   `help:"Folder to write to." required:"" placeholder:"DIR"`
	Env  string   `help:"World: alfworld or webshop." default:"alfworld" enum:"alfworld,webshop"`
	Full bool     `help:"The catalogue of 1.18 million products, not that of 1,000 (webshop)."`
}

// Help is shown under --help.
func (dataImportCmd) Help() string {
	return `Packs the games of ALFWorld, as alfworld-download leaves them ($ALFWORLD_DATA) or as the release's archives hold them: a
file for each split, with wording, people's sentences and walkthroughs, and the rule texts beside them. Nothing is
unpacked, nothing is overwritten, and nothing is written if a file is damaged. Games that are left out are counted with
the reason: tasks with movable receptacles or sliced objects, no game file, not solvable, other rules than the released.

With --env webshop: packs the files of the shop in one folder, if all of them can be read, and says what was left out.

Examples:
  skillmaster data import ~/.cache/alfworld --to games
  skillmaster data import json_2.1.3_tw-pddl.zip json_2.1.1_json.zip --to games
  skillmaster data import WebShop/data --env webshop --to shop`
}

func (c *dataImportCmd) Execute(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if c.Env == realShop {
		return c.importShop(ctx, stdout, stderr)
	}
	if c.Full {
		return usage(fmt.Errorf("--full is for --env %s", realShop))
	}
	if err := nothingIn(c.To); err != nil {
		return err
	}
	return importGames(ctx, c.From, c.To, stdout, stderr)
}

// nothingIn sees that a folder has no packed games, which would be overwritten or mixed with others.
func nothingIn(dir string) error {
	there, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err == nil && len(there) > 0 {
		err = fmt.Errorf("%s is there already: remove it, or choose another --to", there[0])
	}
	return err
}

// importGames packs the games of folders and archives that lie over each other.
func importGames(ctx context.Context, from []string, to string, stdout, stderr io.Writer) (err error) {
	layers, closers, err := openLayers(from)
	defer func() {
		for _, c := range closers {
			err = errors.Join(err, c.Close())
		}
	}()
	if err != nil {
		return err
	}
	suite, err := alfworld.OpenLayers(layers, alfworld.Options{})
	if err != nil {
		return err
	}
	rows, err := splitRows(ctx, suite, suite.Splits(), stderr)
	if err != nil {
		return err
	}
	if err := printFound(stdout, rows); err != nil {
		return err
	}
	if n := countBroken(rows); n > 0 {
		return fmt.Errorf("damaged files: %d; nothing is written (fetch or unpack them again, or remove their folders)", n)
	}
	rows = slices.DeleteFunc(rows, func(r splitRow) bool { return r.Games == 0 })
	if len(rows) == 0 {
		return errors.New("there is no game to pack (the game files are in the archive whose name ends in tw-pddl.zip)")
	}
	return packImported(ctx, suite, rows, to, stdout)
}

// openLayers opens folders and archives; the caller closes what is to be closed, also after an error.
func openLayers(paths []string) (layers []alfworld.Layer, closers []io.Closer, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, closers, err
		}
		l := alfworld.Layer{Name: path, FS: os.DirFS(path)}
		if !info.IsDir() {
			z, err := openZip(path)
			if err != nil {
				return nil, closers, err
			}
			l.FS, closers = z, append(closers, z)
		}
		layers = append(layers, l)
	}
	return layers, closers, nil
}

// openZip opens an archive, and shows what a file is that is none.
func openZip(path string) (*zip.ReadCloser, error) {
	z, err := zip.OpenReader(path)
	if !errors.Is(err, zip.ErrFormat) {
		return z, err
	}
	var start [40]byte
	n := 0
	if f, err := os.Open(path); err == nil {
		defer f.Close()
		n, _ = io.ReadFull(f, start[:]) // a short file is shown whole
	}
	return nil, fmt.Errorf("%s is not a whole zip archive (it starts with %q): remove it and fetch it again", path, start[:n])
}

// packImported writes splits beside their places and then puts them there, all or none; and the rule texts.
func packImported(ctx context.Context, suite *alfworld.Suite, rows []splitRow, to string, stdout io.Writer) (err error) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	beside, err := os.MkdirTemp(to, ".import-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(beside)) }()
	var names []string
	for _, r := range rows {
		var games []*alfworld.Game
		for _, t := range r.Tasks {
			g, err := suite.Game(t.ID)
			if errors.Is(err, alfworld.ErrGeneral) {
				continue // packed files have no room for the texts of its own; it is said below
			}
			if err != nil {
				return err
			}
			games = append(games, g)
		}
		if n := len(r.General); n > 0 {
			fmt.Fprintf(stdout, "%s: %d games with texts of their own are not packed: play them from where they are\n", r.Split, n)
			if len(games) == 0 {
				continue
			}
		}
		name := r.Split + ".jsonl.gz"
		if err := writeWhole(filepath.Join(beside, name), func(w io.Writer) error { return alfworld.Pack(stopping{ctx, w}, games) }); err != nil {
			return err
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return errors.New("there is no game that can be packed: all have rule texts of their own")
	}
	if texts, ok := suite.Texts(); ok {
		if err := writeTexts(filepath.Join(to, "logic"), texts); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(beside, name), filepath.Join(to, name)); err != nil {
			return err
		}
		fmt.Fprintln(stdout, filepath.Join(to, name))
	}
	return nil
}

// stopping is a writer that fails when its context ends.
type stopping struct {
	ctx context.Context
	w   io.Writer
}

func (s stopping) Write(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.w.Write(b)
}

// writeTexts writes the rule texts, unless some are there.
func writeTexts(dir string, t alfworld.Texts) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return alfworld.WriteTexts(dir, t)
}
