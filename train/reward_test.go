package train

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"skillmaster/episode"
	"skillmaster/probe"
	"skillmaster/skill"
)

func TestActionReturnByHand(t *testing.T) {
	tr := episode.Trajectory{EnvReturn: 1, Steps: []episode.Step{
		{Admissible: true}, {Admissible: false}, {Admissible: false, Malformed: true}, {Admissible: false}, {Admissible: true},
	}}
	if got := DefaultPrices().Action(tr, 1, 50); math.Abs(got-(10-0.2-0.1)) > 1e-12 {
		t.Errorf("got %v, want 10 less two inadmissible and one malformed action", got)
	}
	if got := DefaultPrices().Action(tr, 2, 50); math.Abs(got-(5-0.3)) > 1e-12 {
		t.Errorf("half of what success pays: got %v, want 4.7", got)
	}
}

// To end an episode early by writing nonsense must not be cheaper than to go on and fail.
func TestGivingUpSavesNothing(t *testing.T) {
	fail := episode.Trajectory{Stop: episode.Horizon, Steps: make([]episode.Step, 50)} // fifty inadmissible actions
	quit := episode.Trajectory{Stop: episode.Degenerate, Steps: []episode.Step{{Malformed: true}, {Malformed: true}, {Malformed: true}}}
	p := DefaultPrices()
	if a, b := p.Action(fail, 1, 50), p.Action(quit, 1, 50); b > a+1e-12 {
		t.Errorf("giving up returns %v, failing %v", b, a)
	}
	p.Abandoned = 0
	if got := p.Action(quit, 1, 50); math.Abs(got+0.3) > 1e-12 {
		t.Errorf("with no price on it giving up returns %v, want -0.3", got)
	}
}

// Every outcome has its price; an edit is worth its measured utility, and nothing known if it was not measured.
func TestReviewReturn(t *testing.T) {
	measured := probe.Verdict{Measured: true, Utility: -0.7}
	unmeasured := probe.NotMeasured("too many candidates")
	for _, c := range []struct {
		outcome  skill.Outcome
		verdict  probe.Verdict
		want     float64
		measured bool
	}{
		{skill.Kept, unmeasured, 0.1, true},
		{skill.Added, measured, 0.1 - 0.7, true},
		{skill.Updated, measured, 0.1 - 0.7, true},
		{skill.Added, unmeasured, 0, false},
		{skill.Updated, unmeasured, 0, false},
		{skill.Retired, unmeasured, 0.1, true},
		{skill.Unchanged, unmeasured, -0.25, true},
		{skill.Duplicate, unmeasured, -0.25, true},
		{skill.NotFound, unmeasured, -0.5, true},
		{skill.Ambiguous, unmeasured, -0.5, true},
		{skill.InvalidArguments, unmeasured, -0.5, true},
		{skill.UnknownTool, unmeasured, -0.5, true},
		{skill.MultipleCalls, unmeasured, -1, true},
		{skill.Unparsable, unmeasured, -1, true},
	} {
		got, ok := DefaultPrices().Review(episode.Trajectory{Review: &episode.Review{Outcome: c.outcome}}, c.verdict)
		if ok != c.measured || (ok && math.Abs(got-c.want) > 1e-12) {
			t.Errorf("%v with %+v: got %v, %v, want %v, %v", c.outcome, c.verdict, got, ok, c.want, c.measured)
		}
	}
	if _, ok := DefaultPrices().Review(episode.Trajectory{}, measured); ok {
		t.Error("an episode without a review has a review return")
	}
}

// The examples of the release's table: base and quality add up.
// What a lenient reading had to mend earns nothing for its form, and is not fined either.
func TestRepairedReviewsEarnNoFormReward(t *testing.T) {
	for outcome, want := range map[skill.Outcome]float64{skill.Kept: 0, skill.Added: -0.7, skill.Updated: -0.7, skill.Duplicate: -0.25, skill.NotFound: -0.5} {
		tr := episode.Trajectory{Review: &episode.Review{Outcome: outcome, Repaired: []string{skill.Fenced}}}
		if got, ok := DefaultPrices().Review(tr, probe.Verdict{Measured: true, Utility: -0.7}); !ok || math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: %v, want %v", outcome, got, want)
		}
	}
}

// Many replies with tags and no readable call are told of: perhaps the wrong form is read.
func TestWrongFormIsNoticed(t *testing.T) {
	reply := func(text string, form skill.Mode) episode.Trajectory {
		call := skill.ParseCall(text, form)
		return episode.Trajectory{
			Turns: []episode.Turn{{Kind: episode.ReviewTurn, Text: text}}, Review: &episode.Review{Edit: call.Edit, Outcome: call.Outcome, Repaired: call.Repaired},
		}
	}
	keep := skill.Edit{Op: skill.Keep, Reason: "covered"}
	for _, form := range []skill.Mode{skill.Strict, skill.XML} {
		m := map[string]float64{}
		reviewMetrics(m, []episode.Group{{Trajectories: []episode.Trajectory{
			reply(skill.XML.Format(keep), form), reply(skill.XML.Format(keep), form), reply(skill.XML.Format(keep), form), reply("no tags", form),
		}}})
		want := map[skill.Mode]float64{skill.Strict: 1, skill.XML: 0}[form]
		if m["review/tagged_unread_share"] != want || (wrongForm(want, form) == "") != (want == 0) {
			t.Errorf("%v: %v, %q", form, m, wrongForm(want, form))
		}
	}
	m := map[string]float64{}
	reviewMetrics(m, []episode.Group{{Trajectories: []episode.Trajectory{reply("no tags", skill.Strict)}}})
	if _, ok := m["review/tagged_unread_share"]; ok {
		t.Error("no reply had tags, and a share was measured")
	}
}

