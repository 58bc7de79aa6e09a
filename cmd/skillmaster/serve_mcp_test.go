package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"skillmaster/store"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The official Go client finds a skill of a run's bank over stdio, and what it proposes waits in the run's quarantine.
func TestServeMCPToGo(t *testing.T) {
	dir, banks := bankRun(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--mcp", "stdio", "--run", dir)
	cmd.Env = append(os.Environ(), "SKILLMASTER_TEST_AS_PROGRAM=1")
	session, err := sdk.NewClient(&sdk.Implementation{Name: "go", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	found, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "search_skills", Arguments: map[string]any{"query": "the fridge"}})
	if err != nil || found.IsError {
		t.Fatalf("%v, %+v", err, found)
	}
	if text := found.Content[0].(*sdk.TextContent).Text; !strings.Contains(text, "Open the fridge") || !strings.Contains(text, banks[2].Hash()) {
		t.Errorf("found %s", text)
	}
	if r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "propose_skill", Arguments: map[string]any{"title": "Count saucers", "principle": "Count every saucer twice.", "when_to_apply": ""}}); err != nil || r.IsError {
		t.Fatalf("%v, %+v", err, r)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	waiting(t, dir, "go 1")
}

// waiting checks that one edit of the author waits in a run's quarantine, and that the bank is as it was.
func waiting(t *testing.T, dir, author string) {
	t.Helper()
	run, err := store.View(t.Context(), dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	guests, err := run.Guests(t.Context())
	if err != nil || len(guests) != 1 || guests[0].State != store.Waiting || !strings.HasPrefix(guests[0].Author, author) || guests[0].Edit.Title != "Count saucers" {
		t.Errorf("quarantine has %+v, %v", guests, err)
	}
	if commits, err := run.Commits(t.Context()); err != nil || len(commits) != 2 {
		t.Errorf("%d commits, %v", len(commits), err)
	}
}

// The stock Python client does the same, over stdio and over HTTP with a token.
func TestServeMCPToPython(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "python3", "-c", "import mcp").Run(); err != nil {
		if os.Getenv("SKILLMASTER_MCP_PYTHON") == "require" {
			t.Fatal("there is no Python with the package mcp: pip install mcp")
		}
		t.Skip("NOT TESTED with the Python client: there is no Python with the package mcp (pip install mcp)")
	}
	check := func(t *testing.T, dir string, args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "python3", append([]string{"testdata/python/mcp_client.py"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var got struct {
			Tools []string
			One   struct {
				Title string
			}
			Added struct{ Outcome string }
			Used  struct{ Recorded bool }
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if len(got.Tools) != 7 || got.One.Title != "Open the fridge" || got.Added.Outcome != "added" || !got.Used.Recorded {
			t.Errorf("%+v", got)
		}
		waiting(t, dir, "mcp")
	}
	t.Run("stdio", func(t *testing.T) {
		dir, _ := bankRun(t)
		check(t, dir, "stdio", os.Args[0], "serve", "--mcp", "stdio", "--run", dir)
	})
	t.Run("http", func(t *testing.T) {
		dir, _ := bankRun(t)
		ctx, cancel := context.WithCancel(t.Context())
		var said lines
		done := make(chan int, 1)
		go func() {
			done <- execute(ctx, []string{"serve", "--mcp", "http", "--run", dir, "--listen", "127.0.0.1:0"}, strings.NewReader(""), &said, &said)
		}()
		defer func() {
			cancel()
			if code := <-done; code != exitDone {
				t.Errorf("it ends with %d\n%s", code, said.String())
			}
		}()
		at := regexp.MustCompile(`(http://\S+/mcp)\nheader: Authorization: Bearer (\S+)`)
		var m []string
		for deadline := time.Now().Add(time.Minute); m == nil; time.Sleep(10 * time.Millisecond) {
			if m = at.FindStringSubmatch(said.String()); m == nil && time.Now().After(deadline) {
				t.Fatalf("it serves nothing:\n%s", said.String())
			}
		}
		check(t, dir, "http", m[1], m[2])
	})
}

func TestServeMCPRefusals(t *testing.T) {
	dir, _ := bankRun(t)
	for _, args := range [][]string{{"--mcp", "stdio"}, {"--mcp", "stdio", "--run", dir, "--run", dir}, {"--mcp", "carrier pigeon", "--run", dir}} {
		must(t, exitUsage, append([]string{"serve"}, args...)...)
	}
}
