package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skillmaster/chat"
	"skillmaster/env/envtest"
	"skillmaster/episode"
	"skillmaster/policy/transformer"
	"skillmaster/probe"
	"skillmaster/rollout"
	"skillmaster/skill"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// memory is a Keeper that keeps everything as bytes, so that what is read back is what was written.
type memory struct {
	reports     []Report
	checkpoints []Checkpoint
	weights     [][]byte
	fail        func(r Report) error // nil: never
}

func (m *memory) Keep(_ context.Context, r Report, c *Checkpoint, weights func(io.Writer) error) error {
	if m.fail != nil {
		if err := m.fail(r); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if err := weights(&b); err != nil {
		return err
	}
	r.Seconds = nil
	m.reports = append(m.reports, r)
	m.checkpoints = append(m.checkpoints, *c)
	m.weights = append(m.weights, b.Bytes())
	return nil
}

// halls is a trainer on the tiny world, with a tiny transformer.
func halls(t *testing.T, cfg Config, workers int, k Keeper) *Trainer {
	t.Helper()
	world := envtest.World{}
	panel := func(split string) episode.Panel {
		tasks, err := world.Tasks(split)
		if err != nil {
			t.Fatal(err)
		}
		return episode.Panel{Name: split, Tasks: tasks}
	}
	panels := Panels{Warm: panel("train"), Train: panel("train"), Probe: panel("probe"), Gate: panel("gate"), Valid: panel("valid")}
	tok := hallTokenizer(t, cfg, world, panels)
	model, err := transformer.NewModel(transformer.Config{
		Vocab: tok.VocabSize(), Width: 32, Layers: 2, Heads: 2, KVHeads: 1, Hidden: 64, Context: 256, Tied: true,
	}, 11, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Trainer{
		Config: cfg, Suite: world, Panels: panels, Context: 256, Tokenizer: tok, Template: chat.Plain(),
		Learner: transformer.NewLearner(model, transformer.LearnerOptions{Workers: workers, Sampler: transformer.SamplerOptions{Workers: workers}}),
		Bank:    advised(t, true), Workers: 8 * workers, Keeper: k,
		Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}
}

var hallTokens struct {
	sync.Once
	tok *chat.Tokenizer
	err error
}

func hallTokenizer(t *testing.T, cfg Config, world envtest.World, p Panels) *chat.Tokenizer {
	t.Helper()
	hallTokens.Do(func() {
		cfg.Seed = 1 // the same tokens, whichever test is first
		corpus, err := Corpus(context.Background(), cfg, world, p.Train.Tasks, 60)
		if err == nil {
			hallTokens.tok, err = chat.Train(slices.Values(corpus), chat.TrainOptions{
				VocabSize: 400, Special: chat.Plain().Special(), Tags: chat.Tags(), Pattern: chat.EntityPattern(slices.Values(corpus), 3),
			})
		}
		hallTokens.err = err
	})
	if hallTokens.err != nil {
		t.Fatal(hallTokens.err)
	}
	return hallTokens.tok
}

func hallConfig() Config {
	c := Default()
	c.Iterations, c.Tasks, c.Group, c.Evaluate = 3, 3, 4, 2
	c.Warm.Updates, c.Warm.Round, c.Warm.Tokens, c.Warm.RateWarmUp = 300, 150, 600, 5
	c.Warm.Rate, c.Warm.Broken = 5e-3, 0
	c.Probe.Tasks = 2
	c.Gate.Rule, c.Gate.Tasks = probe.Always, 2
	c.Retire.Dropout, c.Retire.Withhold = 0.6, 0.4
	c.Seed = 4 // edits are measured and skills met, in three short iterations
	return c
}

// undisturbed is the run of hallConfig with two workers, made once.
var undisturbed = sync.OnceValues(func() (*memory, error) {
	m := &memory{}
	t := &testing.T{} // halls fails it only where the test that asked would fail too
	return m, halls(t, hallConfig(), 2, m).Run(context.Background(), Checkpoint{})
})

func wholeRun(t *testing.T) *memory {
	t.Helper()
	m, err := undisturbed()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Two runs of the same seed leave the same records and the same weights, with one worker and with two.
func TestSameSeedSameRun(t *testing.T) {
	whole, single := wholeRun(t), &memory{}
	if err := halls(t, hallConfig(), 1, single).Run(t.Context(), Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	same(t, whole, single)
}

// The run that the tests compare goes through everything there is.
func TestWholeRun(t *testing.T) {
	m := wholeRun(t)
	r := m.reports
	if n := len(r); n != 2+1+3 {
		t.Fatalf("%d reports, want two rounds of warm start, its end, and three iterations", n)
	}
	if last := m.checkpoints[len(r)-1]; last.Phase != Finished || last.PolicyVersion <= hallConfig().Warm.Updates {
		t.Errorf("the last checkpoint is %+v", last)
	}
	measured := 0
	for _, x := range r {
		for _, j := range x.Judgements {
			if j.Verdict.Measured {
				measured++
			}
		}
	}
	if measured == 0 {
		t.Error("no edit was measured: the tests see nothing of the probes")
	}
	if last := m.checkpoints[len(r)-1]; last.Bank.Len() == 0 || len(last.Effects) == 0 {
		t.Errorf("%d skills, effects %v: the tests see nothing of skill dropout", last.Bank.Len(), last.Effects)
	}
	if len(r[2].Evaluations) != 1 || len(r[4].Evaluations) != 1 || len(r[5].Evaluations) != 1 {
		t.Error("the held-out panel is not played after the warm start, every second iteration, and at the end")
	}
}

func same(t *testing.T, a, b *memory) {
	t.Helper()
	if diff := cmp.Diff(a.reports, b.reports, sameBank); diff != "" {
		t.Errorf("reports differ:\n%s", diff)
	}
	if diff := cmp.Diff(a.checkpoints, b.checkpoints, sameBank); diff != "" {
		t.Errorf("checkpoints differ:\n%s", diff)
	}
	for i := range a.weights {
		if !bytes.Equal(a.weights[i], b.weights[i]) {
			t.Errorf("weights differ after report %d", i)
		}
	}
}

var sameBank = cmp.Options{
	cmp.Comparer(func(a, b skill.Bank) bool { return a.Hash() == b.Hash() }), cmpopts.EquateEmpty(),
}

// The whole loop runs with prompts made anew and reviews in the XML form, and learns from every turn apart.
func TestWindowRun(t *testing.T) {
	cfg := hallConfig()
	cfg.Iterations, cfg.Warm.Updates = 1, 150
	cfg.Rollout.Layout, cfg.Rollout.Recap, cfg.Rollout.ReviewForm = rollout.Window, 4, skill.XML
	cfg.Rollout.ReviewTokens, cfg.Rollout.SkillTokens = 200, 60
	blind := cfg
	if blind.Rollout.Recap = 0; blind.Validate() == nil {
		t.Error("reviews without anything to see are let through")
	}
	m := &memory{}
	trainer := halls(t, cfg, 2, m)
	if err := trainer.Run(t.Context(), Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	r := m.reports[len(m.reports)-1]
	reviews := 0
	for _, g := range r.Groups {
		for _, tr := range g.Trajectories {
			if n := len(sequences(tr)); n != len(tr.Turns) {
				t.Errorf("%d sequences of %d turns", n, len(tr.Turns))
			}
			if tr.Review != nil {
				reviews++
			}
		}
	}
	if reviews == 0 || r.Metrics["learn/updates"] == 0 {
		t.Errorf("%d reviews, metrics %v", reviews, r.Metrics)
	}
	t.Logf("%d reviews: read %v", reviews, 1-r.Metrics["review/unread_share"])
}

// A run that stops after any report and goes on from its checkpoint is the run that did not stop.
func TestResumeFromEveryCheckpoint(t *testing.T) {
	whole := wholeRun(t)
	for i := range whole.reports {
		rest := &memory{}
		trainer := halls(t, hallConfig(), 2, rest)
		if err := trainer.Learner.Load(t.Context(), bytes.NewReader(whole.weights[i])); err != nil {
			t.Fatal(err)
		}
		if err := trainer.Run(t.Context(), whole.checkpoints[i]); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint("after report ", i), func(t *testing.T) {
			same(t, rest, &memory{reports: whole.reports[i+1:], checkpoints: whole.checkpoints[i+1:], weights: whole.weights[i+1:]})
		})
	}
}

// What cannot be kept stops the run, and says why.
func TestKeeperFailureStopsTheRun(t *testing.T) {
	full := errors.New("no space left")
	m := &memory{fail: func(r Report) error {
		if r.Phase == Learning && r.Round == 1 {
			return full
		}
		return nil
	}}
	if err := halls(t, hallConfig(), 2, m).Run(t.Context(), Checkpoint{}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if n := len(m.reports); n != 4 {
		t.Errorf("%d reports were kept, want those before the failure", n)
	}
}

func TestRunStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &memory{fail: func(r Report) error {
		if r.Phase == Learning {
			cancel()
		}
		return nil
	}}
	if err := halls(t, hallConfig(), 2, m).Run(ctx, Checkpoint{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// In the halls a skill names the colour of the door to open. A cloned policy must have learnt to read it: told a lie, it
// begins with a door of the wrong colour that the skill names, one of four.
func TestClonedPolicyFollowsSkills(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for some seconds")
	}
	cfg := hallConfig()
	cfg.Seed, cfg.Iterations = 1, 0
	cfg.Warm.Others = 0 // no skills about other halls beside the one that matters
	cfg.Warm.Updates, cfg.Warm.Round, cfg.Warm.Advised, cfg.Warm.Helpful = 1600, 400, 0.9, 0.5
	m := &memory{}
	trainer := halls(t, cfg, 2, m)
	if err := trainer.Run(t.Context(), Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	player, err := trainer.player(t.Context(), &state{})
	if err != nil {
		t.Fatal(err)
	}
	world := envtest.World{}
	followed, told := 0, 0
	for i, task := range trainer.Panels.Valid.Tasks {
		k, ok := world.Advice(task, false, episode.Seed(i).Rand())
		if !ok {
			t.Fatal("no advice")
		}
		k.ID = "dyn_001"
		bank, err := skill.New([]skill.Skill{k}, nil)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := player.Play(t.Context(), rollout.Start{Task: task, Bank: bank, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range tr.Steps {
			if colour, _, ok := strings.Cut(strings.TrimPrefix(string(x.Action), "open "), " door"); ok {
				told++
				if strings.Contains(k.Principle, colour+" door") {
					followed++
				}
				break
			}
		}
	}
	t.Logf("followed %d of %d lies", followed, told)
	if told < 20 || followed*10 < told*6 {
		t.Errorf("followed %d of %d lies: it does not read", followed, told)
	}
}
