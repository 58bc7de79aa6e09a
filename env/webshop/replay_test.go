package webshop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"skillmaster/env"
)

// TestRecordingsOfTheOriginal plays every recording of the original again.
func TestRecordingsOfTheOriginal(t *testing.T) {
	s := NewSuite(newShop(t, realCatalogue(t), GoalOptions{}), Options{})
	for file, want := range map[string]env.Replayed{
		"golden/episodes_1k.jsonl.gz":                {Episodes: 58, Steps: 786},
		"golden/goals_1k_synthetic_seed233.jsonl.gz": {Episodes: 6910},
		"golden/goals_1k_human_seed233.jsonl":        {Episodes: 13},
		"golden/lucene_rankings_1k.jsonl.gz":         {Episodes: 219},
		"golden/agenttraj_terminal_rewards.json":     {Episodes: 413},
		"golden/prng.json":                           {Skipped: make([]env.Skipped, 1)},
		"golden/lucene_tokens.json":                  {Skipped: make([]env.Skipped, 1)},
		"transcripts/agenttraj_1k_413.jsonl.gz":      {Episodes: 207, Steps: 1041},
		"transcripts/agentquest_jumpsuits.json":      {Episodes: 1, Steps: 3},
		"transcripts/human_20220427_1_6.json":        {Skipped: make([]env.Skipped, 1)},
	} {
		t.Run(file, func(t *testing.T) {
			got, err := s.Replay(t.Context(), os.DirFS(filepath.Join(dataDir(t), filepath.Dir(file))), filepath.Base(file))
			if err != nil {
				t.Fatal(err)
			}
			if got.First != nil {
				t.Errorf("%v", got.First)
			}
			if got.Episodes != want.Episodes || got.Steps != want.Steps || len(got.Skipped) != len(want.Skipped) {
				t.Errorf("got %d episodes, %d steps, skipped %v; want %d, %d, %d skipped", got.Episodes, got.Steps, got.Skipped, want.Episodes, want.Steps, len(want.Skipped))
			}
		})
	}
}

