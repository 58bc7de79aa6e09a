package twl2_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"skillmaster/env/alfworld"
	"skillmaster/env/textworld/twl2"
	"skillmaster/episode"
)

// dataDir is the folder with the released games.
func dataDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SKILLMASTER_DATA")
	if dir == "" {
		_, file, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(file), "..", "..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(dir, "alfworld")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the released games are needed in CI: %v (set SKILLMASTER_DATA)", err)
		}
		t.Skipf("SKIPPED, NOT TESTED: no released games: %v (set SKILLMASTER_DATA)", err)
	}
	return dir
}

// household shows a state of the compiled household as facts and names. The types of its domain lie side by side.
type household struct {
	*alfworld.State
	spec  alfworld.Spec
	near  map[[2]int]bool // object and location
	out   map[[2]int]bool // object and receptacle it was taken from
	facts map[string][][]twl2.Arg

	entities map[string][]string // by type
	numbers  map[string]int
	types    map[string]string
}

func newHousehold(g *alfworld.Game) *household {
	h := &household{State: g.NewState(alfworld.Move), spec: g.Spec(), near: map[[2]int]bool{}, out: map[[2]int]bool{}}
	h.index()
	for _, o := range h.spec.Objects {
		for _, l := range o.At {
			h.near[[2]int{h.number(o.ID), h.number(l)}] = true
		}
	}
	h.look()
	return h
}

const agent = "agent1"

// index takes down the ids of each type.
func (h *household) index() {
	g := h.Game()
	h.entities = map[string][]string{"agent": {agent}}
	for _, l := range g.Locations {
		h.entities["location"] = append(h.entities["location"], strings.ToLower(l.ID))
	}
	for _, r := range g.Receptacles {
		h.entities["receptacle"] = append(h.entities["receptacle"], strings.ToLower(r.ID))
	}
	for _, o := range g.Objects {
		h.entities["object"] = append(h.entities["object"], strings.ToLower(o.ID))
	}
	h.numbers = map[string]int{}
	h.types = map[string]string{}
	for typ, ids := range h.entities {
		for i, id := range ids {
			h.numbers[id], h.types[id] = i, typ
		}
	}
}

func (h *household) number(id string) int { return h.numbers[strings.ToLower(id)] }

func (h *household) Type(id string) string { return h.types[id] }

func (h *household) Name(id string) string {
	g := h.Game()
	switch h.Type(id) {
	case "receptacle":
		return g.Receptacles[h.number(id)].Name
	case "object":
		return g.Objects[h.number(id)].Name
	default:
		return id
	}
}

func (h *household) Matching(predicate string, types []string) (found [][]twl2.Arg, _ error) {
	for _, f := range h.facts[predicate] {
		if slices.EqualFunc(f, types, func(a twl2.Arg, typ string) bool { return a.Type == typ }) {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b []twl2.Arg) int {
		return slices.CompareFunc(a, b, func(x, y twl2.Arg) int { return strings.Compare(x.ID, y.ID) })
	})
	return found, nil
}

// look takes down the facts as they are.
func (h *household) look() {
	g := h.Game()
	locations, receptacles, objects := h.entities["location"], h.entities["receptacle"], h.entities["object"]
	h.facts = map[string][][]twl2.Arg{}
	a := twl2.Arg{ID: agent, Type: "agent"}
	l := func(i int) twl2.Arg { return twl2.Arg{ID: locations[i], Type: "location"} }
	r := func(i int) twl2.Arg { return twl2.Arg{ID: receptacles[i], Type: "receptacle"} }
	o := func(i int) twl2.Arg { return twl2.Arg{ID: objects[i], Type: "object"} }
	fact := func(holds bool, predicate string, args ...twl2.Arg) {
		if holds {
			h.facts[predicate] = append(h.facts[predicate], args)
		}
	}
	fact(true, "atlocation", a, l(h.Location()))
	held, holding := h.Held()
	fact(holding, "holdsany", a)
	for i, x := range g.Receptacles {
		if x.Location >= 0 {
			fact(true, "receptacleatlocation", r(i), l(int(x.Location)))
		}
		fact(x.Openable, "openable", r(i))
		fact(h.Opened(i), "opened", r(i))
	}
	for i, x := range g.Objects {
		fact(holding && held == i, "holds", a, o(i))
		fact(x.Traits&alfworld.Vessel != 0, "isreceptacleobject", o(i))
		fact(x.Traits&alfworld.Toggleable != 0, "toggleable", o(i))
		fact(x.Traits&alfworld.Sliceable != 0, "sliceable", o(i))
		for predicate, c := range map[string]alfworld.Condition{"isclean": alfworld.Clean, "ishot": alfworld.Hot, "iscool": alfworld.Cool, "issliced": alfworld.Sliced, "istoggled": alfworld.Toggled} {
			fact(h.Is(i, c), predicate, o(i))
		}
		for j := range g.Receptacles {
			fact(h.In(i, j), "inreceptacle", o(i), r(j))
			fact(h.out[[2]int{i, j}], "not_inreceptacle", o(i), r(j))
		}
		for j := range g.Locations {
			fact(h.near[[2]int{i, j}], "objectatlocation", o(i), l(j))
		}
	}
	for _, x := range h.spec.Objects {
		for _, vessel := range x.Inside {
			fact(true, "inreceptacleobject", o(h.number(x.ID)), o(h.number(vessel)))
		}
	}
}

