package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/policy/policytest"
	"skillmaster/skill"

	"github.com/google/go-cmp/cmp"
)

// hall is a world of one task: find the way out by saying "out" after at least one "look". It breaks on "break".
type hall struct{ horizon int }

func (h hall) Tasks(string) ([]episode.Task, error) { return []episode.Task{hallTask}, nil }
func (h hall) Guide() env.Guide {
	return env.Guide{
		Role: "You are in a hall.", Rules: "look, out", Horizon: h.horizon, SuccessReward: 1,
		Categories: map[string][]string{"halls": {"hall"}},
	}
}

func (h hall) Open(context.Context, episode.Task, episode.Seed) (env.Env, episode.Observation, error) {
	return &inHall{}, episode.Observation{Text: "A hall. Get out.", Admissible: []episode.Action{"look"}}, nil
}

var hallTask = episode.Task{ID: "hall/1", Family: "hall", Category: "halls", Goal: "get out of the hall"}

type inHall struct{ looked bool }

func (e *inHall) Step(_ context.Context, a episode.Action) (episode.StepResult, error) {
	switch {
	case a == "break":
		return episode.StepResult{}, errors.New("the roof came down")
	case a == "look":
		e.looked = true
		return episode.StepResult{Observation: episode.Observation{Text: "A door.", Admissible: []episode.Action{"look", "out"}}, Admissible: true}, nil
	case a == "out" && e.looked:
		return episode.StepResult{Observation: episode.Observation{Text: "Outside."}, Reward: 1, Done: true, Success: true, Admissible: true}, nil
	}
	return episode.StepResult{Observation: episode.Observation{Text: "Nothing happens."}}, nil
}

func (*inHall) Close() error { return nil }

// says is a policy of ids that replies with the given lines.
func says(lines ...string) *policytest.Script {
	s := policytest.Lines(lines...)
	s.IDs, s.Version = true, 7
	return s
}

func player(p policy.Policy) *Player {
	return &Player{Suite: hall{horizon: 5}, Policy: p, Config: DefaultConfig()}
}

