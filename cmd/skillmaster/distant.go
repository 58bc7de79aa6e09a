package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"skillmaster/chat"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/policy/remote"
	"skillmaster/policy/tinker"
	"skillmaster/store"
)

// distantConfig names a model that is trained on a server which speaks the Tinker API. The tokenizer is that of
// model.pretrained, a folder that need not hold weights, or the run's own; model.context and model.adapter.rank count.
type distantConfig struct {
	URL     string `json:"url"`      // empty: weights are trained here
	Model   string `json:"model"`    // as the server lists it
	Dialect string `json:"dialect"`  // what kind of server it is
	Key     string `json:"key"`      // name of the environment variable that holds its key; empty: it wants none
	KeyFile string `json:"key_file"` // file that holds it, in its place
	OnePass bool   `json:"one_pass"` // the server's own ppo, without a forward pass before each update
}

func (c distantConfig) validate(all runConfig) error {
	switch {
	case c == (distantConfig{}):
		return nil
	case c.URL == "" || c.Model == "" || c.Dialect == "":
		return errors.New("training on a server needs tinker.url, tinker.model and tinker.dialect")
	case !slices.Contains(tinker.Dialects(), c.Dialect):
		return fmt.Errorf("tinker.dialect is %q: it is one of %s", c.Dialect, strings.Join(tinker.Dialects(), ", "))
	case c.Key != "" && c.KeyFile != "":
		return errors.New("tinker.key and tinker.key_file: give one of them")
	case all.Server.URL != "":
		return errors.New("server.url and tinker.url: a policy either stays as it is or is trained")
	case all.Model.AdapterFrom != "":
		return errors.New("model.adapter_from is an adapter that lies here: with tinker.url the server has the weights")
	}
	return nil
}

// secret is where a key is found; nil: there is none.
func secret(env, file string) remote.Key {
	switch {
	case env != "":
		return remote.EnvKey(env)
	case file != "":
		return remote.FileKey(file)
	default:
		return nil
	}
}

// openDistant makes the parts of a run whose weights are on a server.
func openDistant(ctx context.Context, run *store.Run, cfg runConfig, w world, notice func(text string)) (*engine, error) {
	tok, err := tokenizer(ctx, run, cfg, w)
	if err != nil {
		return nil, err
	}
	e := &engine{tokenizer: tok, template: chat.Plain()}
	if cfg.Model.Pretrained != "" {
		if e.template, err = pretrainedTemplate(cfg.Model.Pretrained, tok); err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.Model.Pretrained, err)
		}
	}
	c := cfg.Tinker
	client, err := tinker.New(tinker.Options{URL: c.URL, Dialect: tinker.Dialect(c.Dialect), Key: secret(c.Key, c.KeyFile), Notice: notice})
	if err != nil {
		return nil, fmt.Errorf("tinker: %w", err)
	}
	o := tinker.LearnerOptions{
		Base: c.Model, Rank: cfg.Model.Adapter.Rank, Seed: uint64(episode.Seed(cfg.Train.Seed).Derive("adapter")), Context: cfg.Model.Context, OnePass: c.OnePass,
	}
	e.again = func(ctx context.Context) (policy.Learner, error) {
		l, err := client.NewLearner(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("tinker: %w", err)
		}
		o.Unchecked = true
		return l, nil
	}
	l, err := e.again(ctx)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	mine := l.(*tinker.Learner)
	e.distant = mine
	e.shut = func() error { return errors.Join(mine.Close(context.WithoutCancel(ctx)), client.Close()) }
	return e, nil
}

// notices prints what servers do wrong, a line each.
func notices(to io.Writer) func(text string) {
	var mu sync.Mutex
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(to, "\nwarning: %s\n", text)
	}
}
