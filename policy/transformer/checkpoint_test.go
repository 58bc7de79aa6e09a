package transformer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"skillmaster/policy"
)

func saved(t testing.TB, l *Learner) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := l.Save(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func trained(t testing.TB, name string) *Learner {
	t.Helper()
	l := NewLearner(testModel(t, name), LearnerOptions{})
	if _, err := l.Update(t.Context(), testBatch(l.model.config, 12), testOptim()); err != nil {
		t.Fatal(err)
	}
	return l
}

// parts splits a checkpoint into its header and its data.
func parts(t testing.TB, b []byte) (header map[string]json.RawMessage, data []byte) {
	t.Helper()
	n := binary.LittleEndian.Uint64(b)
	if err := json.Unmarshal(b[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	return header, b[8+n:]
}

func join(t testing.TB, header map[string]json.RawMessage, data []byte) []byte {
	t.Helper()
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), data...)
}

// TestSafetensorsLayout reads a checkpoint as any reader of the format would.
func TestSafetensorsLayout(t *testing.T) {
	l := trained(t, "qwen")
	b := saved(t, l)
	if n := binary.LittleEndian.Uint64(b); n%8 != 0 {
		t.Errorf("the header has %d bytes, the data after it is not aligned", n)
	}
	header, data := parts(t, b)
	if got, want := len(header), 1+3*len(l.model.layout.tensors); got != want {
		t.Errorf("got %d entries, want %d", got, want)
	}
	for prefix, values := range map[string][]float32{"": l.model.values, "adamw.m.": l.means, "adamw.v.": l.squares} {
		for _, tensor := range l.model.layout.tensors {
			var e struct {
				DType       string
				Shape       []int
				DataOffsets [2]int `json:"data_offsets"`
			}
			if err := json.Unmarshal(header[prefix+tensor.name], &e); err != nil {
				t.Fatalf("%s: %v", prefix+tensor.name, err)
			}
			if e.DType != "F32" || !slices.Equal(e.Shape, tensor.shape) {
				t.Errorf("%s: got %s %v, want F32 %v", prefix+tensor.name, e.DType, e.Shape, tensor.shape)
			}
			var got []float32
			for raw := range slices.Chunk(data[e.DataOffsets[0]:e.DataOffsets[1]], 4) {
				got = append(got, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
			}
			if !slices.Equal(got, tensor.of(values)) {
				t.Errorf("%s: its numbers are elsewhere", prefix+tensor.name)
			}
		}
	}
	var about map[string]string
	if err := json.Unmarshal(header["__metadata__"], &about); err != nil || about["step"] != "1" || about["version"] != "1" {
		t.Errorf("got metadata %v, %v", about, err)
	}
}

func TestReadModel(t *testing.T) {
	l := trained(t, "grouped")
	want, err := l.model.Sampler(SamplerOptions{}).Sample(t.Context(), []int32{1, 2}, policy.Sampling{MaxTokens: 8})
	if err != nil {
		t.Fatal(err)
	}
	var weights bytes.Buffer
	if err := l.model.WriteWeights(t.Context(), &weights); err != nil {
		t.Fatal(err)
	}
	whole := saved(t, l)
	if weights.Len() > len(whole)/2 {
		t.Errorf("weights alone take %d bytes, the checkpoint %d", weights.Len(), len(whole))
	}
	for name, b := range map[string][]byte{"weights": weights.Bytes(), "checkpoint": whole} {
		m, err := ReadModel(t.Context(), bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := m.Sampler(SamplerOptions{}).Sample(t.Context(), []int32{1, 2}, policy.Sampling{MaxTokens: 8})
		if err != nil || !slices.Equal(got.LogProbs, want.LogProbs) || got.Version != 1 || m.Config() != l.model.config {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, want)
		}
	}
	if err := l.Load(t.Context(), &weights); err == nil {
		t.Error("a learner loaded weights without the optimiser's state")
	}
}

// TestDataInAnyOrder: tensors may lie in another order than ours.
func TestDataInAnyOrder(t *testing.T) {
	l := trained(t, "one")
	header, data := parts(t, saved(t, l))
	type place struct {
		name string
		e    entry
	}
	var places []place
	for name, raw := range header {
		if name == "__metadata__" {
			continue
		}
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		places = append(places, place{name, e})
	}
	slices.SortFunc(places, func(a, b place) int { return strings.Compare(b.name, a.name) })
	var turned []byte
	for _, p := range places {
		from := p.e.Offsets
		p.e.Offsets = [2]int64{int64(len(turned)), int64(len(turned)) + from[1] - from[0]}
		turned = append(turned, data[from[0]:from[1]]...)
		header[p.name], _ = json.Marshal(p.e)
	}
	other := NewLearner(testModel(t, "one"), LearnerOptions{})
	other.prepare() // what it packed is not to be used after Load
	if err := other.Load(t.Context(), bytes.NewReader(join(t, header, turned))); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(saved(t, other), saved(t, l)) {
		t.Error("what was loaded differs")
	}
	for _, l := range []*Learner{l, other} {
		if _, err := l.Update(t.Context(), testBatch(l.model.config, 12), testOptim()); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(saved(t, other), saved(t, l)) {
		t.Error("the update after differs")
	}
}

func TestLoadRefuses(t *testing.T) {
	l := trained(t, "qwen")
	before := saved(t, l)
	const norm = "model.norm.weight"
	set := func(name, value string) func(map[string]json.RawMessage) {
		return func(h map[string]json.RawMessage) { h[name] = json.RawMessage(value) }
	}
	for want, change := range map[string]func(map[string]json.RawMessage){
		`"model.norm.weight" is missing`: func(h map[string]json.RawMessage) {
			h["model.norm.w"] = h[norm]
			delete(h, norm)
		},
		`of type "I64"`:               func(h map[string]json.RawMessage) { h[norm] = bytes.Replace(h[norm], []byte("F32"), []byte("I64"), 1) },
		"unknown field":               set(norm, `{"dtype":"F32","shape":[16],"data_offsets":[0,64],"more":1}`),
		"has the offsets":             set(norm, `{"dtype":"F32","shape":[16],"data_offsets":[0,64]}`),
		"has the shape [-16]":         set(norm, `{"dtype":"F32","shape":[-16],"data_offsets":[0,64]}`),
		"has the shape [4194304 4194": set(norm, `{"dtype":"F32","shape":[4194304,4194304,4194304],"data_offsets":[0,64]}`),
		"no __metadata__":             func(h map[string]json.RawMessage) { delete(h, "__metadata__") },
		`format is "pt"`:              set("__metadata__", `{"format":"pt"}`),
		`version "2"`: func(h map[string]json.RawMessage) {
			h["__metadata__"] = bytes.Replace(h["__metadata__"], []byte(`"format_version":"1"`), []byte(`"format_version":"2"`), 1)
		},
		"its layers is 4": func(h map[string]json.RawMessage) {
			h["__metadata__"] = bytes.Replace(h["__metadata__"], []byte(`\"layers\":2`), []byte(`\"layers\":4`), 1)
		},
		"layers is 0": func(h map[string]json.RawMessage) {
			h["__metadata__"] = bytes.Replace(h["__metadata__"], []byte(`\"layers\":2`), []byte(`\"layers\":0`), 1)
		},
		`step is "x"`: func(h map[string]json.RawMessage) {
			h["__metadata__"] = bytes.Replace(h["__metadata__"], []byte(`"step":"1"`), []byte(`"step":"x"`), 1)
		},
	} {
		header, data := parts(t, before)
		change(header)
		if err := l.Load(t.Context(), bytes.NewReader(join(t, header, data))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that says %q", err, want)
		}
	}
	spoilt := slices.Clone(before)
	copy(spoilt[len(spoilt)-4:], []byte{0, 0, 0xc0, 0x7f})
	if err := l.Load(t.Context(), bytes.NewReader(spoilt)); err == nil || !strings.Contains(err.Error(), "it holds NaN") {
		t.Errorf("got %v, want an error about NaN", err)
	}
	if !bytes.Equal(saved(t, l), before) {
		t.Error("the learner has changed")
	}
}

func FuzzReadHeader(f *testing.F) {
	l := trained(f, "one")
	b := saved(f, l)
	f.Add(b)
	f.Add(b[:100])
	for _, text := range []string{`{}`, `{"a":1}`, `{"__metadata__":{"format":"pt"}}`, `[`, `{"a":{},"a":{}}`, `{"__metadata__":null} x`} {
		f.Add(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...))
	}
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, '{'})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		entries, meta, err := readHeader(r)
		if err != nil {
			return
		}
		if err := meta.config.Validate(); err != nil {
			t.Errorf("accepted a config that is not valid: %v", err)
		}
		var end int64
		for _, e := range entries {
			end = max(end, e.Offsets[1])
		}
		var sum int64
		for _, e := range entries {
			sum += e.Offsets[1] - e.Offsets[0]
		}
		if sum != end {
			t.Errorf("tensors of %d bytes end at %d", sum, end)
		}
	})
}
