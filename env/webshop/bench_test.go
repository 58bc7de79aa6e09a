package webshop

import (
	"bytes"
	"io"
	"testing"

	"skillmaster/episode"
)

// BenchmarkReady reads the 1,000 products, indexes them and settles the goals.
func BenchmarkReady(b *testing.B) {
	products, err := io.ReadAll(openGolden(b, "items_shuffle_1000.json.gz"))
	if err != nil {
		b.Fatal(err)
	}
	attributes, err := io.ReadAll(openGolden(b, "items_ins_v2_1000.json"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c, _, err := Read(b.Context(), Files{Products: bytes.NewReader(products), Attributes: bytes.NewReader(attributes)}, LoadOptions{})
		if err != nil {
			b.Fatal(err)
		}
		newShop(b, c, GoalOptions{})
	}
}

// BenchmarkGenerate makes and indexes a catalogue of 1,000 products.
func BenchmarkGenerate(b *testing.B) {
	for b.Loop() {
		if _, err := Generate(b.Context(), GenerateOptions{Seed: 1}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStep takes one kind of step again and again, text and admissible actions included.
func BenchmarkStep(b *testing.B) {
	suite := NewSuite(newShop(b, realCatalogue(b), GoalOptions{}), Options{StepLimit: 1 << 40})
	task := reportTasks(b, suite)[0]
	for _, c := range []struct {
		name    string
		before  []episode.Action
		actions []episode.Action // in turn
	}{
		{"search", nil, []episode.Action{searchFor(task.Goal)}},
		{"next page", []episode.Action{searchFor(task.Goal)}, []episode.Action{"click[next >]", "click[< prev]"}},
		{"option", []episode.Action{searchFor(task.Goal), "click[b0743jkhbv]"}, []episode.Action{`click[28" x 28"]`, `click[18 x 18-inch]`}},
		{"features", []episode.Action{searchFor(task.Goal), "click[b0743jkhbv]"}, []episode.Action{"click[features]", "click[< prev]"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			e, _, err := suite.Open(b.Context(), task, 0)
			if err != nil {
				b.Fatal(err)
			}
			for _, a := range c.before {
				if _, err := e.Step(b.Context(), a); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r, err := e.Step(b.Context(), c.actions[i%len(c.actions)])
				if err != nil || !r.Admissible {
					b.Fatalf("%v, %v", r, err)
				}
				i++
			}
		})
	}
}

// BenchmarkScore judges a purchase.
func BenchmarkScore(b *testing.B) {
	s := newShop(b, realCatalogue(b), GoalOptions{})
	g := s.Goal(0)
	for b.Loop() {
		s.Score(g, g.Product, g.Options)
	}
}
