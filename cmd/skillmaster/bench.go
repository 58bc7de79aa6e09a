package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// benchCmd measures parts of the program.
type benchCmd struct {
	Env    benchEnvCmd    `cmd:"" help:"Steps and resets a second of a world, and what an episode costs in memory."`
	Engine benchEngineCmd `cmd:"" help:"Tokens a second of the embedded transformer, training and sampling."`
	Expert benchExpertCmd `cmd:"" help:"How many games the experts win, and in how many steps."`
	Method benchMethodCmd `cmd:"" help:"The method against its ablations: trains, plays and compares; hours."`
	Scale  benchScaleCmd  `cmd:"" help:"How many episodes one process holds, beside the ideal."`
	Probe  benchProbeCmd  `cmd:"" help:"What a probe says of an edit whose effect is known: bias, noise, cost."`
}

// Help is shown under --help.
func (benchCmd) Help() string {
	return `Examples:
  skillmaster bench engine
  skillmaster bench env --env household
  skillmaster bench probe`
}

// machine is what was measured on.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Go     string `json:"go"`
	System string `json:"system"`
	Load   string `json:"load_average,omitempty"` // before, of 1, 5 and 15 minutes; of Linux alone
}

func thisMachine() machine {
	m := machine{CPU: "unknown", Cores: runtime.NumCPU(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(b), "model name")
		name, _, _ := strings.Cut(strings.TrimLeft(rest, "\t :"), "\n")
		if name != "" {
			m.CPU = name
		}
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		f := strings.Fields(string(b))
		m.Load = strings.Join(f[:min(3, len(f))], " ")
	}
	return m
}

func (m machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s, %s", m.CPU, m.Cores, m.Go, m.System)
	if m.Load != "" {
		s += ", load average " + m.Load
	}
	return s
}

// median of at least one number. It sorts them.
func median(xs []float64) float64 {
	slices.Sort(xs)
	return (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2
}
