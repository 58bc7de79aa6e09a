package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skillmaster/episode"
)

// A generated shop's panels share no task, those that are learned on share no product, and demonstrations come from
// another shop.
func TestShopPanels(t *testing.T) {
	c := defaultWorld(madeShop)
	c.Sizes = map[string]int{"products": 700, "warm": 140}
	suite, p, err := openWorld(t.Context(), c, "")
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]string{}
	for _, q := range []episode.Panel{p.Train, p.Probe, p.Gate, p.Valid} {
		if len(q.Tasks) == 0 {
			t.Errorf("panel %s is empty", q.Name)
		}
		for _, task := range q.Tasks {
			product := strings.Split(task.ID, "/")[2]
			if other := in[product]; other != "" && other != q.Name {
				t.Errorf("goals for product %s are in panels %s and %s", product, other, q.Name)
			}
			in[product] = q.Name
		}
	}
	for _, task := range p.Warm.Tasks {
		if task.Split != "warm" {
			t.Fatalf("a demonstration is of %s", task.ID)
		}
	}
	if shelf := suite.Guide().Categories; len(shelf) != 7 {
		t.Errorf("categories %v", shelf)
	}
	few := worldConfig{Name: madeShop, Human: true, Sizes: map[string]int{"products": 140}}
	if _, _, err := openWorld(t.Context(), few, ""); err == nil || !strings.Contains(err.Error(), "so few goals") {
		t.Errorf("a shop with nothing to train on: %v", err)
	}
	for _, wrong := range []worldConfig{{Name: madeShop, Full: true}, {Name: household, Human: true}, {Name: realShop, House: 1}, {Name: madeShop, Custom: 0.5}} {
		if err := wrong.validate(); err == nil {
			t.Errorf("%+v is let through", wrong)
		}
	}
}

// A catalogue that was written can be played where it lies.
func TestDataShop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "shop")
	run := func(args ...string) (string, string, int) {
		var stdout, stderr strings.Builder
		code := execute(context.Background(), args, strings.NewReader("search[lamp]\nclick[next >]\n"), &stdout, &stderr)
		return stdout.String(), stderr.String(), code
	}
	out, errs, code := run("data", "shop", "--to", dir, "--products", "70", "--seed", "5")
	if code != exitDone || len(strings.Fields(out)) != 4 {
		t.Fatalf("got %d, %q, %q", code, out, errs)
	}
	first, err := os.ReadFile(strings.Fields(out)[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, errs, code := run("data", "shop", "--to", dir, "--products", "70", "--seed", "5"); code != exitDone {
		t.Fatalf("again: %d, %q", code, errs)
	}
	if again, err := os.ReadFile(strings.Fields(out)[0]); err != nil || !slices.Equal(again, first) {
		t.Errorf("written again it has other bytes (%v)", err)
	}
	if out, errs, code := run("play", "--env", realShop, "--data", dir); code != exitDone || !strings.Contains(out, "Page 2 (Total results:") {
		t.Errorf("play: %d, %q, %q", code, out, errs)
	}
	if _, _, code := run("data", "shop", "--to", dir, "--products", "0"); code != exitUsage {
		t.Errorf("no products: exit code %d", code)
	}
	if _, errs, code := run("play", "--env", realShop, "--data", t.TempDir()); code != exitFailed || !strings.Contains(errs, "items_shuffle_1000.json") {
		t.Errorf("no shop: %d, %q", code, errs)
	}
}