func TestReleasePrices(t *testing.T) {
	const keep = `{"name":"keep_skill","arguments":{"reason":"covered"}}`
	think := func(call string) string { return "<think>So.</think><tool_call>" + call + "</tool_call>" }
	p := ReleasePrices()
	for name, c := range map[string]struct {
		outcome skill.Outcome
		reply   string
		want    float64
	}{
		"a good keep":               {skill.Kept, think(keep), 0.1},
		"a new skill":               {skill.Added, think(`{"name":"propose_skill","arguments":{"category":"general","title":"t","principle":"p","when_to_apply":"w"}}`), 0.1 + 0.4},
		"a duplicate":               {skill.Duplicate, think(keep), -0.4},
		"a skill that is not there": {skill.NotFound, think(keep), 0.1},
		"an action as a tool":       {skill.UnknownTool, think(`{"name":"go to shelf 1","arguments":{}}`), -4.5},
		"another tool":              {skill.UnknownTool, think(`{"name":"fix_skill","arguments":{}}`), -1.5},
		"prose":                     {skill.Unparsable, "I would keep it.", -3},
		"no reasoning":              {skill.Kept, "<tool_call>" + keep + "</tool_call>", 0.1 - 0.5},
		"a placeholder":             {skill.Kept, think(`{"name":"keep_skill","arguments":{"reason":"..."}}`), 0.1 - 1.5},
		"a broken tag":              {skill.Unparsable, "<th>", -2 - 0.5 - 0.5 - 1.5},
		"wrong arguments":           {skill.InvalidArguments, think(keep), -1},
	} {
		tr := episode.Trajectory{Review: &episode.Review{Outcome: c.outcome}, Turns: []episode.Turn{{Kind: episode.ReviewTurn, Text: c.reply}}}
		got, ok := p.Review(tr, probe.Verdict{Measured: true, Utility: 0.4})
		if !ok || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s is paid %v, %v; want %v", name, got, ok, c.want)
		}
		if ours, _ := DefaultPrices().Review(tr, probe.Verdict{Measured: true, Utility: 0.4}); ours < -1 {
			t.Errorf("%s is paid %v by default: form is fined there", name, ours)
		}
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}

// Where utility has no price, an edit's form is what it is paid, measured or not.
func TestNoUtility(t *testing.T) {
	p := DefaultPrices()
	p.Utility = 0
	tr := episode.Trajectory{Review: &episode.Review{Outcome: skill.Added}}
	for _, v := range []probe.Verdict{probe.NotMeasured("why not"), {Measured: true, Utility: -1}} {
		if got, ok := p.Review(tr, v); got != 0.1 || !ok {
			t.Errorf("%+v: paid %v, %v", v, got, ok)
		}
	}
}

func TestWilson(t *testing.T) {
	// At the ends the interval has a short form: n of n is [n/(n+z²), 1], 0 of n is [0, z²/(n+z²)].
	const square = 3.841458820694124
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{{8, 10, 0.4901625, 0.9433178}, {0, 10, 0, square / (10 + square)}, {134, 134, 134 / (134 + square), 1}} {
		low, high := Wilson(c.k, c.n)
		if math.Abs(low-c.low) > 1e-6 || math.Abs(high-c.high) > 1e-6 {
			t.Errorf("Wilson(%d, %d) = %v, %v, want %v, %v", c.k, c.n, low, high, c.low, c.high)
		}
	}
	if low, high := Wilson(0, 0); low != 0 || high != 1 {
		t.Error("nothing is known of no tasks")
	}
}

func TestPartition(t *testing.T) {
	var tasks []episode.Task
	for i := range 4000 {
		tasks = append(tasks, episode.Task{ID: "task " + string(rune('a'+i%26)) + " " + strconv.Itoa(i)})
	}
	id := func(t episode.Task) string { return t.ID }
	panels := Partition(tasks, id, Share{"train", 0.8}, Share{"probe", 0.1}, Share{"gate", 0.1})
	if err := episode.Disjoint(panels...); err != nil {
		t.Error(err)
	}
	if n := len(panels[0].Tasks) + len(panels[1].Tasks) + len(panels[2].Tasks); n != len(tasks) {
		t.Errorf("%d tasks dealt, want %d", n, len(tasks))
	}
	if n := len(panels[1].Tasks); n < 330 || n > 470 {
		t.Errorf("a tenth of 4000 tasks is %d", n)
	}
	// Tasks of one key stay together.
	for _, p := range Partition(tasks, func(t episode.Task) string { return t.ID[:6] }, Share{"train", 0.5}, Share{"probe", 0.5}) {
		for _, x := range p.Tasks {
			for _, y := range tasks {
				if y.ID[:6] == x.ID[:6] && !slices.Contains(p.Tasks, y) {
					t.Fatalf("%s and %s were parted", x.ID, y.ID)
				}
			}
		}
	}
	// A task's panel does not depend on the others.
	alone := Partition(tasks[17:18], id, Share{"train", 0.8}, Share{"probe", 0.1}, Share{"gate", 0.1})
	for i, p := range alone {
		for _, x := range p.Tasks {
			found := false
			for _, y := range panels[i].Tasks {
				found = found || x.ID == y.ID
			}
			if !found {
				t.Errorf("%s changed its panel", x.ID)
			}
		}
	}
}
