package alfworld

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// officialFolder is where the official layout keeps its splits.
const officialFolder = "json_2.1.1"

// releasedSplits are the folders by which a tree without officialFolder is known, if they hold trials.
var releasedSplits = []string{"train", "valid_seen", "valid_train", "valid_unseen"}

// largestFile is how much of a game file or traj_data.json is read, bytes; the largest released one has about 130 kB.
// What an archive says of its sizes is not believed.
const largestFile = 16 << 20

// Layer is a tree of files in the official layout, or a part of one: the release's archives hold different files of the
// same trials. The owner of FS closes it.
type Layer struct {
	Name string // for errors: a folder or an archive
	FS   fs.FS
}

func (l Layer) path(name string) string { return l.Name + "/" + name }

// layers are trees that lie over each other: the first that has a file is asked for it.
type layers []Layer

// roots narrows each layer to the folder that holds its splits.
func (ls layers) roots() (layers, error) {
	out := make(layers, len(ls))
	for i, l := range ls {
		dir, err := l.root()
		if err != nil {
			return nil, err
		}
		sub, err := fs.Sub(l.FS, dir)
		if err != nil {
			return nil, fmt.Errorf("look for games in %s: %w", l.Name, bare(err))
		}
		out[i] = Layer{Name: strings.TrimSuffix(l.path(dir), "/."), FS: sub}
	}
	return out, nil
}

// root finds the folder of splits: officialFolder, else one that is named alike, else the tree itself if it holds a
// released split; if there is none, the same one folder down.
func (l Layer) root() (string, error) {
	top, err := l.folders(".")
	if err != nil {
		return "", fmt.Errorf("look for games in %s: %w", l.Name, bare(err))
	}
	for _, dir := range append([]string{"."}, top...) {
		inside := top
		if dir != "." {
			if inside, err = l.folders(dir); err != nil {
				continue // one that may not be read is not the one
			}
		}
		alike := slices.DeleteFunc(slices.Clone(inside), func(name string) bool { return !strings.HasPrefix(name, "json_") })
		switch {
		case slices.Contains(inside, officialFolder):
			return path.Join(dir, officialFolder), nil
		case len(alike) == 1:
			return path.Join(dir, alike[0]), nil
		case slices.ContainsFunc(releasedSplits, func(split string) bool { return l.hasTrials(path.Join(dir, split)) }):
			return dir, nil
		}
	}
	return "", l.nothing()
}

// hasTrials tells whether a folder is a split: many folders are called train.
func (l Layer) hasTrials(split string) bool {
	tasks, err := l.folders(split)
	const few = 20
	return err == nil && slices.ContainsFunc(tasks[:min(few, len(tasks))], func(task string) bool {
		trials, err := l.folders(path.Join(split, task))
		if err != nil || len(trials) == 0 {
			return false
		}
		files, err := fs.ReadDir(l.FS, path.Join(split, task, trials[0]))
		return err == nil && slices.ContainsFunc(files, func(f fs.DirEntry) bool { return f.Name() == gameFileName || f.Name() == trialFileName })
	})
}

// nothing says what was looked for and what is there instead.
func (l Layer) nothing() error {
	entries, err := fs.ReadDir(l.FS, ".")
	if err != nil {
		return fmt.Errorf("look for games in %s: %w", l.Name, bare(err))
	}
	var names []string
	hint := "give the folder that alfworld-download filled, or skillmaster data get alfworld --to DIR fetches the games"
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasSuffix(name, ".zip"):
			hint = fmt.Sprintf("skillmaster data import %s --to DIR reads an archive", l.path(name))
		case e.IsDir() && namesTask(name):
			hint = "this looks like the folder of one split: give the one above it"
		}
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	there := "it is empty"
	const most = 6
	if n := len(names); n > most {
		there = fmt.Sprintf("there are %s and %d more", strings.Join(names[:most], ", "), n-most)
	} else if n > 0 {
		there = "there are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("no household games in %s: want <split>%s there or under alfworld/, or %s/<split>/<task>/<trial>/%s; %s (%s)",
		l.Name, packedSuffix, officialFolder, gameFileName, there, hint)
}

// namesTask tells whether a folder is named like one of a task.
func namesTask(name string) bool {
	return slices.ContainsFunc(familyNames[1:], func(family string) bool { return strings.HasPrefix(name, family+"-") })
}

// folders lists the folders in one, sorted, but for those that systems leave behind.
func (l Layer) folders(dir string) (names []string, err error) {
	entries, err := fs.ReadDir(l.FS, dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' && e.Name() != "__MACOSX" {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// folders lists the folders in one in any layer, sorted.
func (ls layers) folders(dir string) (names []string, err error) {
	there := false
	for _, l := range ls {
		more, err := l.folders(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		there, names = true, append(names, more...)
	}
	if !there {
		return nil, fmt.Errorf("%s in %s: %w", dir, ls[0].Name, fs.ErrNotExist)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// read reads a file from the first layer that has it, and names that; fs.ErrNotExist if none has.
func (ls layers) read(name string) (text []byte, file string, err error) {
	for _, l := range ls {
		text, err := l.read(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return text, l.path(name), bare(err)
		}
	}
	return nil, ls[0].path(name), fs.ErrNotExist
}

// bare takes the path out of an error that is said with a fuller one.
func bare(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

func (l Layer) read(name string) ([]byte, error) {
	f, err := l.FS.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := 0
	if info, err := f.Stat(); err == nil {
		size = int(min(info.Size(), largestFile))
	}
	b := make([]byte, 0, size+512)
	for r := io.LimitReader(f, largestFile+1); ; {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > largestFile:
			return nil, fmt.Errorf("it has more than %d MB", largestFile>>20)
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return nil, err
		}
		b = slices.Grow(b, 512)
	}
}
