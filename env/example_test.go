package env_test

import (
	"context"
	"fmt"

	"skillmaster/env"
	"skillmaster/env/envtest"
)

// Any world is played like this one.
func Example() {
	var world env.Suite = envtest.World{Seed: 1}
	tasks, err := world.Tasks("train")
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	e, observation, err := world.Open(ctx, tasks[0], 0)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	fmt.Println(observation.Text)
	for _, action := range observation.Admissible {
		result, err := e.Step(ctx, action)
		if err != nil {
			panic(err)
		}
		fmt.Println(action, "→", result.Observation.Text)
		if result.Done {
			break
		}
	}
	// Output:
	// You are in a hall with doors. On the wall is a crow. Take the gem.
	// open blue door 1 → Behind the blue door 1 is nothing.
	// open blue door 2 → Behind the blue door 2 is nothing.
	// open green door 1 → Behind the green door 1 is nothing.
	// open green door 2 → Behind the green door 2 is nothing.
	// open red door 1 → Behind the red door 1 is a gem.
	// open red door 2 → Behind the red door 2 is nothing.
}
