package alfworld

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"skillmaster/episode"
)

// reference is a game as a set of facts and the rules of the domain over it, slow and plain. It shares no code with
// the engine: it reads the facts from a problem's text by itself. Ids are lower case.
type reference struct {
	facts   map[string]map[[2]string]bool // predicate: arguments, the second "" for facts about one thing
	removed map[[2]string]bool            // object, receptacle: taken out of it and not put back
	names   map[string]string
	at      string
	held    string // "" for nothing
	goal    Goal
	task    string
	wording Wording
}

var (
	factText = regexp.MustCompile(`\(([^()]*)\)`)
	comment  = regexp.MustCompile(`;[^\n]*`)
)

func newReference(problem, task string, goal Goal, w Wording) *reference {
	m := &reference{facts: map[string]map[[2]string]bool{}, removed: map[[2]string]bool{}, goal: goal, task: task, wording: w}
	_, rest, _ := strings.Cut(strings.ToLower(comment.ReplaceAllString(problem, "")), "(:init")
	init, _, _ := strings.Cut(rest, "(:goal")
	ids := map[string]bool{}
	for _, match := range factText.FindAllStringSubmatch(init, -1) {
		f := append(strings.Fields(match[1]), "")
		m.set(f[0], f[1], f[2], true)
		ids[f[1]], ids[f[2]] = true, true
	}
	m.at = m.list("atlocation")[0][1]
	m.name(slices.Sorted(maps.Keys(ids)))
	return m
}

// name gives the first id of a base the highest number.
func (m *reference) name(ids []string) {
	base := func(id string) (string, bool) {
		b, _, numbered := strings.Cut(id, "_bar_")
		if strings.Contains(id, "basin") {
			b += "basin"
		}
		return b, numbered
	}
	m.names = map[string]string{}
	for i, id := range ids {
		b, numbered := base(id)
		if !numbered {
			m.names[id] = id + " "
			continue
		}
		n := 1
		for _, other := range ids[i+1:] {
			if c, ok := base(other); ok && c == b {
				n++
			}
		}
		m.names[id] = fmt.Sprintf("%s %d", b, n)
	}
}

func (m *reference) set(predicate, a, b string, holds bool) {
	if m.facts[predicate] == nil {
		m.facts[predicate] = map[[2]string]bool{}
	}
	if holds {
		m.facts[predicate][[2]string{a, b}] = true
	} else {
		delete(m.facts[predicate], [2]string{a, b})
	}
}

func (m *reference) is(predicate, a, b string) bool { return m.facts[predicate][[2]string{a, b}] }

