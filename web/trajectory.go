package web

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"skillmaster/chat"
	"skillmaster/episode"
	"skillmaster/store"
	"skillmaster/train"
)

// trajectoryBody is an episode, step by step.
type trajectoryBody struct {
	store.Recorded
	place
	Iteration int
	Members   []store.Played // of its group
	First     string         // text before the first action
	Steps     []stepView
	Review    *turnView
	Judgement *train.Judgement // of its review's edit
	HasLogs   bool             // sampling log-probabilities are known
}

// stepView is an action turn and what came of it.
type stepView struct {
	Number int
	episode.Step
	Turn *turnView // nil: the step has no turn of its own
}

// turnView is what a policy wrote, token by token where they can be told.
type turnView struct {
	Kind      episode.TurnKind
	Shown     string // before it
	Text      string
	Tokens    []token
	Truncated bool
	Shade     string // class of its advantage
	Advantage string // in words
}

// token is one id of a completion.
type token struct {
	Text  string
	Class string // how surprising it was
	Note  string
}

func (s *Server) trajectory(r *http.Request) (view, error) {
	v, run, err := s.look(r)
	if err != nil {
		return view{}, err
	}
	p, err := spot(r)
	if err != nil {
		return view{}, err
	}
	ctx := r.Context()
	b := trajectoryBody{place: p}
	if b.Recorded, err = run.Trajectory(ctx, p.Report, p.Group, p.Member); err != nil {
		return view{}, err
	}
	b.Iteration, _ = v.Iteration(p.Report)
	played, err := run.Trajectories(ctx, p.Report)
	if err != nil {
		return view{}, err
	}
	judgements, err := run.Judgements(ctx, p.Report)
	if err != nil {
		return view{}, err
	}
	if i := slices.IndexFunc(judgements, func(j train.Judgement) bool { return j.Group == p.Group && j.Member == p.Member }); i >= 0 {
		b.Judgement = &judgements[i]
	}
	w, err := s.runs.get(v.Name)
	if err != nil {
		return view{}, err
	}
	b.lay(w.words(ctx))
	out := view{page: "trajectory", Title: "Trajectory", Run: v, Tab: "trajectories"}
	for i, x := range played {
		if x.Group == p.Group {
			b.Members = append(b.Members, x)
			if x.Member == p.Member {
				if i > 0 {
					out.Prev = address(v.Name, "trajectories", p.Report, played[i-1].Group, played[i-1].Member)
				}
				if i+1 < len(played) {
					out.Next = address(v.Name, "trajectories", p.Report, played[i+1].Group, played[i+1].Member)
				}
			}
		}
	}
	out.Body = b
	return out, nil
}

// lay puts turns beside steps.
func (b *trajectoryBody) lay(words *chat.Tokenizer) {
	var actions []*turnView
	for _, u := range b.Turns {
		t := b.turn(u, words)
		b.HasLogs = b.HasLogs || len(u.LogProbs) > 0
		if u.Kind == episode.ReviewTurn {
			b.Review = t
		} else {
			actions = append(actions, t)
		}
	}
	if len(b.Turns) > 0 {
		b.First = b.Turns[0].Shown
	}
	for i, x := range b.Recorded.Steps {
		s := stepView{Number: i + 1, Step: x}
		if i < len(actions) {
			s.Turn = actions[i]
		}
		b.Steps = append(b.Steps, s)
	}
}

func (b *trajectoryBody) turn(u episode.Turn, words *chat.Tokenizer) *turnView {
	t := &turnView{Kind: u.Kind, Shown: u.Shown, Text: u.Text, Truncated: u.Truncated, Shade: "a-none", Advantage: "nothing was learnt from it"}
	if c := b.Credit; c != nil {
		switch {
		case u.Kind == episode.ActionTurn:
			t.Shade, t.Advantage = shade(c.ActionAdvantage), fmt.Sprintf("advantage %+.3f (action stream)", c.ActionAdvantage)
		case c.Measured:
			t.Shade, t.Advantage = shade(c.ReviewAdvantage), fmt.Sprintf("advantage %+.3f (review stream)", c.ReviewAdvantage)
		default:
			t.Advantage = "not measured: masked"
		}
	}
	if words != nil {
		t.Tokens = tokens(u, words)
	}
	return t
}

// shade is the class of an advantage: five steps to each side, the last from ±2 on.
func shade(a float64) string {
	n := int(math.Round(min(math.Abs(a), 2) / 2 * 5))
	switch {
	case n == 0:
		return "a-0"
	case a > 0:
		return "a-p" + strconv.Itoa(n)
	default:
		return "a-n" + strconv.Itoa(n)
	}
}

// tokens cuts a completion into its tokens. Neighbours that share a character are one.
func tokens(u episode.Turn, words *chat.Tokenizer) []token {
	var out []token
	var open []byte // of a character that is not whole yet
	for i, id := range u.Completion {
		text, ok := words.Token(id)
		if !ok {
			text = "\uFFFD"
		}
		note := fmt.Sprintf("id %d", id)
		class := ""
		if i < len(u.LogProbs) {
			p := math.Exp(float64(u.LogProbs[i]))
			note += fmt.Sprintf(", probability %.3g", p)
			switch {
			case p < 0.1:
				class = "rare"
			case p < 0.5:
				class = "unsure"
			}
		}
		open = append(open, text...)
		if !utf8.Valid(open) && i+1 < len(u.Completion) && len(open) < utf8.UTFMax {
			continue
		}
		out = append(out, token{string(bytes.ToValidUTF8(open, []byte("\uFFFD"))), class, note})
		open = open[:0]
	}
	return out
}

// readTokenizer reads a run's tokenizer.
func readTokenizer(file []byte) (*chat.Tokenizer, error) { return chat.Load(bytes.NewReader(file)) }