// actionOf is the action of the domain behind a command, with its arguments.
func (h *household) actionOf(c alfworld.Command) (string, map[string]twl2.Arg) {
	args := map[string]twl2.Arg{"a": {ID: agent, Type: "agent"}}
	here := h.entities["location"][h.Location()]
	set := func(param, typ string, i int) { args[param] = twl2.Arg{ID: h.entities[typ][i], Type: typ} }
	args["l"] = twl2.Arg{ID: here, Type: "location"}
	if c.Receptacle >= 0 {
		set("r", "receptacle", c.Receptacle)
	}
	if c.Object >= 0 {
		set("o", "object", c.Object)
	}
	switch c.Verb {
	case alfworld.VerbLook:
		return "look", args
	case alfworld.VerbInventory, alfworld.VerbHelp:
		delete(args, "l")
		return c.Verb.String(), args
	case alfworld.VerbGo:
		delete(args, "l")
		args["lstart"] = twl2.Arg{ID: here, Type: "location"}
		set("lend", "location", int(h.Game().Receptacles[c.Receptacle].Location))
		return "GotoLocation", args
	case alfworld.VerbOpen:
		return "OpenObject", args
	case alfworld.VerbClose:
		return "CloseObject", args
	case alfworld.VerbExamine:
		if c.Receptacle >= 0 {
			return "examineReceptacle", args
		}
		return "examineObject", args
	case alfworld.VerbTake:
		return "PickupObject", args
	case alfworld.VerbPut:
		return "PutObject", args
	case alfworld.VerbClean:
		return "CleanObject", args
	case alfworld.VerbHeat:
		return "HeatObject", args
	case alfworld.VerbCool:
		return "CoolObject", args
	case alfworld.VerbUse:
		return "ToggleObject", args
	default: // slice
		set("co", "object", c.Object)
		held, _ := h.Held()
		set("ko", "object", held)
		delete(args, "o")
		return "SliceObject", args
	}
}

// do takes an action and keeps what the state does not show: what was taken from where.
func (h *household) do(action string, c alfworld.Command) string {
	here := h.Location()
	switch c.Verb {
	case alfworld.VerbTake:
		h.out[[2]int{c.Object, c.Receptacle}] = true
		delete(h.near, [2]int{c.Object, here})
	case alfworld.VerbPut:
		delete(h.out, [2]int{c.Object, c.Receptacle})
		h.near[[2]int{c.Object, here}] = true
	}
	answer, _ := h.Step(action)
	h.look()
	return answer
}

// grammarOf is the released grammar with the task of a game.
func grammarOf(t *testing.T, texts alfworld.Texts, g *alfworld.Game) *twl2.Grammar {
	t.Helper()
	grammar, err := twl2.Parse(strings.Replace(texts.Grammar, "UNKNOWN GOAL.", g.Task, 1))
	if err != nil {
		t.Fatal(err)
	}
	return grammar
}