func bankOf(t *testing.T, skills ...skill.Skill) skill.Bank {
	t.Helper()
	b, err := skill.New(skills, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var lookFirst = skill.Skill{ID: "dyn_001", Category: "halls", Title: "Look first", Principle: "Look before you leave.", When: "in a hall"}

func TestEpisode(t *testing.T) {
	for name, c := range map[string]struct {
		lines                   []string
		stop                    episode.StopReason
		steps                   int
		inadmissible, malformed int
		envReturn               float64
	}{
		"success":               {[]string{"<action>look</action>", "<action>out</action>"}, episode.Succeeded, 2, 0, 0, 1},
		"inadmissible":          {[]string{"<action>out</action>", "<action>look</action>", "<action>out</action>"}, episode.Succeeded, 3, 1, 0, 1},
		"horizon":               {slices.Repeat([]string{"<action>look</action>"}, 5), episode.Horizon, 5, 0, 0, 0},
		"malformed three times": {[]string{"look", "look", "look"}, episode.Degenerate, 3, 0, 3, 0},
		"malformed, then not":   {[]string{"x", "x", "<action>look</action>", "x", "x"}, episode.Horizon, 5, 0, 4, 0},
		"empty":                 {[]string{""}, episode.Degenerate, 1, 0, 1, 0},
		// The guard never takes a success back.
		"malformed but winning": {[]string{"<action>look</action>", "x", "x", "out"}, episode.Succeeded, 4, 0, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := player(says(c.lines...)).Play(t.Context(), Start{Task: hallTask, Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			if tr.Stop != c.stop || len(tr.Steps) != c.steps || tr.Inadmissible() != c.inadmissible || tr.Malformed() != c.malformed || tr.EnvReturn != c.envReturn {
				t.Errorf("stop %v after %d steps, %d inadmissible, %d malformed, return %v; want %v, %d, %d, %d, %v",
					tr.Stop, len(tr.Steps), tr.Inadmissible(), tr.Malformed(), tr.EnvReturn, c.stop, c.steps, c.inadmissible, c.malformed, c.envReturn)
			}
			if tr.Success != (c.stop == episode.Succeeded) || tr.PolicyVersion != 7 || tr.Review != nil {
				t.Errorf("success %v, version %d, review %v", tr.Success, tr.PolicyVersion, tr.Review)
			}
		})
	}
}

// The sequence of a trajectory is what the policy was shown and what it chose, each id once, in order.
func TestTurnsMakeUpOneSequence(t *testing.T) {
	s := says("<action>look</action>", "<action>out</action>", "<tool_call>{}</tool_call>")
	tr, err := player(s).PlayAndReview(t.Context(), Start{Task: hallTask, Bank: bankOf(t, lookFirst), Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	var whole []int32
	for i, u := range tr.Turns {
		r := s.Requests()[i]
		if diff := cmp.Diff(whole, r.Prior, cmpEmpty); diff != "" {
			t.Errorf("turn %d was not asked to go on from what came before:\n%s", i, diff)
		}
		if u.Continues != (i > 0) {
			t.Errorf("turn %d: continues %v", i, u.Continues)
		}
		whole = append(append(whole, u.Prompt...), u.Completion...)
	}
	if kinds := []episode.TurnKind{tr.Turns[0].Kind, tr.Turns[1].Kind, tr.Turns[2].Kind}; !slices.Equal(kinds, []episode.TurnKind{episode.ActionTurn, episode.ActionTurn, episode.ReviewTurn}) {
		t.Errorf("turns are %v", kinds)
	}
	if !strings.Contains(tr.Turns[0].Shown, lookFirst.Principle) || !slices.Equal(tr.ShownSkills, []string{"dyn_001"}) {
		t.Errorf("the skill is not in the first prompt: %q, %v", tr.Turns[0].Shown, tr.ShownSkills)
	}
	for _, want := range []string{"Outside.", "success", "steps: 2", "return: 1", "halls", "dyn_001"} {
		if !strings.Contains(tr.Turns[2].Shown, want) {
			t.Errorf("the review does not show %q: %q", want, tr.Turns[2].Shown)
		}
	}
	if tr.Tokens() != len(whole) {
		t.Errorf("%d tokens, want %d", tr.Tokens(), len(whole))
	}
}

var cmpEmpty = cmp.Comparer(func(a, b []int32) bool { return slices.Equal(a, b) })

func TestReview(t *testing.T) {
	propose := skill.FormatCall(skill.Edit{Op: skill.Propose, Category: "halls", Title: "Look around", Principle: "Look at the whole room first.", When: "in a room"})
	update := skill.FormatCall(skill.Edit{Op: skill.Update, ID: "dyn_001", Title: "Look first", Principle: "Look twice before you leave.", When: "in a hall"})
	other := skill.FormatCall(skill.Edit{Op: skill.Update, ID: "dyn_009", Title: "Look first", Principle: "Look twice before you leave.", When: "in a hall"})
	for name, c := range map[string]struct {
		reply string
		want  skill.Outcome
	}{
		"propose":      {propose, skill.Added},
		"update":       {update, skill.Updated},
		"not shown":    {other, skill.NotFound},
		"keep":         {skill.FormatCall(skill.Edit{Op: skill.Keep, Reason: "covered"}), skill.Kept},
		"two calls":    {propose + update, skill.MultipleCalls},
		"no call":      {"I would keep it.", skill.Unparsable},
		"an action":    {"<action>look</action>", skill.Unparsable},
		"unknown tool": {`<tool_call>{"name":"go_to","arguments":{}}</tool_call>`, skill.UnknownTool},
		"wrong type":   {`<tool_call>{"name":"keep_skill","arguments":{"reason":7}}</tool_call>`, skill.InvalidArguments},
		"cut off":      {`<tool_call>{"name":"keep_skill","argu`, skill.Unparsable},
	} {
		t.Run(name, func(t *testing.T) {
			p := player(says("<action>look</action>", "<action>out</action>", c.reply))
			p.Config.ReviewTokens = 1000
			tr, err := p.PlayAndReview(t.Context(), Start{Task: hallTask, Bank: bankOf(t, lookFirst), Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			if tr.Review == nil || tr.Review.Outcome != c.want {
				t.Errorf("review %+v, want outcome %v", tr.Review, c.want)
			}
			if got := tr.Turns[len(tr.Turns)-1].Text; got != c.reply {
				t.Errorf("the raw reply is not kept: %q", got)
			}
		})
	}
}

// A review that the limit of tokens cut off says so; one that ends there by itself was written badly.
func TestReviewCutOff(t *testing.T) {
	whole := skill.FormatCall(skill.Edit{Op: skill.Keep, Reason: "covered"})
	half := whole[:len(whole)/2]
	for _, c := range []struct {
		reply string
		most  int
		cut   bool
	}{{whole, len(half), true}, {half, 1000, false}} {
		p := player(says("<action>look</action>", "<action>out</action>", c.reply))
		p.Config.ReviewTokens = c.most
		tr, err := p.PlayAndReview(t.Context(), Start{Task: hallTask, Bank: bankOf(t, lookFirst), Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		last := tr.Turns[len(tr.Turns)-1]
		if r := tr.Review; r == nil || r.Outcome != skill.Unparsable || strings.HasPrefix(r.Fault, "truncated: ") != c.cut || last.Truncated != c.cut || last.Text != half {
			t.Errorf("%q within %d tokens: %+v, turn %+v", c.reply, c.most, r, last)
		}
	}
}

// A context that fills up ends the episode; a review for which there is no room is not taken.
func TestContextFull(t *testing.T) {
	s := says(slices.Repeat([]string{"<action>look</action>"}, 5)...)
	s.Context = 120
	tr, err := player(s).PlayAndReview(t.Context(), Start{Task: hallTask, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	if tr.Stop != episode.ContextFull || tr.Review != nil || len(tr.Steps) == 0 {
		t.Errorf("stop %v, review %v, %d steps", tr.Stop, tr.Review, len(tr.Steps))
	}
	if tr.Tokens() > 120 {
		t.Errorf("%d tokens in a context of 120", tr.Tokens())
	}
}

func TestBrokenWorldIsNoFailure(t *testing.T) {
	if _, err := player(says("<action>break</action>")).Play(t.Context(), Start{Task: hallTask}); !errors.Is(err, ErrWorld) {
		t.Errorf("got %v, want ErrWorld", err)
	}
}

// A world that reports a cancelled context did not break: nobody should play the episode again.
func TestCancelledStepIsNoBrokenWorld(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := says()
	s.Say = func(context.Context, policy.Request) (string, error) {
		cancel()
		return "<action>break</action>", nil
	}
	_, err := player(s).Play(ctx, Start{Task: hallTask})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrWorld) {
		t.Errorf("got %v, want the context's error alone", err)
	}
}

func TestPolicyMayNotChangeWithinAnEpisode(t *testing.T) {
	s := says()
	s.Say = func(_ context.Context, r policy.Request) (string, error) {
		s.Version++
		return "<action>look</action>", nil
	}
	if _, err := player(s).Play(t.Context(), Start{Task: hallTask}); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("got %v, want an error about the version", err)
	}
}

// A constrained policy is given the admissible actions as replies, of action turns only.
func TestConstrained(t *testing.T) {
	s := says("<action>look</action>", "<action>out</action>", "")
	p := player(s)
	p.Config.Constrained = true
	if _, err := p.PlayAndReview(t.Context(), Start{Task: hallTask}); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, r := range s.Requests() {
		got = append(got, r.Allowed)
	}
	want := [][]string{{"<action>look</action>"}, {"<action>look</action>", "<action>out</action>"}, nil}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("allowed replies (-want +got):\n%s", d)
	}
}

// A policy of messages alone can be played, and leaves no ids to learn from.
func TestMessageOnlyPolicy(t *testing.T) {
	s := policytest.Lines("<action>look</action>", "<action>out</action>")
	tr, err := player(s).Play(t.Context(), Start{Task: hallTask})
	if err != nil {
		t.Fatal(err)
	}
	if !tr.Success || tr.Tokens() != 0 {
		t.Errorf("success %v with %d tokens", tr.Success, tr.Tokens())
	}
	if r := s.Requests()[1]; r.Seen != 0 || len(r.Messages) != 3 {
		t.Errorf("the second request has %d messages, %d of them seen", len(r.Messages), r.Seen)
	}
}

func TestGuideAndRetrieval(t *testing.T) {
	for _, guide := range []bool{false, true} {
		for _, retrieval := range []bool{false, true} {
			p := player(says("<action>look</action>", "<action>out</action>"))
			p.Config.Guide, p.Config.Retrieval = guide, retrieval
			tr, err := p.Play(t.Context(), Start{Task: hallTask, Bank: bankOf(t, lookFirst)})
			if err != nil {
				t.Fatal(err)
			}
			shown := tr.Turns[0].Shown
			if strings.Contains(shown, "You are in a hall.") != guide || strings.Contains(shown, lookFirst.Principle) != retrieval || (len(tr.ShownSkills) > 0) != retrieval {
				t.Errorf("guide %v, retrieval %v: prompt %q, shown %v", guide, retrieval, shown, tr.ShownSkills)
			}
		}
	}
}

func TestAllReturnsByIndex(t *testing.T) {
	for _, workers := range []int{0, 1, 7} {
		var mu sync.Mutex
		calls := 0
		got, err := All(t.Context(), 50, workers, func(_ context.Context, i int) (episode.Trajectory, error) {
			mu.Lock()
			calls++
			mu.Unlock()
			return episode.Trajectory{Seed: episode.Seed(i)}, nil
		})
		if err != nil || calls != 50 {
			t.Fatalf("%d calls, %v", calls, err)
		}
		for i, tr := range got {
			if tr.Seed != episode.Seed(i) {
				t.Errorf("%d workers: place %d holds %d", workers, i, tr.Seed)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := All(ctx, 3, 2, func(context.Context, int) (episode.Trajectory, error) { return episode.Trajectory{}, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancellation: %v", err)
	}
	if _, err := All(t.Context(), 3, 2, func(_ context.Context, i int) (episode.Trajectory, error) {
		return episode.Trajectory{}, fmt.Errorf("episode %d", i)
	}); err == nil {
		t.Error("an episode failed and All did not")
	}
}

// By prefix, the release's rule, the first general skills stand in the prompt, and all of the category.
func TestRetrievalByPrefix(t *testing.T) {
	general := func(id, title string) skill.Skill {
		return skill.Skill{ID: id, Category: skill.General, Title: title, Principle: title + " before all else."}
	}
	p := player(says("<action>look</action>", "<action>out</action>"))
	p.Config.RetrieveBy, p.Config.MaxSkills = skill.Prefix, 1
	tr, err := p.Play(t.Context(), Start{Task: hallTask, Bank: bankOf(t, general("g1", "Breathe"), general("g2", "Wait"), lookFirst)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"g1", lookFirst.ID}, tr.ShownSkills); diff != "" {
		t.Error(diff)
	}
	if p.Config.MaxSkills = 0; p.Config.Validate() == nil {
		t.Error("no general skill would ever be shown, and nothing is said")
	}
}
