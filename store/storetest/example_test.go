package storetest_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"skillmaster/store/storetest"
)

// Make writes a made-up run, to test what reads runs.
func ExampleMake() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ctx := context.Background()
	run, err := storetest.Make(ctx, filepath.Join(folder, "first"), storetest.Shape{Seed: 1, Iterations: 2, Tasks: 2, Group: 3, Panel: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	rounds, err := run.Numbers(ctx, 0)
	if err != nil {
		log.Fatal(err)
	}
	last := rounds[len(rounds)-1]
	played, err := run.Trajectories(ctx, last.Report)
	fmt.Println(last.Phase, len(played), err)
	// Output: learning 6 <nil>
}
