package probe

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"skillmaster/episode"
	"skillmaster/skill"

	"github.com/google/go-cmp/cmp"
)

// world is a scripted Play: how a task ends depends on whether the bank holds a skill titled after it.
type world struct {
	mu     sync.Mutex
	played map[string]int // by bank hash and task
	hide   string         // id of a skill that is never shown
	breaks string         // task that cannot be played
	// end says how the task ends under a bank that holds (or not) the skill under test.
	end func(task string, has bool) Score
}

func (w *world) play(_ context.Context, a Arm) (episode.Trajectory, error) {
	w.mu.Lock()
	w.played[a.Bank.Hash()+" "+a.Task.ID]++
	w.mu.Unlock()
	if a.Task.ID == w.breaks {
		return episode.Trajectory{}, fmt.Errorf("fire: %w", ErrUnplayable)
	}
	t := episode.Trajectory{Task: a.Task, Seed: a.Seed}
	has := false
	for _, k := range a.Bank.Skills() {
		if k.ID != w.hide {
			t.ShownSkills = append(t.ShownSkills, k.ID)
		}
		has = has || k.Title == "Good"
	}
	s := w.end(a.Task.ID, has)
	t.Success, t.Steps = s.Success, make([]episode.Step, s.Steps)
	return t, nil
}

func tasks(family string, ids ...string) []episode.Task {
	var out []episode.Task
	for _, id := range ids {
		out = append(out, episode.Task{ID: id, Family: family})
	}
	return out
}

func candidate(t *testing.T, title string, lists ...[]episode.Task) Candidate {
	t.Helper()
	b, outcome := skill.Bank{}.Apply(skill.Edit{
		Op: skill.Propose, Category: "c", Title: title, Principle: title + " things come first.", When: "always",
	}, skill.Permission{Category: "c"})
	if outcome != skill.Added {
		t.Fatalf("outcome %v", outcome)
	}
	return Candidate{Bank: b, Skill: b.Changed(skill.Bank{}), Tasks: lists}
}

func config() Config {
	return Config{Tasks: 2, Alpha: 0.3, Efficiency: 1, EditCost: 0.02, Horizon: 50}
}

// Two probes: one is won after 10 steps instead of lost, the other takes 20 steps instead of 30.
// δ = (1 + 40/50) − 0 = 1.8 and (1 + 30/50) − (1 + 20/50) = 0.2; U = 1.0 + 0.3·2/2 − 0.02.
func TestUtilityByHand(t *testing.T) {
	w := &world{played: map[string]int{}, end: func(task string, has bool) Score {
		switch {
		case task == "a" && has:
			return Score{true, 10}
		case task == "a":
			return Score{false, 50}
		case has:
			return Score{true, 20}
		default:
			return Score{true, 30}
		}
	}}
	j := NewJudge(w.play, config(), 3)
	vs, err := j.Judge(t.Context(), skill.Bank{}, []Candidate{candidate(t, "Good", tasks("f", "a", "b"))}, 1)
	if err != nil {
		t.Fatal(err)
	}
	v := vs[0]
	if !v.Measured || v.Wins != 2 || v.Losses != 0 || math.Abs(v.Mean-1) > 1e-12 || math.Abs(v.Utility-1.28) > 1e-12 {
		t.Errorf("got %+v, want utility 1.28 with two wins", v)
	}
	for _, p := range v.Pairs {
		if p.Seed != seedOf(1, p.Task) {
			t.Errorf("probe %s was played with seed %d, not with its own", p.Task, p.Seed)
		}
	}
}

