package tinker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// The protobuf form of passes and samples: package tinker_public, of which there is no published file. The field numbers are
// those of the Python SDK's compiled descriptor.

// Types of the numbers of a tensor.
const (
	protoFloat32  = 1
	protoInt64    = 2
	protoInt32    = 3
	protoBFloat16 = 4
)

// message is protobuf being written.
type message []byte

func (m *message) bytes(field protowire.Number, v []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), v)
}

func (m *message) text(field protowire.Number, v string) { m.bytes(field, []byte(v)) }

func (m *message) number(field protowire.Number, v uint64) {
	if v != 0 {
		*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), v)
	}
}

func (m *message) double(field protowire.Number, v float64) {
	*m = protowire.AppendFixed64(protowire.AppendTag(*m, field, protowire.Fixed64Type), math.Float64bits(v))
}

// each calls f for the fields of a message: v for lengths, n for numbers.
func each(b []byte, f func(field protowire.Number, v []byte, n uint64) error) error {
	for len(b) > 0 {
		field, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		var v []byte
		var n uint64
		switch kind {
		case protowire.BytesType:
			v, size = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			n, size = protowire.ConsumeFixed64(b)
		default:
			size = protowire.ConsumeFieldValue(field, kind, b)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		if err := f(field, v, n); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

// entry reads an entry of a map.
func entry(b []byte, value func(v []byte, n uint64) error) (key string, err error) {
	err = each(b, func(field protowire.Number, v []byte, n uint64) error {
		switch field {
		case 1:
			key = string(v)
		case 2:
			return value(v, n)
		}
		return nil
	})
	return key, err
}

// packed are numbers in the order of their bytes.
func packed[T int32 | int64](values []T, size int) []byte {
	var b []byte
	for _, v := range values {
		if size == 4 {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		} else {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
	}
	return b
}

// numbers reads such bytes of a type.
func numbers(b []byte, kind uint64) ([]float64, error) {
	size := map[uint64]int{protoFloat32: 4, protoInt64: 8, protoInt32: 4, protoBFloat16: 2}[kind]
	if size == 0 || len(b)%size != 0 {
		return nil, fmt.Errorf("%d bytes of numbers of type %d", len(b), kind)
	}
	out := make([]float64, len(b)/size)
	for i := range out {
		at := b[i*size:]
		switch kind {
		case protoFloat32:
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(at)))
		case protoInt64:
			out[i] = float64(int64(binary.LittleEndian.Uint64(at)))
		case protoInt32:
			out[i] = float64(int32(binary.LittleEndian.Uint32(at)))
		case protoBFloat16:
			out[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(at)) << 16))
		}
	}
	return out, nil
}

func (t tensor) dense() (b []byte, kind uint64) {
	if t.DType == "int64" {
		for _, v := range t.Data {
			b = binary.LittleEndian.AppendUint64(b, uint64(int64(v)))
		}
		return b, protoInt64
	}
	for _, v := range t.Data {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
	}
	return b, protoFloat32
}

func dtype(kind uint64) string {
	if kind == protoInt64 || kind == protoInt32 {
		return "int64"
	}
	return "float32"
}

func (t tensor) encode() []byte {
	var m message
	b, kind := t.dense()
	m.bytes(1, b)
	m.number(3, kind)
	var shape []byte
	for _, n := range t.Shape {
		shape = protowire.AppendVarint(shape, uint64(n))
	}
	m.bytes(4, shape)
	return m
}

func decodeTensor(b []byte) (tensor, error) {
	var t tensor
	var dense []byte
	var kind uint64
	err := each(b, func(field protowire.Number, v []byte, n uint64) error {
		switch field {
		case 1:
			dense = v
		case 2:
			return errors.New("a sparse tensor: dense lists are read here")
		case 3:
			kind = n
		case 4:
			if v == nil { // not packed
				t.Shape = append(t.Shape, int64(n))
			}
			for len(v) > 0 {
				d, size := protowire.ConsumeVarint(v)
				if size < 0 {
					return protowire.ParseError(size)
				}
				t.Shape, v = append(t.Shape, int64(d)), v[size:]
			}
		}
		return nil
	})
	if err != nil {
		return t, err
	}
	t.DType = dtype(kind)
	t.Data, err = numbers(dense, kind)
	return t, err
}

