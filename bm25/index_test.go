package bm25

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// reference scores every document for every term of a query, one after another, and sorts them all.
type reference struct {
	frequencies    map[string]map[int]int // term → document → how often
	lengths        []uint32
	length, filled uint64
}

func newReference(documents []string) *reference {
	r := &reference{frequencies: map[string]map[int]int{}}
	for d, text := range documents {
		terms := Terms(text)
		for _, term := range terms {
			if r.frequencies[term] == nil {
				r.frequencies[term] = map[int]int{}
			}
			r.frequencies[term][d]++
		}
		r.lengths = append(r.lengths, uint32(len(terms)))
		r.length += uint64(len(terms))
		r.filled += uint64(min(len(terms), 1))
	}
	return r
}

func (r *reference) search(query string, k int) []Hit {
	counts := map[string]int{}
	for _, term := range Terms(query) {
		counts[term]++
	}
	inverse := newInverses(r.length, r.filled)
	sums := make([]float64, len(r.lengths)) // exact: of few float32, none of them 2²⁹ times another
	for term, count := range counts {
		in := r.frequencies[term]
		w := weight(count, r.filled, uint64(len(in)))
		for d, f := range in {
			sums[d] += float64(score(w, ratio(float32(f), inverse[lengthCode(r.lengths[d])])))
		}
	}
	var hits []Hit
	for d, sum := range sums {
		if sum > 0 {
			hits = append(hits, Hit{d, float32(sum)})
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return -cmp.Compare(a.Score, b.Score) })
	return hits[:min(k, len(hits))]
}

// sample makes documents of few words, many of them alike, in which some words are frequent and some stand often.
func sample(r *rand.Rand, documents, vocabulary int) []string {
	zipf := rand.NewZipf(r, 1.2, 2, uint64(vocabulary-1))
	out := make([]string, documents)
	for i := range out {
		var words []string
		for range r.IntN(12) {
			words = append(words, spell(zipf.Uint64()))
		}
		if r.IntN(40) == 0 {
			words = append(words, slices.Repeat([]string{spell(zipf.Uint64())}, 10+r.IntN(60))...)
		}
		out[i] = strings.Join(words, " ")
	}
	return out
}

// Search leaves out most of the work, and nothing of the result.
func TestSearchIsExhaustive(t *testing.T) {
	for _, c := range []struct{ documents, vocabulary, queries int }{
		{0, 5, 2}, {1, 5, 20}, {50, 10, 200}, {windowSize, 30, 20}, {windowSize + 1, 400, 20}, {4 * windowSize, 50, 10}, {4*windowSize + 7, 3000, 20},
	} {
		t.Run(fmt.Sprint(c.documents, "_", c.vocabulary), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(c.documents), uint64(c.vocabulary)))
			documents := sample(r, c.documents, c.vocabulary)
			x, ref := build(t, documents...), newReference(documents)
			for range c.queries {
				var words []string
				for range 1 + r.IntN(20) {
					words = append(words, spell(r.Uint64N(uint64(c.vocabulary))))
				}
				query := strings.Join(words, " ")
				all := ref.search(query, c.documents)
				for _, k := range []int{1, 10, 50, c.documents + 1} {
					if got, want := x.Search(query, k), all[:min(k, len(all))]; !slices.Equal(got, want) {
						t.Fatalf("%q, best %d:\ngot  %v\nwant %v", query, k, got, want)
					}
				}
			}
		})
	}
}

// A bound that is too low loses documents, one that is too high leaves nothing out.
func TestBoundsAreMet(t *testing.T) {
	x := build(t, sample(rand.New(rand.NewPCG(5, 5)), windowSize+500, 200)...)
	for term := range int(x.terms) {
		i := int(at(x.firstPosting, term))
		for n := at(x.firstBlock, term); n < at(x.firstBlock, term+1); n++ {
			k := blockAt(x.blocks[n*blockSize:])
			most := float32(0)
			for range k.count {
				p := postingAt(x.postings, i)
				most = max(most, ratio(x.frequency(i, p), x.inverse[x.codes[k.window*windowSize+p.document()]]))
				i++
			}
			if k.ratio != most {
				t.Errorf("term %q, window %d: bound %v, want %v", x.term(term), k.window, k.ratio, most)
			}
		}
	}
}

