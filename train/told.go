package train

import (
	"context"
	"fmt"
	"strings"

	"skillmaster/chat"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/rollout"
)

// demonstrator makes the demonstrations of a warm start, each named by its seed.
type demonstrator interface {
	demonstration(ctx context.Context, s episode.Seed) (episode.Trajectory, error)
}

// told demonstrates with conversations of others: each draw is one of them, all with the same chance. Such a trajectory has
// turns alone: nobody knows its task, nor how it ended.
type told struct {
	conversations []chat.Conversation
	render        rollout.Renderer
}

func (o told) demonstration(_ context.Context, s episode.Seed) (episode.Trajectory, error) {
	n := s.Derive("conversation").Rand().IntN(len(o.conversations))
	c := o.conversations[n]
	t := episode.Trajectory{Seed: s}
	var prior []int32
	seen := 0
	for i, m := range c {
		if m.Role != chat.Assistant {
			continue
		}
		prompt, err := o.render.Prompt(policy.Request{Messages: c[:i], Prior: prior, Seen: seen})
		if err != nil {
			return t, fmt.Errorf("conversation %d: message %d: %w", n+1, i+1, err)
		}
		u := episode.Turn{Continues: seen > 0, Prompt: prompt, Completion: o.render.Encode(m.Text), Text: m.Text}
		if strings.Contains(m.Text, "<tool_call>") {
			u.Kind = episode.ReviewTurn
		}
		for _, shown := range c[seen:i] {
			u.Shown += shown.Text
		}
		t.Turns = append(t.Turns, u)
		prior = append(append(prior, prompt...), u.Completion...)
		seen = i + 1
	}
	return t, nil
}
