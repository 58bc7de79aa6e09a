package alfworld

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// record is one line of a packed file. task_type, pddl_params and the split in the id say again what the problem says;
// the problem is believed.
type record struct {
	ID          string   `json:"id"`
	TaskType    string   `json:"task_type"`
	Task        string   `json:"task"`
	Params      params   `json:"pddl_params"`
	FloorPlan   string   `json:"floor_plan"`
	Annotations []string `json:"annotations"`
	Problem     string   `json:"pddl_problem"`
	Walkthrough []string `json:"walkthrough,omitempty"`
	Wording     string   `json:"wording,omitempty"` // "put", or "" for "move"
}

// params are the pddl_params of the official files.
type params struct {
	Movable string `json:"mrecep_target"`
	Sliced  bool   `json:"object_sliced"`
	Object  string `json:"object_target"`
	Parent  string `json:"parent_target"`
	Toggle  string `json:"toggle_target"`
}

func (g *Game) params() params {
	p := params{Object: g.Goal.Object}
	if g.Goal.Family == LookInLight {
		p.Toggle = g.Goal.Target
	} else {
		p.Parent = g.Goal.Target
	}
	return p
}

// Limits of a packed file. The longest released game has 110 kB, the largest split 3,553 games. Reading holds a few lines
// for each processor.
const (
	longestLine = 16 << 20 // bytes
	mostLines   = 1 << 20
	mostBroken  = 1000 // then reading stops: this is no file of games
)

func readPackedFile(ctx context.Context, path string, w watch) (found, error) {
	f, err := os.Open(path)
	if err != nil {
		return found{}, err
	}
	defer f.Close()
	got, err := readPacked(ctx, f, w)
	for i, e := range got.broken {
		got.broken[i] = fmt.Errorf("%s: %w", path, e)
	}
	return got, err
}

// readPacked reads a whole packed file; games of task types that are not played are skipped. The error is the context's.
func readPacked(ctx context.Context, r io.Reader, w watch) (found, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return found{broken: []error{fmt.Errorf("unpack: %w (is the file complete?)", err)}}, nil
	}
	lines := make(chan packedLine, 2*runtime.GOMAXPROCS(0))
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	count := counter{watch: w}
	var broken atomic.Int64
	var mu sync.Mutex
	var all []outcome
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for l := range lines {
				o := readLine(l)
				buffers.Put(&l.text)
				if o.err != nil {
					broken.Add(1)
				}
				mu.Lock()
				for len(all) <= l.number {
					all = append(all, outcome{})
				}
				all[l.number] = o
				mu.Unlock()
				count.add()
			}
		})
	}
	err = splitLines(ctx, z, lines, &buffers, &broken)
	close(lines)
	wait.Wait()
	got := gather(all)
	if err != nil {
		got.broken = append(got.broken, err)
	}
	return got, ctx.Err()
}

// packedWording is what the first game of a packed file speaks; Move if it cannot be read, which reading the split will
// say.
func packedWording(path string) Wording {
	f, err := os.Open(path)
	if err != nil {
		return Move
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return Move
	}
	line, err := bufio.NewReader(io.LimitReader(z, longestLine)).ReadBytes('\n')
	var r record
	if err != nil || r.read(line) != nil {
		return Move
	}
	w, err := r.wording()
	if err != nil {
		return Move
	}
	return w
}

// packedLine is a line and its number, from 0.
type packedLine struct {
	number int
	text   []byte
}

func splitLines(ctx context.Context, r io.Reader, lines chan<- packedLine, buffers *sync.Pool, broken *atomic.Int64) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 1<<18), longestLine)
	n := 0
	for ; ctx.Err() == nil && s.Scan(); n++ {
		if n == mostLines || broken.Load() >= mostBroken {
			return fmt.Errorf("line %d: reading stops after %d lines, %d of them broken (is this a file of games?)", n+1, n, broken.Load())
		}
		b := *buffers.Get().(*[]byte)
		lines <- packedLine{n, append(b[:0], s.Bytes()...)}
	}
	switch err := s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d: it has more than %d MB: no game is as long", n+1, longestLine>>20)
	case err != nil:
		return fmt.Errorf("line %d: %w (is the file complete?)", n+1, err)
	case n == 0 && ctx.Err() == nil:
		return errors.New("there is no game in it")
	default:
		return nil
	}
}

func readLine(l packedLine) outcome {
	var r record
	if err := r.read(l.text); err != nil {
		return outcome{err: fmt.Errorf("line %d: %w", l.number+1, err)}
	}
	g, err := r.game()
	o := judge(r.ID, g, err)
	if o.err != nil {
		o.err = fmt.Errorf("line %d: %w", l.number+1, o.err)
	}
	return o
}

func (r *record) read(line []byte) error {
	if err := checkUTF8(line); err != nil {
		return err
	}
	return decodeAround(line, map[string]*string{"pddl_problem": &r.Problem}, r.decode)
}

// decode is strict: a field that is not known is an error, as is anything behind the object.
func (r *record) decode(line []byte) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return err
	}
	if rest := bytes.TrimSpace(line[d.InputOffset():]); len(rest) > 0 {
		return errors.New("more than one game on it")
	}
	return nil
}

func (r *record) game() (*Game, error) {
	if r.ID == "" || r.Task == "" {
		return nil, errors.New("a game without id or task")
	}
	s, err := ReadProblem(r.Problem)
	if err != nil {
		return nil, fmt.Errorf("game %s: %w", r.ID, err)
	}
	s.ID, s.Task, s.Walkthrough, s.Scene, s.Annotations = r.ID, r.Task, r.Walkthrough, r.FloorPlan, r.Annotations
	if s.Wording, err = r.wording(); err != nil {
		return nil, fmt.Errorf("game %s: %w", r.ID, err)
	}
	return NewGame(s)
}

func (r *record) wording() (Wording, error) {
	switch r.Wording {
	case "", Move.String():
		return Move, nil
	case Put.String():
		return Put, nil
	default:
		return 0, fmt.Errorf("no such wording: %q", r.Wording)
	}
}

// Pack writes games as a packed file, in the order given, the same bytes for the same games.
func Pack(w io.Writer, games []*Game) error {
	z := gzip.NewWriter(w)
	e := json.NewEncoder(z)
	e.SetEscapeHTML(false)
	for _, g := range games {
		r := record{
			ID: g.ID, TaskType: g.Family().String(), Task: g.Task, Params: g.params(), FloorPlan: g.Scene,
			Annotations: g.Annotations, Problem: g.Problem(), Walkthrough: g.Walkthrough,
		}
		if g.Wording == Put {
			r.Wording = Put.String()
		}
		if err := e.Encode(r); err != nil {
			return fmt.Errorf("pack game %s: %w", g.ID, err)
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("pack games: %w", err)
	}
	return nil
}
