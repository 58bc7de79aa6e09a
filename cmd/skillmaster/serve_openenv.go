package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"skillmaster/env/openenv"
	"skillmaster/policy/remote"
	"skillmaster/web"
)

// openEnvFlags say which world is served, and to whom.
type openEnvFlags struct {
	OpenEnv  bool          `name:"openenv" help:"Serve a world to OpenEnv clients." xor:"what"`
	Env      string        `help:"World: household or shop (generated), alfworld or webshop (the real ones under --data), textworld (any game files)." default:"household" enum:"household,shop,alfworld,webshop,textworld"`
	Data     string        `help:"Folder of the real games." default:"${data}" placeholder:"DIR"`
	Set      []string      `help:"One setting of the world as train takes them, such as world.house=2. May be repeated." sep:"none" placeholder:"KEY=VALUE"`
	Sessions int           `help:"Most episodes at a time; who comes then is told that the server is full." default:"1024"`
	Idle     time.Duration `help:"After so long without a message a session is closed." default:"30m"`
}

// serve serves the world until ctx ends.
func (c *openEnvFlags) serve(ctx context.Context, address, token string, stdout, stderr io.Writer) error {
	h, err := c.handler(ctx, token, stderr)
	if err != nil {
		return err
	}
	// Others find room beside the sessions, and those that are one too many to be told so.
	err = listenAnywhere(ctx, address, h, max(c.Sessions, 0)+remote.Connections, func(at string) {
		fmt.Fprintf(stdout, "world %s for OpenEnv clients: ws://%s\n", c.Env, at)
	})
	return errors.Join(err, h.Close())
}

// token is what clients must show; "" if there is none and only this machine is served.
func (c *serveCmd) token() (string, error) {
	token := os.Getenv("SKILLMASTER_SERVE_TOKEN")
	if c.TokenFile != "" {
		b, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return "", err
		}
		if token = strings.TrimSpace(string(b)); token == "" {
			return "", fmt.Errorf("%s is empty: it should hold the token", c.TokenFile)
		}
	}
	if !web.Local(c.Listen) && token == "" {
		return "", fmt.Errorf("--listen %s would serve other machines: give a token (--token-file, or SKILLMASTER_SERVE_TOKEN)", c.Listen)
	}
	return token, nil
}

// handler opens the world.
func (c *openEnvFlags) handler(ctx context.Context, token string, stderr io.Writer) (*openenv.Handler, error) {
	cfg := runConfig{World: defaultWorld(c.Env)}
	for _, s := range c.Set {
		if err := cfg.set(s); err != nil {
			return nil, usage(err)
		}
	}
	if c.Env != textGames {
		if err := cfg.World.validate(); err != nil {
			return nil, usage(err)
		}
	}
	suite, err := openSuite(ctx, cfg.World, c.Data, stderr)
	if err != nil {
		return nil, err
	}
	splits := slices.Clone(suite.Splits())
	if i := slices.Index(splits, "train"); i > 0 { // what a reset plays that names no split
		splits = slices.Insert(slices.Delete(splits, i, i+1), 0, "train")
	}
	return openenv.NewHandler(openenv.Served{
		Suite: suite, Splits: splits, Name: c.Env, Version: version, Token: token, Sessions: c.Sessions, Idle: c.Idle,
		Log: slog.New(slog.NewTextHandler(stderr, nil)),
	})
}
