package alfworld

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// otherNames are what people call things, besides the name of the class. A name of several classes stands for the first of
// them that the room has.
const otherNames = `
alarmclock: clock
armchair: chair, recliner
bathtubbasin: tub, bathtub, bath
bread: loaf
butterknife: knife
cabinet: cupboard
cd: disc, disk
cellphone: phone, smart phone
cloth: rag, washcloth
coffeemachine: coffee maker
coffeetable: table
countertop: counter
creditcard: card
cup: glass
handtowel: towel
desklamp: lamp, light
diningtable: table, kitchen table
dishsponge: sponge
dresser: chest of drawers
fridge: refrigerator
garbagecan: garbage, trash, trash can, bin
keychain: key
ladle: spoon
laptop: computer
mug: coffee cup, cup
newspaper: paper
ottoman: footrest, foot stool
pan: skillet
peppershaker: pepper, shaker
pillow: cushion
remotecontrol: remote
safe: vault
saltshaker: salt, shaker
shelf: bookshelf
sidetable: table, nightstand, end table, bedside table, night table
sinkbasin: sink, basin
soapbar: soap, bar of soap
soapbottle: bottle of soap, soap dispenser
sofa: couch
statue: figurine, sculpture, figure
stoveburner: burner, stove, stove top
tissuebox: tissue, box of tissue
toiletpaper: roll of toilet paper
toiletpaperhanger: toilet paper holder
tvstand: television stand
winebottle: bottle of wine
`

// longestName is the number of words in the longest of them.
const longestName = 4

// named maps names, without blanks, to classes of objects and receptacles.
var named = sync.OnceValue(func() map[string][]string {
	names := map[string][]string{}
	for class := range household().objects {
		names[class] = []string{class}
	}
	for class := range household().openable {
		names[class] = []string{class}
	}
	for _, line := range strings.Split(strings.TrimSpace(otherNames), "\n") {
		class, list, _ := strings.Cut(line, ": ")
		for _, name := range strings.Split(list, ", ") {
			name = strings.ReplaceAll(name, " ", "")
			names[name] = append(names[name], class)
		}
	}
	return names
})

// classesNamed finds the classes of a name in the singular or the plural.
func classesNamed(name string) []string {
	for _, singular := range []func(string) (string, bool){
		func(s string) (string, bool) { return s, true },
		func(s string) (string, bool) { return strings.CutSuffix(s, "s") },
		func(s string) (string, bool) { return strings.CutSuffix(s, "es") },
		func(s string) (string, bool) { s, ok := strings.CutSuffix(s, "ves"); return s + "f", ok },
		func(s string) (string, bool) { s, ok := strings.CutSuffix(s, "ves"); return s + "fe", ok },
	} {
		if s, ok := singular(name); ok && named()[s] != nil {
			return named()[s]
		}
	}
	return nil
}

// mention is a place in a sentence that names something.
type mention struct {
	classes []string
	aside   bool // it is said to be where something comes from, or what something is beside
}

// spoken is a sentence of a person's own, taken apart.
type spoken struct {
	mentions []mention
	rest     []string // words that name nothing
}

// hear takes a sentence apart, the longest names first.
func hear(text string) spoken {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var s spoken
	last, aside := "", false // the word before, "" for a name; whether the last preposition leads aside
	for i := 0; i < len(words); {
		n, classes := longestIn(words[i:])
		if i == 0 && words[0] == "microwave" {
			classes = nil // what to do
		}
		if classes != nil {
			s.mentions = append(s.mentions, mention{classes, aside})
			last = ""
			i += n
			continue
		}
		word := words[i]
		switch {
		case word == "of" && last == "", word == "to" && last == "next", word == "of" && (last == "left" || last == "right"):
			aside = true // the shelf of the desk
		case slices.Contains([]string{"from", "under", "below", "beneath", "beside", "near", "by", "behind", "above"}, word):
			aside = true
		case slices.Contains([]string{"in", "on", "to", "into", "onto", "inside", "at"}, word):
			aside = false
		}
		s.rest = append(s.rest, word)
		last = word
		i++
	}
	return s
}

// longestIn finds the longest name that words begin with.
func longestIn(words []string) (n int, classes []string) {
	for n = min(longestName, len(words)); n > 0; n-- {
		if classes = classesNamed(strings.Join(words[:n], "")); classes != nil {
			return n, classes
		}
	}
	return 1, nil
}

// says tells whether one of the words that name nothing begins so.
func (s spoken) says(beginnings ...string) bool {
	return slices.ContainsFunc(s.rest, func(word string) bool {
		return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(word, b) })
	})
}

// family is what the words ask to do; an error if they ask for two things that no task has together.
func (s spoken) family() (Family, error) {
	var asked []Family
	for _, f := range []struct {
		family Family
		words  []string
	}{
		{CleanAndPlace, []string{"clean", "wash", "rins", "wet", "soak"}},
		{HeatAndPlace, []string{"heat", "hot", "warm", "cook", "microwav"}},
		{CoolAndPlace, []string{"cool", "chill", "cold", "refrigerat"}},
		{PickTwo, []string{"two", "2", "both"}},
	} {
		if s.says(f.words...) {
			asked = append(asked, f.family)
		}
	}
	lamp := slices.ContainsFunc(s.mentions, func(m mention) bool { return slices.Contains(m.classes, lampClass) })
	switch {
	case len(asked) > 1:
		return 0, fmt.Errorf("it asks for %v and %v at once", asked[0], asked[1])
	case len(asked) == 1:
		return asked[0], nil
	case lamp && !s.says("put", "plac", "mov", "set", "drop", "bring", "leave", "transfer"):
		return LookInLight, nil
	default:
		return PickAndPlace, nil
	}
}

// understand makes out what a person's own sentence asks for in a room, as far as it is said: the words for what is to be
// done, the first object that is named, and the last receptacle of the room that is, but for the appliance, and for where
// the object comes from. Of several classes with the same name it takes the first two that go together.
func understand(text string, stands func(class string) bool) (sentence, error) {
	said := hear(text)
	family, err := said.family()
	if err != nil {
		return sentence{}, err
	}
	_, appliance := family.treatment()
	target := func(class string) bool { return stands(class) && class != appliance }
	var objects, targets []string
	for _, m := range said.mentions {
		switch {
		case slices.ContainsFunc(m.classes, askedFor):
			if objects == nil {
				objects = m.classes
			}
		case !m.aside && slices.ContainsFunc(m.classes, target):
			targets = m.classes
		}
	}
	if family == LookInLight {
		targets, target = []string{lampClass}, func(string) bool { return true }
	}
	switch {
	case objects == nil:
		return sentence{}, errors.New("it names no kind of object that tasks are about")
	case targets == nil:
		return sentence{}, errors.New("it names no receptacle of the room to put the object in")
	}
	for _, t := range targets {
		for _, o := range objects {
			if s := (sentence{family, o, t}); target(t) && askedFor(o) && household().allows(s) {
				return s, nil
			}
		}
	}
	s := sentence{family, objects[0], targets[0]}
	return sentence{}, fmt.Errorf("it seems to ask to %s, which cannot be done", strings.TrimSuffix(s.text(1), "."))
}

// askedFor tells whether tasks are about objects of the class.
func askedFor(class string) bool {
	o := household().objects[class]
	return o != nil && len(o.tasks) > 0
}

// allows tells whether the object can be treated so and put there.
func (f *facts) allows(s sentence) bool {
	need := treatments[s.family].trait
	return f.objects[s.object].traits()&need == need && (s.family == LookInLight || f.where(s.object, s.target).may)
}
