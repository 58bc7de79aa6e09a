package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"skillmaster/chat"
	"skillmaster/env"
	"skillmaster/env/webshop"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/probe"
	"skillmaster/rollout"
	"skillmaster/skill"
	"skillmaster/train"
)

// A generated shop's panels share no task, those that are learned on share no product, and demonstrations come from
// another shop.
func TestShopPanels(t *testing.T) {
	c := defaultWorld(madeShop)
	c.Sizes = map[string]int{"products": 700, "warm": 140}
	suite, p, err := openWorld(t.Context(), c, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]string{}
	for _, q := range []episode.Panel{p.Train, p.Probe, p.Gate, p.Valid} {
		if len(q.Tasks) == 0 {
			t.Errorf("panel %s is empty", q.Name)
		}
		for _, task := range q.Tasks {
			product := strings.Split(task.ID, "/")[2]
			if other := in[product]; other != "" && other != q.Name {
				t.Errorf("goals for product %s are in panels %s and %s", product, other, q.Name)
			}
			in[product] = q.Name
		}
	}
	for _, task := range p.Warm.Tasks {
		if task.Split != "warm" {
			t.Fatalf("a demonstration is of %s", task.ID)
		}
	}
	if shelf := suite.Guide().Categories; len(shelf) != 7 {
		t.Errorf("categories %v", shelf)
	}
	few := worldConfig{Name: madeShop, Human: true, Sizes: map[string]int{"products": 140}}
	if _, _, err := openWorld(t.Context(), few, "", io.Discard); err == nil || !strings.Contains(err.Error(), "so few goals") {
		t.Errorf("a shop with nothing to train on: %v", err)
	}
	for _, wrong := range []worldConfig{{Name: madeShop, Full: true}, {Name: household, Human: true}, {Name: realShop, House: 1}, {Name: madeShop, Custom: 0.5}, {Name: household, Shop: shopConfig{AnyGoal: true}}} {
		if err := wrong.validate(); err == nil {
			t.Errorf("%+v is let through", wrong)
		}
	}
}

