package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// smallHouse are the sizes of the tests' household.
const smallHouse = `world.sizes={"warm":64,"train":32,"probe":24,"gate":24,"valid":8,"report":8}`

// serveWorld serves a world until the test ends, and returns its address.
func serveWorld(t *testing.T, more ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, in := io.Pipe()
	done := make(chan int, 1)
	var errs strings.Builder
	go func() {
		done <- execute(ctx, append([]string{"serve", "--openenv", "--listen", "127.0.0.1:0"}, more...), strings.NewReader(""), in, &errs)
		_ = in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	t.Cleanup(func() {
		stop()
		if code := <-done; code != exitDone {
			t.Errorf("serve ended with %d: %s", code, errs.String())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return "openenv:" + line[strings.Index(line, "ws://"):len(line)-1]
}

// An episode over the wire is the same as in-process.
func TestPlayOnServer(t *testing.T) {
	address := serveWorld(t, "--set", smallHouse)
	var first string
	list, _ := must(t, 0, "data", "list", "--env", "household", "--tasks", "--json")
	id := regexp.MustCompile(`"id": *"(gen[^"]*/gate/[^"]*)"`).FindStringSubmatch(list)
	if id == nil {
		t.Fatalf("no task of the gate panel: %.300s", list)
	}
	for _, env := range []string{"household", address} {
		code, out, errs := sm(t, "look\ngo to fridge 1\nwhistle\ninventory\n", "play", "--env", env, "--split", "gate", "--task", id[1], "--json")
		if code != exitDone {
			t.Fatalf("%s: %s", env, errs)
		}
		if first == "" {
			first = out
		} else if out != first {
			t.Errorf("over the wire %s, in-process %s", out, first)
		}
	}
}

// A run on a server of ours comes to the same as one in-process, task by task.
func TestTrainOnServer(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains three small runs")
	}
	dir := t.TempDir()
	run := func(name string) string { return filepath.Join(dir, name) }
	must(t, 0, "train", "--run", run("warm"), "--preset", "smoke", "--iterations", "0", "--set", smallHouse)
	address := serveWorld(t, "--set", smallHouse)
	common := []string{"--preset", "smoke", "--iterations", "2", "--warm-from", run("warm"), "--set", "train.warm.updates=0", "--set", "train.gate.rule=always"}
	must(t, 0, append([]string{"train", "--run", run("here"), "--set", smallHouse}, common...)...)
	must(t, 0, append([]string{"train", "--run", run("there"), "--env", address}, common...)...)
	var evaluated [2]string
	for i, name := range []string{"here", "there"} {
		out, _ := must(t, 0, "eval", "--run", run(name), "--panel", "report", "--json")
		var es []map[string]any
		if err := json.Unmarshal([]byte(out), &es); err != nil || len(es) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		delete(es[0], "seconds")
		b, err := json.Marshal(es)
		if err != nil {
			t.Fatal(err)
		}
		evaluated[i] = string(b)
	}
	if evaluated[0] != evaluated[1] || !strings.Contains(evaluated[0], `"report"`) {
		t.Errorf("in-process %s\nover the wire %s", evaluated[0], evaluated[1])
	}
}

// Other machines are served only with a token, and what cannot be is told before anything is opened.
func TestServeRefuses(t *testing.T) {
	short := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(short, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{
		"would serve other machines": {"--listen", "0.0.0.0:0"},
		"is empty":                   {"--token-file", short},
		"world.sizes has a panel":    {"--set", `world.sizes={"attic":3}`},
		"unknown field":              {"--set", "world.rooms=3"},
	} {
		if _, errs := must(t, exitUsage, append([]string{"serve", "--openenv"}, args...)...); !strings.Contains(errs, says) {
			t.Errorf("%v: %s", args, errs)
		}
	}
	for says, args := range map[string][]string{
		"openenv: and an address": {"train", "--env", "nowhere"},
		"there is no world":       {"play", "--env", "nowhere"},
	} {
		if _, errs := must(t, exitUsage, args...); !strings.Contains(errs, says) {
			t.Errorf("%v: %s", args, errs)
		}
	}
	if _, errs := must(t, exitFailed, "play", "--env", "openenv:ws://127.0.0.1:1"); !strings.Contains(errs, "refused") {
		t.Errorf("nobody listens: %s", errs)
	}
}

// The benchmark of scale counts what it should, over a call and over HTTP, and keeps to its limit.
func TestBenchScale(t *testing.T) {
	for _, more := range [][]string{nil, {"--http"}, {"--tokens", "3000"}} {
		out, _ := must(t, 0, append([]string{"bench", "scale", "--episodes", "40", "--steps", "3", "--latency", "20ms"}, more...)...)
		var b scaleBench
		if err := json.Unmarshal([]byte(out), &b); err != nil {
			t.Fatal(err)
		}
		if b.Requests != 120 || b.Steps != 3 || b.Lost != 0 || b.Ideal < 0.06 || b.Seconds < b.Ideal || b.InFlight == 0 || b.Limit > 0 && b.InFlight > b.Limit {
			t.Errorf("%v: %+v", more, b)
		}
	}
}
