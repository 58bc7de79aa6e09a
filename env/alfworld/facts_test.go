package alfworld

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var writeFacts = flag.Bool("facts", false, "write facts.txt from the train games")

// factsHead explains the lines of facts.txt.
const factsHead = `# Statistics of the household rooms of ALFRED (Shridhar et al. 2020) as played by ALFWorld (Shridhar et al. 2021), both MIT
# licensed, counted over the %d games and %d rooms of ALFWorld's train split. Made by: go test ./env/alfworld -run TestFacts -facts
#
# room KIND, then the games of each family played in rooms of the kind. Lines up to the next room belong to it:
#   receptacle TYPE  %%openable  %%at the place of another of its type  how many of them a room has, one number a room, n*k: n in k rooms
#   objects TYPE  %% of games with 0, 1, 2, 3 or more of them (games whose task asks for one left out)
#   fixture TYPE  %% of games with 0, 1, 2, 3 or more on a receptacle, then where, with counts; fixtures cannot be taken
# beside A B %%: share of the receptacles of type A that stand at the place of one of type B
# twice A B %%: share of the objects in a receptacle of type A that are in one of type B as well
# number FAMILY %%: of its games, how many have 1, 2, 3, 4 or more objects of the type that is asked for
# single TYPE...: receptacle types that hold one thing at a time
# asked TYPE=%%...: how much likelier an object that the task asks for lies in a receptacle of the type than one it does not
# inside VESSEL TYPE=n...: of 10000 objects of the type that are in a room with a vessel, n lie inside it (asked for: none)
# object TYPE %%in no receptacle, what can be done with it : games of each family that ask for it : where it is:
#   R=h/w/t  one receptacle of type R holds one with chance h/1000, given both in the room; with n of them in the room, one
#            lies there with weight w*n^1/4, w as fitted (see fit); t games want it put there
#   -R=h/w   the same, and it may not be put there

`

// dataFile returns the path of a file of the released games, or skips the test if they are not at hand.
func dataFile(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(dataDir(t), "alfworld", name)
}

// counts are what facts.txt is made of. Keys join types with blanks.
type counts struct {
	games, rooms int
	tasks        map[string]map[string]int    // kind, family
	scenes       map[string][]map[string]int  // kind: receptacle types of each scene
	openable     map[string]map[string][2]int // kind, type: openable, all
	stacked      map[string]map[string][2]int // kind, type: at the place of another of its type, all
	beside       map[string]int               // "A B": receptacles A at the place of a B
	kindGames    map[string]int
	objects      map[string]map[string][4]int // kind, type: games with 0, 1, 2, 3 of them, those that ask for it left out
	asked        map[string]int               // "kind type": games that ask for it
	fixtures     map[string]map[string][4]int
	fixtureOn    map[string]map[string]int // "kind type": receptacle type
	property     map[string]map[string]bool
	nowhere      map[string][2]int
	wanted       map[string]map[string]int    // object, family
	target       map[string]int               // "object receptacle"
	held         map[string][2]int            // "object receptacle": instances that hold one, instances beside one
	within       map[string]int               // receptacle type: objects in it
	number       map[string][4]int            // family: games with 1, 2, 3, 4 objects of the type it asks for
	twice        map[string]int               // "A B": objects in an A and a B
	all          map[string]int               // receptacle type: instances over scenes
	filled       map[string][2]int            // receptacle type: instances that hold more than one thing, instances that hold any
	inside       map[string]map[string][2]int // vessel, object: inside it, where it is
	laid         map[row]map[string]int       // receptacle types that objects lie in, by what they could lie in
	stands       map[string]map[string]int    // floor plan: receptacle types
}

func newCounts() *counts {
	return &counts{
		tasks: map[string]map[string]int{}, scenes: map[string][]map[string]int{}, openable: map[string]map[string][2]int{},
		stacked: map[string]map[string][2]int{}, beside: map[string]int{}, kindGames: map[string]int{},
		objects: map[string]map[string][4]int{}, asked: map[string]int{}, fixtures: map[string]map[string][4]int{}, fixtureOn: map[string]map[string]int{},
		property: map[string]map[string]bool{}, nowhere: map[string][2]int{}, wanted: map[string]map[string]int{},
		target: map[string]int{}, held: map[string][2]int{}, within: map[string]int{}, number: map[string][4]int{}, twice: map[string]int{}, all: map[string]int{},
		filled: map[string][2]int{}, inside: map[string]map[string][2]int{}, laid: map[row]map[string]int{}, stands: map[string]map[string]int{},
	}
}

