package openenv_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"skillmaster/env/envtest"
	"skillmaster/env/openenv"
)

// A world is served, and played by whoever speaks the protocol: here by ourselves.
func Example() {
	handler, err := openenv.NewHandler(openenv.Served{Suite: envtest.World{Seed: 1}, Splits: []string{"train"}, Name: "halls"})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	defer handler.Close()
	ctx := context.Background()
	world, err := openenv.Dial(ctx, openenv.Options{URL: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	tasks, err := world.Tasks("train")
	if err != nil {
		log.Fatal(err)
	}
	e, first, err := world.Open(ctx, tasks[0], 0)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	fmt.Println(first.Text)
	// Output: You are in a hall with doors. On the wall is a crow. Take the gem.
}