// mugShop sells a mug and a lamp, and has goals for the mug.
func mugShop(t testing.TB) *Shop {
	t.Helper()
	c, _, err := read(t, `[`+mugJSON+`,`+lampJSON+`]`, mugsAttr, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return newShop(t, c, GoalOptions{})
}

// recorded is an episode as the shop itself plays it.
func recorded(t testing.TB, s *Shop) string {
	t.Helper()
	play := func(show func(*Session) string) (steps []map[string]any) {
		v := s.with(spaced{}).NewSession(s.Goal(0), 0)
		for i, a := range []string{"", "search[blue]", "click[b000000001]", "click[1 l]", "dance", "click[buy now]"} {
			took := i > 0 && v.Act(a)
			reward := 0.0
			if took && v.at == donePage {
				reward = v.score.Total
			}
			steps = append(steps, map[string]any{
				"action": a, "obs": show(v), "reward": reward, "done": took && v.at == donePage, "has_search_bar": v.HasSearchBar(), "clickables": v.Clickables(),
			})
		}
		return steps
	}
	g := s.Goal(0)
	options := map[string]string{}
	for _, o := range g.Options {
		options[o.Group] = o.Value
	}
	b, err := json.Marshal(map[string]any{
		"tag": "by hand", "goal_idx": 0, "noun_oracle": spacedNouns, "steps_text": play((*Session).Text), "steps_text_rich": play((*Session).Rich),
		"goal": map[string]any{
			"asin": "B000000001", "query": "mugs", "instruction_text": g.Instruction, "attributes": g.Attributes, "price_upper": g.Most, "goal_options": options, "weight": s.Weight(g.Index),
		},
		"verbose_info": map[string]any{"r_type": 1.0, "r_att": 1.0, "w_att": 1.0 / 3, "r_option": 1.0, "query_match": true, "title_score": 1.0, "r_price": true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func replayText(t testing.TB, s *Shop, recording string) (env.Replayed, error) {
	t.Helper()
	return NewSuite(s, Options{}).Replay(t.Context(), fstest.MapFS{"r.json": {Data: []byte(recording)}}, "r.json")
}

func TestReplayFindsDifferences(t *testing.T) {
	s := mugShop(t)
	episode := recorded(t, s)
	goal := `{"idx":1,"asin":"B000000001","query":"mugs","instruction_text":"` + s.Goal(1).Instruction + `","attributes":["dishwasher safe"],"price_upper":20,"goal_options":{"size":"` + s.Goal(1).Options[0].Value + `"},"weight":0.5}`
	goal = strings.Replace(goal, `"price_upper":20`, `"price_upper":`+float(s.Goal(1).Most), 1)
	ranking := `{"query":"bright blue lamp","hits":[["B000000002",2.5],["B000000001",1.5]]}`
	purchase := `[{"goal_idx":0,"purchased":"B000000002","goal_asin":"B000000001","options":{},"price":5,"price_upper":10,"whitespace":{"reward":0,"info":{"r_type":0,"r_price":true}}}]`
	log := `{"source":"","goal":{"asin":"B000000001","goal_options":["1 l"],"attributes":["dishwasher safe"],"price_upper":10},"pages":[{"page":"index"},` +
		`{"page":"search_results","content":{"keywords":["blue"],"search_result_asins":["B000000001"],"page":1}},` +
		`{"page":"done","content":{"asin":"B000000001","options":{"size":"1 l"},"price":9},"reward":1,"reward_info":{"r_att":1,"r_price":true}}]}`
	for name, c := range map[string]struct {
		recording, old, new string
		step                int
		what                string // "" for no difference
	}{
		"episode":         {episode, "", "", 0, ""},
		"product":         {episode, `"asin":"B000000001"`, `"asin":"B000000002"`, 0, "product"},
		"instruction":     {episode, `"instruction_text":"Find`, `"instruction_text":"Get`, 0, "instruction"},
		"attributes":      {episode, `"attributes":["dishwasher safe"]`, `"attributes":[]`, 0, "attributes"},
		"goal's option":   {episode, `"goal_options":{"size"`, `"goal_options":{"form"`, 0, "options"},
		"first page":      {episode, `"obs":"WebShop [SEP]`, `"obs":"Webshop [SEP]`, 0, "observation"},
		"page":            {episode, `Rating: N.A. [SEP]`, `Rating: 5 [SEP]`, 2, "observation"},
		"rich page":       {episode, `You have clicked 1 l.`, `You clicked 1 l.`, 3, "observation"},
		"clickables":      {episode, `"buy now",`, ``, 2, "clickables"},
		"search bar":      {episode, `"has_search_bar":true`, `"has_search_bar":false`, 0, "search bar"},
		"done":            {episode, `"done":true`, `"done":false`, 5, "done"},
		"reward":          {episode, `"reward":1`, `"reward":0.5`, 5, "reward"},
		"part of it":      {episode, `"r_att":1`, `"r_att":0`, 5, "r_att"},
		"title":           {episode, `"title_score":1`, `"title_score":0.5`, 5, "title_score"},
		"goal":            {goal, "", "", 0, ""},
		"goal's query":    {goal, `"mugs"`, `"cups"`, 0, "query"},
		"goal's weight":   {goal, `"weight":0.5`, `"weight":1`, 0, "weight"},
		"too many goals":  {goal, `"idx":1`, `"idx":2`, 0, "goals"},
		"ranking":         {ranking, "", "", 0, ""},
		"ranked":          {ranking, "B000000002", "B000000003", 0, "products"},
		"purchase":        {purchase, "", "", 0, ""},
		"purchase paid":   {purchase, `"reward":0`, `"reward":0.5`, 0, "reward"},
		"purchase priced": {purchase, `"r_price":true`, `"r_price":false`, 0, "r_price"},
		"log":             {log, "", "", 0, ""},
		"log's results":   {log, `["B000000001"]`, `[]`, 1, "products"},
		"log's reward":    {log, `"reward":1`, `"reward":0.5`, 2, "reward"},
		"log's part":      {log, `"r_att":1`, `"r_att":0`, 2, "r_att"},
		"log's purchase":  {log, `"content":{"asin":"B000000001"`, `"content":{"asin":"B000000003"`, 2, "product"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.old != "" && !strings.Contains(c.recording, c.old) {
				t.Fatalf("nothing to spoil: %q is not in %s", c.old, c.recording)
			}
			got, err := replayText(t, s, strings.Replace(c.recording, c.old, c.new, 1))
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case got.Episodes != 1:
				t.Errorf("got %d episodes, skipped %v", got.Episodes, got.Skipped)
			case c.what == "" && got.First != nil:
				t.Errorf("got difference %v, want none", got.First)
			case c.what != "" && got.First == nil:
				t.Error("got no difference")
			case c.what != "" && (got.First.What != c.what || got.First.Step != c.step):
				t.Errorf("got step %d, %s; want step %d, %s", got.First.Step, got.First.What, c.step, c.what)
			}
		})
	}
}

func TestReplayRefuses(t *testing.T) {
	s := mugShop(t)
	for name, c := range map[string]struct{ recording, want string }{
		"no JSON":         {"hello", "episode 1"},
		"unknown field":   {`{"query":"x","hits":[],"colour":"red"}`, "colour"},
		"hit":             {`{"query":"x","hits":[["B0","high"]]}`, "hit 1"},
		"unknown nouns":   {`{"goal_idx":0,"steps_text":[],"noun_oracle":"a guess"}`, "a guess"},
		"other order":     {`{"steps":[],"source":"","shuffle_seed":7}`, "shuffled"},
		"no first page":   {`{"steps":[],"source":""}`, "first page"},
		"no instruction":  {`{"source":"","steps":[{"obs":"WebShop"}]}`, "no instruction"},
		"no price":        {`{"source":"","steps":[{"obs":"WebShop [SEP] Instruction: [SEP] x, and price lower than dollars"}]}`, "no digits"},
		"goal without id": {`{"weight":1,"goal_options":{}}`, "idx"},
		"list of lists":   {`[[]]`, "want an object"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := replayText(t, s, c.recording); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v; want an error with %q", got, err, c.want)
			}
		})
	}
	folder := fstest.MapFS{"r.json": {Data: []byte("{}")}, pricesFile: {Data: []byte("[]")}}
	if _, err := NewSuite(s, Options{}).Replay(t.Context(), folder, "r.json"); err == nil || !strings.Contains(err.Error(), pricesFile) {
		t.Errorf("a bad list of prices: %v", err)
	}
	if got, err := replayText(t, s, `{"a":1}{"b":2}`); err != nil || len(got.Skipped) != 1 || got.Episodes != 0 {
		t.Errorf("a table: got %+v, %v", got, err)
	}
}

func FuzzReplay(f *testing.F) {
	s := mugShop(f)
	f.Add(recorded(f, s))
	f.Add(`{"query":"lamp","hits":[["B000000002",2.5]]}`)
	f.Add(`{"source":"","steps":[{"obs":"WebShop [SEP] Instruction: [SEP] x"},{"action":"search[a]"}],"goal_idx":0}`)
	f.Fuzz(func(t *testing.T, recording string) {
		got, err := replayText(t, s, recording)
		if err == nil && got.First == nil && got.Steps > len(recording) {
			t.Errorf("%d steps out of %d bytes", got.Steps, len(recording))
		}
	})
}

// FuzzAct plays whatever: pages can be shown, and what is listed can be clicked.
func FuzzAct(f *testing.F) {
	s := mugShop(f)
	f.Add("search[mug]\x00click[b000000001]\x00click[1 | 2 l]\x00click[buy now]")
	f.Add("search[<r>]\x00click[next >]\x00click[< prev]")
	f.Add("search[<a> dishwasher safe]\x00click[b000000001]\x00click[features]\x00click[< prev]\x00click[back to search]")
	f.Fuzz(func(t *testing.T, script string) {
		v := s.NewSession(s.Goal(0), 0)
		for a := range strings.SplitSeq(script, "\x00") {
			before := v.Text()
			if took := v.Act(a); !took && v.Text() != before {
				t.Fatalf("%q is no action and changes the page", a)
			}
			_ = v.Rich()
			for _, c := range clicks(v.Clickables()) {
				if c == "click[search]" {
					continue // listed as the original does
				}
				if f := v.Fork(); !f.Act(string(c)) {
					t.Fatalf("%s is listed and cannot be clicked", c)
				}
			}
		}
	})
}
