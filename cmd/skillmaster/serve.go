package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"skillmaster/policy/remote"
	"skillmaster/web"
)

// serveCmd serves what others look at, or what their programs ask.
type serveCmd struct {
	Run       []string `help:"Run directory. May be repeated." type:"existingdir" placeholder:"DIR"`
	Runs      string   `help:"Folder whose run directories are shown too, new ones as they appear." default:"runs" placeholder:"DIR"`
	Listen    string   `help:"Address of this machine to listen at." default:"${listen}" placeholder:"HOST:PORT"`
	TokenFile string   `help:"File with the token that clients of --openenv, --openai, --tinker and --mcp http must show, if not the environment variable SKILLMASTER_SERVE_TOKEN holds it." type:"existingfile" placeholder:"FILE"`

	openEnvFlags `group:"A world for others"`

	offerFlags `group:"A policy for programs"`

	mcpFlags `group:"Skills for other agents"`
}

// Help is shown under --help.
func (serveCmd) Help() string {
	return `Shows runs in the browser: curves, trajectories with their advantages, the bank and its history, edits with their
probes, evaluations, and what needs attention. Pages follow a run while it trains. They only read, load nothing from other
machines, and answer only to this one; from elsewhere, go through SSH:

  ssh -L 8384:127.0.0.1:8384 MACHINE

Prometheus finds the newest numbers of every run under /metrics.

Examples:
  skillmaster serve
  skillmaster serve --run runs/first --run /elsewhere/second
  skillmaster train --serve 127.0.0.1:8384

With --openenv a world is served in place of runs, to any OpenEnv client. Programs on this machine need no token; --listen
0.0.0.0:8384 takes everybody who shows it, as a bearer, or as the password of the address (ws://any:TOKEN@host:8384). There is
no TLS: put a proxy before it for that.

  skillmaster serve --openenv --env alfworld --data ../shared/data
  skillmaster play --env openenv:ws://127.0.0.1:8384

With --openai or --tinker, programs are served instead: a policy over the OpenAI protocol, or the engine over the Tinker
API, in which the Python SDK of that name and skillmaster train (tinker.url) can train. Tokens are as with --openenv, shown as
a bearer (--openai) or as X-API-Key (--tinker):

  skillmaster serve --openai --run runs/first --listen 127.0.0.1:8000
  skillmaster serve --tinker --pretrained DIR --listen 127.0.0.1:8000
  skillmaster serve --tinker --run runs/first --listen 0.0.0.0:8000 --token-file FILE

With --mcp the bank of a run is served in place of pages: other agents search and read its skills, propose edits into a
quarantine that nothing of the run sees before they are judged, and report what they used. Over HTTP they show a token:
SKILLMASTER_SERVE_TOKEN, or one that is made and printed.

  skillmaster serve --mcp stdio --run runs/first
  skillmaster serve --mcp http --run runs/first --listen 127.0.0.1:8385
  claude mcp add skills -- skillmaster serve --mcp stdio --run runs/first`
}

// listenAt is where the dashboard listens if nothing else is said.
const listenAt = "127.0.0.1:8384"

func (c *serveCmd) Execute(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	if c.MCP != "" {
		return c.serveBank(ctx, io.NopCloser(stdin), nopCloser{stdout}, stderr)
	}
	if c.OpenEnv || c.OpenAI || c.Tinker {
		token, err := c.token()
		switch {
		case err != nil:
			return usage(err)
		case c.OpenEnv:
			return c.serve(ctx, c.Listen, token, stdout, stderr)
		default:
			return c.offer(ctx, token, stdout, stderr)
		}
	}
	dashboard := web.New(c.Run, []string{c.Runs}, time.Now, slog.New(slog.NewTextHandler(stderr, nil)))
	defer dashboard.Close()
	var reading sync.WaitGroup
	defer reading.Wait()
	return listen(ctx, c.Listen, dashboard.Handler(), func(address string) {
		fmt.Fprintf(stderr, "http://%s shows the runs; Ctrl-C ends it\n", address)
		reading.Go(func() { dashboard.Preload(ctx) })
	})
}

// nopCloser is a writer that stays open.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// listen serves until ctx ends; ready is told the address. Only addresses of this machine are listened at: what is
// served is not meant for others.
func listen(ctx context.Context, address string, h http.Handler, ready func(address string)) error {
	if !web.Local(address) {
		return usage(fmt.Errorf("%s is not an address of this machine alone, such as %s: to look from elsewhere, go through SSH (ssh -L)", address, listenAt))
	}
	return listenAnywhere(ctx, address, h, remote.Connections, ready)
}

// listenAnywhere is listen for what asks itself who may have it, and says how many connections it wants at a time.
func listenAnywhere(ctx context.Context, address string, h http.Handler, connections int, ready func(address string)) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%w (another address: --listen HOST:PORT; port 0 takes a free one)", err)
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 16,
		BaseContext: func(net.Listener) context.Context { return base },
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		cancel() // ends event streams
		end, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer done()
		if err := server.Shutdown(end); !errors.Is(err, context.DeadlineExceeded) {
			stopped <- err
			return
		}
		stopped <- server.Close()
	})
	ready(l.Addr().String())
	err = server.Serve(remote.Limit(l, connections))
	if stop() { // it failed of itself
		return err
	}
	return <-stopped
}