// rawGame is a released game as far as it is counted. Types are in lower case.
type rawGame struct {
	kind, family, object, target string
	floorPlan                    string
	receptacles                  map[string]string // id: type
	objects                      map[string]string
	at                           map[string]string // receptacle: location
	openable, pickupable         map[string]bool
	in                           map[string]map[string]bool // object: receptacles
	inside                       map[string]map[string]bool // object: vessels
	property                     map[string]map[string]bool // type: properties
}

var familyWord = map[string]string{
	"pick_and_place_simple": "place", "look_at_obj_in_light": "look", "pick_clean_then_place_in_recep": "clean",
	"pick_heat_then_place_in_recep": "heat", "pick_cool_then_place_in_recep": "cool", "pick_two_obj_and_place": "two",
}

// roomKind tells the kind of room by ALFRED's numbering of floor plans.
func roomKind(floorPlan string) string {
	switch n := strings.TrimPrefix(floorPlan, "FloorPlan"); {
	case len(n) < 3:
		return "kitchen"
	case n[0] == '2':
		return "livingroom"
	case n[0] == '3':
		return "bedroom"
	default:
		return "bathroom"
	}
}

func parseRaw(line []byte) (rawGame, error) {
	var j struct {
		Family    string `json:"task_type"`
		FloorPlan string `json:"floor_plan"`
		Problem   string `json:"pddl_problem"`
		Params    struct {
			Object string `json:"object_target"`
			Target string `json:"parent_target"`
		} `json:"pddl_params"`
	}
	if err := json.Unmarshal(line, &j); err != nil {
		return rawGame{}, err
	}
	g := rawGame{
		kind: roomKind(j.FloorPlan), family: familyWord[j.Family], floorPlan: j.FloorPlan,
		object: strings.ToLower(j.Params.Object), target: strings.ToLower(j.Params.Target),
		receptacles: map[string]string{}, objects: map[string]string{}, at: map[string]string{}, openable: map[string]bool{},
		pickupable: map[string]bool{}, in: map[string]map[string]bool{}, inside: map[string]map[string]bool{}, property: map[string]map[string]bool{},
	}
	_, init, _ := strings.Cut(j.Problem, "(:init")
	init, _, _ = strings.Cut(init, "(:goal")
	for {
		_, rest, more := strings.Cut(init, "(")
		fact, after, closed := strings.Cut(rest, ")")
		if !more || !closed {
			break
		}
		init = after
		g.fact(strings.Fields(fact))
	}
	return g, nil
}

func (g *rawGame) fact(f []string) {
	class := func(s string) string { return strings.ToLower(strings.TrimSuffix(s, "Type")) }
	kindOf := func(id string) string { c, _, _ := strings.Cut(id, "_bar_"); return strings.ToLower(c) }
	switch f[0] {
	case "receptacleType":
		g.receptacles[f[1]] = class(f[2])
	case "objectType":
		g.objects[f[1]] = class(f[2])
	case "receptacleAtLocation":
		g.at[f[1]] = f[2]
	case "openable":
		g.openable[f[1]] = true
	case "pickupable":
		g.pickupable[f[1]] = true
	case "inReceptacle":
		inner(g.in, f[1])[f[2]] = true
	case "inReceptacleObject":
		inner(g.inside, f[1])[f[2]] = true
	case "cleanable", "heatable", "coolable", "sliceable", "toggleable", "isReceptacleObject":
		word := map[string]string{"cleanable": "clean", "heatable": "heat", "coolable": "cool", "sliceable": "slice", "toggleable": "switch", "isReceptacleObject": "hollow"}
		inner(g.property, kindOf(f[1]))[word[f[0]]] = true
	}
}

