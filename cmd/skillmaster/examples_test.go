package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The settings under examples are such as train takes, for the world and over the preset that their README names.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	model := t.TempDir()
	if err := os.WriteFile(filepath.Join(model, "config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		c := trainCmd{Env: realGames, Preset: "distant", Config: file, Set: []string{"model.pretrained=" + model}}
		if strings.Contains(file, "webshop") {
			c.Env = realShop
		}
		if strings.Contains(file, "gradient-free") {
			c.Preset, c.Set = "server", nil
		}
		cfg, err := c.config()
		switch {
		case err != nil:
			t.Errorf("%s: %v", file, err)
		case cfg.Tinker.URL == "" && cfg.Server.URL == "":
			t.Errorf("%s: no server is named", file)
		}
		if !strings.Contains(string(readme), filepath.Base(file)) {
			t.Errorf("the README does not speak of %s", file)
		}
	}
}
