package tinker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
)

// Where things are kept: tinker://MODEL/weights/NAME and tinker://MODEL/sampler_weights/NAME.
const (
	weightsKind = "weights"
	samplerKind = "sampler_weights"
)

var (
	nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	pathForm = regexp.MustCompile(`^tinker://(session-[a-z0-9]{20,40}:train:[0-9]{1,10})/(weights|sampler_weights)/([A-Za-z0-9_-]{1,128})$`)
)

// place is where something that was saved lies.
type place struct{ model, kind, name string }

func (p place) String() string { return "tinker://" + p.model + "/" + p.kind + "/" + p.name }

func (p place) file() string { return path.Join(p.folder(), p.name) }

func (p place) folder() string { return path.Join(p.top(), p.kind) }

// top is the model's folder; a colon is no part of a name everywhere.
func (p place) top() string { return strings.ReplaceAll(p.model, ":", "_") }

func readPlace(text string) (place, error) {
	m := pathForm.FindStringSubmatch(text)
	if m == nil {
		return place{}, wrong("the path is none of tinker://MODEL/weights/NAME")
	}
	return place{m[1], m[2], m[3]}, nil
}

// about is what is kept beside weights.
type about struct {
	Base string `json:"base_model"`
	Rank int    `json:"rank"`
}

// save writes a model's state beside, and renames it.
func (v *Server) save(ctx context.Context, m *trained, p place, overwrite bool) error {
	if err := m.ready(); err != nil {
		return err
	}
	if _, err := v.root.Stat(p.file()); err == nil && !overwrite {
		return refused{http.StatusConflict, fmt.Sprintf("%s exists already", p)}
	}
	for _, dir := range []string{p.top(), p.folder()} {
		if err := v.root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	note, err := json.Marshal(about{v.served.Model, m.rank})
	if err != nil {
		return err
	}
	err = v.write(p.file()+".json", func(w io.Writer) error {
		_, err := w.Write(note)
		return err
	})
	if err != nil {
		return err
	}
	return v.write(p.file(), func(w io.Writer) error { return m.learner.Save(ctx, w) })
}

func (v *Server) write(name string, fill func(io.Writer) error) (err error) {
	beside := name + ".part"
	f, err := v.root.Create(beside)
	if err != nil {
		return err
	}
	err = errors.Join(fill(f), f.Sync(), f.Close())
	if err != nil {
		return errors.Join(err, v.root.Remove(beside))
	}
	return v.root.Rename(beside, name)
}

// note reads what is kept beside weights.
func (v *Server) note(p place) (a about, err error) {
	data, err := v.root.ReadFile(p.file() + ".json")
	if errors.Is(err, os.ErrNotExist) {
		return a, refused{http.StatusNotFound, fmt.Sprintf("nothing is kept under %s", p)}
	}
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	if err == nil && a.Base != v.served.Model {
		err = refused{http.StatusNotFound, fmt.Sprintf("%s is of model %q, here is %q", p, a.Base, v.served.Model)}
	}
	return a, err
}

func (v *Server) saveWeights(_ *http.Request, q saveWeights) (any, error) {
	m, err := v.model(q.Model)
	if err != nil {
		return nil, err
	}
	if q.Path == "" {
		q.Path = fmt.Sprintf("seq-%d", q.Seq)
	}
	if !nameForm.MatchString(q.Path) {
		return nil, wrong("the name of a checkpoint has letters, digits, - and _ only")
	}
	p := place{m.id, weightsKind, q.Path}
	return v.queue(m, q.Seq, q, func(ctx context.Context) (any, func() []byte, error) {
		return savedWeights{Path: p.String(), Type: "save_weights"}, nil, v.save(ctx, m, p, q.Overwrite)
	})
}

// saveForSampler keeps the weights for good, under a name, or for a sampler of this session.
func (v *Server) saveForSampler(_ *http.Request, q saveWeights) (any, error) {
	m, err := v.model(q.Model)
	if err != nil {
		return nil, err
	}
	switch {
	case q.Kind != "" && q.Kind != "snapshot":
		return nil, wrong("samplers whose weights change under them are not offered here")
	case (q.Path == "") == (q.Session == nil):
		return nil, wrong("give either a path or sampling_session_seq_id")
	case q.Path != "" && !nameForm.MatchString(q.Path):
		return nil, wrong("the name of a checkpoint has letters, digits, - and _ only")
	}
	return v.queue(m, q.Seq, q, func(ctx context.Context) (any, func() []byte, error) {
		if q.Path != "" {
			p := place{m.id, samplerKind, q.Path}
			return savedWeights{Path: p.String(), Type: "save_weights_for_sampler"}, nil, v.save(ctx, m, p, q.Overwrite)
		}
		s, err := m.now(ctx)
		if err != nil {
			return nil, nil, err
		}
		id, err := v.offer(&offered{session: m.session, sampler: s})
		return savedWeights{Session: id, Type: "save_weights_for_sampler"}, nil, err
	})
}

// loadWeights puts what was saved into a model, or makes a model of it.
func (v *Server) loadWeights(_ *http.Request, q loadWeights) (any, error) {
	p, err := readPlace(q.Path)
	if err != nil {
		return nil, err
	}
	a, err := v.note(p)
	if err != nil {
		return nil, err
	}
	made := q.Model == ""
	var m *trained
	if made {
		if q.Number == nil {
			return nil, wrong("give model_seq_id")
		}
		m, err = v.add(q.Session, *q.Number, a.Rank)
	} else {
		m, err = v.model(q.Model)
	}
	switch {
	case err != nil:
		return nil, err
	case p.kind != weightsKind:
		return nil, wrong("%s is for sampling: load what save_weights kept", p)
	case m.rank != a.Rank:
		return nil, wrong("%s has rank %d, the model %d", p, a.Rank, m.rank)
	}
	return v.queue(m, q.Seq, q, func(ctx context.Context) (any, func() []byte, error) {
		return loadedWeights{p.String(), m.id, "load_weights"}, nil, v.load(ctx, m, p, q.Moments)
	})
}

func (v *Server) load(ctx context.Context, m *trained, p place, moments bool) error {
	if m.learner == nil {
		l, err := v.served.Open(ctx, m.rank, 0)
		if err != nil {
			return err
		}
		m.learner = l
	}
	f, err := v.root.Open(p.file())
	if err != nil {
		return err
	}
	defer f.Close()
	if err := m.learner.Load(ctx, f); err != nil {
		return err
	}
	m.changed()
	m.pending, m.forget = nil, !moments
	return nil
}

type whatPath struct {
	Path string `json:"tinker_path"`
}

func (v *Server) weightsInfo(_ *http.Request, q whatPath) (any, error) {
	p, err := readPlace(q.Path)
	if err != nil {
		return nil, err
	}
	a, err := v.note(p)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"base_model": a.Base, "is_lora": a.Rank > 0, "lora_rank": a.Rank, "train_unembed": false, "train_mlp": true, "train_attn": true,
	}, nil
}
