package alfworld

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"skillmaster/episode"
)

// likeness is what generated games have in common with released ones, as a table: a measure, how far its mean over
// generated games may lie from that over released ones, and how it is taken. A game gives one value, or one for each of
// its receptacles or things. The tolerance is a share of the real mean, or, in points, an amount.
var likeness = []struct {
	name      string
	tolerance float64
	points    bool
	of        func(strolled) []float64
}{
	{"receptacles", 0.06, false, func(w strolled) []float64 { return one(float64(len(w.Receptacles))) }},
	{"  that share a place", 0.03, true, receptacles(func(w strolled, r int) bool {
		return len(w.Locations[w.Receptacles[r].Location].Receptacles) > 1
	})},
	{"  with a door", 0.03, true, receptacles(func(w strolled, r int) bool { return w.Receptacles[r].Openable })},
	{"  empty", 0.06, true, receptacles(func(w strolled, r int) bool { return len(w.Contents(r)) == 0 })},
	{"most things in one", 0.08, false, func(w strolled) []float64 {
		most := 0
		for r := range w.Receptacles {
			most = max(most, len(w.Contents(r)))
		}
		return one(float64(most))
	}},
	{"things", 0.04, false, func(w strolled) []float64 { return one(float64(len(things(all)(w)))) }},
	{"  nowhere", 0.02, true, parents(all, func(n int) bool { return n == 0 })},
	{"  in two or more", 0.008, true, parents(all, func(n int) bool { return n > 1 })},
	{"  behind a door", 0.03, true, behind(others)},
	{"inside a vessel, a game", 0.12, true, func(w strolled) []float64 { return one(float64(len(w.inside))) }},
	{"asked for", 0.08, false, func(w strolled) []float64 { return one(float64(len(things(asked)(w)))) }},
	{"  nowhere", 0.04, true, parents(asked, func(n int) bool { return n == 0 })},
	{"  behind a door", 0.05, true, behind(asked)},
	{"  cold, a game", 0.1, true, func(w strolled) []float64 {
		return one(float64(len(w.first.having(&w.layout, Cool).list())))
	}},
	{"shortest plan", 0.06, false, func(w strolled) []float64 { return one(float64(w.plan)) }},
	{"search", 0.12, false, func(w strolled) []float64 { return one(float64(w.steps)) }},
	{"admissible actions", 0.04, false, func(w strolled) []float64 { return one(w.actions) }},
	{"bytes of an answer", 0.05, false, func(w strolled) []float64 { return one(w.answer) }},
	{"bytes of the first", 0.06, false, func(w strolled) []float64 { return one(float64(len(w.NewState(Move).Intro()))) }},
}

// strolled is a game that the search player has played.
type strolled struct {
	*Game
	plan, steps     int
	actions, answer float64 // means over the steps: admissible actions, bytes
}

func stroll(t testing.TB, g *Game) strolled {
	t.Helper()
	w, state := strolled{Game: g}, g.NewState(Move)
	plan, ok := state.Plan()
	x, err := newSearcher(state.Intro(), Move, nil, nil)
	if err != nil || !ok {
		t.Fatalf("%s: %v, plan found: %v", g.ID, err, ok)
	}
	w.plan = len(plan)
	for ; !state.Won() && w.steps < defaultLimit; w.steps++ {
		w.actions += float64(len(state.Admissible()))
		a, ok := x.Next()
		if !ok {
			break
		}
		text, _ := state.Step(string(a))
		x.Observe(a, episode.StepResult{Observation: episode.Observation{Text: text}})
		w.answer += float64(len(text))
	}
	w.actions /= float64(w.steps)
	w.answer /= float64(w.steps)
	return w
}

func one(v float64) []float64 { return []float64{v} }

