package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"skillmaster/report"
	"skillmaster/store"
	"skillmaster/track"
	"skillmaster/train"
)

// trackFlags name the tools that are kept up to date while a run trains.
type trackFlags struct {
	TensorBoard string `name:"tensorboard" help:"Keep an event file up to date in this log folder of TensorBoard. The run has a folder of its own in it." placeholder:"DIR"`
	MLflow      string `name:"mlflow" help:"Keep the run up to date on this MLflow tracking server." placeholder:"URL"`

	mlflowFlags `prefix:"mlflow-" embed:""`
}

// tools are those that were asked for.
func (f trackFlags) tools(run string, notice func(text string)) ([]tool, error) {
	var out []tool
	if f.TensorBoard != "" {
		later := fmt.Sprintf("skillmaster export tensorboard --run %s --to %s", run, f.TensorBoard)
		out = append(out, newTool("tensorboard", later, func(_ context.Context, h *report.History) error {
			_, err := track.TensorBoard(filepath.Join(f.TensorBoard, h.Name), h)
			return err
		}))
	}
	if f.MLflow != "" {
		server, err := f.open(f.MLflow, notice)
		if err != nil {
			return nil, fmt.Errorf("--mlflow: %w", err)
		}
		later := fmt.Sprintf("skillmaster export mlflow --run %s --to %s --experiment %s", run, f.MLflow, f.Experiment)
		if f.TokenFile != "" {
			later += " --token-file " + f.TokenFile
		}
		told := false
		out = append(out, newTool("mlflow", later, func(ctx context.Context, h *report.History) error {
			sent, err := server.Send(ctx, h)
			if sent.Outdated && !told {
				told = true
				notice(outdated)
			}
			return err
		}))
	}
	return out, nil
}

// tool is something that is kept up to date.
type tool struct {
	name  string // of its flag
	later string // the command that brings it up to date afterwards
	write func(ctx context.Context, h *report.History) error
	news  chan struct{}
}

func newTool(name, later string, write func(ctx context.Context, h *report.History) error) tool {
	return tool{name, later, write, make(chan struct{}, 1)}
}

// Observe says that there is news, and waits for nothing: whoever follows takes up all that came since.
func (t tool) Observe(context.Context, train.Report) error {
	select {
	case t.news <- struct{}{}:
	default:
	}
	return nil
}

// lastTry is how long a tool is waited for when training has ended.
const lastTry = 20 * time.Second

// tracked calls f, which trains, and keeps tools up to date beside it. They are written to once before: what is wrong
// then ends the run before it begins. From then on training does not wait for them; a write that goes wrong is told, and
// made good by the next.
func tracked(ctx context.Context, tools []tool, run *store.Run, t *train.Trainer, notice func(text string), f func() error) error {
	if len(tools) == 0 {
		return f()
	}
	h, err := report.Read(ctx, run, runName(run.Dir()))
	if err != nil {
		return err
	}
	for _, tool := range tools {
		if err := tool.write(ctx, h); err != nil {
			return fmt.Errorf("--%s: %w (nothing was trained yet; go on with skillmaster train --run %s --resume)", tool.name, err, run.Dir())
		}
	}
	var writing sync.WaitGroup
	for _, tool := range tools {
		t.Observers = append(t.Observers, tool)
		writing.Go(func() { tool.follow(ctx, run, h, notice) })
	}
	err = f()
	for _, tool := range tools {
		close(tool.news)
	}
	writing.Wait()
	return err
}

// follow writes whenever there is news, and once more at the end.
func (t tool) follow(ctx context.Context, run *store.Run, h *report.History, notice func(text string)) {
	update := func(ctx context.Context) error {
		next, err := h.Follow(ctx, run)
		if err != nil {
			return err
		}
		h = next
		return t.write(ctx, h)
	}
	for range t.news {
		if err := update(ctx); err != nil && ctx.Err() == nil {
			notice(fmt.Sprintf("%s is behind the run until the next round: %v", t.name, err))
		}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry) // whoever stops a run wants its last rounds, too
	defer cancel()
	if err := update(end); err != nil {
		notice(fmt.Sprintf("%s lacks the last rounds: %v; to write them: %s", t.name, err, t.later))
	}
}
