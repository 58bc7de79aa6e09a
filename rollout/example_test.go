package rollout_test

import (
	"context"
	"fmt"
	"log"

	"skillmaster/env/envtest"
	"skillmaster/policy/policytest"
	"skillmaster/rollout"
)

// A reply holds exactly one action, or it is malformed; its text is sent all the same.
func ExampleParseAction() {
	fmt.Println(rollout.ParseAction("<think>It is near.</think><action>go to desk 1</action>"))
	fmt.Println(rollout.ParseAction("I go to the desk."))
	// Output:
	// go to desk 1 true
	// I go to the desk. false
}

func ExamplePlayer_Play() {
	world := envtest.World{Seed: 1}
	tasks, err := world.Tasks("train")
	if err != nil {
		log.Fatal(err)
	}
	says := policytest.Lines("<action>open red door 1</action>", "<action>open green door 1</action>", "<action>take gem</action>")
	player := rollout.Player{Suite: world, Policy: says, Config: rollout.DefaultConfig()}
	t, err := player.Play(context.Background(), rollout.Start{Task: tasks[0], Horizon: 3})
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range t.Steps {
		fmt.Println(step.Action, "→", step.Observation)
	}
	fmt.Println(t.Stop)
	// Output:
	// open red door 1 → Behind the red door 1 is a gem.
	// open green door 1 → Behind the green door 1 is nothing.
	// take gem → You take the gem.
	// succeeded
}
