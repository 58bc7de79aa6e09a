package tinker_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"time"

	"skillmaster/policy"
	"skillmaster/policy/tinker"
	"skillmaster/policy/transformer"
)

// The embedded engine is served, and a program that speaks the Tinker API trains it: here ours.
func Example() {
	config := transformer.Config{Vocab: 32, Width: 16, Layers: 1, Heads: 2, KVHeads: 2, Hidden: 32, Context: 16}.Complete()
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	server, err := tinker.NewServer(tinker.Served{
		Model: "tiny", Vocab: 32, Context: 16, Folder: folder, Now: time.Now,
		Open: func(_ context.Context, _ int, seed uint64) (policy.Learner, error) {
			m, err := transformer.NewModel(config, seed, nil)
			if err != nil {
				return nil, err
			}
			return transformer.NewLearner(m, transformer.LearnerOptions{Workers: 1}), nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	web := httptest.NewServer(server)
	defer web.Close()
	defer server.Close()
	client, err := tinker.New(tinker.Options{URL: web.URL, Dialect: tinker.SkillMaster})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	models, err := client.Models(context.Background())
	fmt.Println(models, err)
	// Output: [{tiny 16}] <nil>
}
