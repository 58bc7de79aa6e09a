package grpo_test

import (
	"fmt"
	"log"

	"skillmaster/grpo"
)

// Acting and reviewing are compared within a group, each stream by itself. The last review was not measured: it is masked.
func ExampleAdvantages() {
	group := []grpo.Returns{
		{Action: 10, Review: 0.3, ReviewMeasured: true, Turns: 9},
		{Action: 0, Review: -0.1, ReviewMeasured: true, Turns: 30},
		{Action: 0, Turns: 30},
	}
	advantages, _, err := grpo.Advantages(group, grpo.DualAdv, grpo.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range advantages {
		fmt.Printf("action %+.2f, review %+.2f %v\n", a.Action, a.Review, a.ReviewMeasured)
	}
	// Output:
	// action +1.14, review +0.60 true
	// action -0.57, review -0.60 true
	// action -0.57, review +0.00 false
}

// Of groups of two, seven in ten have equal returns where one episode in five or six succeeds.
func ExampleDeadShare() {
	fmt.Printf("%.2f %.2f\n", grpo.DeadShare(0.18, 2), grpo.DeadShare(0.18, 8))
	// Output: 0.70 0.20
}
