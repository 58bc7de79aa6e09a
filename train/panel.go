package train

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"skillmaster/episode"
)

// Panels are the tasks of a run, by what they are for. No task stands in two of them, but that Warm and Train may share.
type Panels struct {
	Warm   episode.Panel   // demonstrations
	Train  episode.Panel   // rollouts
	Probe  episode.Panel   // rewards
	Gate   episode.Panel   // commits
	Valid  episode.Panel   // choices: checkpoints, settings
	Report []episode.Panel // results, looked at once
}

// Validate reports a task that two panels share that must not, or an empty panel.
func (p Panels) Validate() error {
	for _, q := range p.All() {
		if len(q.Tasks) == 0 {
			return fmt.Errorf("panel %s has no tasks", q.Name)
		}
	}
	held := append([]episode.Panel{p.Probe, p.Gate, p.Valid}, p.Report...)
	return errors.Join(
		episode.Disjoint(append([]episode.Panel{p.Train}, held...)...),
		episode.Disjoint(append([]episode.Panel{p.Warm}, held...)...),
	)
}

// Share is a part of a list of tasks.
type Share struct {
	Name string
	Part float64 // of 1
}

// Partition deals tasks into panels by a hash of their key, so that a task's panel depends on nothing else, and tasks of
// one key, such as the trials of one goal in one room, stay together. The parts must sum to at most 1; tasks beyond them
// go to the first panel. Panels keep the tasks' order.
func Partition(tasks []episode.Task, key func(episode.Task) string, shares ...Share) []episode.Panel {
	out := make([]episode.Panel, len(shares))
	for i, s := range shares {
		out[i].Name = s.Name
	}
	for _, t := range tasks {
		h := sha256.Sum256([]byte("panel\x00" + key(t)))
		u := float64(binary.LittleEndian.Uint64(h[:])>>11) / (1 << 53)
		to := 0
		for i, s := range shares {
			if u -= s.Part; u < 0 {
				to = i
				break
			}
		}
		out[to].Tasks = append(out[to].Tasks, t)
	}
	return out
}

// byFamily sorts a panel's tasks by family, keeping their order.
func byFamily(p episode.Panel) map[string][]episode.Task {
	out := map[string][]episode.Task{}
	for _, t := range p.Tasks {
		out[t.Family] = append(out[t.Family], t)
	}
	return out
}

// All lists the panels, each once.
func (p Panels) All() []episode.Panel {
	all := append([]episode.Panel{p.Train, p.Probe, p.Gate, p.Valid}, p.Report...)
	if p.Warm.Name != p.Train.Name {
		all = append([]episode.Panel{p.Warm}, all...)
	}
	return all
}