func share(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func receptacles(is func(w strolled, r int) bool) func(strolled) []float64 {
	return func(w strolled) []float64 {
		v := make([]float64, len(w.Receptacles))
		for r := range v {
			v[r] = share(is(w, r))
		}
		return v
	}
}

// all, asked and others are things that can be taken.
func all(w strolled, o int) bool    { return w.Objects[o].Traits&Pickupable != 0 }
func asked(w strolled, o int) bool  { return w.Objects[o].Class == w.goalObject }
func others(w strolled, o int) bool { return all(w, o) && !asked(w, o) }

// things lists, for each of some things, where it is.
func things(some func(strolled, int) bool) func(strolled) [][]int {
	return func(w strolled) (places [][]int) {
		for o := range w.Objects {
			if some(w, o) {
				places = append(places, w.Places(o))
			}
		}
		return places
	}
}

func parents(some func(strolled, int) bool, is func(n int) bool) func(strolled) []float64 {
	return func(w strolled) (v []float64) {
		for _, places := range things(some)(w) {
			v = append(v, share(is(len(places))))
		}
		return v
	}
}

func behind(some func(strolled, int) bool) func(strolled) []float64 {
	return func(w strolled) (v []float64) {
		for _, places := range things(some)(w) {
			if len(places) > 0 {
				v = append(v, share(w.Receptacles[places[0]].Openable))
			}
		}
		return v
	}
}

// TestGeneratedGamesAreLikeReal compares generated games with half of the train games, as many of each family, by kind
// of room. Run it with -v for the table.
func TestGeneratedGamesAreLikeReal(t *testing.T) {
	if raceDetector {
		t.Skip("plays 3,554 games in one goroutine: slow under the race detector, with no race to find")
	}
	real, made := map[string][]strolled{}, map[string][]strolled{}
	suite := openData(t, Options{})
	for i, task := range everyTask(t, suite, "train", 2) {
		g, err := suite.Game(task.ID)
		if err != nil {
			t.Fatal(err)
		}
		kind := roomKind(g.Scene)
		real[kind] = append(real[kind], stroll(t, g))
		d := newDraft(g.Family(), episode.Seed(i), 0, Custom{})
		if g, err = d.game(""); err != nil {
			t.Fatal(err)
		}
		made[d.room.kind] = append(made[d.room.kind], stroll(t, g))
	}
	kinds := []string{"kitchen", "livingroom", "bedroom", "bathroom"}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-24s", "made | real")
	for _, kind := range kinds {
		fmt.Fprintf(&table, " | %10s | %4d, %4d", kind, len(made[kind]), len(real[kind]))
	}
	for _, m := range likeness {
		fmt.Fprintf(&table, "\n%-24s", m.name)
		for _, kind := range kinds {
			got, want := means(made[kind], m.of), means(real[kind], m.of)
			fmt.Fprintf(&table, " | %10.3f | %10.3f", got, want)
			limit := m.tolerance
			if !m.points {
				limit *= want
			}
			if !(math.Abs(got-want) <= limit) {
				t.Errorf("%s, %s: made %.3f, real %.3f, which is more than %.3f apart", kind, strings.TrimSpace(m.name), got, want, limit)
			}
		}
	}
	t.Log(table.String())
}

func means(games []strolled, of func(strolled) []float64) float64 {
	sum, n := 0.0, 0
	for _, w := range games {
		for _, v := range of(w) {
			sum += v
			n++
		}
	}
	return sum / float64(n)
}

// TestTasksAreLikeReal compares what the tasks of each family ask for. The distance is half the sum of differences between
// shares; two samples of generated games, of other seeds, are that far apart by chance.
func TestTasksAreLikeReal(t *testing.T) {
	if raceDetector {
		t.Skip("reads the train games, which takes half a minute under the race detector")
	}
	suite := openData(t, Options{})
	count := map[Family]*[3]map[sentence]float64{} // real, made, made again
	for _, f := range Families() {
		count[f] = &[3]map[sentence]float64{{}, {}, {}}
	}
	for i, task := range everyTask(t, suite, "train", 1) {
		g, err := suite.Game(task.ID)
		if err != nil {
			t.Fatal(err)
		}
		c := count[g.Family()]
		c[0][g.sentence()]++
		for k := 1; k < 3; k++ {
			c[k][newDraft(g.Family(), episode.Seed(2*i+k), 0, Custom{}).task]++
		}
	}
	for _, f := range Families() {
		real, chance := distance(count[f][0], count[f][1]), distance(count[f][1], count[f][2])
		t.Logf("%-32s made and real %.3f apart, made and made %.3f", f, real, chance)
		if real > chance+0.08 {
			t.Errorf("%s: tasks are %.3f apart from the real ones, want at most 0.08 more than by chance, %.3f", f, real, chance)
		}
	}
}

// distance of two samples of the same size, from 0 to 1.
func distance(a, b map[sentence]float64) float64 {
	sum, apart := 0.0, 0.0
	for s, n := range a {
		sum += n
		apart += math.Abs(n - b[s])
	}
	for s, n := range b {
		if _, ok := a[s]; !ok {
			apart += n
		}
	}
	return apart / sum / 2
}

// TestOneThingAtATime checks that what holds one thing, such as a stove's burner, was not given two.
func TestOneThingAtATime(t *testing.T) {
	for i, g := range generated(t, fewer(800), 0) {
		for r, receptacle := range g.Receptacles {
			class := g.Classes[receptacle.Class]
			in := g.Contents(r)
			in = slices.DeleteFunc(in, func(o int) bool { // lies where the vessel it is inside lies
				return slices.ContainsFunc(g.inside, func(p [2]int16) bool { return int(p[0]) == o })
			})
			if household().single[class] && len(in) > 1 {
				t.Errorf("game %d: a %s with %d things", i, class, len(in))
			}
		}
	}
}