func TestHarmIsPaidForUnlessClipped(t *testing.T) {
	w := &world{played: map[string]int{}, end: func(_ string, has bool) Score { return Score{!has, 25} }}
	c := config()
	for _, x := range []struct {
		clip bool
		want float64
	}{{false, -1.5 - 0.3 - 0.02}, {true, -0.02}} {
		c.ClipAtZero = x.clip
		vs, err := NewJudge(w.play, c, 1).Judge(t.Context(), skill.Bank{}, []Candidate{candidate(t, "Good", tasks("f", "a", "b"))}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(vs[0].Utility-x.want) > 1e-12 {
			t.Errorf("clip %v: utility %v, want %v", x.clip, vs[0].Utility, x.want)
		}
	}
}

// An edit without effect is worth exactly the edit cost less than nothing: common random numbers leave no noise.
func TestNullEdit(t *testing.T) {
	w := &world{played: map[string]int{}, end: func(task string, _ bool) Score { return Score{task == "a", 7} }}
	vs, err := NewJudge(w.play, config(), 2).Judge(t.Context(), skill.Bank{}, []Candidate{candidate(t, "Null", tasks("f", "a", "b"))}, 9)
	if err != nil {
		t.Fatal(err)
	}
	if vs[0].Utility != -0.02 {
		t.Errorf("utility %v, want -0.02", vs[0].Utility)
	}
}

func TestNotMeasured(t *testing.T) {
	w := &world{played: map[string]int{}, end: func(string, bool) Score { return Score{true, 5} }}
	c := config()
	c.Candidates = 1
	null, good := candidate(t, "Null", tasks("f", "a", "b")), candidate(t, "Good", tasks("f", "a", "b"))
	w.hide = null.Skill // ids are dealt by bank: both candidates' skills bear the same one
	j := NewJudge(w.play, c, 2)
	vs, err := j.Judge(t.Context(), skill.Bank{}, []Candidate{null, good, candidate(t, "None")}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vs {
		if v.Measured || v.Why == "" {
			t.Errorf("candidate %d: got %+v, want not measured, with the reason", i, v)
		}
	}
	if vs[0].Hidden != 2 {
		t.Errorf("%d probes hid the skill, want 2", vs[0].Hidden)
	}
	if len(vs[1].Pairs) != 0 || len(vs[2].Pairs) != 0 {
		t.Error("a candidate that was not judged has pairs")
	}
}

// A probe whose world breaks is left out of the verdict, not counted as a failure.
func TestBrokenProbeIsNotMeasured(t *testing.T) {
	w := &world{played: map[string]int{}, breaks: "b", end: func(string, bool) Score { return Score{true, 5} }}
	vs, err := NewJudge(w.play, config(), 2).Judge(t.Context(), skill.Bank{}, []Candidate{
		candidate(t, "Good", tasks("f", "a", "b")), candidate(t, "Null", tasks("g", "b")),
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if v := vs[0]; !v.Measured || v.Broken != 1 || len(v.Pairs) != 1 || v.Losses != 0 {
		t.Errorf("one of two probes broke: %+v", v)
	}
	if v := vs[1]; v.Measured || v.Broken != 1 || v.Why == "" {
		t.Errorf("the only probe broke: %+v", v)
	}
}

// Three candidates of one family, two of them the same: before arms once for all, after arms once for each different one.
func TestArmsAreShared(t *testing.T) {
	w := &world{played: map[string]int{}, end: func(_ string, has bool) Score { return Score{has, 12} }}
	list := tasks("f", "a", "b", "c", "d", "e")
	j := NewJudge(w.play, config(), 4)
	vs, err := j.Judge(t.Context(), skill.Bank{}, []Candidate{
		candidate(t, "Good", list), candidate(t, "Null", list), candidate(t, "Good", list),
	}, 5)
	if err != nil {
		t.Fatal(err)
	}
	if j.Played != 2+2+2 || j.Reused != 2 {
		t.Errorf("played %d and reused %d, want 6 and 2", j.Played, j.Reused)
	}
	for arm, n := range w.played {
		if n != 1 {
			t.Errorf("%s was played %d times", arm, n)
		}
	}
	if diff := cmp.Diff(vs[0], vs[2]); diff != "" {
		t.Errorf("identical candidates got different verdicts:\n%s", diff)
	}
}

// Where every probe is wanted, all arms of all candidates are under way at once: none waits for another's end.
func TestOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 4 + 2*4 // before arms once, after arms of two candidates
		begun, every := atomic.Int64{}, make(chan struct{})
		play := func(_ context.Context, a Arm) (episode.Trajectory, error) {
			if begun.Add(1) == all {
				close(every)
			}
			<-every
			return episode.Trajectory{Task: a.Task, ShownSkills: a.Bank.IDs()}, nil
		}
		c := config()
		c.Tasks = 4
		list := tasks("f", "a", "b", "c", "d")
		j := NewJudge(play, c, all)
		vs, err := j.Judge(t.Context(), skill.Bank{}, []Candidate{candidate(t, "Good", list), candidate(t, "Null", list)}, 1)
		if err != nil || !vs[0].Measured || !vs[1].Measured || j.Played != all {
			t.Errorf("%d played, %+v, %v", j.Played, vs, err)
		}
	})
}

// Eight probes, all won by the edit and lost without it: after three its sign is clear (e-value 3.75 of 3.5), the other
// five are not played and count as no difference. Beside it stands an edit that does nothing, which never becomes clear.
func TestEarlyStop(t *testing.T) {
	w := &world{played: map[string]int{}, end: func(_ string, has bool) Score { return Score{has, 25} }}
	c := config()
	c.Tasks, c.Stop = 8, 3.5
	list := tasks("f", "a", "b", "c", "d", "e", "f", "g", "h")
	j := NewJudge(w.play, c, 4)
	vs, err := j.Judge(t.Context(), skill.Bank{}, []Candidate{candidate(t, "Good", list), candidate(t, "Null", list)}, 3)
	if err != nil {
		t.Fatal(err)
	}
	good, null := vs[0], vs[1]
	if len(good.Pairs) != 3 || good.Unplayed != 5 || good.Mean != 1.5 || math.Abs(good.Utility-(3*1.5+0.3*3)/8+0.02) > 1e-12 {
		t.Errorf("the useful edit: %+v", good)
	}
	if len(null.Pairs) != 8 || null.Unplayed != 0 || null.Utility != -0.02 {
		t.Errorf("the edit without effect: %+v", null)
	}
	if j.Played != 3+8+8 || j.Reused != 3 {
		t.Errorf("%d episodes played, %d reused", j.Played, j.Reused)
	}
	// Each pair is the one that a judge without stops plays: stopping takes away and changes nothing.
	c.Stop = 0
	all, err := NewJudge(w.play, c, 1).Judge(t.Context(), skill.Bank{}, []Candidate{candidate(t, "Good", list)}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all[0].Pairs[:3], good.Pairs); diff != "" {
		t.Error(diff)
	}
}

// By which chance a useless edit stops early as useful is the chance that it stops early as harmful, and what it is paid
// on average is its cost: by hand over all outcomes of four fair pairs, of which three alike stop.
func TestEarlyStopIsFair(t *testing.T) {
	c := config()
	c.Tasks, c.Stop, c.EditCost = 4, 3.5, 0
	mean, stopped := 0.0, 0
	for bits := range 16 {
		w := &world{played: map[string]int{}, end: func(task string, has bool) Score {
			return Score{has == (bits>>(task[0]-'a')&1 == 1), 25}
		}}
		vs, err := NewJudge(w.play, c, 1).Judge(t.Context(), skill.Bank{}, []Candidate{candidate(t, "Good", tasks("f", "a", "b", "c", "d"))}, 1)
		if err != nil {
			t.Fatal(err)
		}
		mean += vs[0].Utility / 16
		stopped += vs[0].Unplayed
	}
	if math.Abs(mean) > 1e-12 || stopped != 4 {
		t.Errorf("paid %v on average with %d probes spared, want 0 with 4", mean, stopped)
	}
}

// The release's way, by its switches: independent arms, each candidate by itself, the same probes of its own family in
// every iteration.
func TestReleaseSwitches(t *testing.T) {
	f, g := tasks("f", "a", "b", "c", "d", "e", "h"), tasks("g", "i", "j", "k")
	judge := func(c Config, s episode.Seed, source string, n int) ([]Verdict, *Judge) {
		t.Helper()
		w := &world{played: map[string]int{}, end: func(string, bool) Score { return Score{true, 9} }}
		j := NewJudge(w.play, c, 2)
		cs := make([]Candidate, n)
		for i := range cs {
			cs[i] = candidate(t, "Good", f, g)
			cs[i].Source = source
		}
		vs, err := j.Judge(t.Context(), skill.Bank{}, cs, s)
		if err != nil {
			t.Fatal(err)
		}
		return vs, j
	}
	drawn := func(v Verdict) (ids []string) {
		for _, p := range v.Pairs {
			ids = append(ids, p.Task)
		}
		return ids
	}
	c := config()
	c.Tasks, c.Independent, c.Replay, c.Fixed = 3, true, true, true
	first, j := judge(c, 1, "source", 2)
	if j.Played != 2*2*3 || j.Reused != 0 {
		t.Errorf("two equal candidates: %d episodes played, %d reused; want 12 and none", j.Played, j.Reused)
	}
	seeds := map[episode.Seed]bool{}
	for _, v := range first {
		for _, p := range v.Pairs {
			seeds[p.Seed], seeds[p.Other] = true, true
		}
	}
	if len(seeds) != 12 || seeds[0] {
		t.Errorf("%d seeds in 12 plays, want one of its own for each", len(seeds))
	}
	second, _ := judge(c, 2, "source", 1)
	other, _ := judge(c, 1, "another source", 1)
	if diff := cmp.Diff(drawn(first[0]), drawn(second[0])); diff != "" {
		t.Errorf("the probes changed from one iteration to the next:\n%s", diff)
	}
	if cmp.Equal(drawn(first[0]), drawn(other[0])) {
		t.Error("two sources have the same probes: choose other names for them")
	}
	for _, id := range drawn(other[0]) {
		if id > "h" {
			t.Errorf("probe %s is of another family", id)
		}
	}
	if v, j := judge(config(), 1, "source", 2); j.Played != 4 || v[0].Pairs[0].Other != 0 {
		t.Errorf("without the switches: %d episodes, %+v", j.Played, v[0].Pairs[0])
	}
}

func TestConfigValidate(t *testing.T) {
	for _, change := range []func(c *Config){
		func(c *Config) { c.Tasks = 0 }, func(c *Config) { c.Candidates = -1 }, func(c *Config) { c.Stop = 1 },
		func(c *Config) { c.Stop = math.NaN() }, func(c *Config) { c.Alpha = -1 },
	} {
		c := Default()
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%+v passes", c)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

func TestVerdictsDoNotDependOnWorkers(t *testing.T) {
	list := tasks("f", "a", "b", "c", "d", "e", "g")
	var want []Verdict
	c := config()
	c.Tasks, c.Stop = 6, 3.5
	for _, workers := range []int{1, 2, 8} {
		w := &world{played: map[string]int{}, end: func(task string, has bool) Score { return Score{has || task > "c", int(task[0]) % 20} }}
		got, err := NewJudge(w.play, c, workers).Judge(t.Context(), skill.Bank{}, []Candidate{candidate(t, "Good", list), candidate(t, "Null", list)}, 3)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d workers:\n%s", workers, diff)
		}
	}
}

func TestDraw(t *testing.T) {
	f, g := tasks("f", "f1", "f2", "f3"), tasks("g", "g1", "g2")
	for _, k := range []int{1, 2, 4, 5} {
		got := Draw([][]episode.Task{f, nil, g}, k, 7)
		count := map[string]int{}
		for _, x := range got {
			count[x.Family]++
			count[x.ID]++
		}
		if len(got) != k || count["f"]-count["g"] > 1 || count["f"] < count["g"] {
			t.Errorf("k = %d: %v does not go round the families", k, got)
		}
		for _, x := range got {
			if count[x.ID] > 1 {
				t.Errorf("k = %d: %s twice", k, x.ID)
			}
		}
	}
	one := tasks("one", "o1")
	for name, c := range map[string]struct {
		families [][]episode.Task
		k, want  int
	}{
		"more than there are":                      {[][]episode.Task{f, g}, 9, 5},
		"a small family beside one that has tasks": {[][]episode.Task{one, f}, 4, 4},
		"a family named twice":                     {[][]episode.Task{f, f}, 6, 3},
	} {
		count := map[string]int{}
		for _, x := range Draw(c.families, c.k, 7) {
			count[x.ID]++
		}
		total := 0
		for id, n := range count {
			if total += n; n > 1 {
				t.Errorf("%s: %s was drawn %d times: the same pair would count so often as evidence", name, id, n)
			}
		}
		if total != c.want {
			t.Errorf("%s: %d tasks, want %d", name, total, c.want)
		}
	}
	if diff := cmp.Diff(Draw([][]episode.Task{f}, 2, 7), Draw([][]episode.Task{f}, 2, 7)); diff != "" {
		t.Error("the same seed draws other tasks")
	}
	same := 0
	for s := range episode.Seed(20) {
		if cmp.Equal(Draw([][]episode.Task{f}, 2, 7), Draw([][]episode.Task{f}, 2, s)) {
			same++
		}
	}
	if same == 20 {
		t.Error("every seed draws the same tasks: probes are not fresh")
	}
}

// Six families for four probes: the episode's own is always drawn, and each of the others has its turn. Candidates from two
// families differ by no more than those.
func TestDrawCoversFamiliesInTurn(t *testing.T) {
	var all [][]episode.Task
	for _, f := range []string{"a", "b", "c", "d", "e", "f"} {
		all = append(all, tasks(f, f+"1", f+"2", f+"3"))
	}
	swapped := append([][]episode.Task{all[1], all[0]}, all[2:]...)
	const seeds = 200
	drawn := map[string]int{}
	for s := range episode.Seed(seeds) {
		mine := map[string]bool{}
		for _, x := range Draw(all, 4, s) {
			drawn[x.Family]++
			mine[x.ID] = true
		}
		others := 0
		for _, x := range Draw(swapped, 4, s) {
			if !mine[x.ID] {
				others++
			}
		}
		if others > 1 {
			t.Errorf("seed %d: %d of 4 probes are not shared with a candidate of another family", s, others)
		}
	}
	for f, n := range drawn {
		if want := map[bool]float64{true: seeds, false: seeds * 3 / 5.}[f == "a"]; math.Abs(float64(n)-want) > 30 {
			t.Errorf("family %s was drawn %d times of %d, want about %v", f, n, seeds, want)
		}
	}
	if drawn["a"] != seeds || len(drawn) != 6 {
		t.Errorf("drawn: %v", drawn)
	}
}

// A skill that is crowded out of the prompt, put into other words that change nothing: if only the after arm had a slot
// for it, the update would be paid for what the skill did all along.
func TestUpdateIsMeasuredAgainstTheSkillAsItWas(t *testing.T) {
	old := candidate(t, "Good").Bank
	id := old.IDs()[0]
	after, outcome := old.Apply(skill.Edit{Op: skill.Update, ID: id, Title: "Better", Principle: "All good things come before the others.", When: "always"}, skill.Permission{Shown: old.IDs()})
	if outcome != skill.Updated {
		t.Fatalf("outcome %v", outcome)
	}
	play := func(_ context.Context, a Arm) (episode.Trajectory, error) {
		tr := episode.Trajectory{Task: a.Task, Seed: a.Seed, Steps: make([]episode.Step, 9)}
		if a.Must != "" { // all others are crowded out
			tr.ShownSkills, tr.Success = []string{a.Must}, true
		}
		return tr, nil
	}
	list := tasks("f", "a", "b")
	vs, err := NewJudge(play, config(), 1).Judge(t.Context(), old, []Candidate{{Bank: after, Skill: id, Tasks: [][]episode.Task{list}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if v := vs[0]; !v.Measured || v.Utility != -config().EditCost {
		t.Errorf("an update without effect is paid %v, want the edit cost: %+v", v.Utility, v)
	}
}

func TestJudgeNeedsAHorizon(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a judge was made whose deltas are not numbers")
		}
	}()
	NewJudge(nil, Default(), 1)
}