// encodePass writes a ForwardBackwardRequest.
func encodePass(model string, seq int, in lossInput, forwardOnly bool) []byte {
	var m message
	m.text(1, model)
	m.number(2, uint64(seq))
	for _, d := range in.Data {
		m.bytes(3, encodeDatum(d))
	}
	m.text(4, in.Loss)
	for _, key := range slices.Sorted(maps.Keys(in.Config)) {
		var e, value, second message
		e.text(1, key)
		e.double(2, in.Config[key])
		m.bytes(5, e)
		value.double(1, in.Config[key])
		second.text(1, key)
		second.bytes(2, value)
		m.bytes(7, second) // newer servers look here
	}
	if forwardOnly {
		m.number(6, 1)
	}
	return m
}

func encodeDatum(d datum) []byte {
	var m message
	for _, c := range d.Input.Chunks {
		var ids, part message
		ids.bytes(1, packed(c.Tokens, 4))
		part.bytes(1, ids)
		m.bytes(1, part)
	}
	for _, key := range slices.Sorted(maps.Keys(d.Inputs)) {
		var e message
		e.text(1, key)
		e.bytes(2, d.Inputs[key].encode())
		m.bytes(2, e)
	}
	return m
}

// decodePass reads a ForwardBackwardRequest.
func decodePass(b []byte) (r passRequest, forwardOnly bool, err error) {
	in := lossInput{Config: map[string]float64{}}
	err = each(b, func(field protowire.Number, v []byte, n uint64) error {
		switch field {
		case 1:
			r.Model = string(v)
		case 2:
			r.Seq = int(int32(n))
		case 3:
			d, err := decodeDatum(v)
			in.Data = append(in.Data, d)
			return err
		case 4:
			in.Loss = string(v)
		case 5:
			return decodeSetting(v, in.Config, false)
		case 7:
			return decodeSetting(v, in.Config, true)
		case 6:
			forwardOnly = n != 0
		}
		return nil
	})
	r.Backward = &in
	return r, forwardOnly, err
}

func decodeSetting(b []byte, config map[string]float64, wrapped bool) error {
	var number float64
	key, err := entry(b, func(v []byte, n uint64) error {
		if !wrapped {
			number = math.Float64frombits(n)
			return nil
		}
		return each(v, func(field protowire.Number, v []byte, n uint64) error {
			if field == 2 {
				return fmt.Errorf("a loss setting is %q: numbers are read here", v)
			}
			number = math.Float64frombits(n)
			return nil
		})
	})
	config[key] = number
	return err
}

func decodeDatum(b []byte) (datum, error) {
	d := datum{Inputs: map[string]tensor{}}
	err := each(b, func(field protowire.Number, v []byte, _ uint64) error {
		switch field {
		case 1:
			return each(v, func(field protowire.Number, v []byte, _ uint64) error {
				if field != 1 {
					return errors.New("a chunk that is no text: there is text only here")
				}
				return each(v, func(_ protowire.Number, v []byte, _ uint64) error {
					ids, err := numbers(v, protoInt32)
					c := chunk{Type: "encoded_text"}
					for _, id := range ids {
						c.Tokens = append(c.Tokens, int32(id))
					}
					d.Input.Chunks = append(d.Input.Chunks, c)
					return err
				})
			})
		case 2:
			var t tensor
			key, err := entry(v, func(v []byte, _ uint64) (err error) {
				t, err = decodeTensor(v)
				return err
			})
			d.Inputs[key] = t
			return err
		}
		return nil
	})
	return d, err
}

// encodeResult writes a ForwardBackwardOutput: one record with the tensors of all sequences behind each other.
func encodeResult(r passResult) []byte {
	var m, record message
	m.text(1, r.Kind)
	names := map[string]bool{}
	for _, out := range r.Outputs {
		for name := range out {
			names[name] = true
		}
	}
	record.text(1, r.Kind)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var all []byte
		offsets, kind := []int64{0}, uint64(protoFloat32)
		for _, out := range r.Outputs {
			var b []byte
			b, kind = out[name].dense()
			all = append(all, b...)
			offsets = append(offsets, int64(len(all)))
		}
		var batched, e message
		batched.bytes(1, all)
		batched.bytes(2, packed(offsets, 8))
		batched.number(3, kind)
		e.text(1, name)
		e.bytes(2, batched)
		record.bytes(2, e)
	}
	record.number(3, uint64(len(r.Outputs)))
	m.bytes(2, record)
	for _, key := range slices.Sorted(maps.Keys(r.Metrics)) {
		var e message
		e.text(1, key)
		e.double(2, r.Metrics[key])
		m.bytes(3, e)
	}
	return m
}

