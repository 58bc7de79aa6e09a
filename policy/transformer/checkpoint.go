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
	"strconv"
)

// A checkpoint is one stream in the layout of safetensors (https://github.com/huggingface/safetensors, "Format"): the
// length of a JSON header in 8 bytes little-endian, the header, the tensors' bytes. Tensors have Hugging Face's names
// for Llama and Qwen2; AdamW's moments are called adamw.m.NAME and adamw.v.NAME. The header's __metadata__ holds
// the keys below. All tensors are F32 and follow each other without gaps.
const (
	formatName    = "skillmaster transformer"
	formatVersion = "1"
	meanPrefix    = "adamw.m."
	squarePrefix  = "adamw.v."
	// maxHeader is that of the format's own reader.
	maxHeader = 100_000_000
)

// metadata is what the header says of the whole.
type metadata struct {
	config  Config
	step    int // −1: weights only
	version int
}

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
}

// stores lists the tensors of a model over a flat vector; with no vector, their names and shapes.
func (y *layout) stores(prefix string, values []float32) []store {
	out := make([]store, len(y.tensors))
	for i, t := range y.tensors {
		out[i] = store{name: prefix + t.name, shape: t.shape}
		if values != nil {
			out[i].values = t.of(values)
		}
	}
	return out
}

// Save writes weights, AdamW's moments, the step and the version, from which Load goes on to the same bits.
func (l *Learner) Save(ctx context.Context, w io.Writer) error {
	y := l.model.layout
	all := slices.Concat(y.stores("", l.model.values), y.stores(meanPrefix, l.means), y.stores(squarePrefix, l.squares))
	return write(ctx, w, metadata{l.model.config, l.step, l.model.version}, all)
}

// WriteWeights writes the weights and the version alone.
func (m *Model) WriteWeights(ctx context.Context, w io.Writer) error {
	return write(ctx, w, metadata{m.config, -1, m.version}, m.layout.stores("", m.values))
}

// Load reads what Save wrote. The stream must be of a model of the same shape. It reads no further than the
// checkpoint's end. After an error the learner is as it was.
func (l *Learner) Load(ctx context.Context, r io.Reader) error {
	entries, meta, err := readHeader(r)
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	if meta.config != l.model.config {
		return fmt.Errorf("read checkpoint: it is of another model: %s", difference(meta.config, l.model.config))
	}
	if meta.step < 0 {
		return errors.New("read checkpoint: it holds weights without the optimiser's state (use ReadModel)")
	}
	y := l.model.layout
	wanted := slices.Concat(y.stores("", nil), y.stores(meanPrefix, nil), y.stores(squarePrefix, nil))
	if err := checkEntries(entries, wanted); err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	values, means, squares := make([]float32, y.size), make([]float32, y.size), make([]float32, y.size)
	all := slices.Concat(y.stores("", values), y.stores(meanPrefix, means), y.stores(squarePrefix, squares))
	if err := readTensors(ctx, r, entries, all); err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	l.model.values, l.means, l.squares = values, means, squares
	l.model.version, l.step, l.stale = meta.version, meta.step, true
	return nil
}

// ReadModel reads the weights of what WriteWeights or Save wrote; of the latter it leaves out the optimiser's state.
func ReadModel(ctx context.Context, r io.Reader) (*Model, error) {
	entries, meta, err := readHeader(r)
	if err != nil {
		return nil, fmt.Errorf("read weights: %w", err)
	}
	y := newLayout(meta.config)
	wanted := y.stores("", nil)
	if meta.step >= 0 {
		wanted = slices.Concat(wanted, y.stores(meanPrefix, nil), y.stores(squarePrefix, nil))
	}
	if err := checkEntries(entries, wanted); err != nil {
		return nil, fmt.Errorf("read weights: %w", err)
	}
	m := emptyModel(meta.config)
	m.version = meta.version
	if err := readTensors(ctx, r, entries, m.layout.stores("", m.values)); err != nil {
		return nil, fmt.Errorf("read weights: %w", err)
	}
	return m, nil
}

// difference names the first field in which two configs differ.
func difference(got, want Config) string {
	fields := func(c Config) (m map[string]any) {
		b, _ := json.Marshal(c) // numbers and booleans cannot fail
		_ = json.Unmarshal(b, &m)
		return m
	}
	g, w := fields(got), fields(want)
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if g[name] != w[name] {
			return fmt.Sprintf("its %s is %v, this model's is %v", name, g[name], w[name])
		}
	}
	return "no difference"
}

