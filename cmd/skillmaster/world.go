package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	Name       string         `json:"name"`       // household (generated games), alfworld (the real ones), shop (a generated catalogue), webshop (the real one), or openenv:ADDRESS (a server's)
	Difficulty float64        `json:"difficulty"` // household: 0, objects lie where they usually lie, to 1, anywhere they may
	Custom     float64        `json:"custom"`     // household: share of the things that lie where this house keeps them, usual or not
	Human      bool           `json:"human"`      // webshop, shop: goals that people wrote, or are worded so
	Full       bool           `json:"full"`       // webshop: the catalogue of 1.18 million products
	House      uint64         `json:"house"`      // household: which house, if it has customs; shop: which shop
	Shop       shopConfig     `json:"shop"`       // webshop, shop: how they are played
	Sizes      map[string]int `json:"sizes"`      // tasks that are generated: of each panel (household), or beside the real ones for the warm start (alfworld: generated); products of the shop, and of those of the warm start (shop); seeds of each split (openenv)
	Horizon    int            `json:"horizon"`    // openenv, servers of others: most steps of an episode; 0: 50
	Success    float64        `json:"success"`    // openenv, servers of others that do not tell: the return of a success; 0: 1
}

// shopConfig says how a shop is played. See webshop.Options and webshop.GoalOptions.
type shopConfig struct {
	Show       webshop.Show  `json:"show"`       // brief, for few tokens; parts, as the training wrapper shows pages; line or rich, as the original does
	Pay        webshop.Pay   `json:"pay"`        // strict: all for a score of exactly 1; shaped: the score's share
	Order      webshop.Order `json:"order"`      // of goals: constant, or seeded, as in the training wrapper
	Seed       int64         `json:"seed"`       // of hidden prices and price bounds, and of a seeded order
	Told       bool          `json:"told"`       // who demonstrates knows the goal's product when it sees it
	Attributes bool          `json:"attributes"` // products have a page of their attributes
	AnyGoal    bool          `json:"any_goal"`   // goals are drawn, whatever a task asks for, as in the training wrapper
	NextVisit  bool          `json:"next_visit"` // the receipt lists what can be done in the next visit, as in the training wrapper
}

func (c shopConfig) options() webshop.Options {
	return webshop.Options{Show: c.Show, Pay: c.Pay, Told: c.Told, Attributes: c.Attributes, AnyGoal: c.AnyGoal, NextVisit: c.NextVisit}
}

func (c worldConfig) goals() webshop.GoalOptions {
	return webshop.GoalOptions{Human: c.Human, Seed: c.Shop.Seed, Order: c.Shop.Order}
}

