package webshop

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dataDir is the folder of the real shop. Without it the tests that need it are skipped, except in CI.
func dataDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SKILLMASTER_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir = filepath.Join(dir, "webshop")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no data of the real shop (set SKILLMASTER_DATA): %v", err)
		}
		t.Skipf("NOT TESTED against the real shop (set SKILLMASTER_DATA): %v", err)
	}
	return dir
}

// sparse is n, or five times n under the race detector, where a test that takes every n-th of many takes too long.
func sparse(t testing.TB, n int) int {
	t.Helper()
	if raceDetector {
		t.Logf("under the race detector: one in %d, not one in %d", 5*n, n)
		return 5 * n
	}
	return n
}

// readGolden decodes a JSON file of the real shop's folder.
func readGolden(t testing.TB, name string, v any) {
	t.Helper()
	r := openGolden(t, name)
	if err := json.NewDecoder(r).Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func openGolden(t testing.TB, name string) io.Reader {
	t.Helper()
	f, err := os.Open(filepath.Join(dataDir(t), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if !strings.HasSuffix(name, ".gz") {
		return bufio.NewReader(f)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}
