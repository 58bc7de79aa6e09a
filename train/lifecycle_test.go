package train

import (
	"context"
	"maps"
	"strings"
	"testing"

	"skillmaster/env/envtest"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/probe"
	"skillmaster/rollout"
	"skillmaster/skill"
)

// advised is a bank of skills about the gem halls of the first task's animal: one that tells the truth or lies, and one
// about coins, which gems never retrieve.
func advised(t *testing.T, helpful bool) skill.Bank {
	t.Helper()
	world := envtest.World{}
	tasks, err := world.Tasks("train")
	if err != nil {
		t.Fatal(err)
	}
	var skills []skill.Skill
	for _, task := range tasks[:2] {
		k, ok := world.Advice(task, helpful, episode.Seed(1).Rand())
		if !ok {
			t.Fatal("no advice")
		}
		skills = append(skills, k)
	}
	b, err := skill.New(skills, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// dropout plays iterations of the first gem hall under a bank with a scripted reader, and lets skills be retired.
func dropout(t *testing.T, cfg Config, bank skill.Bank, favourite string, iterations int) (*state, []skill.Commit) {
	t.Helper()
	cfg.Review, cfg.Vary, cfg.Tasks, cfg.Group = false, 0, 4, 6
	trainer := halls(t, cfg, 2, keepNothing{})
	trainer.Panels.Train.Tasks = trainer.Panels.Train.Tasks[:1]
	s := &state{Checkpoint: Checkpoint{Bank: bank}}
	player := &rollout.Player{Suite: envtest.World{}, Policy: reader(favourite), Config: cfg.Rollout}
	var commits []skill.Commit
	for i := range uint64(iterations) {
		groups, err := trainer.rollouts(t.Context(), player, s, episode.Seed(5).Derive("iteration", i), map[string]float64{})
		if err != nil {
			t.Fatal(err)
		}
		trainer.meet(s, groups)
		var r Report
		trainer.retire(s, &r)
		commits = append(commits, r.Commits...)
	}
	return s, commits
}

// The hall bears an owl, whose door is blue: who prefers red profits from the truth, who prefers blue is harmed by a lie.
// The first is seen to help and stays, the second is retired with its evidence and stays in the archive; a pinned one stays.
func TestHarmfulSkillsAreRetired(t *testing.T) {
	cfg := hallConfig()
	cfg.Retire = probe.Retirement{Dropout: 0.8, Withhold: 0.5, Met: 20, Alpha: 0.05}
	s, commits := dropout(t, cfg, advised(t, true), "red", 12)
	if e, ok := s.Effects.Of("dyn_001"); !ok || len(commits) != 0 || e.All().Mean() < 0.3 || e.All().Mean() < 3*e.All().Error() || e.HarmEValue() > 1 {
		t.Errorf("the helpful skill: %+v, %d commits", e.All(), len(commits))
	}
	if _, ok := s.Effects.Of("dyn_002"); ok {
		t.Error("a skill was met by an episode that does not retrieve it")
	}

	bank := advised(t, false)
	s, commits = dropout(t, cfg, bank, "blue", 25)
	if len(commits) != 1 || s.Bank.Len() != 1 || len(s.Bank.Archived()) != 1 || s.Bank.Archived()[0].ID != "dyn_001" {
		t.Fatalf("the harmful skill: %d commits, %d skills, archive %v", len(commits), s.Bank.Len(), s.Bank.Archived())
	}
	c := commits[0]
	if e := c.Provenance.Evidence; c.Outcome != skill.Retired || c.Parent != bank.Hash() || c.Hash != s.Bank.Hash() || e.Pairs < 20 || e.MeanDelta > -0.2 || e.EValue < 20 || !strings.Contains(c.Reason, "harm") {
		t.Errorf("commit %+v", c)
	}
	if _, ok := s.Effects.Of("dyn_001"); ok {
		t.Error("the effects of a retired skill are kept")
	}
	pinned, outcome := bank.Apply(skill.Edit{Op: skill.Pin, ID: "dyn_001"}, skill.Permission{Shown: bank.IDs()})
	if !pinned.Pinned("dyn_001") {
		t.Fatal(outcome)
	}
	if _, commits = dropout(t, cfg, pinned, "blue", 25); len(commits) != 0 {
		t.Error("a pinned skill was retired")
	}
}

// Beyond the cap the least useful of the skills that are known well enough leaves; where none is, nothing leaves, and no
// proposal is tested.
func TestCap(t *testing.T) {
	cfg := hallConfig()
	cfg.Retire = probe.Retirement{Dropout: 0.8, Withhold: 0.5, Met: 20, Cap: 1}
	s, commits := dropout(t, cfg, advised(t, true), "red", 6)
	if len(commits) != 1 || s.Bank.Len() != 1 || commits[0].Edit.ID != "dyn_001" {
		t.Errorf("%d commits leave %v", len(commits), s.Bank.IDs())
	}
	trainer := halls(t, cfg, 1, keepNothing{})
	group, _ := proposal(t, trainer.Panels.Train.Tasks[0], true)
	judged := []Judgement{{Edit: group.Trajectories[0].Review.Edit, Verdict: probe.Verdict{Measured: true, Utility: 1, Mean: 1, Wins: 1}}}
	if n := trainer.admit(s, &Report{Groups: []episode.Group{group}, Judgements: judged}); n != 0 {
		t.Error("a full bank takes a proposal under test though nothing can make room")
	}
	s.Bank = skill.Bank{}
	if n := trainer.admit(s, &Report{Groups: []episode.Group{group}, Judgements: judged}); n != 1 {
		t.Error("a bank with room takes no proposal under test")
	}
}

// The effect of other words is another effect.
func TestUpdateForgetsTheEffect(t *testing.T) {
	trainer := halls(t, hallConfig(), 1, keepNothing{})
	bank := advised(t, true)
	s := &state{Checkpoint: Checkpoint{Bank: bank}}
	for _, id := range bank.IDs() {
		s.Effects = s.Effects.Add(probe.Met{Skill: id, Family: "f", Chance: 0.5, Largest: 2})
	}
	q := probe.Pending{Edit: skill.Edit{Op: skill.Update, ID: "dyn_002", Title: "Other words", Principle: "Something else altogether is true here."}}
	if !trainer.commit(s, &Report{}, q) {
		t.Fatal("the update was not committed")
	}
	if _, old := s.Effects.Of("dyn_002"); old || len(s.Effects) != 1 {
		t.Errorf("effects after the update: %+v", s.Effects)
	}
}

// The share of episodes under dropout, and of skills withheld in them, is what the settings say; withheld skills do not
// stand in the prompt.
func TestDropoutShares(t *testing.T) {
	cfg := hallConfig()
	cfg.Retire.Dropout, cfg.Retire.Withhold = 0.3, 0.2
	trainer := halls(t, cfg, 2, keepNothing{})
	bank := advised(t, true)
	var prompts int
	policy := reader("red")
	say := policy.Say
	player := &rollout.Player{Suite: envtest.World{}, Policy: policy, Config: cfg.Rollout}
	under, withheld := 0, 0
	const n = 3000
	policy.Say = func(ctx context.Context, r policyRequest) (string, error) {
		if strings.Contains(r.Messages[0].Text, "dyn_001") {
			prompts++
		}
		return say(ctx, r)
	}
	for i := range episode.Seed(n) {
		p := trainer.withhold(i)
		if p == 0 {
			continue
		}
		under++
		prompts = 0
		tr, err := player.Play(t.Context(), rollout.Start{Task: trainer.Panels.Train.Tasks[0], Bank: bank, Seed: i, Withhold: p, Horizon: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(tr.Withheld)+len(tr.ShownSkills) != 1 || (prompts > 0) != (len(tr.ShownSkills) == 1) || tr.Withhold != 0.2 {
			t.Fatalf("shown %v, withheld %v, in %d prompts", tr.ShownSkills, tr.Withheld, prompts)
		}
		withheld += len(tr.Withheld)
	}
	if share := float64(under) / n; share < 0.27 || share > 0.33 {
		t.Errorf("%v of the episodes are under dropout, want 0.3", share)
	}
	if share := float64(withheld) / float64(under); share < 0.16 || share > 0.24 {
		t.Errorf("%v of the skills are withheld, want 0.2", share)
	}
}

// policyRequest is the name of policy.Request where a variable hides the package.
type policyRequest = policy.Request

func TestUses(t *testing.T) {
	bank, err := skill.New([]skill.Skill{
		{ID: "a", Category: "c", Title: "A", Principle: "Look for a keychain in the dresser first."},
		{ID: "b", Category: "c", Title: "B", Principle: "Look for a mug in the cabinet first."},
		{ID: "d", Category: "c", Title: "D", Principle: "Look for a pen in the drawer first."},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	plays := func(family string, shown, used []string, wrote string) episode.Trajectory {
		return episode.Trajectory{
			Task: episode.Task{Family: family, Category: "c", Goal: "put some keychain on sidetable"}, ShownSkills: shown, UsedSkills: used,
			Turns: []episode.Turn{{Text: wrote}},
		}
	}
	m := map[string]float64{}
	useMetrics(m, []episode.Group{{Trajectories: []episode.Trajectory{plays("f", nil, nil, "go to bed 1")}}}, skill.Bank{})
	if len(m) != 0 {
		t.Errorf("nothing was shown, and %v was measured", m)
	}
	useMetrics(m, []episode.Group{{Trajectories: []episode.Trajectory{
		plays("f", []string{"a", "b"}, []string{"a"}, "go to dresser 1"), plays("g", []string{"a", "b", "d"}, nil, "go to bed 1"), plays("h", nil, nil, "go to drawer 2"),
	}}}, bank)
	want := map[string]float64{
		"rollout/skills_used_share": 1.0 / 5, "rollout/skills_used_f": 1.0 / 2, "rollout/skills_used_g": 0,
		"rollout/unshown_used_share": 1.0 / 4, // d in the first, all in the third, of which d bears the mark
	}
	if !maps.Equal(m, want) {
		t.Errorf("%v, want %v", m, want)
	}
}
