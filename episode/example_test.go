package episode_test

import (
	"fmt"

	"skillmaster/episode"
)

// Every draw has a seed of its own, by what it is for: neither order nor number of workers changes it.
func ExampleSeed_Derive() {
	run := episode.Seed(1)
	first, again := run.Derive("rollout", 3, 0).Rand(), run.Derive("rollout", 3, 0).Rand()
	fmt.Println(first.Uint64() == again.Uint64(), run.Derive("rollout", 3, 1) == run.Derive("rollout", 3, 0))
	// Output: true false
}

// Panels are apart, or a run does not start.
func ExampleDisjoint() {
	desk, shelf := episode.Task{ID: "desk"}, episode.Task{ID: "shelf"}
	fmt.Println(episode.Disjoint(episode.Panel{Name: "train", Tasks: []episode.Task{desk, shelf}}, episode.Panel{Name: "report", Tasks: []episode.Task{shelf}}))
	// Output:
	// task shelf is in panel train and in panel report: panels must not share tasks
}