// A catalogue that was written can be played where it lies.
func TestDataShop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "shop")
	run := func(args ...string) (string, string, int) {
		var stdout, stderr strings.Builder
		code := execute(context.Background(), args, strings.NewReader("search[lamp]\nclick[next >]\n"), &stdout, &stderr)
		return stdout.String(), stderr.String(), code
	}
	out, errs, code := run("data", "shop", "--to", dir, "--products", "70", "--seed", "5")
	if code != exitDone || len(strings.Fields(out)) != 4 {
		t.Fatalf("got %d, %q, %q", code, out, errs)
	}
	first, err := os.ReadFile(strings.Fields(out)[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, errs, code := run("data", "shop", "--to", dir, "--products", "70", "--seed", "5"); code != exitDone {
		t.Fatalf("again: %d, %q", code, errs)
	}
	if again, err := os.ReadFile(strings.Fields(out)[0]); err != nil || !slices.Equal(again, first) {
		t.Errorf("written again it has other bytes (%v)", err)
	}
	if out, errs, code := run("play", "--env", realShop, "--data", dir); code != exitDone || !strings.Contains(out, "Page 2 (Total results:") {
		t.Errorf("play: %d, %q, %q", code, out, errs)
	}
	if _, _, code := run("data", "shop", "--to", dir, "--products", "0"); code != exitUsage {
		t.Errorf("no products: exit code %d", code)
	}
	if _, errs, code := run("play", "--env", realShop, "--data", t.TempDir()); code != exitFailed || !strings.Contains(errs, "items_shuffle_1000.json") {
		t.Errorf("no shop: %d, %q", code, errs)
	}
}

// TestShopScore: a purchase counts with its score, whatever it pays; nothing bought counts as nothing; and what ends otherwise
// when it is played again is no evaluation of these episodes.
func TestShopScore(t *testing.T) {
	c := defaultWorld(madeShop)
	c.Sizes = map[string]int{"products": 700}
	suite, p, err := openWorld(t.Context(), c, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	shop := suite.(*webshop.Suite)
	e := train.Evaluation{Seed: 3}
	panel := episode.Panel{Tasks: p.Train.Tasks[:2]}
	var won []episode.Action
	world, _, err := shop.Open(t.Context(), panel.Tasks[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	x, err := shop.Expert(world, env.Knows, nil, nil)
	for more := err == nil; more; {
		var a episode.Action
		if a, more = x.Next(); more {
			won = append(won, a)
			_, err = world.Step(t.Context(), a)
			more = err == nil
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	e.Results = []train.Result{{Task: panel.Tasks[0].ID, Success: true, Actions: won}, {Task: panel.Tasks[1].ID, Actions: []episode.Action{"search[lamp]"}}}
	if got, err := shopScore(t.Context(), shop, panel, e); got != 50 || err != nil {
		t.Errorf("got %v, %v, want 50", got, err)
	}
	e.Results[1].Actions = []episode.Action{"search[<q> nothing]", "click[buy now]"}
	e.Results[1].Success = true
	if got, err := shopScore(t.Context(), shop, panel, e); err == nil {
		t.Errorf("a success that is none: got %v", got)
	}
}

// watched notes which goals its visits were for.
type watched struct {
	*webshop.Suite
	mu     sync.Mutex
	goals  map[string]string // of the visits, by the goal that was asked for
	opened int
}

func (w *watched) Open(ctx context.Context, t episode.Task, s episode.Seed) (env.Env, episode.Observation, error) {
	e, o, err := w.Suite.Open(ctx, t, s)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.opened++
		w.goals[t.Goal] = e.(*webshop.Env).Session().Goal().Instruction
	}
	return e, o, err
}

// textless renders nothing: the expert needs no ids.
type textless struct{}

func (textless) Prompt(policy.Request) ([]int32, error) { return []int32{0}, nil }
func (textless) Encode(string) []int32                  { return []int32{0} }

// Probes of an edit play the goals that were chosen for it, and tell advice that helps from advice that
// harms. Where goals are drawn whatever is asked for, as in the training wrapper, they play others.
func TestProbesPlayTheChosenGoals(t *testing.T) {
	for _, anyGoal := range []bool{false, true} {
		c := defaultWorld(madeShop)
		c.Sizes, c.Shop.AnyGoal = map[string]int{"products": 1000}, anyGoal
		suite, p, err := openWorld(t.Context(), c, "", io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		shop := suite.(*webshop.Suite)
		w := &watched{Suite: shop, goals: map[string]string{}}
		demo := rollout.Demonstrator{Suite: w, Coach: shop, Renderer: textless{}, Config: rollout.DefaultConfig(), Knowledge: env.Sees}
		cfg := probe.Default()
		cfg.Horizon = suite.Guide().Horizon
		judge := probe.NewJudge(func(ctx context.Context, a probe.Arm) (episode.Trajectory, error) {
			return demo.Play(ctx, rollout.Start{Task: a.Task, Bank: a.Bank, Must: a.Must, Seed: a.Seed})
		}, cfg, 4)
		utility, measured := map[bool]float64{}, 0
		for i, task := range p.Probe.Tasks {
			if i%3 > 0 {
				continue
			}
			for _, helpful := range []bool{true, false} {
				advice, ok := shop.Advice(task, helpful, episode.Seed(i).Rand())
				if !ok {
					continue
				}
				bank, outcome := skill.Bank{}.Apply(skill.Edit{
					Op: skill.Propose, Category: advice.Category, Title: advice.Title, Principle: advice.Principle, When: advice.When,
				}, skill.Permission{Category: task.Category})
				if outcome != skill.Added {
					t.Fatalf("%+v: %v", advice, outcome)
				}
				same := slices.DeleteFunc(slices.Clone(p.Probe.Tasks), func(o episode.Task) bool { return o.Goal != task.Goal })
				vs, err := judge.Judge(t.Context(), skill.Bank{}, []probe.Candidate{{Bank: bank, Skill: bank.Skills()[0].ID, Tasks: [][]episode.Task{same}}}, 1)
				if err != nil {
					t.Fatal(err)
				}
				for _, pair := range vs[0].Pairs {
					if !slices.ContainsFunc(same, func(o episode.Task) bool { return o.ID == pair.Task }) {
						t.Errorf("the edit about %s was probed on %s", task.ID, pair.Task)
					}
				}
				if vs[0].Measured {
					measured++
					utility[helpful] += vs[0].Utility
				}
			}
		}
		other := 0
		for asked, played := range w.goals {
			if asked != played {
				other++
			}
		}
		if measured < 20 || w.opened < 40 {
			t.Fatalf("%d edits measured in %d visits", measured, w.opened)
		}
		if anyGoal {
			if other < len(w.goals)/2 {
				t.Errorf("of %d goals that were to be drawn %d are others than asked for", len(w.goals), other)
			}
			continue
		}
		t.Logf("%d edits: utilities sum to %.2f where advice helps, to %.2f where it does not", measured, utility[true], utility[false])
		if other > 0 {
			t.Errorf("%d of %d goals are not those that were chosen", other, len(w.goals))
		}
		if utility[true] <= 0 || utility[false] >= utility[true] {
			t.Errorf("utilities sum to %.2f where advice helps, to %.2f where it does not", utility[true], utility[false])
		}
	}
}

// The value of an option and the words of a query are the same tokens in the instruction, on a page and in an action, whatever stands
// around them: else nothing could be copied.
func TestShopTokensAreCopied(t *testing.T) {
	values := []string{"large", "cradle pink", "xx-large", "10.5 wide", "3 pack", "28\" x 28\"", "40 ounce (pack of 1)", "a01 red"}
	var texts []string
	for _, v := range values {
		for range 3 {
			texts = append(texts, "Find me machine wash shirts with color: "+v+", and price lower than 40.00 dollars", "size\n"+v+"\nShirt, "+v)
		}
	}
	tok, err := chat.Train(slices.Values(texts), chat.TrainOptions{
		VocabSize: 420, Special: chat.Plain().Special(), Tags: chat.Tags(), Pattern: shopPattern,
	})
	if err != nil {
		t.Fatal(err)
	}
	within := func(before, v, after string) []int32 {
		ids := tok.EncodeTags(before + v + after)
		from, to := len(tok.EncodeTags(before)), len(tok.EncodeTags(after))
		return ids[from : len(ids)-to]
	}
	for _, v := range values {
		want := tok.Encode(v)
		for _, around := range [][2]string{
			{"Find me machine wash shirts with color: ", ", and price lower than 40.00 dollars"},
			{"Find me machine wash shirts with color: ", ", and size: 5, and price lower than 40.00 dollars"},
			{"Back to Search\n< Prev\ncolor\n", "\nblue\nA Shirt"},
			{"<action>click[", "]</action>"},
			{"<action>search[machine wash shirts with color: ", "]</action>"},
			{"<action>search[machine wash shirts with color: ", ", and size: 5]</action>"},
			{"Chosen: color: ", ", size: 5"},
		} {
			if got := within(around[0], v, around[1]); !slices.Equal(got, want) {
				t.Errorf("%q is %q between %q and %q, alone %q", v, tok.Decode(got), around[0], around[1], tok.Decode(want))
			}
		}
	}
	query := "machine wash, men's shirts for 3 boys"
	if got, want := within("Find me ", query, ", and price lower than 40.00 dollars"), within("<action>search[", query, "]</action>"); !slices.Equal(got, want) {
		t.Errorf("a query is %v in the instruction and %v in a search", got, want)
	}
}
