package envtest_test

import (
	"fmt"
	"log"

	"skillmaster/env/envtest"
)

// World is a tiny world to test other packages with; Run, in a test of a world's own, checks that it keeps the contract.
func ExampleWorld() {
	world := envtest.World{Size: 4}
	tasks, err := world.Tasks("probe")
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tasks {
		fmt.Println(t.ID, t.Category)
	}
	// Output:
	// probe/find_gem/000 gems
	// probe/find_coin/001 coins
	// probe/find_gem/002 gems
	// probe/find_coin/003 coins
}