// What cannot matter is not read: else the bounds do nothing.
func TestSearchLeavesWorkOut(t *testing.T) {
	documents := slices.Repeat([]string{"common", "common", "common filler words"}, 2*windowSize)
	documents[0] = "common rare"
	x := build(t, documents...)
	s := new(scratch)
	s.lists = x.appendLists(nil, "common rare")
	scale(s.lists)
	s.best = best{k: 1}
	for w := range int(x.windows()) {
		s.alive = nil
		if x.searchWindow(w, s); (w == 0) != (len(s.alive) > 0) {
			t.Errorf("window %d: %d candidates; the first window has the best, the others need none", w, len(s.alive))
		}
	}
	if want := []Hit{{0, s.best.hits[0].Score}}; !slices.Equal(s.best.hits, want) {
		t.Errorf("got %v, want %v", s.best.hits, want)
	}
}

// Two documents, average length 2, both of length 2: r = f/0.9; the weight of a word that one of two has is ln(1 + 1.5/1.5).
func TestScoreByHand(t *testing.T) {
	x := build(t, "red mug", "blue blue", "")
	for _, c := range []struct {
		query string
		want  []Hit
	}{
		{"mugs", []Hit{{0, 0.36481431}}},              // ln 2 · (1/0.9)/(1 + 1/0.9)
		{"blue", []Hit{{1, 0.47803253}}},              // ln 2 · (2/0.9)/(1 + 2/0.9)
		{"blue and blue", []Hit{{1, 2 * 0.47803253}}}, // a weight of two
		{"mug blue", []Hit{{1, 0.47803253}, {0, 0.36481431}}},
		{"red mug", []Hit{{0, 2 * 0.36481431}}},
		{"the", nil},
		{"green", nil},
		{"", nil},
	} {
		got := x.Search(c.query, 5)
		near := func(a, b Hit) bool { return a.Document == b.Document && max(a.Score-b.Score, b.Score-a.Score) < 1e-6 }
		if !slices.EqualFunc(got, c.want, near) {
			t.Errorf("%q: got %v, want %v", c.query, got, c.want)
		}
	}
	if got := x.Search("blue", 0); got != nil {
		t.Errorf("the best 0: got %v", got)
	}
}

func TestTiesGoToTheSmallerNumber(t *testing.T) {
	x := build(t, slices.Repeat([]string{"alike", "other"}, windowSize)...)
	for _, k := range []int{1, 2, 50, windowSize} {
		hits := x.Search("alike", k)
		for i, h := range hits {
			if h.Document != 2*i {
				t.Fatalf("best %d: hit %d is document %d, want %d", k, i, h.Document, 2*i)
			}
		}
		if len(hits) != k {
			t.Errorf("best %d: got %d", k, len(hits))
		}
	}
}

func TestBuildIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	documents := sample(rand.New(rand.NewPCG(1, 1)), 5*windowSize+100, 2000)
	var want []byte
	for _, workers := range []int{0, 1, 2, 7} {
		x, err := Build(t.Context(), slices.Values(documents), workers)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = x.image
		}
		if !slices.Equal(x.image, want) {
			t.Errorf("%d workers: other bytes", workers)
		}
		if x.Hash() != Hash(slices.Values(documents)) {
			t.Errorf("%d workers: other hash", workers)
		}
	}
}

func TestHashTellsWhereTextsEnd(t *testing.T) {
	if Hash(slices.Values([]string{"ab", "c"})) == Hash(slices.Values([]string{"a", "bc"})) {
		t.Error("two lists of documents have the same hash")
	}
}

