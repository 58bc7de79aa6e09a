package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The settings under examples are such as train takes, for the world and over the preset that their README names; a key
// that train does not know would be told.
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
		args := []string{"train", "--print-config", "--env", realGames, "--preset", "distant", "--set", "model.pretrained=" + model}
		if strings.Contains(file, "gradient-free") {
			args = []string{"train", "--print-config", "--env", realGames, "--preset", "server"}
		}
		if strings.Contains(file, "webshop") {
			args[3] = realShop
		}
		out, _ := must(t, 0, append(args, "--config", file)...)
		var cfg runConfig
		if err := json.Unmarshal([]byte(out), &cfg); err != nil || cfg.Tinker.URL == "" && cfg.Server.URL == "" {
			t.Errorf("%s: no server is named, %v", file, err)
		}
		if !strings.Contains(string(readme), filepath.Base(file)) {
			t.Errorf("the README does not speak of %s", file)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		wrong := filepath.Join(model, "wrong.json")
		for at, with := range map[string]string{"{": `{"tranquil":1,`, `"train": {`: `"train": {"tranquil":1,`} {
			if err := os.WriteFile(wrong, []byte(strings.Replace(string(text), at, with, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, errs := must(t, 2, append(args, "--config", wrong)...); !strings.Contains(errs, "tranquil") {
				t.Errorf("%s: a key that nobody knows: %s", file, errs)
			}
		}
	}
}
