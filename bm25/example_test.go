package bm25_test

import (
	"context"
	"fmt"
	"slices"

	"skillmaster/bm25"
)

func ExampleBuild() {
	documents := []string{"Clean plates in the sink.", "Heat apples in the microwave.", "Cleaning needs a sink with water."}
	index, err := bm25.Build(context.Background(), slices.Values(documents), 1)
	if err != nil {
		panic(err)
	}
	for _, hit := range index.Search("cleaned in sinks", 2) {
		fmt.Println(documents[hit.Document])
	}
	// Output:
	// Clean plates in the sink.
	// Cleaning needs a sink with water.
}
