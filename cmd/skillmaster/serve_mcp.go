package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"skillmaster/mcp"
	"skillmaster/policy/remote"
	"skillmaster/store"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpFlags say which bank is served to other agents, and how.
type mcpFlags struct {
	MCP      string `name:"mcp" help:"Serve a bank to other agents over the Model Context Protocol: stdio, or http (path /mcp at --listen)." enum:",stdio,http" default:"" placeholder:"stdio|http"`
	File     string `help:"Bank file to serve in place of that of --run; then it can only be read." type:"existingfile" placeholder:"FILE"`
	ReadOnly bool   `help:"Take no proposals and no reports."`
}

// serveBank serves a bank until ctx ends, or the client goes.
func (c *serveCmd) serveBank(ctx context.Context, stdin io.ReadCloser, stdout io.WriteCloser, stderr io.Writer) error {
	source, quarantine, closeRun, err := c.bankServed(ctx)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server := mcp.New(version, source, quarantine, log)
	if c.MCP == "stdio" {
		err = server.Run(ctx, &sdk.IOTransport{Reader: stdin, Writer: stdout})
		if ctx.Err() != nil {
			err = nil // Ctrl-C is how it ends
		}
		return errors.Join(err, closeRun())
	}
	token, err := c.token()
	if err != nil {
		return errors.Join(usage(err), closeRun())
	}
	shown := "the token given"
	if token == "" { // whoever reaches this address could write
		token = rand.Text()
		shown = token
	}
	err = listenAnywhere(ctx, c.Listen, mcp.Handler(server, token, log), remote.Connections, func(at string) {
		fmt.Fprintf(stderr, "MCP server: http://%s/mcp\nheader: Authorization: Bearer %s\n", at, shown)
	})
	return errors.Join(err, closeRun())
}

// bankServed opens what is served. quarantine is nil if nothing may be written.
func (c *serveCmd) bankServed(ctx context.Context) (mcp.Source, mcp.Quarantine, func() error, error) {
	switch {
	case c.File != "" && len(c.Run) > 0 || c.File == "" && len(c.Run) != 1:
		return nil, nil, nil, usage(errors.New("--mcp serves one bank: give one --run DIR or --file FILE"))
	case c.File != "":
		b, err := readBank(c.File)
		return mcp.File{Content: b}, nil, func() error { return nil }, err
	}
	run, err := store.View(ctx, c.Run[0], time.Now)
	if err != nil {
		return nil, nil, nil, err
	}
	if c.ReadOnly {
		return run, nil, run.Close, nil
	}
	return run, run, run.Close, nil
}
