package bm25

import (
	"slices"
	"testing"
)

func build(t testing.TB, documents ...string) *Index {
	t.Helper()
	x, err := Build(t.Context(), slices.Values(documents), 2)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