func TestBuildRefuses(t *testing.T) {
	long := strings.Repeat("word ", maxLength)
	if x := build(t, long); x.Search("words", 1)[0].Document != 0 {
		t.Error("the longest document is not found")
	}
	_, err := Build(t.Context(), slices.Values([]string{"", long + "word"}), 1)
	if want := "document 1 has 1048576 terms, at most 1048575 are allowed"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	endless := func(yield func(string) bool) {
		for i := 0; yield("word"); i++ {
			if i == 3*windowSize/2 {
				cancel()
			}
		}
	}
	if _, err := Build(ctx, endless, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestFile(t *testing.T) {
	documents := sample(rand.New(rand.NewPCG(3, 1)), windowSize+10, 50)
	x := build(t, documents...)
	path := filepath.Join(t.TempDir(), "index")
	for range 2 { // the second replaces the first
		if err := x.WriteFile(path); err != nil {
			t.Fatal(err)
		}
	}
	y, err := Open(path, x.Hash())
	if err != nil {
		t.Fatal(err)
	}
	query := spell(0) + " " + spell(3)
	if got, want := y.Search(query, 50), x.Search(query, 50); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if y.Len() != len(documents) || y.Hash() != x.Hash() || y.Size() != x.Size() {
		t.Error("another index is read than was written")
	}
	for range 2 {
		if err := y.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(path, Hash(slices.Values(documents[1:]))); !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), "build it again") {
		t.Errorf("other documents: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v: want the index alone", left, err)
	}
	if err := x.WriteFile(filepath.Join(path, "no folder")); err == nil {
		t.Error("written where nothing can be")
	}
	if _, err := Open(path+"?", x.Hash()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want %v", err, os.ErrNotExist)
	}
}

func TestReadRefusesDamage(t *testing.T) {
	x := build(t, "red mug", "blue mug")
	if _, err := read(x.image); err != nil {
		t.Fatal(err)
	}
	for i := range x.image {
		broken := slices.Clone(x.image)
		broken[i] ^= 4
		if _, err := read(broken); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if _, err := read(x.image[:i]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut to %d: %v", i, err)
		}
	}
	if _, err := read(append(slices.Clone(x.image), 0)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte more: %v", err)
	}
	path := filepath.Join(t.TempDir(), "index")
	for _, image := range [][]byte{nil, x.image[:len(x.image)-1]} {
		if err := os.WriteFile(path, image, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, x.Hash()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "build it again") {
			t.Errorf("a file of %d bytes: %v", len(image), err)
		}
	}
	if _, err := Open(t.TempDir(), x.Hash()); err == nil {
		t.Error("a folder is no index")
	}
}

func TestSearchesAtOnce(t *testing.T) {
	documents := sample(rand.New(rand.NewPCG(4, 1)), 2*windowSize, 100)
	x, ref := build(t, documents...), newReference(documents)
	var g sync.WaitGroup
	for i := range 8 {
		query := spell(uint64(i)) + " " + spell(uint64(2*i))
		want := ref.search(query, 20)
		g.Go(func() {
			for range 20 {
				if got := x.Search(query, 20); !slices.Equal(got, want) {
					t.Errorf("%q: got %v, want %v", query, got, want)
				}
			}
		})
	}
	g.Wait()
}

// Whatever stands in a file that reads as whole: a search ends and finds documents that there are.
func FuzzRead(f *testing.F) {
	for _, documents := range [][]string{nil, {""}, {"red mug", "blue mug"}, {strings.Repeat("mug ", 20), "a mug"}, slices.Repeat([]string{"mug"}, windowSize+1)} {
		f.Add(build(f, documents...).image, "red mugs")
	}
	f.Fuzz(func(t *testing.T, image []byte, query string) {
		if len(image) >= headerSize { // let the fuzzer past the checksum
			binary.LittleEndian.PutUint32(image[12:], crc32.Checksum(image[summed:], castagnoli))
		}
		x, err := read(image)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		for _, h := range x.Search(query, 10) {
			if h.Document < 0 || h.Document >= x.Len() {
				t.Fatalf("document %d of %d", h.Document, x.Len())
			}
		}
	})
}

// A line is a document, the last one the query.
func FuzzSearch(f *testing.F) {
	f.Add("red mug\nblue mug\nred", 1)
	f.Add("a a a\nb\n\nb a\n😀 b\nB's 😀", 3)
	f.Fuzz(func(t *testing.T, text string, k int) {
		lines := strings.Split(text, "\n")
		documents, query := lines[:len(lines)-1], lines[len(lines)-1]
		k %= 10
		if got, want := build(t, documents...).Search(query, k), newReference(documents).search(query, max(k, 0)); !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}
