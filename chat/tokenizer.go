package chat

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Tokenizer turns text into token ids and back by byte-level byte-pair encoding. Load and Train make one; nobody
// changes it afterwards. Safe for concurrent use.
//
// A token is either learned from text or added by name. Added tokens are special ones, which structure a conversation
// ("<|end|>"), and tags, which structure a reply ("<action>"). How much of a text may become added tokens is a matter
// of trust, hence three ways to encode:
//
//   - Encode recognises none: for text anybody wrote, such as observations and skills.
//   - EncodeTags recognises tags: for what the policy says.
//   - EncodeWithSpecial recognises all: for text of the program's own.
type Tokenizer struct {
	tokens   []string // bytes of each id [V]
	kinds    []kind   // of each id [V]
	ids      map[string]int32
	added    []added // sorted by id
	addedIDs map[string]int32
	byteIDs  [256]int32 // noToken where the vocabulary lacks the byte
	merges   []pair     // by rank
	rules    map[pair]rule
	cuts     []cutter
	nfc      bool
	whole    bool // a piece that is a token is taken as it is (ignore_merges)
	file     fileParts
	finders  [2]finder // of added tokens, before and after normalisation
	cache    *pieceCache
}

// noToken stands for a byte that no token is of: such a byte of a text is left out, as Hugging Face does.
const noToken = -1

// kind says where a token comes from.
type kind uint8

const (
	hole    kind = iota // no token has this id
	learned             // of the byte-pair model
	tag                 // added, recognised by EncodeTags
	special             // added, recognised by EncodeWithSpecial alone
)

// added is a token with a name of its own.
type added struct {
	id         int32
	text       string
	kind       kind
	normalized bool // looked for after normalisation
	inModel    bool // stands in the model's vocabulary as well
}

// pair is two neighbouring tokens.
type pair struct{ left, right int32 }

func (p pair) compare(q pair) int {
	return cmp.Or(cmp.Compare(p.left, q.left), cmp.Compare(p.right, q.right))
}

// rule says what a pair becomes; the lowest rank goes first.
type rule struct{ rank, id int32 }

// definition is what a tokenizer is made of.
type definition struct {
	tokens  map[int32]string // of the model, as bytes
	merges  []pair
	added   []added
	pattern []string // of the splits, in turn
	nfc     bool
	whole   bool
	file    fileParts
}

// Most of what a tokenizer may hold; enough for every public one, little enough to bound what a file can ask for.
const (
	maxVocab   = 1 << 20
	maxAdded   = 1 << 13
	maxToken   = 1 << 12 // bytes
	maxPattern = 1 << 16 // bytes
	maxSplits  = 8
)

// assemble checks a definition and makes the tokenizer.
func assemble(d definition) (*Tokenizer, error) {
	t := &Tokenizer{
		ids: make(map[string]int32, len(d.tokens)), addedIDs: map[string]int32{}, rules: make(map[pair]rule, len(d.merges)),
		merges: d.merges, nfc: d.nfc, whole: d.whole, file: d.file, cache: newPieceCache(),
	}
	if err := t.setTokens(d); err != nil {
		return nil, err
	}
	if err := t.setMerges(); err != nil {
		return nil, err
	}
	if len(d.pattern) > maxSplits {
		return nil, fmt.Errorf("%d splits: at most %d are supported", len(d.pattern), maxSplits)
	}
	for _, p := range d.pattern {
		if len(p) > maxPattern {
			return nil, fmt.Errorf("a pattern of %d bytes: at most %d are supported", len(p), maxPattern)
		}
		c, err := cutterFor(p)
		if err != nil {
			return nil, err
		}
		t.cuts = append(t.cuts, c)
	}
	return t, nil
}

// setTokens fills what leads from ids to tokens and back.
func (t *Tokenizer) setTokens(d definition) error {
	size := int32(0)
	grow := func(id int32) error {
		if id < 0 || id >= maxVocab {
			return fmt.Errorf("id %d: ids from 0 to %d are supported", id, maxVocab-1)
		}
		size = max(size, id+1)
		return nil
	}
	for id := range d.tokens {
		if err := grow(id); err != nil {
			return err
		}
	}
	if len(d.added) > maxAdded {
		return fmt.Errorf("%d added tokens: at most %d are supported", len(d.added), maxAdded)
	}
	for _, a := range d.added {
		if err := grow(a.id); err != nil {
			return fmt.Errorf("added token %q: %w", a.text, err)
		}
	}
	t.tokens, t.kinds = make([]string, size), make([]kind, size)
	for id, s := range d.tokens {
		if len(s) == 0 || len(s) > maxToken {
			return fmt.Errorf("token %d has %d bytes: from 1 to %d are supported", id, len(s), maxToken)
		}
		t.tokens[id], t.kinds[id], t.ids[s] = s, learned, id
	}
	if len(t.ids) != len(d.tokens) {
		return errors.New("two ids share a token")
	}
	if err := t.setBytes(d.file.model.UnkToken); err != nil {
		return err
	}
	return t.setAdded(d.added)
}

