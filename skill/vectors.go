package skill

import (
	"context"
	"fmt"
	"math"
	"sync"
)

// Embedder gives texts vectors, in order and all of the same length, such that texts of like meaning have like directions.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Vectors ranks skills by embedding. It asks for the vector of each text once. Safe for concurrent use.
type Vectors struct {
	embedder Embedder

	mu sync.Mutex
	of map[string][]float32 // by text, of length 1
}

// NewVectors returns the ranking of an embedder.
func NewVectors(e Embedder) *Vectors { return &Vectors{embedder: e, of: map[string][]float32{}} }

// Scores returns, by id, how like the query's text each skill is that the query can retrieve: the cosine between its
// vector and that of title, principle and condition, joined by ". " as in the release.
func (v *Vectors) Scores(ctx context.Context, b Bank, q Query) (map[string]float64, error) {
	var ids []string
	texts := []string{q.Text}
	for _, s := range b.skills() {
		if s.Category == General || s.Category == q.Category {
			ids, texts = append(ids, s.ID), append(texts, s.Title+". "+s.Principle+". "+s.When)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	vectors, err := v.vectors(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("embed skills: %w", err)
	}
	scores := make(map[string]float64, len(ids))
	for i, id := range ids {
		for k, x := range vectors[0] {
			scores[id] += float64(x) * float64(vectors[i+1][k])
		}
	}
	return scores, nil
}

// vectors returns those of the texts, and asks for those it does not know.
func (v *Vectors) vectors(ctx context.Context, texts []string) ([][]float32, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var missing []string
	asked := map[string]bool{}
	for _, t := range texts {
		if v.of[t] == nil && !asked[t] {
			missing, asked[t] = append(missing, t), true
		}
	}
	if len(missing) > 0 {
		found, err := v.embedder.Embed(ctx, missing)
		if err != nil {
			return nil, err
		}
		if err := v.keep(missing, found); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = v.of[t]
		if len(out[i]) != len(out[0]) {
			return nil, fmt.Errorf("the embedder gave vectors of %d and of %d numbers", len(out[0]), len(out[i]))
		}
	}
	return out, nil
}

func (v *Vectors) keep(texts []string, vectors [][]float32) error {
	if len(vectors) != len(texts) {
		return fmt.Errorf("the embedder gave %d vectors for %d texts", len(vectors), len(texts))
	}
	for i, x := range vectors {
		unit, err := unit(x)
		if err != nil {
			return err
		}
		v.of[texts[i]] = unit
	}
	return nil
}

// unit scales a vector to length 1.
func unit(x []float32) ([]float32, error) {
	var sum float64
	for _, a := range x {
		sum += float64(a) * float64(a)
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return nil, fmt.Errorf("the embedder gave a vector of length %v", math.Sqrt(sum))
	}
	out := make([]float32, len(x))
	for i, a := range x {
		out[i] = float32(float64(a) / math.Sqrt(sum))
	}
	return out, nil
}
