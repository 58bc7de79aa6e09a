package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skillmaster/policy"
	"skillmaster/policy/openai"
	"skillmaster/skill"
)

// serverConfig names a model on an inference server of others.
type serverConfig struct {
	URL     string `json:"url"` // empty: none
	Model   string `json:"model"`
	Dialect string `json:"dialect"`  // what kind of server it is
	Key     string `json:"key"`      // name of the environment variable that holds its key; empty: it wants none
	KeyFile string `json:"key_file"` // file that holds it, in its place
	// Budget is the most that one start of the program spends there.
	Budget openai.Budget `json:"budget"`
}

func (c serverConfig) validate(name string) error {
	switch {
	case c == (serverConfig{Dialect: c.Dialect}):
		return nil
	case c.URL == "" || c.Model == "":
		return fmt.Errorf("%s needs %s.url and %s.model", name, name, name)
	case !slices.Contains(openai.Dialects(), c.Dialect):
		return fmt.Errorf("%s.dialect is %q: it is one of %s", name, c.Dialect, strings.Join(openai.Dialects(), ", "))
	case c.Key != "" && c.KeyFile != "":
		return fmt.Errorf("%s.key and %s.key_file: give one of them", name, name)
	}
	if err := c.Budget.Validate(); err != nil {
		return fmt.Errorf("%s.budget: %w", name, err)
	}
	return nil
}

// client returns a client of the server.
func (c serverConfig) client(parallel int, notice func(text string)) (*openai.Client, error) {
	o := openai.Options{
		URL: c.URL, Model: c.Model, Dialect: openai.Dialect(c.Dialect), Key: secret(c.Key, c.KeyFile), Budget: c.Budget,
		Limits: openai.Limits{Parallel: parallel}, Notice: notice,
	}
	client, err := openai.New(o)
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", c.Model, err)
	}
	return client, nil
}

// vectors returns the ranking by embedding, nil where skills are retrieved otherwise.
func (c runConfig) vectors() (*skill.Vectors, error) {
	if c.Train.Rollout.RetrieveBy != skill.Embedded {
		return nil, nil
	}
	client, err := c.Embeddings.client(0, nil)
	if err != nil {
		return nil, err
	}
	return skill.NewVectors(client), nil
}

// open returns the server's policy, after a first reply has come. parallel is the most requests at a time; 0: as usual.
func (c serverConfig) open(ctx context.Context, parallel int, notice func(text string)) (policy.Policy, error) {
	client, err := c.client(parallel, notice)
	if err != nil {
		return nil, err
	}
	p := client.Policy(0)
	if err := p.Check(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// validateServers reports servers that cannot be, or whose use the other settings leave no room for.
func (c runConfig) validateServers() error {
	if err := errors.Join(c.Server.validate("server"), c.Teacher.validate("teacher"), c.Embeddings.validate("embeddings"), c.Tinker.validate(c)); err != nil {
		return err
	}
	switch t := c.Train; {
	case (t.Rollout.RetrieveBy == skill.Embedded) != (c.Embeddings.URL != ""):
		return errors.New("retrieval by embedding needs both train.rollout.retrieve_by=embedding and embeddings.url")
	case c.Server.URL != "" && (!t.Frozen || t.Warm.Updates > 0):
		return errors.New("with server.url the policy cannot learn: set train.frozen=true and train.warm.updates=0 (--preset server does)")
	case c.Server.URL != "" && (c.WarmFrom != "" || c.Model.Pretrained != ""):
		return errors.New("with server.url there is no model of ours: leave out --warm-from and model.pretrained")
	case (c.Teacher.URL == "") != (t.Teacher.Every == 0):
		return errors.New("a teacher needs both teacher.url and train.teacher.every (--ablation teacher sets the latter)")
	}
	return nil
}
