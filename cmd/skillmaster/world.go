package main

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"skillmaster/env"
	"skillmaster/env/alfworld"
	"skillmaster/env/textworld"
	"skillmaster/env/webshop"
	"skillmaster/episode"
	"skillmaster/train"
)

// worldConfig names a world and says what of it a run uses.
type worldConfig struct {
	Name       string         `json:"name"`       // household (generated games) or alfworld (the real ones)
	Difficulty float64        `json:"difficulty"` // household: 0, objects lie where they usually lie, to 1, anywhere they may
	Custom     float64        `json:"custom"`     // household: share of the things that lie where this house keeps them, usual or not
	House      uint64         `json:"house"`      // household: which house, if it has customs
	Sizes      map[string]int `json:"sizes"`      // tasks that are generated: of each panel (household), or beside the real ones for the warm start (alfworld: generated)
}

func defaultWorld(name string) worldConfig {
	c := worldConfig{Name: name}
	switch name {
	case realGames:
		c.Sizes = map[string]int{"generated": 4096}
	case household:
		c.Custom, c.House = 0.8, 1
		c.Sizes = map[string]int{"warm": 4096, "train": 4096, "probe": 480, "gate": 480, "valid": 384, "report": 384}
	}
	return c
}

// gamesOf is a world without what a run adds to it.
func gamesOf(name string) worldConfig {
	c := defaultWorld(name)
	if name == realGames {
		c.Sizes = nil
	}
	return c
}

// validate reports a world that there is not, settings that it would not heed, and panels of generated games that no run
// plays.
func (c worldConfig) validate() error {
	switch c.Name {
	case realGames, household:
	default:
		return fmt.Errorf("world.name is %q: it is %s or %s", c.Name, household, realGames)
	}
	if c.Name == realGames && (c.Difficulty != 0 || c.Custom != 0 || c.House != 0) {
		return fmt.Errorf("world.difficulty, world.custom and world.house are for generated games: leave them out (0), or use --env %s", household)
	}
	known := defaultWorld(c.Name).Sizes
	for _, name := range slices.Sorted(maps.Keys(c.Sizes)) {
		if _, ok := known[name]; !ok {
			return fmt.Errorf("world.sizes has a panel %q: the panels are %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return nil
}

// The worlds there are.
const (
	household = "household"
	realGames = "alfworld"
	realShop  = "webshop"
	textGames = "textworld"
)

var worlds = []string{household, realGames, realShop, textGames}

// playable is a world that can be looked at and replayed.
type playable interface {
	env.Suite
	env.Replayer
	Splits() []string
}

// openSuite opens a world.
func openSuite(ctx context.Context, c worldConfig, data string) (playable, error) {
	switch c.Name {
	case household, realGames:
		return openGames(c, data)
	case realShop:
		return openShop(ctx, data)
	case textGames:
		return textworld.Open(data, textworld.Options{})
	default:
		return nil, usage(fmt.Errorf("there is no world %q: it is %s", c.Name, strings.Join(worlds, ", ")))
	}
}

// openShop opens the shop of 1,000 products.
func openShop(ctx context.Context, data string) (*webshop.Suite, error) {
	c, _, err := webshop.OpenCatalogue(ctx, data, webshop.Small, webshop.LoadOptions{})
	if err != nil {
		return nil, err
	}
	shop, err := webshop.NewShop(c, webshop.GoalOptions{})
	if err != nil {
		return nil, err
	}
	return webshop.NewSuite(shop, webshop.Options{}), nil
}

// openGames opens one of the worlds that are a household.
func openGames(c worldConfig, data string) (*alfworld.Suite, error) {
	switch c.Name {
	case household:
		return alfworld.NewGenerated(alfworld.GeneratedOptions{
			Splits: c.Sizes, Difficulty: c.Difficulty,
			// Demonstrations come from usual houses: where this one keeps things is what there is to learn.
			Custom: alfworld.Custom{Share: c.Custom, Seed: episode.Seed(c.House), Usual: []string{"warm"}},
		})
	case realGames:
		real, err := alfworld.Open(data, alfworld.Options{})
		if err != nil || c.Sizes["generated"] == 0 {
			return real, err
		}
		made, err := alfworld.NewGenerated(alfworld.GeneratedOptions{Splits: map[string]int{"generated": c.Sizes["generated"]}})
		if err != nil {
			return nil, err
		}
		return real.With(made), nil
	default:
		return nil, usage(fmt.Errorf("%q has no games: it is %s or %s", c.Name, household, realGames))
	}
}

// openWorld opens a world with its panels. The real games' train split is dealt into the panels a run learns and
// chooses on by the hash of goal and room; the two evaluation splits are the report panels, whole.
func openWorld(ctx context.Context, c worldConfig, data string) (env.Suite, train.Panels, error) {
	suite, err := openSuite(ctx, c, data)
	if err != nil {
		return nil, train.Panels{}, err
	}
	split := func(name string) (p episode.Panel) {
		var tasks []episode.Task
		if err == nil {
			tasks, err = suite.Tasks(name)
		}
		return episode.Panel{Name: name, Tasks: tasks}
	}
	var p train.Panels
	if c.Name == household {
		p = train.Panels{Warm: split("warm"), Train: split("train"), Probe: split("probe"), Gate: split("gate"), Valid: split("valid"), Report: []episode.Panel{split("report")}}
	} else {
		trials := func(t episode.Task) string { return path.Dir(t.ID) } // of one goal in one room
		dealt := train.Partition(split("train").Tasks, trials,
			train.Share{Name: "train", Part: 0.80}, train.Share{Name: "probe", Part: 0.08},
			train.Share{Name: "gate", Part: 0.08}, train.Share{Name: "valid", Part: 0.04})
		warm := dealt[0]
		if c.Sizes["generated"] > 0 {
			// Rooms that nobody has seen before teach what holds in all rooms.
			warm = episode.Panel{Name: "warm", Tasks: append(slices.Clone(dealt[0].Tasks), split("generated").Tasks...)}
		}
		p = train.Panels{Warm: warm, Train: dealt[0], Probe: dealt[1], Gate: dealt[2], Valid: dealt[3], Report: []episode.Panel{split("valid_seen"), split("valid_unseen")}}
	}
	if err != nil {
		return nil, train.Panels{}, err
	}
	return suite, p, p.Validate()
}

// describeWorld says in words what a run is played in.
func describeWorld(c worldConfig, p train.Panels) string {
	n := 0
	for _, q := range p.All() {
		n += len(q.Tasks)
	}
	return fmt.Sprintf("%s, %d tasks", c.Name, n)
}
