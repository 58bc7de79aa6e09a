package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"skillmaster/chat"
	"skillmaster/policy"
	"skillmaster/policy/openai"
	"skillmaster/policy/tinker"
	"skillmaster/policy/transformer"
	"skillmaster/store"
)

// offerFlags are those of serve where programs are to ask, not people.
type offerFlags struct {
	OpenAI     bool    `help:"Serve a policy to whatever speaks the OpenAI protocol." name:"openai" xor:"what"`
	Tinker     bool    `help:"Serve the engine to whatever speaks the Tinker API, to train and to sample." xor:"what"`
	Pretrained string  `help:"Directory of a pretrained model to serve. Default: the policy of --run." type:"existingdir" placeholder:"DIR"`
	Checkpoint string  `help:"Of --run: latest, best or warm." default:"latest" enum:"latest,best,warm"`
	Name       string  `help:"Name of the model. Default: that of its directory." placeholder:"NAME"`
	Context    int     `help:"Most ids of a sequence of a pretrained model. Default: as many as it was made for." default:"0"`
	Folder     string  `help:"Where --tinker keeps what clients save." default:"tinker" placeholder:"DIR"`
	Scale      float64 `help:"What an adapter's change is multiplied with, alpha in the paper, divided by the rank. SkyRL has 32." default:"32"`
	Workers    int     `help:"Cores to use. Default: all." default:"0"`
}

// source is a policy to be offered.
type source struct {
	name      string
	tokenizer *chat.Tokenizer
	template  chat.Template
	open      func(ctx context.Context) (*transformer.Model, error) // each time another
	learner   transformer.LearnerOptions
	config    transformer.Config
}

// source finds what is to be offered.
func (c *serveCmd) source(ctx context.Context, stderr io.Writer) (source, error) {
	workers := c.Workers
	if workers <= 0 {
		workers = runtime.NumCPU()
	}
	s := source{learner: transformer.LearnerOptions{Workers: workers, Sampler: transformer.SamplerOptions{Workers: workers}}}
	var err error
	switch {
	case c.Pretrained != "" && len(c.Run) == 0:
		err = s.pretrained(c.Pretrained, c.Context)
	case c.Pretrained == "" && len(c.Run) == 1:
		err = withRun(ctx, c.Run[0], func(run *store.Run) error { return s.run(ctx, run, c.Run[0], c.Checkpoint, stderr) })
	default:
		err = usage(errors.New("which policy is to be served? give one --run, or --pretrained"))
	}
	if err != nil {
		return s, err
	}
	if c.Name != "" {
		s.name = c.Name
	}
	m, err := s.open(ctx)
	if err != nil {
		return s, err
	}
	s.config = m.Config()
	return s, nil
}

func (s *source) pretrained(dir string, most int) (err error) {
	if s.tokenizer, err = readTokenizer(filepath.Join(dir, "tokenizer.json")); err != nil {
		return err
	}
	if s.template, err = pretrainedTemplate(dir, s.tokenizer); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	s.name = filepath.Base(filepath.Clean(dir))
	s.open = func(ctx context.Context) (*transformer.Model, error) {
		return readPretrained(ctx, dir, most, s.tokenizer)
	}
	return nil
}

func (s *source) run(ctx context.Context, run *store.Run, dir, which string, stderr io.Writer) error {
	m, err := run.Manifest(ctx)
	if err != nil {
		return err
	}
	var cfg runConfig
	if err := cfg.decode(m.Config); err != nil {
		return fmt.Errorf("settings of %s: %w", dir, err)
	}
	if cfg.Model.Adapter.Rank > 0 || cfg.Model.AdapterFrom != "" || cfg.Server.URL != "" || cfg.Tinker.URL != "" {
		return fmt.Errorf("%s: its policy is an adapter, or on a server: serve what skillmaster model export makes of it (--pretrained)", dir)
	}
	saved, err := checkpointOf(ctx, run, dir, which, stderr)
	if err != nil {
		return err
	}
	if s.tokenizer, err = tokenizer(ctx, run, cfg, world{}); err != nil {
		return err
	}
	s.template, s.name = chat.Plain(), filepath.Base(filepath.Clean(dir))
	s.learner.Precision = cfg.Model.Precision
	s.open = func(ctx context.Context) (*transformer.Model, error) {
		f, err := os.Open(saved.Path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return transformer.ReadModel(ctx, f)
	}
	return nil
}

// served is a handler that listens by itself.
type served interface {
	http.Handler
	Serve(ctx context.Context, l net.Listener, connections int) error
}

// offer serves a policy to programs until ctx ends.
func (c *serveCmd) offer(ctx context.Context, token string, stdout, stderr io.Writer) error {
	s, err := c.source(ctx, stderr)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	var h served
	if c.OpenAI {
		h, err = s.openai(ctx, token, log)
	} else {
		var v *tinker.Server
		if v, err = s.tinker(c.Folder, c.Scale, token, log); err == nil {
			defer v.Close()
		}
		h = v
	}
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("%w (another address: --listen HOST:PORT; port 0 takes a free one)", err)
	}
	if _, err := fmt.Fprintf(stdout, "model %s for programs: http://%s\n", s.name, l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	return h.Serve(ctx, l, 0)
}

func (s source) openai(ctx context.Context, token string, log *slog.Logger) (*openai.Handler, error) {
	m, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	o := s.learner.Sampler
	o.Precision = s.learner.Precision
	sampler := m.Sampler(o)
	return openai.NewHandler(openai.Served{
		Model: s.name, Sampler: sampler, Scorer: sampler, Tokenizer: s.tokenizer, Template: s.template,
		Vocab: s.config.Vocab, Context: s.config.Context, Token: token, Log: log,
	})
}

func (s source) tinker(folder string, scale float64, token string, log *slog.Logger) (*tinker.Server, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	return tinker.NewServer(tinker.Served{
		Model: s.name, Vocab: s.config.Vocab, Context: s.config.Context, Folder: folder, Token: token, Log: log, Now: time.Now,
		Open: func(ctx context.Context, rank int, seed uint64) (policy.Learner, error) {
			m, err := s.open(ctx)
			if err == nil && rank > 0 {
				err = m.Adapt(transformer.AdapterConfig{Rank: rank, Scale: scale / float64(rank)}, seed)
			}
			if err != nil {
				return nil, err
			}
			return transformer.NewLearner(m, s.learner), nil
		},
	})
}
