package bm25

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// corpus makes documents with the statistics of products: about 108 terms, 68 of them distinct, of a vocabulary that
// follows Zipf's law, part of them from the words of one of many topics. The same numbers give the same documents.
type corpus struct {
	documents int
	seed      uint64
}

const (
	vocabulary = 1_500_000
	topics     = 3000
)

// all gives the documents' texts.
func (c corpus) all() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range c.documents {
			if !yield(c.text(i)) {
				return
			}
		}
	}
}

func (c corpus) text(i int) string {
	var b strings.Builder
	for _, w := range c.words(i) {
		b.WriteString(spell(w))
		b.WriteByte(' ')
	}
	return b.String()
}

func (c corpus) words(i int) []uint64 {
	r := rand.New(rand.NewPCG(c.seed, uint64(i)))
	common, topical := rand.NewZipf(r, 1.07, 4, vocabulary-1), rand.NewZipf(r, 1.1, 8, 400)
	topic := rand.NewZipf(r, 1.05, 20, topics-1).Uint64()
	words := make([]uint64, int(40+r.ExpFloat64()*70))
	for j := range words {
		switch p := r.Float64(); {
		case p < 0.45:
			words[j] = common.Uint64()
		case p < 0.80 || j == 0:
			n := topical.Uint64()
			// Words of a topic are rarer than words of all, and some belong to several topics.
			words[j] = 50 + rand.New(rand.NewPCG(topic%(1+topics/(1+n)), n)).Uint64N(60*(n+20))
		default:
			words[j] = words[r.IntN(j)]
		}
	}
	return words
}

// query asks for a document as an instruction does: some of its words, and words that stand in every instruction.
func (c corpus) query(r *rand.Rand) string {
	words := c.words(r.IntN(c.documents))
	var q []string
	for range 6 {
		q = append(q, spell(r.Uint64N(100)))
	}
	for range 6 + r.IntN(12) {
		q = append(q, spell(words[r.IntN(len(words))]))
	}
	return strings.Join(q, " ")
}

// spell makes a word of a number: other numbers, other words, larger ones longer.
func spell(n uint64) string {
	const consonants, vowels = "bcdfghklmnprtvz", "aeiou"
	b := []byte{'x'}
	for n += 75; n > 0; n /= 75 {
		b = append(b, consonants[n%15], vowels[n/15%5])
	}
	return string(b)
}

// fullShop is how many products the full shop has; a hundredth of it with -short.
func fullShop() int {
	if testing.Short() {
		return 11_814
	}
	return 1_181_430
}

func BenchmarkFullShopOfMadeWords(b *testing.B) {
	c := corpus{documents: fullShop(), seed: 1}
	queries := make([]string, 1000)
	r := rand.New(rand.NewPCG(2, 2))
	for i := range queries {
		queries[i] = c.query(r)
	}
	benchmarkFullShop(b, c.all(), queries)
}

// Of the words of two real products each, asked as the real shop was.
func BenchmarkFullShopOfRealWords(b *testing.B) {
	_, contents := shop(b)
	var products [][]string
	for _, text := range contents {
		products = append(products, strings.Fields(text))
	}
	documents := func(yield func(string) bool) {
		r := rand.New(rand.NewPCG(5, 5))
		for range fullShop() {
			words := slices.Clone(products[r.IntN(len(products))])
			other := products[r.IntN(len(products))]
			for i := range words {
				if r.Float64() < 0.4 {
					words[i] = other[r.IntN(len(other))]
				}
			}
			if !yield(strings.Join(words, " ")) {
				return
			}
		}
	}
	benchmarkFullShop(b, documents, recorded(b))
}

// recorded gives the queries whose rankings are known.
func recorded(b *testing.B) (queries []string) {
	for _, r := range rankings(b) {
		queries = append(queries, r.Query)
	}
	return queries
}

func benchmarkFullShop(b *testing.B, documents iter.Seq[string], queries []string) {
	var x *Index
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			var err error
			if x, err = Build(b.Context(), documents, runtime.GOMAXPROCS(0)); err != nil {
				b.Fatal(err)
			}
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys), "memory-bytes") // the most that the process has had
		b.ReportMetric(float64(x.Size()), "index-bytes")
		b.ReportMetric(float64(x.postingN), "postings")
		b.ReportMetric(float64(x.terms), "vocabulary")
	})
	if x == nil {
		return // not asked to build
	}
	path, hash := filepath.Join(b.TempDir(), "index"), x.Hash()
	if err := x.WriteFile(path); err != nil {
		b.Fatal(err)
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			y, err := Open(path, hash)
			if err != nil {
				b.Fatal(err)
			}
			y.Close()
		}
	})
	x, err := Open(path, hash)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	b.Run("search", func(b *testing.B) { searchAll(b, x, queries) })
}

func BenchmarkRealThousand(b *testing.B) {
	_, contents := shop(b)
	b.Run("build", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			build(b, contents...)
		}
	})
	x := build(b, contents...)
	b.Run("search", func(b *testing.B) { searchAll(b, x, recorded(b)) })
}

// searchAll asks every query three times, and reports how long half and 99 of 100 queries took at their fastest: what other
// work on the machine costs is left out as far as it can be.
func searchAll(b *testing.B, x *Index, queries []string) {
	b.ReportAllocs()
	var took []time.Duration
	for b.Loop() {
		for _, q := range queries {
			best := time.Duration(math.MaxInt64)
			for range 3 {
				start, _ := clock(b)
				x.Search(q, 50)
				end, _ := clock(b)
				best = min(best, end-start)
			}
			took = append(took, best)
		}
	}
	slices.Sort(took)
	_, unit := clock(b)
	for _, p := range []int{50, 99} {
		b.ReportMetric(took[(len(took)-1)*p/100].Seconds()*1000, fmt.Sprintf("%s-p%d", unit, p))
	}
	b.ReportMetric(float64(3*len(queries)), "searches/op")
}
