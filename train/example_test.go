package train_test

import (
	"fmt"
	"path"

	"skillmaster/episode"
	"skillmaster/train"
)

func ExampleWilson() {
	low, high := train.Wilson(123, 134)
	fmt.Printf("%.1f %% [%.1f, %.1f]\n", 100*123.0/134, 100*low, 100*high)
	// Output: 91.8 % [85.9, 95.4]
}

// Tasks of one room stay together: what is learnt of it in training does not help where it is tested.
func ExamplePartition() {
	var tasks []episode.Task
	for room := range 20 {
		for trial := range 2 {
			tasks = append(tasks, episode.Task{ID: fmt.Sprintf("room-%d/trial-%d", room, trial)})
		}
	}
	rooms := map[string]int{}
	for _, p := range train.Partition(tasks, func(t episode.Task) string { return path.Dir(t.ID) }, train.Share{Name: "train", Part: 0.8}, train.Share{Name: "valid", Part: 0.2}) {
		of := map[string]bool{}
		for _, t := range p.Tasks {
			of[path.Dir(t.ID)] = true
		}
		for room := range of {
			rooms[room]++
		}
	}
	shared := 0
	for _, panels := range rooms {
		if panels > 1 {
			shared++
		}
	}
	fmt.Printf("%d rooms, %d in two panels\n", len(rooms), shared)
	// Output: 20 rooms, 0 in two panels
}
