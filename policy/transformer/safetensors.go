package transformer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"skillmaster/policy/transformer/internal/simd"
)

// maxHeader is that of the format's own reader.
const maxHeader = 100_000_000

// numberSizes are the bytes of a number of each type that can be read.
var numberSizes = map[string]int64{"F32": 4, "BF16": 2, "F16": 2}

// entry is one tensor of a header.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"` // into what follows the header
}

// store is a named tensor and where its numbers are.
type store struct {
	name   string
	shape  []int
	values []float32
	row    func(dst []float32, i int) // in place of values, makes a row (of a vector, the only one); to be written only
}

// rows returns the numbers of the tensor, some whole rows at a time.
func (s store) rows(yield func([]float32) bool) {
	if s.row == nil {
		slices.Chunk(s.values, 1<<14)(yield)
		return
	}
	n := 1
	if len(s.shape) > 1 {
		n = s.shape[0]
	}
	row := make([]float32, s.size()/n)
	for i := range n {
		s.row(row, i)
		if !yield(row) {
			return
		}
	}
}

func (s store) size() int {
	n := 1
	for _, d := range s.shape {
		n *= d
	}
	return n
}

// writeEntries writes a whole file of F32 tensors, with what it says about itself.
func writeEntries(ctx context.Context, w io.Writer, about map[string]string, all []store) error {
	header := map[string]any{"__metadata__": about}
	var at int64
	for _, s := range all {
		e := entry{DType: "F32", Offsets: [2]int64{at, at + 4*int64(s.size())}}
		for _, n := range s.shape {
			e.Shape = append(e.Shape, int64(n))
		}
		header[s.name], at = e, e.Offsets[1]
	}
	text, err := json.Marshal(header) // keys are sorted
	if err != nil {
		return err
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	if _, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)); err != nil {
		return err
	}
	return writeTensors(ctx, w, all)
}

func writeTensors(ctx context.Context, w io.Writer, all []store) error {
	var buffer []byte
	for _, s := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		for part := range s.rows {
			buffer = buffer[:0]
			for _, v := range part {
				buffer = binary.LittleEndian.AppendUint32(buffer, math.Float32bits(v))
			}
			if _, err := w.Write(buffer); err != nil {
				return err
			}
		}
	}
	return nil
}

// readEntries reads and checks a header by itself, and returns what it says about the file (nil: nothing). The entries'
// sizes agree with their offsets and cover the data.
func readEntries(r io.Reader) (entries map[string]entry, about json.RawMessage, err error) {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, nil, fmt.Errorf("length of the header: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, nil, fmt.Errorf("not a checkpoint: its header would have %d bytes, at most %d are possible", n, maxHeader)
	}
	var text bytes.Buffer // grows with what is really there
	if _, err := io.CopyN(&text, r, int64(n)); err != nil {
		return nil, nil, fmt.Errorf("header of %d bytes: %w", n, noEOF(err))
	}
	fields, err := object(text.Bytes())
	if err != nil {
		return nil, nil, fmt.Errorf("header: %w", err)
	}
	about = fields["__metadata__"]
	delete(fields, "__metadata__")
	entries = make(map[string]entry, len(fields))
	for name, raw := range fields {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		var e entry
		if err := d.Decode(&e); err != nil {
			return nil, nil, fmt.Errorf("header: tensor %q: %w", name, err)
		}
		entries[name] = e
	}
	if _, err := inOrder(entries); err != nil {
		return nil, nil, fmt.Errorf("header: %w", err)
	}
	return entries, about, nil
}

// noEOF makes an end of the stream inside something an unexpected one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// object splits a JSON object into its fields; a field that stands in it twice is an error.
func object(text []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("not a JSON object (%w)", cmp.Or(err, fmt.Errorf("it begins with %v", open)))
	}
	fields := map[string]json.RawMessage{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := key.(string) // the decoder sees to it
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("%q stands in it twice", name)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, fmt.Errorf("%q: %w", name, noEOF(err))
		}
		fields[name] = raw
	}
	if _, err := d.Token(); err != nil {
		return nil, noEOF(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return fields, nil
}

// inOrder returns the names of the entries in the order of their data, which must be of a known type, of the size of
// their shapes, and without gaps.
func inOrder(entries map[string]entry) ([]string, error) {
	names := slices.Sorted(maps.Keys(entries))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(entries[a].Offsets[0], entries[b].Offsets[0]) })
	var at int64
	for _, name := range names {
		e := entries[name]
		size, known := numberSizes[e.DType]
		if !known {
			return nil, fmt.Errorf("tensor %q is of type %q, only F32, BF16 and F16 can be read", name, e.DType)
		}
		for _, n := range e.Shape {
			if n < 1 || n > maxSize || size > 4*maxParameters/n {
				return nil, fmt.Errorf("tensor %q has the shape %v", name, e.Shape)
			}
			size *= n
		}
		if e.Offsets[0] != at || e.Offsets[1] != at+size {
			return nil, fmt.Errorf("tensor %q of shape %v has the offsets %v, want [%d %d]", name, e.Shape, e.Offsets, at, at+size)
		}
		at += size
	}
	return names, nil
}

// checkEntry reports a tensor of another shape than its store.
func checkEntry(e entry, s store) error {
	if !slices.EqualFunc(e.Shape, s.shape, func(a int64, b int) bool { return a == int64(b) }) {
		return fmt.Errorf("tensor %q has the shape %v, want %v", s.name, e.Shape, s.shape)
	}
	return nil
}

// readTensors reads the data of all entries in order into the stores; entries without a store are skipped.
func readTensors(ctx context.Context, r io.Reader, entries map[string]entry, all []store) error {
	to := map[string][]float32{}
	for _, s := range all {
		to[s.name] = s.values
	}
	names, err := inOrder(entries)
	if err != nil {
		return err
	}
	buffer := make([]byte, 1<<16)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		values, kept := to[name]
		if !kept {
			if _, err := io.CopyN(io.Discard, r, entries[name].Offsets[1]-entries[name].Offsets[0]); err != nil {
				return fmt.Errorf("tensor %q: %w", name, noEOF(err))
			}
			continue
		}
		if err := readFloats(r, entries[name].DType, values, buffer); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
	}
	return nil
}

// readFloats reads finite numbers of a type.
func readFloats(r io.Reader, dtype string, values []float32, buffer []byte) error {
	size := int(numberSizes[dtype])
	for len(values) > 0 {
		part := buffer[:min(len(buffer), size*len(values))]
		if _, err := io.ReadFull(r, part); err != nil {
			return noEOF(err)
		}
		n := len(part) / size
		decode(values[:n], dtype, part)
		if err := finite(values[:n]); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}

// finite reports a number that is not.
func finite(values []float32) error {
	for _, v := range values {
		if v-v != 0 {
			return fmt.Errorf("it holds %v", v)
		}
	}
	return nil
}

// decode turns little-endian numbers of a type into float32.
func decode(values []float32, dtype string, b []byte) {
	switch dtype {
	case "F32":
		for i := range values {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case "BF16":
		simd.Widen(values, b[:2*len(values)])
	case "F16":
		for i := range values {
			values[i] = fromHalf(binary.LittleEndian.Uint16(b[2*i:]))
		}
	}
}

// fromHalf is the value of an IEEE 754 binary16.
func fromHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exponent {
	case 0: // a multiple of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