// decodeResult reads a ForwardBackwardOutput.
func decodeResult(b []byte) (passResult, error) {
	r := passResult{Metrics: map[string]float64{}}
	err := each(b, func(field protowire.Number, v []byte, _ uint64) error {
		switch field {
		case 1:
			r.Kind = string(v)
		case 2:
			out, err := decodeRecord(v)
			r.Outputs = append(r.Outputs, out...)
			return err
		case 3:
			var value float64
			key, err := entry(v, func(_ []byte, n uint64) error {
				value = math.Float64frombits(n)
				return nil
			})
			r.Metrics[key] = value
			return err
		}
		return nil
	})
	return r, err
}

// decodeRecord reads an ArrayRecord.
func decodeRecord(b []byte) ([]map[string]tensor, error) {
	fields := map[string][]tensor{}
	count := 0
	err := each(b, func(field protowire.Number, v []byte, n uint64) error {
		switch field {
		case 2:
			var ts []tensor
			key, err := entry(v, func(v []byte, _ uint64) (err error) {
				ts, err = decodeBatched(v)
				return err
			})
			fields[key] = ts
			return err
		case 3:
			count = int(min(n, math.MaxInt32))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name, ts := range fields {
		if count == 0 {
			count = len(ts)
		}
		if len(ts) != count {
			return nil, fmt.Errorf("%d sequences, and %d of %q", count, len(ts), name)
		}
	}
	if len(fields) == 0 && count > 0 {
		return nil, fmt.Errorf("%d sequences without anything about them", count)
	}
	out := make([]map[string]tensor, count)
	for i := range out {
		out[i] = map[string]tensor{}
		for name, ts := range fields {
			out[i][name] = ts[i]
		}
	}
	return out, nil
}

// decodeBatched reads a BatchedTensor, one tensor for each sequence.
func decodeBatched(b []byte) ([]tensor, error) {
	var data, offsets []byte
	var kind uint64
	err := each(b, func(field protowire.Number, v []byte, n uint64) error {
		switch field {
		case 1:
			data = v
		case 2:
			offsets = v
		case 3:
			kind = n
		case 4:
			if n > 0 || len(v) > 0 {
				return errors.New("a tensor of several dimensions: lists are read here")
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	at, err := numbers(offsets, protoInt64)
	if err != nil {
		return nil, err
	}
	var out []tensor
	for i := 1; i < len(at); i++ {
		from, to := int(at[i-1]), int(at[i])
		if from < 0 || to < from || to > len(data) {
			return nil, fmt.Errorf("offsets %d and %d of %d bytes", from, to, len(data))
		}
		values, err := numbers(data[from:to], kind)
		if err != nil {
			return nil, err
		}
		out = append(out, tensor{Data: values, DType: dtype(kind), Shape: []int64{int64(len(values))}})
	}
	return out, nil
}

// encodeSamples writes a SampleResponse. A missing log-probability of a prompt is NaN.
func encodeSamples(r sampleResult) []byte {
	var m message
	for _, s := range r.Sequences {
		var q message
		if s.Stop == "length" {
			q.number(1, 1)
		}
		q.bytes(2, packed(s.Tokens, 4))
		b, _ := tensor{Data: s.LogProbs}.dense()
		q.bytes(3, b)
		m.bytes(1, q)
	}
	if r.Prompt != nil {
		var b []byte
		for _, v := range r.Prompt {
			f := float32(math.NaN())
			if v != nil {
				f = float32(*v)
			}
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
		}
		m.bytes(2, b)
	}
	return m
}

// decodeSamples reads a SampleResponse.
func decodeSamples(b []byte) (r sampleResult, err error) {
	err = each(b, func(field protowire.Number, v []byte, _ uint64) error {
		switch field {
		case 1:
			s, err := decodeSequence(v)
			r.Sequences = append(r.Sequences, s)
			return err
		case 2:
			values, err := numbers(v, protoFloat32)
			for _, f := range values {
				if math.IsNaN(f) {
					r.Prompt = append(r.Prompt, nil)
				} else {
					r.Prompt = append(r.Prompt, &f)
				}
			}
			return err
		}
		return nil
	})
	return r, err
}

func decodeSequence(b []byte) (sequence, error) {
	s := sequence{Stop: "stop"}
	err := each(b, func(field protowire.Number, v []byte, n uint64) (err error) {
		switch field {
		case 1:
			if n > 1 {
				return fmt.Errorf("stop reason %d", n)
			}
			s.Stop = []string{"stop", "length"}[n]
		case 2:
			var ids []float64
			ids, err = numbers(v, protoInt32)
			for _, id := range ids {
				s.Tokens = append(s.Tokens, int32(id))
			}
		case 3:
			s.LogProbs, err = numbers(v, protoFloat32)
		}
		return err
	})
	return s, err
}