// setBytes finds the token of each byte.
func (t *Tokenizer) setBytes(unknown *string) error {
	for b := range 256 {
		id, ok := t.ids[string([]byte{byte(b)})]
		switch {
		case ok:
			t.byteIDs[b] = id
		case unknown != nil:
			return fmt.Errorf("the vocabulary has no token for byte %#02x, and model.unk_token %q in its place is not supported", b, *unknown)
		default:
			t.byteIDs[b] = noToken
		}
	}
	return nil
}

// setAdded enters the added tokens.
func (t *Tokenizer) setAdded(all []added) error {
	t.added = slices.SortedFunc(slices.Values(all), func(a, b added) int { return cmp.Compare(a.id, b.id) })
	for i := range t.added {
		a := &t.added[i]
		if len(a.text) < 2 || len(a.text) > maxToken {
			return fmt.Errorf("added token %q has %d bytes: from 2 to %d are supported", a.text, len(a.text), maxToken)
		}
		if _, twice := t.addedIDs[a.text]; twice {
			return fmt.Errorf("added token %q stands there twice", a.text)
		}
		if id, ok := t.ids[a.text]; ok && id != a.id && spell(a.text) == a.text {
			return fmt.Errorf("added token %q has id %d, but id %d in the vocabulary", a.text, a.id, id)
		}
		switch t.kinds[a.id] {
		case hole:
		case learned:
			if t.tokens[a.id] != a.text {
				return fmt.Errorf("added token %q has id %d, which is %q in the vocabulary", a.text, a.id, t.tokens[a.id])
			}
			a.inModel = true
			delete(t.ids, a.text)
		default:
			return fmt.Errorf("added tokens %q and %q share id %d", t.tokens[a.id], a.text, a.id)
		}
		t.tokens[a.id], t.kinds[a.id], t.addedIDs[a.text] = a.text, a.kind, a.id
	}
	for i := range t.finders {
		t.finders[i] = newFinder(t.added, i == 1)
	}
	return nil
}

// setMerges fills the rules. No merge makes an added token: what Encode promises rests on it.
func (t *Tokenizer) setMerges() error {
	if len(t.merges) > maxVocab {
		return fmt.Errorf("%d merges: at most %d are supported", len(t.merges), maxVocab)
	}
	for rank, p := range t.merges {
		text := t.tokens[p.left] + t.tokens[p.right]
		id, ok := t.ids[text]
		if !ok {
			return fmt.Errorf("merge %d makes %q, which is not in the vocabulary or is an added token", rank, text)
		}
		if _, twice := t.rules[p]; twice {
			return fmt.Errorf("merge %d of %q and %q stands there twice", rank, t.tokens[p.left], t.tokens[p.right])
		}
		t.rules[p] = rule{int32(rank), id}
	}
	return nil
}

// VocabSize returns one more than the largest id [V].
func (t *Tokenizer) VocabSize() int { return len(t.tokens) }

// Token returns the text of a token, which need not be valid UTF-8; false if no token has the id.
func (t *Tokenizer) Token(id int32) (string, bool) {
	if id < 0 || int(id) >= len(t.tokens) || t.kinds[id] == hole {
		return "", false
	}
	return t.tokens[id], true
}

// ID returns the id of the token with exactly this text, learned or added; false if there is none.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.addedIDs[token]; ok {
		return id, true
	}
	id, ok := t.ids[token]
	return id, ok
}

// Encode returns the ids of text. No part of it becomes an added token, whatever it says. Without a normaliser, Decode
// gives back every text, valid UTF-8 or not, but for bytes that the vocabulary lacks.
func (t *Tokenizer) Encode(text string) []int32 {
	return t.appendPlain(nil, t.normal(text))
}

// EncodeTags is Encode for what the policy says: tags become their tokens, special tokens do not.
func (t *Tokenizer) EncodeTags(text string) []int32 { return t.encode(text, tag) }

