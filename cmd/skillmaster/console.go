package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"skillmaster/train"
)

// console shows a run's progress: a line a round, and on a terminal one that changes in between.
type console struct {
	mu     sync.Mutex
	w      io.Writer
	live   bool // w is a terminal
	line   changingLine
	cfg    train.Config
	began  time.Time // of the phase
	phase  train.Phase
	first  int // rounds done when the phase was entered here
	latest time.Time
}

func newConsole(w io.Writer, cfg train.Config) *console {
	return &console{w: w, live: isTerminal(w), line: changingLine{w: w}, cfg: cfg, first: -1}
}

// progress shows what is being done now.
func (c *console) progress(p train.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enter(p.Phase, p.Done)
	if !c.live || time.Since(c.latest) < 200*time.Millisecond {
		return
	}
	c.latest = time.Now()
	c.line.set(fmt.Sprintf("%s %d/%d: %s%s", p.Phase, p.Done, p.Total, p.Part, c.left(p.Done, p.Total)))
}

// enter notes when a phase was begun, to tell how long it will take.
func (c *console) enter(p train.Phase, done int) {
	if c.first < 0 || p != c.phase {
		c.phase, c.began, c.first = p, time.Now(), done
	}
}

// left is the time a phase still takes, at the speed so far.
func (c *console) left(done, total int) string {
	n := done - c.first
	if n < 1 || done >= total {
		return ""
	}
	d := time.Since(c.began) / time.Duration(n) * time.Duration(total-done)
	return ", " + d.Round(time.Second).String() + " left"
}

// Observe prints a round.
func (c *console) Observe(_ context.Context, r train.Report) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	metric := func(key, format string, scale float64) {
		if v, ok := r.Metrics[key]; ok {
			add(format, v*scale)
		}
	}
	switch r.Phase {
	case train.WarmStart:
		if loss, ok := r.Metrics["learn/loss"]; ok {
			done := min(c.cfg.Warm.Updates, (r.Round+1)*c.cfg.Warm.Round)
			add("warm start %d/%d", done, c.cfg.Warm.Updates)
			add("loss %.3f", loss)
			if all, ok := r.Metrics["warm/agreement"]; ok {
				add("as the expert %.0f %%%s", 100*all, agreementByKind(r.Metrics))
			}
			add("%.0f tokens/s%s", r.Metrics["learn/tokens"]/r.Seconds["time/update_seconds"], c.left(done, c.cfg.Warm.Updates))
		}
	case train.Learning, train.Finished:
		add("iteration %d/%d", r.Round+1, c.cfg.Iterations)
		metric("action/success", "success %.1f %%", 100)
		metric("action/return_mean", "return %.2f", 1)
		metric("action/steps_mean", "steps %.1f", 1)
		metric("bank/skills", "skills %.0f", 1)
		if v, ok := r.Metrics["probe/edits"]; ok {
			add("edits %.0f, %d committed", v, len(r.Commits))
		}
		metric("probe/delta_mean", "probe delta %+.3f", 1)
		seconds := r.Seconds["time/rollout_seconds"] + r.Seconds["time/update_seconds"]
		if seconds > 0 {
			add("%.0f tokens/s%s", (r.Metrics["rollout/tokens"]+r.Metrics["learn/tokens"])/seconds, c.left(r.Round+1, c.cfg.Iterations))
		}
	}
	if len(parts) > 0 {
		c.print(strings.Join(parts, "  "))
	}
	for _, e := range r.Evaluations {
		s := e.Summaries()[0]
		c.print(fmt.Sprintf("  panel %s: %.1f %% success [%.1f, %.1f], %.1f steps, %d tasks", e.Panel, 100*s.Rate, 100*s.Low, 100*s.High, s.Steps, s.Tasks))
	}
	return nil
}

// print writes a line that stays.
func (c *console) print(text string) {
	c.line.clear()
	fmt.Fprintln(c.w, text)
}

// agreementByKind is the agreement with the expert for each kind of action, in brackets.
func agreementByKind(metrics map[string]float64) string {
	const prefix = "warm/agreement_"
	var kinds []string
	for _, key := range slices.Sorted(maps.Keys(metrics)) {
		if kind, ok := strings.CutPrefix(key, prefix); ok {
			kinds = append(kinds, fmt.Sprintf("%s %.0f", kind, 100*metrics[key]))
		}
	}
	return " (" + strings.Join(kinds, ", ") + ")"
}
