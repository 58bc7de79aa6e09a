package probe_test

import (
	"context"
	"fmt"
	"log"

	"skillmaster/episode"
	"skillmaster/probe"
	"skillmaster/skill"
)

// Seven wins without a loss are evidence enough at 5 %; five of seven are not.
func ExampleEValue() {
	for _, c := range [][2]int{{7, 0}, {5, 2}} {
		e := probe.EValue(c[0], c[1])
		fmt.Printf("%d wins, %d losses: E = %.1f, commit: %v\n", c[0], c[1], e, e >= 20)
	}
	// Output:
	// 7 wins, 0 losses: E = 31.9, commit: true
	// 5 wins, 2 losses: E = 1.3, commit: false
}

// An edit is judged by related tasks, played with and without it under the same seeds. Here whoever has the skill wins; after three wins the
// sign is clear, and the fourth task is not played.
func ExampleJudge() {
	play := func(_ context.Context, a probe.Arm) (episode.Trajectory, error) {
		return episode.Trajectory{Task: a.Task, ShownSkills: a.Bank.IDs(), Success: a.Bank.Len() > 0, Steps: make([]episode.Step, 10)}, nil
	}
	var before skill.Bank
	after, _ := before.Apply(skill.Edit{Op: skill.Propose, Category: "clean", Title: "Wash at the sink", Principle: "Plates are cleaned in the sink."},
		skill.Permission{Category: "clean"})
	config := probe.Default()
	config.Horizon = 50
	tasks := []episode.Task{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}
	verdicts, err := probe.NewJudge(play, config, 1).Judge(context.Background(), before,
		[]probe.Candidate{{Bank: after, Skill: after.Changed(before), Tasks: [][]episode.Task{tasks}}}, 1)
	if err != nil {
		log.Fatal(err)
	}
	v := verdicts[0]
	fmt.Printf("%d wins, %d losses, utility %+.2f\n", v.Wins, v.Losses, v.Utility)
	// Output:
	// 3 wins, 0 losses, utility +1.56
}
