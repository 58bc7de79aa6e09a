package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"skillmaster/env/openenv"
	"skillmaster/episode"
	"skillmaster/train"
)

// remoteWorld begins the name of a world on an OpenEnv server; its address follows.
const remoteWorld = "openenv:"

// worldToken is the environment variable with the token of that server.
const worldToken = "SKILLMASTER_OPENENV_TOKEN"

// remote is the address of the server that a world is on; false if it is none of a server.
func (c worldConfig) remote() (address string, ok bool) {
	return strings.CutPrefix(c.Name, remoteWorld)
}

// short is the name without an address.
func (c worldConfig) short() string {
	name, _, _ := strings.Cut(c.Name, ":")
	return name
}

// dialWorld asks the server what world it is. What goes wrong with it later and is tried again is told on stderr.
func dialWorld(ctx context.Context, c worldConfig) (openenv.World, error) {
	address, _ := c.remote()
	o := openenv.Options{URL: address, Horizon: c.Horizon, Success: c.Success, Seeds: c.Sizes}
	if os.Getenv(worldToken) != "" {
		o.Token = func() (string, error) { return os.Getenv(worldToken), nil }
	}
	o.Notice = func(text string) { fmt.Fprintln(os.Stderr, text) }
	return openenv.Dial(ctx, o)
}

// remotePanels are those that the server's world has when it is played here: splits named as panels are the panels, else
// the split train is dealt into them, and all that nobody learns from is for the report.
func remotePanels(suite openenv.World) (train.Panels, error) {
	var err error
	split := func(name string) episode.Panel {
		tasks, e := suite.Tasks(name)
		if err == nil {
			err = e
		}
		return episode.Panel{Name: name, Tasks: tasks}
	}
	splits := suite.Splits()
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(splits, n) })
	}
	var p train.Panels
	switch {
	case has("train", "probe", "gate", "valid"):
		p = train.Panels{Train: split("train"), Probe: split("probe"), Gate: split("gate"), Valid: split("valid")}
	case has("train") && !has("valid"):
		dealt := deal(split("train").Tasks, path.Dir)
		p = train.Panels{Train: dealt[0], Probe: dealt[1], Gate: dealt[2], Valid: dealt[3]}
	default:
		return p, fmt.Errorf("the world has the splits %s: training needs train, and for the rest either probe, gate and valid, or none of them",
			strings.Join(splits, ", "))
	}
	p.Warm = p.Train
	switch {
	case has("warm"):
		p.Warm = split("warm")
	case has("generated"):
		p.Warm = episode.Panel{Name: "warm", Tasks: slices.Concat(p.Train.Tasks, split("generated").Tasks)}
	}
	for _, name := range splits {
		if !slices.Contains([]string{"warm", "train", "probe", "gate", "valid", "generated"}, name) {
			p.Report = append(p.Report, split(name))
		}
	}
	return p, err
}
