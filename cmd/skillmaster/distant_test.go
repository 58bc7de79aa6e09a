package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skillmaster/store"
)

// offered serves a run's warm start over the Tinker API, as serve --tinker does, until the test ends.
func offered(t *testing.T, run, folder, token string) (url string) {
	t.Helper()
	c := &serveCmd{Run: []string{run}, offerFlags: offerFlags{Tinker: true, Checkpoint: "warm", Name: "base", Workers: 2}}
	s, err := c.source(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.tinker(folder, 32, token, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(v)
	t.Cleanup(func() {
		_ = v.Close()
		h.Close()
	})
	return h.URL
}

// history is all numbers of a run that are not times.
func history(t *testing.T, dir string) map[string][]float64 {
	t.Helper()
	all := map[string][]float64{}
	err := withRun(t.Context(), dir, func(run *store.Run) error {
		for _, name := range []string{"action/return_mean", "review/return_mean", "rollout/steps_mean", "probe/measured", "learn/loss", "learn/grad_norm", "learn/drift", "learn/clip_share"} {
			points, err := run.Metrics(t.Context(), name)
			if err != nil {
				return err
			}
			for _, p := range points {
				all[name] = append(all[name], p.Value)
			}
		}
		es, err := run.Evaluations(t.Context())
		for _, e := range es {
			sum := e.Evaluation.Summaries()[0]
			all["valid"] = append(all["valid"], float64(sum.Success), sum.Steps)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Training on a server is training here: the same episodes, edits, updates and evaluations from the same warm start.
func TestTrainsOnServer(t *testing.T) {
	dir := t.TempDir()
	warm, here, there := filepath.Join(dir, "warm"), filepath.Join(dir, "here"), filepath.Join(dir, "there")
	must(t, 0, "train", "--preset", "smoke", "--run", warm, "--iterations", "0", "--set", smallWorld)
	train := []string{"train", "--preset", "smoke", "--warm-from", warm, "--set", smallWorld, "--set", "train.learn.kl=0.01", "--iterations", "3"}
	must(t, 0, append(train, "--run", here)...)

	folder := filepath.Join(dir, "kept")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_TINKER_KEY", canary)
	url := offered(t, warm, folder, canary)
	server := func(url string) []string {
		return []string{"--set", "tinker.url=" + url, "--set", "tinker.dialect=skillmaster", "--set", "tinker.model=base", "--set", "tinker.key=TEST_TINKER_KEY"}
	}
	out, errs := must(t, 0, append(append(train, server(url)...), "--run", there)...)
	want, got := history(t, here), history(t, there)
	for name, values := range want {
		if len(got[name]) != len(values) {
			t.Errorf("%s: got %v, want %v", name, got[name], values)
			continue
		}
		for i, v := range values {
			if d := got[name][i] - v; d > 1e-3*(1+v*v) || d < -1e-3*(1+v*v) {
				t.Errorf("%s: got %v, want %v", name, got[name], values)
				break
			}
		}
	}
	if len(want["learn/grad_norm"]) != 3 || len(want["valid"]) == 0 {
		t.Errorf("nothing to compare: %v", want)
	}

	must(t, 0, "eval", "--run", there, "--panel", "valid")
	noCanary(t, there, out, errs)
}

const canary = "tml-canary-Zm9vYmFy-0123456789"

// noCanary looks for the key in what was printed and in every file of a run.
func noCanary(t *testing.T, dir string, printed ...string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(canary)) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files were looked at: %v", files, err)
	}
	for _, text := range printed {
		if strings.Contains(text, canary) {
			t.Errorf("the key was printed: %s", text)
		}
	}
}

// A server that repeats the key in everything it says has it shown nowhere.
func TestKeyOfServerIsNotShown(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-API-Key") == canary || r.Header.Get("Authorization") == "Bearer "+canary {
			asked++
		}
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]string{"detail": "no such key: " + canary})
	}))
	defer s.Close()
	t.Setenv("TEST_TINKER_KEY", canary)
	for _, args := range [][]string{
		{"--set", "tinker.url=" + s.URL, "--set", "tinker.dialect=tuft", "--set", "tinker.model=m", "--set", "tinker.key=TEST_TINKER_KEY"},
		{"--set", "server.url=" + s.URL, "--set", "server.model=m", "--set", "server.key=TEST_TINKER_KEY", "--set", "train.frozen=true"},
	} {
		before, dir := asked, filepath.Join(t.TempDir(), "run")
		out, errs := must(t, 1, append([]string{"train", "--preset", "smoke", "--run", dir, "--set", smallWorld, "--set", "train.warm.updates=0"}, args...)...)
		if asked == before || !strings.Contains(errs, "[key]") {
			t.Errorf("the key was not sent, or nothing was said: %s", errs)
		}
		noCanary(t, dir, out, errs)
	}
}
