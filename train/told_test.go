package train

import (
	"slices"
	"testing"

	"skillmaster/chat"
	"skillmaster/episode"
	"skillmaster/policy"
)

var someConversations = []chat.Conversation{
	{
		{Role: chat.System, Text: "Leave by the red door."}, {Role: chat.User, Text: "On the wall hangs a lamp."},
		{Role: chat.Assistant, Text: "<action>look</action>"}, {Role: chat.User, Text: "Nothing."}, {Role: chat.User, Text: "Review."},
		{Role: chat.Assistant, Text: `<tool_call>{"name":"keep_skill","arguments":{"reason":"seen"}}</tool_call>`},
		{Role: chat.User, Text: "Never learnt."},
	},
	{{Role: chat.User, Text: "A hall."}, {Role: chat.Assistant, Text: "<action>out</action>"}},
}

// A conversation becomes the ids that the policy would be shown and would say; what it says alone has the full weight.
func TestConversationsAreCloned(t *testing.T) {
	trainer := halls(t, hallConfig(), 1, keepNothing{})
	render := policy.NewChat(nil, trainer.Tokenizer, trainer.Template)
	by := told{someConversations, render}
	drawn := map[int]int{}
	for s := range episode.Seed(60) {
		tr, err := by.demonstration(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		n := 2 - len(tr.Turns) // the first has two replies
		drawn[n]++
		c := someConversations[n]
		last := len(c)
		for c[last-1].Role != chat.Assistant {
			last--
		}
		data, cut := cloneData([]episode.Trajectory{tr}, 0, 1000)
		if want := trainer.Template.Render(trainer.Tokenizer, c[:last], 0, false); len(data) != 1 || cut != 0 || !slices.Equal(data[0].IDs, want) {
			t.Fatalf("conversation %d is\n%v, want\n%v", n, data[0].IDs, want)
		}
		var said, want []int32
		for i, w := range data[0].Weight {
			if w != 0 {
				said = append(said, data[0].IDs[i])
			}
		}
		for _, m := range c[:last] {
			if m.Role == chat.Assistant {
				want = append(want, render.Encode(m.Text)...)
			}
		}
		if !slices.Equal(said, want) {
			t.Errorf("conversation %d: what is learnt is %v, want %v", n, said, want)
		}
	}
	if drawn[0] < 15 || drawn[1] < 15 {
		t.Errorf("drawn so often: %v", drawn)
	}
}

// A warm start on conversations needs no expert, and does not pretend to know how they ended.
func TestWarmStartOnConversations(t *testing.T) {
	cfg := hallConfig()
	cfg.Iterations, cfg.Warm.Updates, cfg.Warm.Round = 0, 4, 2
	m := &memory{}
	trainer := halls(t, cfg, 1, m)
	trainer.Conversations = someConversations
	if err := trainer.Run(t.Context(), Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	first, second := m.reports[0].Metrics, m.reports[1].Metrics
	if first["learn/loss"] <= second["learn/loss"] || first["warm/demonstrations"] == 0 {
		t.Errorf("%v, then %v", first, second)
	}
	for _, key := range []string{"warm/expert_success", "warm/steps_mean"} {
		if v, ok := first[key]; ok {
			t.Errorf("%s is %v", key, v)
		}
	}
}