// TestReleasedGrammar compares what the released grammar says with what the compiled household says.
func TestReleasedGrammar(t *testing.T) {
	texts, err := alfworld.ReadTexts(filepath.Join(dataDir(t), "alfworld"))
	if err != nil {
		t.Fatal(err)
	}
	suite, err := alfworld.Open(dataDir(t), alfworld.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := suite.Tasks("valid_seen")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for i := 0; i < len(tasks); i += 14 {
		g, err := suite.Game(tasks[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		h, grammar := newHousehold(g), grammarOf(t, texts, g)
		if i == 0 {
			expandAll(t, h, texts, grammar)
		}
		play(t, h, grammar, rand.New(rand.NewPCG(uint64(i), 1)), told)
	}
	for _, action := range []string{"GotoLocation", "OpenObject", "CloseObject", "PickupObject", "PutObject", "examineReceptacle", "examineObject", "CleanObject", "HeatObject", "CoolObject", "ToggleObject", "inventory", "look", "help"} {
		if told[action] == 0 {
			t.Errorf("%s was never taken", action)
		}
	}
}

// play follows a plan and then chance.
func play(t *testing.T, h *household, g *twl2.Grammar, r *rand.Rand, told map[string]int) {
	t.Helper()
	intro, err := g.Expand("intro", nil, h, h)
	if want := h.Intro(); intro != want || err != nil {
		t.Fatalf("intro: got %q, %v\nwant %q", intro, err, want)
	}
	plan, ok := h.Plan() // first, since it knows uses of its own
	if !ok {
		t.Fatal("no plan")
	}
	for i := range 60 {
		actions := h.Admissible()
		for _, a := range actions[:len(actions)*max(0, 1-i%5)] { // every fifth time all
			c, _ := h.Parse(string(a))
			name, args := h.actionOf(c)
			if got, err := g.Command(name, args, h, h); got != string(a) || err != nil {
				t.Fatalf("%s: got command %q, %v, want %q", name, got, err, a)
			}
		}
		a := pick(r, actions)
		if i < len(plan) {
			a = string(h.Text(plan[i]))
		}
		c, _ := h.Parse(a)
		name, args := h.actionOf(c)
		want := h.do(a, c)
		if got, err := g.Feedback(name, args, h, h); got != want || err != nil {
			t.Fatalf("%s: got %q, %v\nwant %q", a, got, err, want)
		}
		told[name]++
	}
}

// pick draws a verb, and then one of its actions.
func pick(r *rand.Rand, actions []episode.Action) string {
	verb := func(a episode.Action) string {
		first, _, _ := strings.Cut(string(a), " ")
		return first
	}
	var verbs []string
	for _, a := range actions { // sorted
		if v := verb(a); len(verbs) == 0 || verbs[len(verbs)-1] != v {
			verbs = append(verbs, v)
		}
	}
	v := verbs[r.IntN(len(verbs))]
	var of []episode.Action
	for _, a := range actions {
		if verb(a) == v {
			of = append(of, a)
		}
	}
	return string(of[r.IntN(len(of))])
}

// expandAll expands every rule, also those that no game reaches, with everything bound.
func expandAll(t *testing.T, h *household, texts alfworld.Texts, g *twl2.Grammar) {
	t.Helper()
	object, receptacle := twl2.Arg{ID: h.entities["object"][0], Type: "object"}, twl2.Arg{ID: h.entities["receptacle"][0], Type: "receptacle"}
	bound := map[string]twl2.Arg{"a": {ID: agent, Type: "agent"}, "o": object, "co": object, "ko": object, "outero": object, "outerr": object, "r": receptacle}
	names := regexp.MustCompile(`(?m)^ +"([^"]+)": \[$`).FindAllStringSubmatch(texts.Grammar, -1)
	if len(names) < 30 {
		t.Fatalf("%d rules found", len(names))
	}
	o, r := h.Name(object.ID), h.Name(receptacle.ID)
	want := map[string]string{
		"notImplemented": "TODO", "task": "Your task is to: " + h.Game().Task, "overview(o)": "a " + o, "overview(r)": "a " + r,
		"overview(o, r)": "a " + o + " (in/on the " + r + ")", // the text has a brace behind it
		"list_empty":     "nothing", "list_separator": ", ", "list_last_separator": ", and ",
		"PutFullReceptacleObjectInReceptacle.feedback": "PutFullReceptacleObjectInReceptacle: You put the " + o + " in the " + r + ".",
	}
	for _, name := range names {
		got, err := g.Expand(name[1], bound, h, h)
		if err != nil {
			t.Errorf("%s: %v", name[1], err)
		}
		if text, known := want[name[1]]; known && got != text {
			t.Errorf("%s: got %q, want %q", name[1], got, text)
		}
		delete(want, name[1])
	}
	if len(want) > 0 {
		t.Errorf("rules not found: %v", want)
	}
	if notes := g.Notes(); len(notes) != 1 || !strings.Contains(notes[0].Text, `rule overview(o, r) ends before "}"`) {
		t.Errorf("got notes %v, want one on a brace", notes)
	}
}

func BenchmarkReleased(b *testing.B) {
	texts, err := alfworld.ReadTexts(filepath.Join(dataDir(b), "alfworld"))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := twl2.Parse(texts.Grammar); err != nil {
				b.Fatal(err)
			}
		}
	})
}