// inner returns the map under the key, making it if need be.
func inner[V any](m map[string]map[string]V, key string) map[string]V {
	if m[key] == nil {
		m[key] = map[string]V{}
	}
	return m[key]
}

func (c *counts) add(g rawGame, newRoom bool) {
	c.games++
	c.kindGames[g.kind]++
	inner(c.tasks, g.kind)[g.family]++
	inner(c.wanted, g.object)[g.family]++
	c.asked[g.kind+" "+g.object]++
	if g.target != "" {
		c.target[g.object+" "+g.target]++
	}
	for class, p := range g.property {
		maps.Copy(inner(c.property, class), p)
	}
	if newRoom {
		c.addRoom(g)
	}
	c.addObjects(g)
	c.addHeld(g)
	c.addInside(g)
}

func (c *counts) addRoom(g rawGame) {
	c.rooms++
	have := map[string]int{}
	place := map[string]map[string]int{}
	for id, class := range g.receptacles {
		have[class]++
		c.all[class]++
		inner(place, g.at[id])[class]++
	}
	c.scenes[g.kind] = append(c.scenes[g.kind], have)
	c.stands[g.floorPlan] = have
	for id, class := range g.receptacles {
		open, stack := inner(c.openable, g.kind)[class], inner(c.stacked, g.kind)[class]
		open[1]++
		stack[1]++
		if g.openable[id] {
			open[0]++
		}
		if place[g.at[id]][class] > 1 {
			stack[0]++
		}
		c.openable[g.kind][class], c.stacked[g.kind][class] = open, stack
		for other := range place[g.at[id]] {
			if other != class {
				c.beside[class+" "+other]++
			}
		}
	}
}

func (c *counts) addObjects(g rawGame) {
	have, fixed := map[string]int{}, map[string]int{}
	for id, class := range g.objects {
		if !g.pickupable[id] {
			if len(g.property[class]) > 0 {
				c.nowhere[class] = [2]int{} // a lamp: listed with the objects for where it stands
			}
			if len(g.in[id]) > 0 {
				fixed[class]++
				for r := range g.in[id] {
					inner(c.fixtureOn, g.kind+" "+class)[g.receptacles[r]]++
				}
			}
			continue
		}
		have[class]++
		n := c.nowhere[class]
		n[1]++
		if len(g.in[id]) == 0 {
			n[0]++
		}
		c.nowhere[class] = n
		c.addTwice(g, id)
	}
	for class, n := range have {
		if class == g.object {
			k := c.number[g.family]
			k[min(n, 4)-1]++
			c.number[g.family] = k
			continue
		}
		h := inner(c.objects, g.kind)[class]
		h[min(n, 3)]++
		c.objects[g.kind][class] = h
	}
	for class, n := range fixed {
		h := inner(c.fixtures, g.kind)[class]
		h[min(n, 3)]++
		c.fixtures[g.kind][class] = h
	}
}

func (c *counts) addTwice(g rawGame, object string) {
	var in []string
	for r := range g.in[object] {
		in = append(in, g.receptacles[r])
	}
	slices.Sort(in)
	c.addLaid(g, g.objects[object], in)
	types := slices.Compact(slices.Clone(in))
	for i, r := range types {
		c.within[r]++
		for _, other := range types[i+1:] {
			c.twice[r+" "+other]++
			c.twice[other+" "+r]++
		}
	}
	for i := 1; i < len(in); i++ {
		if in[i] == in[i-1] && (i == 1 || in[i] != in[i-2]) {
			c.twice[in[i]+" "+in[i]]++
		}
	}
}

// addInside counts the things that lie in vessels, for each vessel that lies somewhere.
func (c *counts) addInside(g rawGame) {
	for v, class := range g.objects {
		if !g.pickupable[v] || !g.property[class]["hollow"] || len(g.in[v]) == 0 {
			continue
		}
		for o, thing := range g.objects {
			if o == v || !g.pickupable[o] || thing == g.object {
				continue
			}
			n := inner(c.inside, class)[thing]
			n[1]++
			if g.inside[o][v] {
				n[0]++
			}
			c.inside[class][thing] = n
		}
	}
}

