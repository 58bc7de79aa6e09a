package transformer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

// A checkpoint is one stream in the layout of safetensors (https://github.com/huggingface/safetensors, "Format"): the
// length of a JSON header in 8 bytes little-endian, the header, the tensors' bytes. Tensors have Hugging Face's names
// for Llama and Qwen2; AdamW's moments are called adamw.m.NAME and adamw.v.NAME. The header's __metadata__ holds
// the keys below. All tensors are F32.
const (
	formatName    = "skillmaster transformer"
	formatVersion = "1"
	meanPrefix    = "adamw.m."
	squarePrefix  = "adamw.v."
)

// metadata is what the header says of the whole.
type metadata struct {
	config  Config
	adapter *AdapterConfig // nil: none
	step    int            // −1: weights only
	version int
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

// Save writes what is trained (the weights, or those of the adapter alone), AdamW's moments, the step and the version, from
// which Load goes on to the same bits.
func (l *Learner) Save(ctx context.Context, w io.Writer) error {
	y, values := l.model.trained()
	all := slices.Concat(y.stores("", values), y.stores(meanPrefix, l.means), y.stores(squarePrefix, l.squares))
	return write(ctx, w, metadata{l.model.config, l.model.adapterConfig(), l.step, l.model.version}, all)
}

// WriteWeights writes what is trained and the version alone.
func (m *Model) WriteWeights(ctx context.Context, w io.Writer) error {
	all := m.stores()
	if m.adapter != nil {
		all = m.adapter.layout.stores("", m.adapter.values)
	}
	return write(ctx, w, metadata{m.config, m.adapterConfig(), -1, m.version}, all)
}

// Load reads what Save wrote. The stream must be of a model of the same shape, with an adapter of the same shape. It reads
// no further than the checkpoint's end. After an error the learner is as it was.
func (l *Learner) Load(ctx context.Context, r io.Reader) error {
	entries, meta, err := readHeader(r)
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	switch {
	case meta.config != l.model.config:
		return fmt.Errorf("read checkpoint: it is of another model: %s", difference(meta.config, l.model.config))
	case !meta.adapter.equal(l.model.adapterConfig()):
		return fmt.Errorf("read checkpoint: its adapter is %v, this model's is %v", meta.adapter, l.model.adapterConfig())
	case meta.step < 0:
		return errors.New("read checkpoint: it holds weights without the optimiser's state (use ReadModel)")
	}
	y := l.trained
	wanted := slices.Concat(y.stores("", nil), y.stores(meanPrefix, nil), y.stores(squarePrefix, nil))
	if err := checkEntries(entries, wanted); err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	values, means, squares := make([]float32, y.size), make([]float32, y.size), make([]float32, y.size)
	all := slices.Concat(y.stores("", values), y.stores(meanPrefix, means), y.stores(squarePrefix, squares))
	if err := readTensors(ctx, r, entries, all); err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	l.model.retrain(values)
	l.means, l.squares = means, squares
	l.model.version, l.step, l.stale = meta.version, meta.step, true
	return nil
}

// ReadModel reads the weights of what WriteWeights or Save wrote; of the latter it leaves out the optimiser's state.
func ReadModel(ctx context.Context, r io.Reader) (*Model, error) {
	entries, meta, err := readHeader(r)
	if err != nil {
		return nil, fmt.Errorf("read weights: %w", err)
	}
	if meta.adapter != nil {
		return nil, errors.New("read weights: they are those of an adapter alone (load them into a learner of the adapted model)")
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
	if meta.adapter != nil {
		adapter, err := json.Marshal(meta.adapter)
		if err != nil {
			return err
		}
		about["adapter"] = string(adapter)
	}
	return writeEntries(ctx, w, about, all)
}

// readHeader reads and checks the header of a checkpoint by itself.
func readHeader(r io.Reader) (map[string]entry, metadata, error) {
	entries, about, err := readEntries(r)
	if err != nil {
		return nil, metadata{}, err
	}
	meta, err := readMetadata(about)
	if err != nil {
		return nil, metadata{}, fmt.Errorf("header: %w", err)
	}
	for name, e := range entries {
		if e.DType != "F32" {
			return nil, metadata{}, fmt.Errorf("header: tensor %q is of type %q, a checkpoint's are F32", name, e.DType)
		}
	}
	return entries, meta, nil
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
	if text, given := about["adapter"]; given {
		meta.adapter = new(AdapterConfig)
		if err := json.Unmarshal([]byte(text), meta.adapter); err != nil {
			return metadata{}, fmt.Errorf("adapter: %w", noEOF(err))
		}
		if err := meta.adapter.Validate(); err != nil {
			return metadata{}, fmt.Errorf("adapter: %w", err)
		}
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

// checkEntries reports the first difference between the tensors that are there and those that are wanted.
func checkEntries(entries map[string]entry, wanted []store) error {
	for _, s := range wanted {
		e, there := entries[s.name]
		if !there {
			return fmt.Errorf("tensor %q is missing", s.name)
		}
		if err := checkEntry(e, s); err != nil {
			return err
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
