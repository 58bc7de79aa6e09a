package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"skillmaster/env/webshop"
	"skillmaster/episode"
	"skillmaster/train"
)

// openShop opens a shop of files, and says what was read of them, or a generated one. Pages do not say the task again and again: the policy
// has it before its eyes.
func openShop(ctx context.Context, c worldConfig, data string, stderr io.Writer) (suite *webshop.Suite, loaded webshop.Loaded, err error) {
	if c.Name == realShop {
		size, load := webshop.Small, webshop.LoadOptions{}
		if c.Full {
			size, load.Cache = webshop.Full, fullCache(data)
		}
		catalogue, loaded, err := openCatalogue(ctx, data, size, load, stderr)
		if err != nil {
			return nil, loaded, err
		}
		shop, err := webshop.NewShop(catalogue, c.goals())
		if err != nil {
			return nil, loaded, err
		}
		return webshop.NewSuite(shop, c.Shop.options()), loaded, nil
	}
	shop, err := makeShop(ctx, episode.Seed(c.House), c.Sizes["products"], c.goals())
	if err != nil {
		return nil, loaded, err
	}
	// Demonstrations come from other shops, each at most as large: what this one's makers are known for is what there is to
	// learn.
	var others []*webshop.Shop
	size := shop.Len()
	for left := c.Sizes["warm"]; left > 0; left -= size {
		seed := episode.Seed(c.House).Derive("shop of the warm start", uint64(len(others)))
		other, err := makeShop(ctx, seed, min(left, size), c.goals())
		if err != nil {
			return nil, loaded, err
		}
		others = append(others, other)
	}
	return webshop.NewSuite(shop, c.Shop.options()).With(others...), loaded, nil
}

// openCatalogue opens a catalogue of files, and shows how far it is.
func openCatalogue(ctx context.Context, data string, size webshop.Size, o webshop.LoadOptions, stderr io.Writer) (*webshop.Catalogue, webshop.Loaded, error) {
	reading, indexing := newBar(stderr, "read the catalogue", inMegabytes), newBar(stderr, "index of the products", inProducts)
	o.Progress = func(p webshop.Progress) {
		if p.Products == 0 {
			reading.update(p.Read, p.Size)
			return
		}
		reading.end()
		indexing.update(int64(p.Indexed), int64(p.Products))
	}
	c, loaded, err := webshop.OpenCatalogue(ctx, data, size, o)
	reading.end()
	indexing.end()
	return c, loaded, err
}

// fullCache is where the full catalogue is kept with its index, since making them takes minutes; "" if there is no such
// place.
func fullCache(data string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	where, err := filepath.Abs(data)
	dir := filepath.Join(cache, "skillmaster")
	if err != nil || os.MkdirAll(dir, 0o755) != nil {
		return ""
	}
	hash := sha256.Sum256([]byte(where))
	return filepath.Join(dir, fmt.Sprintf("webshop-%x", hash[:8]))
}

func makeShop(ctx context.Context, seed episode.Seed, products int, o webshop.GoalOptions) (*webshop.Shop, error) {
	c, err := webshop.Generate(ctx, webshop.GenerateOptions{Seed: seed, Products: products})
	if err != nil {
		return nil, err
	}
	return webshop.NewShop(c, o)
}

// shopScore is the mean score of an evaluation in a shop, of 100, with nothing for what was not bought, as the original counts.
// Results hold what an episode is worth, which may be all or nothing; so their actions are played again.
func shopScore(ctx context.Context, suite *webshop.Suite, panel episode.Panel, e train.Evaluation) (float64, error) {
	total := 0.0
	for i, r := range e.Results {
		task := panel.Tasks[i]
		world, _, err := suite.Open(ctx, task, e.Seed.Derive("evaluate "+task.ID).Derive("world"))
		if err != nil {
			return 0, err
		}
		won := false
		for _, a := range r.Actions {
			step, err := world.Step(ctx, a)
			if err != nil {
				return 0, err
			}
			won = step.Success
		}
		if won != r.Success || task.ID != r.Task {
			return 0, fmt.Errorf("score of %s: the episode played again ends otherwise", r.Task)
		}
		score, _ := world.(*webshop.Env).Session().Bought() // nothing bought has the score 0
		total += score.Total
		if err := world.Close(); err != nil {
			return 0, err
		}
	}
	return 100 * total / float64(len(e.Results)), nil
}
