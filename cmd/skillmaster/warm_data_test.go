package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Conversations written by pyarrow (testdata/python/conversations.py) are those of the JSON lines it was given.
func TestParquetConversations(t *testing.T) {
	lines, columns := warmData{File: "testdata/conversations.jsonl"}, warmData{File: "testdata/conversations.parquet"}
	if err := lines.look(); err != nil {
		t.Fatal(err)
	}
	if err := columns.look(); err != nil {
		t.Fatal(err)
	}
	want, err := lines.read()
	if err != nil || len(want) != 2 {
		t.Fatal(want, err)
	}
	got, err := columns.read()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	whole, err := os.ReadFile(columns.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{nil, whole[:len(whole)/2], []byte("PAR1 and then PAR1"), append([]byte("PAR1"), whole[len(whole)/2:]...)} {
		if _, err := parquetLines(b); err == nil {
			t.Errorf("%d bytes of a damaged file are read", len(b))
		}
	}
}

// A warm start clones conversations of a file, whatever its form, and goes on with that file alone.
func TestWarmData(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "own.jsonl")
	if err := os.WriteFile(file, []byte(fileText(t, "testdata/conversations.jsonl")), 0o600); err != nil {
		t.Fatal(err)
	}
	args := func(run, data string) []string {
		return []string{
			"train", "--run", run, "--preset", "smoke", "--warm-data", data, "--iterations", "0", "--set", smallWorld,
			"--set", "train.warm.updates=4", "--set", "train.warm.round=2",
		}
	}
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	must(t, 0, args(one, file)...)
	must(t, 0, args(two, "testdata/conversations.parquet")...)
	if digest(t, one) != digest(t, two) {
		t.Error("the same conversations in two forms gave two runs")
	}
	must(t, 2, append(args(one, file), "--resume")...)
	must(t, 2, append(args(filepath.Join(dir, "none"), file), "--set", "train.warm.updates=0")...)
	if _, errs := must(t, 1, args(filepath.Join(dir, "bad"), "testdata/check_export.py")...); !strings.Contains(errs, "line 1") {
		t.Errorf("a file of something else: %s", errs)
	}
	d := warmData{File: file}
	if err := d.look(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.read(); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("a changed file: %v", err)
	}
}
