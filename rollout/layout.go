package rollout

import (
	"context"
	"fmt"
	"strings"

	"skillmaster/chat"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/skill"
)

// Layout says how an episode becomes prompts.
type Layout uint8

// The layouts.
const (
	// Transcript is one sequence that only grows: what was shown and sampled stays as it is.
	Transcript Layout = iota
	// Window is a prompt made anew for each turn, as published agents have it: the first observation, the last steps with what
	// came of them, and the actions that are possible now where the world lists them. Each turn is a sequence of its own.
	Window
	layouts
)

var layoutNames = [layouts]string{"transcript", "window"}

// String returns the layout's name.
func (l Layout) String() string {
	if l < layouts {
		return layoutNames[l]
	}
	return fmt.Sprintf("layout %d", uint8(l))
}

// MarshalText writes the layout by name.
func (l Layout) MarshalText() ([]byte, error) {
	if l >= layouts {
		return nil, fmt.Errorf("no such layout: %d", uint8(l))
	}
	return []byte(layoutNames[l]), nil
}

// UnmarshalText reads what MarshalText writes.
func (l *Layout) UnmarshalText(text []byte) error {
	for i, name := range layoutNames {
		if name == string(text) {
			*l = Layout(i)
			return nil
		}
	}
	return fmt.Errorf("no such layout: %q: it is transcript or window", text)
}

// system is the first message, where there is one.
func (e *playing) system() []chat.Message {
	mistakes := e.bank.Mistakes()
	if mistakes = mistakes[:min(len(mistakes), e.cfg.Mistakes)]; !e.cfg.Retrieval {
		mistakes = nil
	}
	if text := systemText(e.guide, e.shown, mistakes, e.cfg); text != "" {
		return []chat.Message{{Role: chat.System, Text: text}}
	}
	return nil
}

// actionTurn asks for an action. A window that does not fit the policy's context is halved until it does.
func (e *playing) actionTurn(ctx context.Context, allowed []string, answer complete) (policy.Completion, error) {
	ask := func() (policy.Completion, error) {
		return e.turn(ctx, episode.ActionTurn, e.cfg.ActionTokens, allowed, answer)
	}
	if e.cfg.Layout == Transcript {
		return ask()
	}
	for steps := e.cfg.History; ; steps /= 2 {
		e.messages = append(e.system(), chat.Message{Role: chat.User, Text: e.window(steps)})
		if c, err := ask(); err != nil || c.Stop != policy.NoContext || steps <= 1 {
			return c, err
		}
	}
}

// window is the prompt of an action turn: the last steps and what is possible now.
func (e *playing) window(steps int) string {
	var out strings.Builder
	out.WriteString(e.first)
	from := max(0, len(e.tr.Steps)-steps)
	if from > 0 {
		fmt.Fprintf(&out, "\n\n(%d earlier steps are left out)", from)
	}
	for _, s := range e.tr.Steps[from:] {
		fmt.Fprintf(&out, "\n\n> %s\n%s", s.Action, s.Observation)
	}
	if len(e.now.Admissible) > 0 {
		out.WriteString("\n\nPossible actions:")
		for _, a := range e.now.Admissible {
			out.WriteString("\n" + string(a))
		}
		if e.now.More {
			out.WriteString("\n(and others, in words of your own)")
		}
	}
	return out.String()
}

// lines is skills and mistakes as they stand in a prompt.
func (c Config) lines(shown []skill.Skill, mistakes []skill.Mistake) string {
	if c.When {
		return skill.RenderFull(shown, mistakes)
	}
	return skill.Render(shown, mistakes)
}
