package alfworld

import (
	"errors"
	"slices"
	"testing"

	"skillmaster/env/envtest"
)

func TestJoinedSuite(t *testing.T) {
	made := func(split string, n int) *Suite {
		s, err := NewGenerated(GeneratedOptions{Splits: map[string]int{split: n}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, two := made("one", 12), made("two", 18)
	s := one.With(two)
	if !slices.Equal(s.Splits(), []string{"one", "two"}) {
		t.Errorf("splits %v", s.Splits())
	}
	for split, from := range map[string]*Suite{"one": one, "two": two} {
		got, err := s.Tasks(split)
		if err != nil {
			t.Fatal(err)
		}
		want, err := from.Tasks(split)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("split %s is not that of its suite", split)
		}
		if _, err := s.Vary(got[0], 5); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Tasks("three"); err == nil {
		t.Error("a split that neither has was listed")
	}
	if _, err := s.Game("gen/three/x/1"); !errors.Is(err, ErrNoGame) {
		t.Errorf("a game that neither has: %v", err)
	}
	envtest.Run(t, s, envtest.Config{Splits: []string{"one", "two"}, Tasks: 2, Seed: 4})
	defer func() {
		if recover() == nil {
			t.Error("two splits of one name were joined")
		}
	}()
	one.With(made("one", 6))
}