func (c *counts) addHeld(g rawGame) {
	holds := map[string]map[string]bool{}
	present := map[string]bool{}
	for o, in := range g.in {
		for r := range in {
			inner(holds, r)[g.objects[o]] = true
			present[g.objects[o]] = true
		}
	}
	for r, class := range g.receptacles {
		c.addFilled(g, r, class)
		for o := range present {
			n := c.held[o+" "+class]
			n[1]++
			if holds[r][o] {
				n[0]++
			}
			c.held[o+" "+class] = n
		}
	}
}

func (c *counts) addFilled(g rawGame, receptacle, class string) {
	n := 0
	for o := range g.pickupable {
		if g.in[o][receptacle] {
			n++
		}
	}
	f := c.filled[class]
	if n > 0 {
		f[1]++
	}
	if n > 1 {
		f[0]++
	}
	c.filled[class] = f
}

// percent rounds n of d to whole percents.
func percent(n, d int) int { return (200*n + d) / (2 * d) }

// text writes the counts as facts.txt. may lists what may be put in a receptacle type.
func (c *counts) text(may map[string][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, factsHead, c.games, c.rooms)
	for _, kind := range []string{"kitchen", "livingroom", "bedroom", "bathroom"} {
		c.writeRoom(&b, kind)
	}
	for _, pair := range slices.Sorted(maps.Keys(c.beside)) {
		x, y, _ := strings.Cut(pair, " ")
		// Each pair once, seen from its rarer member.
		if cmp.Or(cmp.Compare(c.all[x], c.all[y]), cmp.Compare(x, y)) < 0 && c.beside[pair] > 1 {
			fmt.Fprintf(&b, "beside %s %d\n", pair, percent(c.beside[pair], c.all[x]))
		}
	}
	b.WriteByte('\n')
	for _, pair := range slices.Sorted(maps.Keys(c.twice)) {
		x, y, _ := strings.Cut(pair, " ")
		if share := percent(c.twice[pair], c.within[x]); cmp.Or(cmp.Compare(c.within[x], c.within[y]), cmp.Compare(x, y)) <= 0 && share > 0 {
			fmt.Fprintf(&b, "twice %s %d\n", pair, share)
		}
	}
	b.WriteByte('\n')
	for _, f := range slices.Sorted(maps.Keys(c.number)) {
		k := c.number[f]
		total := k[0] + k[1] + k[2] + k[3]
		fmt.Fprintf(&b, "number %s %d %d %d %d\n", f, percent(k[0], total), percent(k[1], total), percent(k[2], total), percent(k[3], total))
	}
	b.WriteByte('\n')
	fit := c.fit()
	c.writeHolding(&b, fit)
	c.writeObjects(&b, may, fit)
	return b.String()
}

