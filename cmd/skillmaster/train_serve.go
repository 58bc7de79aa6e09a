package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"skillmaster/train"
	"skillmaster/web"

	"golang.org/x/sync/errgroup"
)

// trainAndShow trains, and with --serve shows the run and its neighbours in the browser as long as that takes. If the
// dashboard fails, training ends too: who asked for it should know.
func (c *trainCmd) trainAndShow(ctx context.Context, t *train.Trainer, from train.Checkpoint, stderr io.Writer) error {
	if c.Serve == "" {
		return t.Run(ctx, from)
	}
	dashboard := web.New([]string{c.Run}, []string{filepath.Dir(c.Run)}, time.Now, slog.New(slog.NewTextHandler(stderr, nil)))
	defer dashboard.Close()
	console, shown := t.Progress, dashboard.Progress(c.Run)
	t.Progress = func(p train.Progress) {
		console(p)
		shown(p)
	}
	g, ctx := errgroup.WithContext(ctx)
	showing, end := context.WithCancel(ctx)
	defer end()
	g.Go(func() error {
		return listen(showing, c.Serve, dashboard.Handler(), func(address string) {
			fmt.Fprintf(stderr, "http://%s shows the run while it trains\n", address)
		})
	})
	g.Go(func() error {
		defer end()
		return t.Run(ctx, from)
	})
	return g.Wait()
}
