package alfworld

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skillmaster/episode"
)

// With returns a suite that has the splits of both, played as s plays. A split of the same name in both is a panic.
func (s *Suite) With(other *Suite) *Suite {
	for _, split := range s.Splits() {
		if slices.Contains(other.Splits(), split) {
			panic(fmt.Sprintf("alfworld: two splits %q", split))
		}
	}
	return &Suite{source: joined{s.source, other.source}, o: s.o}
}

// joined is the games of several sources.
type joined []Source

// Splits implements Source.
func (j joined) Splits() []string {
	var out []string
	for _, s := range j {
		out = append(out, s.Splits()...)
	}
	slices.Sort(out)
	return out
}

// Tasks implements Source.
func (j joined) Tasks(split string) ([]episode.Task, error) {
	for _, s := range j {
		if slices.Contains(s.Splits(), split) {
			return s.Tasks(split)
		}
	}
	return nil, fmt.Errorf("no split %q: there are %s", split, strings.Join(j.Splits(), ", "))
}

// Game implements Source: the first source that has a game of the id.
func (j joined) Game(id string) (*Game, error) {
	for _, s := range j {
		g, err := s.Game(id)
		if !errors.Is(err, ErrNoGame) {
			return g, err
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrNoGame, id)
}

// Scan implements Suite.Scan.
func (j joined) Scan(ctx context.Context, split string, watch func(done, total int)) (Contents, error) {
	for _, s := range j {
		if slices.Contains(s.Splits(), split) {
			return scan(ctx, s, split, watch)
		}
	}
	return Contents{}, fmt.Errorf("no split %q: there are %s", split, strings.Join(j.Splits(), ", "))
}