// writeHolding writes what receptacle types and vessels hold.
func (c *counts) writeHolding(b *strings.Builder, fit fitted) {
	b.WriteString("single")
	for _, r := range slices.Sorted(maps.Keys(c.filled)) {
		if f := c.filled[r]; f[1] > 0 && 20*f[0] < f[1] {
			b.WriteString(" " + r)
		}
	}
	b.WriteString("\nasked")
	for _, r := range slices.Sorted(maps.Keys(fit.asked)) {
		fmt.Fprintf(b, " %s=%d", r, int(100*fit.asked[r]+0.5))
	}
	b.WriteByte('\n')
	for _, v := range slices.Sorted(maps.Keys(c.inside)) {
		fmt.Fprintf(b, "inside %s", v)
		for _, o := range slices.Sorted(maps.Keys(c.inside[v])) {
			if n := c.inside[v][o]; n[0] > 2 { // less is chance
				fmt.Fprintf(b, " %s=%d", o, percent(100*n[0], n[1]))
			}
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

func (c *counts) writeRoom(b *strings.Builder, kind string) {
	fmt.Fprintf(b, "room %s%s\n", kind, pairText(c.tasks[kind]))
	for _, class := range slices.Sorted(maps.Keys(c.openable[kind])) {
		var n []int
		for _, s := range c.scenes[kind] {
			n = append(n, s[class])
		}
		slices.Sort(n)
		open, stack := c.openable[kind][class], c.stacked[kind][class]
		fmt.Fprintf(b, "receptacle %s %d %d%s\n", class, percent(open[0], open[1]), percent(stack[0], stack[1]), runText(n))
	}
	for _, class := range slices.Sorted(maps.Keys(c.objects[kind])) {
		h := c.objects[kind][class]
		fmt.Fprintf(b, "objects %s%s\n", class, shareText(h, c.kindGames[kind]-c.asked[kind+" "+class]))
	}
	for _, class := range slices.Sorted(maps.Keys(c.fixtures[kind])) {
		if h := c.fixtures[kind][class]; 20*(h[1]+h[2]+h[3]) >= c.kindGames[kind] {
			fmt.Fprintf(b, "fixture %s%s%s\n", class, shareText(h, c.kindGames[kind]), pairText(c.fixtureOn[kind+" "+class]))
		}
	}
	b.WriteByte('\n')
}

func (c *counts) writeObjects(b *strings.Builder, may map[string][]string, fit fitted) {
	for _, class := range slices.Sorted(maps.Keys(c.nowhere)) {
		n := c.nowhere[class]
		fmt.Fprintf(b, "object %s %d", class, percent(n[0], max(n[1], 1)))
		for _, p := range slices.Sorted(maps.Keys(c.property[class])) {
			b.WriteString(" " + p)
		}
		fmt.Fprintf(b, " :%s :", pairText(c.wanted[class]))
		for _, r := range slices.Sorted(maps.Keys(c.all)) {
			pair, held := class+" "+r, 0
			if h := c.held[pair]; h[1] > 0 {
				held = 1000 * h[0] / (h[1] + 5)
			}
			weight := int(1000*fit.weight[pair] + 0.5)
			switch allowed := slices.Contains(may[r], class); {
			case allowed:
				fmt.Fprintf(b, " %s=%d/%d/%d", r, held, weight, c.target[pair])
			case held > 0 || weight > 0:
				fmt.Fprintf(b, " -%s=%d/%d", r, held, weight)
			}
		}
		b.WriteByte('\n')
	}
}

func pairText(m map[string]int) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, " %s %d", k, m[k])
	}
	return b.String()
}

// runText writes sorted numbers with repeats as n*k.
func runText(sorted []int) string {
	var b strings.Builder
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		fmt.Fprintf(&b, " %d", sorted[i])
		if j-i > 1 {
			fmt.Fprintf(&b, "*%d", j-i)
		}
		i = j
	}
	return b.String()
}

// shareText writes the percents of 0, 1, 2 and 3; h[0] is what the others leave of the total.
func shareText(h [4]int, total int) string {
	h[0] = total - h[1] - h[2] - h[3]
	var b strings.Builder
	for _, n := range h {
		fmt.Fprintf(&b, " %d", percent(n, total))
	}
	return b.String()
}

// readMay reads which object types each receptacle type may hold.
func readMay(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(dataFile(t, "facts/can_contain.json"))
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string][]string
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	may := map[string][]string{}
	for r, objects := range raw {
		for _, o := range objects {
			may[strings.ToLower(r)] = append(may[strings.ToLower(r)], strings.ToLower(o))
		}
	}
	return may
}

// countTrain counts over the train games.
func countTrain(t *testing.T) *counts {
	t.Helper()
	file, err := os.Open(dataFile(t, "train.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	c, seen := newCounts(), map[string]bool{}
	lines := bufio.NewScanner(zip)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		g, err := parseRaw(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		c.add(g, !seen[g.floorPlan])
		seen[g.floorPlan] = true
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFacts makes the tables from the train games and compares them with the ones in use.
func TestFacts(t *testing.T) {
	if raceDetector {
		t.Skip("counts 3,553 games in one goroutine: twenty seconds under the race detector, with no race to find")
	}
	got := countTrain(t).text(readMay(t))
	if *writeFacts {
		if err := os.WriteFile("facts.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != factsText {
		t.Error("facts.txt is not what the train games say (run this test with -facts and read the difference)")
	}
}
