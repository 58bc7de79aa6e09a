// Command skillmaster trains a language-model agent that writes its own skills, and looks at what came of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// version is the program's own.
const version = "0.1.0"

// Exit codes.
const (
	exitDone        = 0   // it did what it says
	exitFailed      = 1   // it failed, or what it compared differs
	exitUsage       = 2   // the command line cannot be
	exitInterrupted = 130 // Ctrl-C
)

const description = `Trains a language-model agent that writes its own skills: it plays episodes in text worlds, reviews each, edits its
skill bank, measures every edit on related tasks, and learns to act and to review at once.

Results go to stdout, progress to stderr. Exit codes: 0 it did what it says; 1 it failed, or what it compared differs;
2 the command line cannot be; 130 stopped with Ctrl-C.`

// commands is the command line.
type commands struct {
	Train      trainCmd      `cmd:"" help:"Train a policy, from the start or going on with a run."`
	Eval       evalCmd       `cmd:"" help:"Play a panel with a run's policy and print success by family."`
	Play       playCmd       `cmd:"" help:"Play an episode yourself."`
	Replay     replayCmd     `cmd:"" help:"Play recorded episodes against a world and report the first difference."`
	Bank       bankCmd       `cmd:"" help:"Look at a run's skill bank and change it."`
	Model      modelCmd      `cmd:"" help:"Look at models, and write a run's policy for other programs."`
	Data       dataCmd       `cmd:"" help:"Get, list, check and pack a world's games."`
	Bench      benchCmd      `cmd:"" help:"Measure worlds, engine and probes."`
	Report     reportCmd     `cmd:"" help:"Say what runs came to: scores with intervals, paired tests, plots."`
	Export     exportCmd     `cmd:"" help:"Write a run's metrics and trajectories for other tools."`
	Serve      serveCmd      `cmd:"" help:"Show runs in the browser, or serve a world or a bank to others."`
	Completion completionCmd `cmd:"" help:"Make the shell complete command lines."`

	Version kong.VersionFlag `help:"Print the version and end."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	code := execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute does what a command line says and returns the exit code.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var c commands
	ended := -1 // by --help or --version
	parser, err := newParser(&c, stdout, stderr, func(code int) { ended = code })
	if err != nil {
		panic(err) // the struct above is wrong
	}
	parsed, err := parser.Parse(args)
	if ended >= 0 {
		return ended
	}
	if err != nil {
		fmt.Fprintf(stderr, "skillmaster: %v\n(skillmaster --help, or skillmaster COMMAND --help)\n", err)
		return exitUsage
	}
	// Worlds, skills and files hold text that others wrote: none of it reaches a terminal raw.
	err = dispatch(ctx, parsed.Selected().Target.Addr().Interface(), args, stdin, &plainWriter{w: stdout}, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "skillmaster: %s\n", plain(err.Error()))
	}
	return exitCode(ctx, err)
}

// newParser reads command lines into c; exit is called by --help and --version.
func newParser(c *commands, stdout, stderr io.Writer, exit func(code int), more ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append([]kong.Option{
		kong.Name("skillmaster"), kong.Description(description), kong.Writers(stdout, stderr), kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, Summary: false}),
		kong.Vars{"version": "skillmaster " + version, "data": dataFolder(), "listen": listenAt, "cells": strings.Join(slices.Sorted(maps.Keys(cells)), ", ")},
	}, more...)...)
}

func dispatch(ctx context.Context, command any, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	switch c := command.(type) {
	case interface {
		Execute(ctx context.Context, stdout, stderr io.Writer) error
	}:
		return c.Execute(ctx, stdout, stderr)
	case interface {
		Execute(ctx context.Context, command []string, stdout, stderr io.Writer) error
	}:
		return c.Execute(ctx, append([]string{"skillmaster"}, args...), stdout, stderr)
	case interface {
		Execute(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error
	}:
		return c.Execute(ctx, stdin, stdout, stderr)
	default:
		panic(fmt.Sprintf("no way to run a %T", command))
	}
}

func exitCode(ctx context.Context, err error) int {
	var u usageError
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &u):
		return exitUsage
	default:
		return exitFailed
	}
}

// usageError is an error of the command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// usage marks an error as one of the command line.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// dataFolder is where the real games are looked for.
func dataFolder() string {
	if d := os.Getenv("SKILLMASTER_DATA"); d != "" {
		return d
	}
	return "../shared/data"
}

// isTerminal tells whether somebody looks at w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
