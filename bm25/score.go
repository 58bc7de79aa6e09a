package bm25

import (
	"math"
	"math/bits"
)

// The constants of BM25, which are Anserini's.
const (
	k1    float32 = 0.9
	slope float32 = 0.4 // usually called b
)

// maxLength is how many terms a document may have.
const maxLength = 1<<20 - 1

// exact is up to which length a code stands for one length alone.
const exact = 24

// lengthCode is the byte that Lucene keeps of a document's length (SmallFloat.intToByte4): lengths under 40 are exact,
// longer ones are rounded down to four significant bits above 24.
func lengthCode(n uint32) byte {
	if n < exact {
		return byte(n)
	}
	n -= exact
	if n < 8 {
		return byte(exact + n)
	}
	shift := bits.Len32(n) - 4
	return byte(exact + (shift+1)<<3 + int(n>>shift&7))
}

// lengthOf is the length that a code stands for (SmallFloat.byte4ToInt).
func lengthOf(code byte) uint64 {
	if code < exact {
		return uint64(code)
	}
	code -= exact
	if code < 8 {
		return exact + uint64(code)
	}
	return exact + uint64(code&7|8)<<(code>>3-1)
}

// inverses holds 1/(k1·(1 − b + b·length/average)) for each code of a length.
type inverses [256]float32

// newInverses takes the number of terms of all documents and that of documents which have any: like Lucene, what is empty
// counts for nothing.
func newInverses(length, filled uint64) (in inverses) {
	average := float32(float64(length) / float64(max(filled, 1)))
	for code := range in {
		in[code] = 1 / (k1 * ((1 - slope) + float32(slope*float32(lengthOf(byte(code))))/average))
	}
	return in
}

// ratio is r, the frequency of a term in a document over k1·(1 − b + b·length/average).
// The conversion keeps the compiler from fusing the product with a sum.
func ratio(frequency, inverse float32) float32 { return float32(frequency * inverse) }

// score is what a term of weight w gives a document, w·r/(1 + r), in Lucene's arithmetic (BM25Similarity of 8.7): all in
// float32, each step rounded, hence never falling as r grows.
func score(w, r float32) float32 { return w - w/(1+r) }

// weight is what a term is worth that stands count times in the query and in df of n documents.
func weight(count int, n, df uint64) float32 {
	return float32(count) * float32(math.Log(1+(float64(n-df)+0.5)/(float64(df)+0.5)))
}