func write(ctx context.Context, w io.Writer, meta metadata, all []store) error {
	config, err := json.Marshal(meta.config)
	if err != nil {
		return err
	}
	about := map[string]string{
		"format": formatName, "format_version": formatVersion, "config": string(config), "version": strconv.Itoa(meta.version),
	}
	if meta.step >= 0 {
		about["step"] = strconv.Itoa(meta.step)
	}
	header := map[string]any{"__metadata__": about}
	var at int64
	for _, s := range all {
		e := entry{DType: "F32", Offsets: [2]int64{at, at + 4*int64(len(s.values))}}
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
		for part := range slices.Chunk(s.values, 1<<14) {
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

// readHeader reads and checks a header by itself. The entries' sizes agree with their offsets and cover the data.
func readHeader(r io.Reader) (map[string]entry, metadata, error) {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, metadata{}, fmt.Errorf("length of the header: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, metadata{}, fmt.Errorf("not a checkpoint: its header would have %d bytes, at most %d are possible", n, maxHeader)
	}
	var text bytes.Buffer // grows with what is really there
	if _, err := io.CopyN(&text, r, int64(n)); err != nil {
		return nil, metadata{}, fmt.Errorf("header of %d bytes: %w", n, noEOF(err))
	}
	fields, err := object(text.Bytes())
	if err != nil {
		return nil, metadata{}, fmt.Errorf("header: %w", err)
	}
	meta, err := readMetadata(fields["__metadata__"])
	if err != nil {
		return nil, metadata{}, fmt.Errorf("header: %w", err)
	}
	delete(fields, "__metadata__")
	entries := make(map[string]entry, len(fields))
	for name, raw := range fields {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		var e entry
		if err := d.Decode(&e); err != nil {
			return nil, metadata{}, fmt.Errorf("header: tensor %q: %w", name, err)
		}
		entries[name] = e
	}
	if _, err := inOrder(entries); err != nil {
		return nil, metadata{}, fmt.Errorf("header: %w", err)
	}
	return entries, meta, nil
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

func readMetadata(raw json.RawMessage) (metadata, error) {
	if raw == nil {
		return metadata{}, errors.New("no __metadata__: this is not a checkpoint of this program")
	}
	var about map[string]string
	if err := json.Unmarshal(raw, &about); err != nil {
		return metadata{}, fmt.Errorf("__metadata__: %w", err)
	}
	if about["format"] != formatName || about["format_version"] != formatVersion {
		return metadata{}, fmt.Errorf("format is %q version %q, this program reads %q version %q",
			about["format"], about["format_version"], formatName, formatVersion)
	}
	meta := metadata{step: -1}
	d := json.NewDecoder(bytes.NewReader([]byte(about["config"])))
	d.DisallowUnknownFields()
	if err := d.Decode(&meta.config); err != nil {
		return metadata{}, fmt.Errorf("config: %w", noEOF(err))
	}
	if err := meta.config.Validate(); err != nil {
		return metadata{}, fmt.Errorf("config: %w", err)
	}
	if meta.config != meta.config.Complete() {
		return metadata{}, errors.New("config: a size is missing")
	}
	for name, to := range map[string]*int{"step": &meta.step, "version": &meta.version} {
		text, given := about[name]
		if !given && name == "step" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return metadata{}, fmt.Errorf("%s is %q, not a count", name, text)
		}
		*to = n
	}
	return meta, nil
}

// inOrder returns the names of the entries in the order of their data, which must be F32, of the size of their shapes,
// and without gaps.
func inOrder(entries map[string]entry) ([]string, error) {
	names := slices.Sorted(maps.Keys(entries))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(entries[a].Offsets[0], entries[b].Offsets[0]) })
	var at int64
	for _, name := range names {
		e := entries[name]
		if e.DType != "F32" {
			return nil, fmt.Errorf("tensor %q is of type %q, only F32 can be read", name, e.DType)
		}
		size := int64(4)
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

// checkEntries reports the first difference between the tensors that are there and those that are wanted.
func checkEntries(entries map[string]entry, wanted []store) error {
	for _, s := range wanted {
		e, there := entries[s.name]
		if !there {
			return fmt.Errorf("tensor %q is missing", s.name)
		}
		if !slices.EqualFunc(e.Shape, s.shape, func(a int64, b int) bool { return a == int64(b) }) {
			return fmt.Errorf("tensor %q has the shape %v, want %v", s.name, e.Shape, s.shape)
		}
	}
	if len(entries) == len(wanted) {
		return nil
	}
	known := map[string]bool{}
	for _, s := range wanted {
		known[s.name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !known[name] {
			return fmt.Errorf("tensor %q does not belong to the model", name)
		}
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
		if err := readFloats(r, values, buffer); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
	}
	return nil
}

func readFloats(r io.Reader, values []float32, buffer []byte) error {
	for len(values) > 0 {
		part := buffer[:min(len(buffer), 4*len(values))]
		if _, err := io.ReadFull(r, part); err != nil {
			return noEOF(err)
		}
		for i := range len(part) / 4 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(part[4*i:]))
			if v-v != 0 {
				return fmt.Errorf("it holds %v", v)
			}
			values[i] = v
		}
		values = values[len(part)/4:]
	}
	return nil
}