// EncodeWithSpecial is Encode for text of the program's own: special tokens and tags become their tokens. It gives the
// ids Hugging Face's encode gives with add_special_tokens false.
func (t *Tokenizer) EncodeWithSpecial(text string) []int32 { return t.encode(text, special) }

// encode recognises added tokens up to the kind.
func (t *Tokenizer) encode(text string, most kind) []int32 {
	var ids []int32
	t.finders[0].split(text, most, func(s string, id int32) {
		if id >= 0 {
			ids = append(ids, id)
			return
		}
		t.finders[1].split(t.normal(s), most, func(s string, id int32) {
			if id >= 0 {
				ids = append(ids, id)
				return
			}
			ids = t.appendPlain(ids, s)
		})
	})
	return ids
}

func (t *Tokenizer) normal(s string) string {
	if t.nfc {
		return norm.NFC.String(s)
	}
	return s
}

// appendPlain encodes normalised text without added tokens.
func (t *Tokenizer) appendPlain(ids []int32, s string) []int32 {
	pieces(s, t.cuts, func(piece string) { ids = t.appendPiece(ids, piece) })
	return ids
}

// pieces cuts s by the first cutter, its pieces by the next, and so on.
func pieces(s string, cuts []cutter, f func(piece string)) {
	if len(cuts) == 0 {
		if s != "" {
			f(s)
		}
		return
	}
	for at := 0; at < len(s); {
		stop := cuts[0](s, at)
		if len(cuts) == 1 {
			f(s[at:stop])
		} else {
			pieces(s[at:stop], cuts[1:], f)
		}
		at = stop
	}
}

// appendPiece encodes one piece.
func (t *Tokenizer) appendPiece(ids []int32, piece string) []int32 {
	if len(piece) == 1 && t.byteIDs[piece[0]] != noToken {
		return append(ids, t.byteIDs[piece[0]])
	}
	if t.whole {
		if id, ok := t.ids[piece]; ok {
			return append(ids, id)
		}
	}
	if known, ok := t.cache.get(piece); ok {
		return append(ids, known...)
	}
	n := len(ids)
	ids = t.appendMerged(ids, piece)
	t.cache.put(piece, ids[n:])
	return ids
}

// Decode returns the text of ids, added tokens included. An id without a token gives U+FFFD. The text is valid UTF-8
// only if the ids are of whole characters.
func (t *Tokenizer) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		s, ok := t.Token(id)
		if !ok {
			s = "\uFFFD"
		}
		b.WriteString(s)
	}
	return b.String()
}

// Parts returns the words of a token that is an entity, a noun and its number: "cabinet" and "3" for " cabinet 3". Nil
// for every other token.
func (t *Tokenizer) Parts(id int32) []string {
	s, ok := t.Token(id)
	if !ok || t.kinds[id] != learned {
		return nil
	}
	s = strings.TrimPrefix(s, " ")
	stop, _ := wordEnd(s, 0)
	if stop == 0 || numberAfter(s, stop) != len(s) {
		return nil
	}
	return []string{s[:stop], s[stop+1:]}
}

// finder looks for added tokens of one sort: the leftmost first, of those the longest.
type finder struct {
	first [256][]added // by first byte, longest first
	any   bool
}

func newFinder(all []added, normalized bool) finder {
	var f finder
	for _, a := range all {
		if a.normalized == normalized {
			f.any = true
			f.first[a.text[0]] = append(f.first[a.text[0]], a)
		}
	}
	for _, list := range f.first {
		slices.SortStableFunc(list, func(a, b added) int { return cmp.Compare(len(b.text), len(a.text)) })
	}
	return f
}

// split calls yield for each part of s in turn: text (id -1) and added tokens up to the kind.
func (f *finder) split(s string, most kind, yield func(s string, id int32)) {
	from := 0
	for i := 0; f.any && i < len(s); {
		a, ok := f.at(s[i:], most)
		if !ok {
			i++
			continue
		}
		if from < i {
			yield(s[from:i], -1)
		}
		yield(a.text, a.id)
		i += len(a.text)
		from = i
	}
	if from < len(s) {
		yield(s[from:], -1)
	}
}

func (f *finder) at(s string, most kind) (added, bool) {
	for _, a := range f.first[s[0]] {
		if a.kind <= most && strings.HasPrefix(s, a.text) {
			return a, true
		}
	}
	return added{}, false
}
