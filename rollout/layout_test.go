package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skillmaster/episode"
	"skillmaster/skill"
)

// In a window each turn has a prompt of its own: the first observation, the last steps, what is possible now.
func TestWindow(t *testing.T) {
	lines := append(slices.Repeat([]string{"<action>look</action>"}, 3), "<action>out</action>", skill.FormatCall(skill.Edit{Op: skill.Keep, Reason: "covered"}))
	s := says(lines...)
	p := player(s)
	p.Config.Layout, p.Config.History, p.Config.Recap, p.Config.ReviewTokens = Window, 2, 2, 1000
	tr, err := p.PlayAndReview(t.Context(), Start{Task: hallTask, Bank: bankOf(t, lookFirst), Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	system := "system: [dyn_001] Look first: Look before you leave.\n"
	step := "\n\n> look\nA door."
	possible := "\n\nPossible actions:\nlook\nout\n"
	want := []string{
		system + "user: A hall. Get out.\n\nPossible actions:\nlook\n",
		system + "user: A hall. Get out." + step + possible,
		system + "user: A hall. Get out." + step + step + possible,
		system + "user: A hall. Get out.\n\n(1 earlier steps are left out)" + step + step + possible,
	}
	for i, u := range tr.Turns {
		if r := s.Requests()[i]; r.Prior != nil || r.Seen != 0 || u.Continues {
			t.Errorf("turn %d goes on from %d ids", i, len(r.Prior))
		}
		if i < len(want) && u.Shown != want[i] {
			t.Errorf("turn %d shows\n%s\nwant\n%s", i, u.Shown, want[i])
		}
	}
	if !slices.Equal(tr.UsedSkills, []string{"dyn_001"}) {
		t.Errorf("used skills %v", tr.UsedSkills)
	}
	if !tr.Success || tr.Review == nil || tr.Review.Outcome != skill.Kept {
		t.Errorf("success %v, review %+v", tr.Success, tr.Review)
	}
	review := tr.Turns[len(tr.Turns)-1].Shown
	for _, part := range []string{system, "A hall. Get out.", "3. look", "4. out\nOutside.", "Of steps 1 to 2", "return: 1"} {
		if !strings.Contains(review, part) {
			t.Errorf("the review does not show %q:\n%s", part, review)
		}
	}
	if strings.Contains(review, "\n1. look") {
		t.Errorf("the review shows more than the last steps:\n%s", review)
	}
}

// A window that does not fit is halved until it does.
func TestWindowShrinks(t *testing.T) {
	s := says(slices.Repeat([]string{"<action>look</action>"}, 60)...)
	s.Context = 170
	p := player(s)
	p.Suite = hall{horizon: 12}
	p.Config.Layout, p.Config.History = Window, 8
	tr, err := p.Play(t.Context(), Start{Task: hallTask, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	if tr.Stop != episode.Horizon || len(tr.Steps) != 12 {
		t.Errorf("stop %v after %d steps", tr.Stop, len(tr.Steps))
	}
	if last := tr.Turns[11].Shown; !strings.Contains(last, "earlier steps are left out") || !strings.Contains(last, "> look") {
		t.Errorf("the last prompt is %q", last)
	}
}

// The review speaks of failure by the world's own flag, whatever was paid on the way.
func TestReviewSaysFailureByTheFlag(t *testing.T) {
	e := playing{cfg: DefaultConfig(), tr: episode.Trajectory{EnvReturn: 0.286, Stop: episode.Horizon}}
	if text := e.reviewText(); !strings.Contains(text, "failure") || !strings.Contains(text, "return: 0.286") {
		t.Error(text)
	}
	e.tr.Success, e.tr.EnvReturn = true, -1
	if text := e.reviewText(); !strings.Contains(text, "success") {
		t.Error(text)
	}
}

// Reviews are asked for, demonstrated and read in the form that is set; what a lenient reading mended is noted.
func TestReviewForms(t *testing.T) {
	edit := skill.Edit{Op: skill.Update, ID: "dyn_001", Title: "Look first", Principle: "Look twice before you leave.", When: "in a hall"}
	fenced := "```json\n" + strings.TrimSuffix(strings.TrimPrefix(skill.FormatCall(edit), "<tool_call>"), "</tool_call>") + "\n```"
	for name, c := range map[string]struct {
		form     skill.Mode
		reply    string
		want     skill.Outcome
		repaired int
	}{
		"json": {skill.Strict, skill.FormatCall(edit), skill.Updated, 0}, "json, fenced": {skill.Strict, fenced, skill.Unparsable, 0},
		"lenient": {skill.Lenient, fenced, skill.Updated, 2}, "xml": {skill.XML, skill.XML.Format(edit), skill.Updated, 0},
		"the wrong form": {skill.XML, skill.FormatCall(edit), skill.Unparsable, 0}, "lenient xml": {skill.LenientXML, strings.TrimSuffix(skill.XML.Format(edit), "</tool_call>"), skill.Updated, 1},
	} {
		p := player(says("<action>look</action>", "<action>out</action>", c.reply))
		p.Config.ReviewForm, p.Config.ReviewTokens, p.Config.Guide = c.form, 2000, true
		tr, err := p.PlayAndReview(t.Context(), Start{Task: hallTask, Bank: bankOf(t, lookFirst), Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		last := tr.Turns[len(tr.Turns)-1]
		if tr.Review == nil || tr.Review.Outcome != c.want || len(tr.Review.Repaired) != c.repaired || last.Text != c.reply {
			t.Errorf("%s: %+v", name, tr.Review)
		}
		if !strings.Contains(last.Shown, c.form.Tools()) {
			t.Errorf("%s: the tools are not shown in the form that is read", name)
		}
	}
}

// A contradiction is noted with the review.
func TestReviewNotesConflicts(t *testing.T) {
	edit := skill.Edit{Op: skill.Propose, Category: "halls", Title: "Leave", Principle: "Never look before you leave.", When: "in a hall"}
	p := player(says("<action>look</action>", "<action>out</action>", skill.FormatCall(edit)))
	p.Config.ReviewTokens = 1000
	tr, err := p.PlayAndReview(t.Context(), Start{Task: hallTask, Bank: bankOf(t, lookFirst), Seed: 3})
	if err != nil || tr.Review == nil || tr.Review.Outcome != skill.Added || !slices.Equal(tr.Review.Conflicts, []string{"dyn_001"}) {
		t.Errorf("%+v, %v", tr.Review, err)
	}
}

func TestWhatStandsInThePrompt(t *testing.T) {
	bank, err := skill.New([]skill.Skill{lookFirst}, []skill.Mistake{{Description: "Standing still.", Remedy: "Move."}, {Description: "Shouting."}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, "[dyn_001] Look first: Look before you leave.\n"},
		{func(c *Config) { c.When = true }, "[dyn_001] Look first: Look before you leave. When: in a hall\n"},
		{func(c *Config) { c.Mistakes = 1 }, "[dyn_001] Look first: Look before you leave.\nAvoid: Standing still. Instead: Move.\n"},
		{func(c *Config) { c.SkillTokens = 1 }, ""},
		{func(c *Config) { c.SkillTokens = 100 }, "[dyn_001] Look first: Look before you leave.\n"},
		{func(c *Config) { c.Retrieval, c.Mistakes = false, 2 }, ""},
	} {
		p := player(says("<action>look</action>", "<action>out</action>"))
		c.change(&p.Config)
		tr, err := p.Play(t.Context(), Start{Task: hallTask, Bank: bank})
		if err != nil {
			t.Fatal(err)
		}
		want := "user: A hall. Get out.\n"
		if c.want != "" {
			want = "system: " + c.want + want
		}
		if got := tr.Turns[0].Shown; got != want {
			t.Errorf("%+v\nshows %q\nwant  %q", p.Config, got, want)
		}
	}
	p := player(says("<action>look</action>", "<action>out</action>"))
	p.Config.SkillTokens = 8
	p.Count = func(text string) int { return len(strings.Fields(text)) }
	if tr, err := p.Play(t.Context(), Start{Task: hallTask, Bank: bank}); err != nil || len(tr.ShownSkills) != 1 {
		t.Errorf("counted with the tokenizer: %v, %v", tr.ShownSkills, err)
	}
}

// words is an embedder whose vectors say which of three words a text has.
type words struct{ err error }

func (w words) Embed(_ context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for _, t := range texts {
		v := []float32{0.1, 0, 0, 0}
		for i, word := range []string{"out", "leave", "look"} {
			v[i+1] = float32(strings.Count(strings.ToLower(t), word))
		}
		out = append(out, v)
	}
	return out, w.err
}

func TestRetrievalByEmbedding(t *testing.T) {
	door := skill.Skill{ID: "dyn_002", Category: "halls", Title: "Out", Principle: "Go out by the way out."}
	p := player(says("<action>look</action>", "<action>out</action>"))
	p.Config.RetrieveBy, p.Config.MaxSkills = skill.Embedded, 1
	start := Start{Task: hallTask, Bank: bankOf(t, lookFirst, door)}
	if _, err := p.Play(t.Context(), start); err == nil || !strings.Contains(err.Error(), "no server") {
		t.Errorf("without an embedder: %v", err)
	}
	p.Vectors = skill.NewVectors(words{})
	tr, err := p.Play(t.Context(), start)
	if err != nil || !slices.Equal(tr.ShownSkills, []string{"dyn_002"}) || len(tr.UsedSkills) > 0 {
		t.Errorf("shown %v, used %v, %v", tr.ShownSkills, tr.UsedSkills, err)
	}
	broken := errors.New("no answer")
	p.Vectors = skill.NewVectors(words{broken})
	if _, err := p.Play(t.Context(), start); !errors.Is(err, broken) {
		t.Errorf("a server that does not answer: %v", err)
	}
}

func TestLayoutNames(t *testing.T) {
	for l := range layouts {
		data, err := json.Marshal(l)
		var back Layout
		if err != nil || json.Unmarshal(data, &back) != nil || back != l || string(data) != fmt.Sprintf("%q", l) {
			t.Errorf("%v came back as %v", l, back)
		}
	}
	var l Layout
	if json.Unmarshal([]byte(`"scroll"`), &l) == nil {
		t.Error("a layout that there is not was read")
	}
}
