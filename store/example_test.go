package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"skillmaster/skill"
	"skillmaster/store"
)

// A run keeps every bank it had, and how one came from another.
func Example() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ctx := context.Background()
	run, err := store.Create(ctx, filepath.Join(folder, "first"), store.Manifest{Program: "example", Config: json.RawMessage("{}")}, time.Now)
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	before, err := run.Head(ctx)
	if err != nil {
		log.Fatal(err)
	}
	bank, err := skill.New([]skill.Skill{{Category: "clean", Title: "Wash at the sink", Principle: "Plates are cleaned in the sink."}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := run.Commit(ctx, before, bank, store.Amended, "by hand"); err != nil {
		log.Fatal(err)
	}
	for _, hash := range []string{before, bank.Hash()} {
		b, err := run.Bank(ctx, hash)
		fmt.Println(b.Len(), err)
	}
	// Output:
	// 0 <nil>
	// 1 <nil>
}