func inOrder(facts map[[2]string]bool) [][2]string {
	return slices.SortedFunc(maps.Keys(facts), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
}

func (m *reference) list(predicate string) [][2]string { return inOrder(m.facts[predicate]) }

// isOf tells whether a thing is of one of some classes.
func (m *reference) isOf(predicate, thing string, classes ...string) bool {
	return slices.ContainsFunc(classes, func(c string) bool { return m.is(predicate, thing, strings.ToLower(c)+"type") })
}

func inWordsOf(article string, names []string) string {
	for i := range names {
		names[i] = article + names[i]
	}
	switch n := len(names); n {
	case 0:
		return "nothing"
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + ", and " + names[n-1]
	}
}

// see is what a receptacle shows.
func (m *reference) see(r string) string {
	var in []string
	for _, f := range m.list("inreceptacle") {
		if f[1] == r {
			in = append(in, m.names[f[0]])
		}
	}
	switch {
	case m.is("openable", r, "") && m.is("opened", r, ""):
		return "The " + m.names[r] + " is open. In it, you see " + inWordsOf("a ", in) + "."
	case m.is("openable", r, ""):
		return "The " + m.names[r] + " is closed."
	default:
		return "On the " + m.names[r] + ", you see " + inWordsOf("a ", in) + "."
	}
}

func (m *reference) receptaclesHere() (rs []string) {
	for _, f := range m.list("receptacleatlocation") {
		if f[1] == m.at {
			rs = append(rs, f[0])
		}
	}
	return rs
}

func (m *reference) look() string {
	here := m.receptaclesHere()
	if len(here) == 0 {
		return "You are in the middle of a room. Looking quickly around you, you see nothing."
	}
	var names, floor []string
	for _, r := range here {
		names = append(names, m.names[r])
	}
	for _, f := range inOrder(m.removed) {
		if m.is("objectatlocation", f[0], m.at) && slices.Contains(here, f[1]) {
			floor = append(floor, m.names[f[0]])
		}
	}
	return "You are facing the " + inWordsOf("", names) + ". Next to it, you see " + inWordsOf("a ", floor) + "."
}

func (m *reference) intro() string {
	look := m.look()
	if len(m.receptaclesHere()) == 0 {
		var all []string
		for _, f := range m.list("receptacleatlocation") {
			all = append(all, m.names[f[0]])
		}
		look = "You are in the middle of a room. Looking quickly around you, you see " + inWordsOf("a ", all) + "."
	}
	return "-= Welcome to TextWorld, ALFRED! =-\n\n" + look + "\n\nYour task is to: " + m.task
}

// handle is what examining a held object shows: the first line of the table whose conditions all hold.
func (m *reference) handle(o string) string {
	n := m.names[o]
	if m.is("isreceptacleobject", o, "") {
		var in []string
		for _, f := range m.list("inreceptacleobject") {
			if f[1] == o && f[0] != o {
				in = append(in, m.names[f[0]])
			}
		}
		return "This is a normal " + n + ". In it, you see " + inWordsOf("a ", in) + "."
	}
	for _, row := range [][2]string{
		{"isclean ishot issliced", "This is a hot and clean sliced " + n + "."},
		{"isclean iscool issliced", "This is a cool and clean sliced " + n + "."},
		{"isclean issliced", "This is a clean sliced " + n + "."},
		{"ishot issliced", "This is a hot sliced " + n + "."},
		{"iscool issliced", "This is a cool sliced " + n + "."},
		{"isclean ishot", "This is a hot and clean " + n + "."},
		{"isclean iscool", "This is a cool and clean " + n + "."},
		{"ishot", "This is a hot " + n + "."},
		{"isclean", "This is a clean " + n + "."},
		{"iscool", "This is a cold " + n + "."},
		{"toggleable istoggled", "This " + n + " is on."},
		{"sliceable issliced", "This is a sliced " + n + "."},
	} {
		if !slices.ContainsFunc(strings.Fields(row[0]), func(p string) bool { return !m.is(p, o, "") }) {
			return row[1]
		}
	}
	return "There's nothing special about " + n + "."
}

// commands are the admissible actions, each with what it does; that returns the answer.
func (m *reference) commands() map[string]func() string {
	cs := map[string]func() string{"look": m.look, "inventory": func() string {
		if m.held == "" {
			return "You are not carrying anything."
		}
		return "You are carrying: a " + m.names[m.held] + "."
	}}
	if m.wording == Move {
		cs["help"] = func() string { return helpText }
	}
	if m.held != "" {
		cs["examine "+m.names[m.held]] = func() string { return m.handle(m.held) }
	}
	for f := range m.facts["receptacleatlocation"] {
		r, l := f[0], f[1]
		if l != m.at {
			cs["go to "+m.names[r]] = func() string {
				m.at = l
				return "You arrive at " + m.names[map[Wording]string{Move: r, Put: l}[m.wording]] + ". " + m.see(r)
			}
			continue
		}
		m.commandsAt(r, cs)
	}
	for f := range m.facts["objectatlocation"] {
		if o := f[0]; f[1] == m.at && m.is("sliceable", o, "") && m.held != "" && m.isOf("objecttype", m.held, "Knife", "ButterKnife") {
			cs["slice "+m.names[o]+" with "+m.names[m.held]] = func() string {
				m.set("issliced", o, "", true)
				return "You sliced the " + m.names[o] + " with the " + m.names[m.held] + "."
			}
		}
	}
	return cs
}

// commandsAt adds those that need a receptacle here.
func (m *reference) commandsAt(r string, cs map[string]func() string) {
	n := m.names[r]
	cs["examine "+n] = func() string { return m.see(r) }
	openable, opened := m.is("openable", r, ""), m.is("opened", r, "")
	if openable && !opened {
		cs["open "+n] = func() string {
			m.set("opened", r, "", true)
			return "You open the " + n + ". " + m.see(r)
		}
	}
	if openable && opened {
		cs["close "+n] = func() string {
			m.set("opened", r, "", false)
			return "You close the " + n + "."
		}
	}
	for f := range m.facts["inreceptacle"] {
		o := f[0]
		if f[1] != r {
			continue
		}
		if m.is("pickupable", o, "") && m.held == "" && (!openable || opened) {
			cs["take "+m.names[o]+" from "+n] = func() string {
				m.set("inreceptacle", o, r, false)
				m.removed[[2]string{o, r}] = true
				m.set("objectatlocation", o, m.at, false)
				m.held = o
				return "You pick up the " + m.names[o] + " from the " + n + "."
			}
		}
		if m.is("toggleable", o, "") {
			cs["use "+m.names[o]] = func() string {
				m.set("istoggled", o, "", true)
				return "You turn on the " + m.names[o] + "."
			}
		}
	}
	if m.held != "" {
		m.commandsWith(m.held, r, !openable || opened, cs)
	}
}

// commandsWith adds those that need a held object and a receptacle here.
func (m *reference) commandsWith(o, r string, reach bool, cs map[string]func() string) {
	for f := range m.facts["cancontain"] {
		if reach && m.is("receptacletype", r, f[0]) && m.is("objecttype", o, f[1]) {
			command, answer := "move %s to %s", "You move the %s to the %s."
			if m.wording == Put {
				command, answer = "put %s in/on %s", "You put the %s in/on the %s."
			}
			cs[fmt.Sprintf(command, m.names[o], m.names[r])] = func() string {
				m.set("inreceptacle", o, r, true)
				delete(m.removed, [2]string{o, r})
				m.set("objectatlocation", o, m.at, true)
				m.held = ""
				return fmt.Sprintf(answer, m.names[o], m.names[r])
			}
		}
	}
	for _, t := range []struct{ verb, trait, at, becomes, loses string }{
		{"clean", "cleanable", "SinkBasin Sink", "isclean", ""}, {"heat", "heatable", "Microwave", "ishot", "iscool"}, {"cool", "coolable", "Fridge", "iscool", "ishot"},
	} {
		if m.is(t.trait, o, "") && m.isOf("receptacletype", r, strings.Fields(t.at)...) {
			cs[t.verb+" "+m.names[o]+" with "+m.names[r]] = func() string {
				m.set(t.becomes, o, "", true)
				m.set(t.loses, o, "", false)
				return "You " + t.verb + " the " + m.names[o] + " using the " + m.names[r] + "."
			}
		}
	}
}

func (m *reference) won() bool {
	if m.goal.Family == LookInLight {
		return m.held != "" && m.isOf("objecttype", m.held, m.goal.Object) && m.lamp()
	}
	need := map[Family][]string{CleanAndPlace: {"cleanable", "isclean"}, HeatAndPlace: {"heatable", "ishot"}, CoolAndPlace: {"coolable", "iscool"}}[m.goal.Family]
	in := map[string]int{}
	for f := range m.facts["inreceptacle"] {
		lacks := slices.ContainsFunc(need, func(p string) bool { return !m.is(p, f[0], "") })
		if m.isOf("objecttype", f[0], m.goal.Object) && m.isOf("receptacletype", f[1], m.goal.Target) && !lacks {
			in[f[1]]++
		}
	}
	for _, n := range in {
		if n >= 2 || n == 1 && m.goal.Family != PickTwo {
			return true
		}
	}
	return false
}

// lamp tells whether a lamp that was switched is here, in a receptacle or, for old goals, near.
func (m *reference) lamp() bool {
	holder := "inreceptacle"
	if m.goal.NearLamp {
		holder = "objectatlocation"
	}
	for f := range m.facts[holder] {
		here := f[1] == m.at || m.is("receptacleatlocation", f[1], m.at)
		if here && m.isOf("objecttype", f[0], m.goal.Target) && m.is("toggleable", f[0], "") && m.is("istoggled", f[0], "") {
			return true
		}
	}
	return false
}

// problems are one in so many games of a released split, as text.
func problems(t testing.TB, split string, every int) []record {
	t.Helper()
	file, err := os.Open(dataFile(t, split+packedSuffix))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var rs []record
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<24)
	for i := 0; lines.Scan(); i++ {
		var r record
		if i%every != 0 {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rs
}

// seedGames are a few released games to start fuzzing from, where they are at hand.
func seedGames(f *testing.F) []record {
	f.Helper()
	if _, err := findData(); err != nil {
		f.Logf("no released games among the seeds: %v", err)
		return nil
	}
	return problems(f, "valid_unseen", 50)
}

// duel plays a game in the engine and in the reference side by side, and counts what happened.
type duel struct {
	state *State
	ref   *reference
	now   map[string]func() string // the reference's commands
	seen  map[string]int
}

// step takes an action in both and compares all there is to see.
func (d *duel) step(action string) error {
	do, want := d.now[strings.Trim(action, " ")]
	answer := "Nothing happens."
	if want {
		answer = do()
	}
	got, ok := d.state.Step(action)
	if ok != want || got != answer {
		return fmt.Errorf("%q: got %q, accepted %v; want %q, %v", action, got, ok, answer, want)
	}
	if want {
		verb, _, _ := strings.Cut(action, " ")
		d.seen[verb]++
	} else {
		d.seen["refused"]++
	}
	if strings.Contains(answer, "Next to it, you see a") {
		d.seen["floor"]++
	}
	if d.state.Won() {
		d.seen["won"]++
	}
	return d.compare()
}

func (d *duel) compare() error {
	d.now = d.ref.commands()
	want := slices.Sorted(maps.Keys(d.now))
	got := make([]string, 0, len(want))
	for _, a := range d.state.Admissible() {
		got = append(got, string(a))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("admissible: got %q, want %q", got, want)
	}
	if d.state.Won() != d.ref.won() {
		return fmt.Errorf("won: got %v, want %v", d.state.Won(), d.ref.won())
	}
	return nil
}

// action draws one: mostly an admissible one that changes something, at times one made of any names of the game.
func (d *duel) action(r *rand.Rand) string {
	if r.IntN(6) == 0 {
		return d.phrase(r)
	}
	as := d.state.Admissible()
	a := string(as[r.IntN(len(as))])
	for range 3 {
		if strings.HasPrefix(a, "go to ") || strings.HasPrefix(a, "close ") || !strings.Contains(a, " ") {
			a = string(as[r.IntN(len(as))])
		}
	}
	return a
}

// phrase puts names of the game in the form of a command, sense or nonsense.
func (d *duel) phrase(r *rand.Rand) string {
	g := d.state.game
	object, receptacle := g.Objects[r.IntN(len(g.Objects))].Name, g.Receptacles[r.IntN(len(g.Receptacles))].Name
	if o, holds := d.state.Held(); holds && r.IntN(2) == 0 {
		object = g.Objects[o].Name
	}
	if here := g.Locations[d.state.location].Receptacles; len(here) > 0 && r.IntN(2) == 0 {
		receptacle = g.Receptacles[here[r.IntN(len(here))]].Name
	}
	forms := []string{
		"go to R", "go to O", "open R", "close R", "take O from R", "take R from O", "move O to R", "put O in/on R", "examine O", "examine R",
		"clean O with R", "heat O with R", "cool O with R", "use O", "use R", "slice O with R", "slice O with O", "go to  R", "Look", "",
	}
	return strings.NewReplacer("O", object, "R", receptacle).Replace(forms[r.IntN(len(forms))])
}

func (d *duel) play(r *rand.Rand, steps int) error {
	if got, want := d.state.Intro(), d.ref.intro(); got != want {
		return fmt.Errorf("intro: got %q, want %q", got, want)
	}
	if err := d.compare(); err != nil {
		return fmt.Errorf("at the start: %w", err)
	}
	for i := range steps {
		if err := d.step(d.action(r)); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// duels are played one after the other, in both wordings; seen counts what they came to.
type duels struct {
	games int
	seen  map[string]int
}

func (ds *duels) play(t *testing.T, problem, task string, g *Game, steps int) {
	t.Helper()
	ds.games++
	for _, w := range []Wording{Move, Put} {
		d := duel{state: g.NewState(w), ref: newReference(problem, task, g.Goal, w), seen: ds.seen}
		if err := d.play(episode.Seed(ds.games).Derive("duel", uint64(w)).Rand(), steps); err != nil {
			t.Fatalf("%s: %v: %v", g.ID, w, err)
		}
	}
}

// cameTo sees that play came to all that is to be compared.
func (ds *duels) cameTo(t *testing.T, all string) {
	t.Helper()
	for _, what := range strings.Fields(all) {
		if ds.seen[what] == 0 {
			t.Errorf("play never came to %q", what)
		}
	}
	t.Logf("%d games: %v", ds.games, ds.seen)
}

// TestEngineEqualsReference plays the kitchen with every goal, and generated and varied games.
func TestEngineEqualsReference(t *testing.T) {
	ds, steps := duels{seen: map[string]int{}}, max(fewer(80), 20)
	for _, goal := range []Goal{
		{PickAndPlace, "Knife", "CounterTop", false},
		{CleanAndPlace, "Apple", "Fridge", false},
		{HeatAndPlace, "Apple", "CounterTop", false},
		{CoolAndPlace, "Apple", "SinkBasin", false},
		{PickTwo, "Apple", "CounterTop", false},
		{LookInLight, "Bowl", "DeskLamp", false},
		{LookInLight, "Bowl", "DeskLamp", true},
	} {
		s := kitchen()
		s.Goal = goal
		g := mustGame(t, s)
		ds.play(t, g.Problem(), s.Task, g, 8*steps)
		s.Start = "loc|0|2|0|30" // where two receptacles stand
		g = mustGame(t, s)
		ds.play(t, g.Problem(), s.Task, g, steps)
	}
	for _, g := range generated(t, max(fewer(60), 12), 0.5) {
		v, err := g.Vary(g.ID+" varied", 7)
		if err != nil {
			t.Fatal(err)
		}
		ds.play(t, g.Problem(), g.Task, g, steps)
		ds.play(t, v.Problem(), v.Task, v, steps)
	}
	ds.cameTo(t, "go open close take move put clean heat cool use slice examine look inventory help refused floor won")
}

// TestReleasedGamesEqualReference plays some released games, the reference from the text as it was released.
func TestReleasedGamesEqualReference(t *testing.T) {
	ds, steps := duels{seen: map[string]int{}}, max(fewer(80), 20)
	for _, split := range []string{"valid_unseen", "valid_seen"} {
		for _, r := range problems(t, split, 140/max(fewer(70), 7)) {
			g, err := r.game()
			if err != nil {
				t.Fatal(err)
			}
			ds.play(t, r.Problem, r.Task, g, steps)
		}
	}
	ds.cameTo(t, "go open take move put examine look inventory help refused")
}