func defaultWorld(name string) worldConfig {
	c := worldConfig{Name: name}
	switch name {
	case realGames:
		c.Sizes = map[string]int{"generated": 4096}
	case household:
		c.Custom, c.House = 0.8, 1
		c.Sizes = map[string]int{"warm": 4096, "train": 4096, "probe": 480, "gate": 480, "valid": 384, "report": 384}
	case realShop:
		c.Shop.Show, c.Shop.Told = webshop.Brief, true
	case madeShop:
		c.House, c.Shop.Show = 1, webshop.Brief
		c.Sizes = map[string]int{"products": 1000, "warm": 8000}
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
	address, remote := c.remote()
	switch c.Name {
	case realGames, household, realShop, madeShop:
	default:
		if !remote || address == "" {
			return fmt.Errorf("world.name is %q: it is %s, %s, %s, %s, or %s and an address such as ws://127.0.0.1:8000",
				c.Name, household, realGames, madeShop, realShop, remoteWorld)
		}
	}
	if !remote && (c.Horizon != 0 || c.Success != 0) || c.Horizon < 0 || c.Success < 0 {
		return fmt.Errorf("world.horizon and world.success are for --env %sADDRESS, and not negative: leave them out (0)", remoteWorld)
	}
	if c.Name != household && (c.Difficulty != 0 || c.Custom != 0) || c.Name != household && c.Name != madeShop && c.House != 0 {
		return fmt.Errorf("world.difficulty, world.custom and world.house are for generated games: leave them out (0), or use --env %s", household)
	}
	if c.Full && c.Name != realShop || c.Human && c.Name != realShop && c.Name != madeShop {
		return fmt.Errorf("world.full is for --env %s, world.human for %s and %s: leave them out (false)", realShop, realShop, madeShop)
	}
	if c.Shop != (shopConfig{}) && c.Name != realShop && c.Name != madeShop {
		return fmt.Errorf("world.shop is for --env %s and %s: leave it out", realShop, madeShop)
	}
	if remote {
		return nil // the server knows its splits
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
	madeShop  = "shop"
	textGames = "textworld"
)

var worlds = []string{household, realGames, madeShop, realShop, textGames}

// playable is a world that can be looked at.
type playable interface {
	env.Suite
	Splits() []string
}

// openSuite opens a world.
func openSuite(ctx context.Context, c worldConfig, data string, stderr io.Writer) (playable, error) {
	if _, remote := c.remote(); remote {
		return dialWorld(ctx, c)
	}
	switch c.Name {
	case household, realGames:
		return openGames(c, data)
	case realShop, madeShop:
		suite, _, err := openShop(ctx, c, data, stderr)
		if err != nil {
			return nil, err
		}
		return suite, nil
	case textGames:
		return textworld.Open(data, textworld.Options{})
	default:
		return nil, usage(fmt.Errorf("there is no world %q: it is %s", c.Name, strings.Join(append(slices.Clone(worlds), remoteWorld+"ADDRESS"), ", ")))
	}
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
func openWorld(ctx context.Context, c worldConfig, data string, stderr io.Writer) (env.Suite, train.Panels, error) {
	suite, err := openSuite(ctx, c, data, stderr)
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
	switch c.short() {
	case strings.TrimSuffix(remoteWorld, ":"):
		if p, err = remotePanels(suite); err != nil {
			return nil, p, err
		}
	case household:
		p = train.Panels{Warm: split("warm"), Train: split("train"), Probe: split("probe"), Gate: split("gate"), Valid: split("valid"), Report: []episode.Panel{split("report")}}
	case realShop, madeShop:
		toDeal := split("train")
		if err == nil && len(toDeal.Tasks) == 0 {
			return nil, train.Panels{}, errors.New("the shop has so few goals that all of them are for the report: take goals that are not of people (world.human=false), or a larger catalogue (world.full, world.sizes.products)")
		}
		together := path.Dir
		if c.Name == realShop {
			together = path.Clean // most goals of the report ask for products that others ask for, too: so shall those of valid
		}
		dealt := deal(toDeal.Tasks, together)
		warm := dealt[0]
		if c.Sizes["warm"] > 0 {
			warm = split("warm")
		}
		p = train.Panels{Warm: warm, Train: dealt[0], Probe: dealt[1], Gate: dealt[2], Valid: dealt[3], Report: []episode.Panel{split("report")}}
	default:
		all := split("train").Tasks
		if err == nil {
			err = knownToExperts(suite, all)
		}
		dealt := deal(all, path.Dir)
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

// knownToExperts is an error for a task that no expert knows, for a run learns from what experts do.
func knownToExperts(suite env.Suite, tasks []episode.Task) error {
	games, ok := suite.(*alfworld.Suite)
	for _, t := range tasks {
		if !ok {
			break
		}
		if _, err := games.Game(t.ID); errors.Is(err, alfworld.ErrGeneral) {
			return fmt.Errorf("the run cannot learn from all of split %s: %w (take such games out of the folder; skillmaster data verify lists them)", t.Split, err)
		}
	}
	return nil
}

// deal deals tasks into the panels train, probe, gate and valid. Tasks stay together whose ids are: by path.Dir, which leaves
// out the last part, trials of one goal in one room, goals for one product.
func deal(tasks []episode.Task, together func(id string) string) []episode.Panel {
	return train.Partition(tasks, func(t episode.Task) string { return together(t.ID) },
		train.Share{Name: "train", Part: 0.80}, train.Share{Name: "probe", Part: 0.08},
		train.Share{Name: "gate", Part: 0.08}, train.Share{Name: "valid", Part: 0.04})
}

// describeWorld says in words what a run is played in.
func describeWorld(c worldConfig, p train.Panels) string {
	n := 0
	for _, q := range p.All() {
		n += len(q.Tasks)
	}
	return fmt.Sprintf("%s, %d tasks", c.Name, n)
}
