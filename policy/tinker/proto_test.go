package tinker

import (
	"encoding/hex"
	"reflect"
	"testing"
)

// golden is a request as protobuf's own library writes it (google.golang.org/protobuf, dynamicpb over the SDK's descriptor).
const golden = "0a016d10021a88010a100a0e0a0c01000000020000000300000012210a0a616476616e746167657312130a0c000000000000003f000080be1801220103121f0a086c6f6770726f627312130a0c00000000000080bf000000c0180122010312300a0d7461726765745f746f6b656e73121f0a180200000000000000030000000000000004000000000000001802220103220370706f2a1e0a13636c69705f686967685f7468726573686f6c6411333333333333f33f2a1d0a12636c69705f6c6f775f7468726573686f6c64119a9999999999e93f"

func goldenPass() (passRequest, lossInput) {
	in := lossInput{
		Loss: "ppo", Config: map[string]float64{"clip_low_threshold": 0.8, "clip_high_threshold": 1.2},
		Data: []datum{{Input: text([]int32{1, 2, 3}), Inputs: map[string]tensor{
			"target_tokens": integers([]int32{2, 3, 4}), "advantages": floats([]float32{0, 0.5, -0.25}), "logprobs": floats([]float32{0, -1, -2}),
		}}},
	}
	return passRequest{Model: "m", Seq: 2, Backward: &in}, in
}

func TestReadsGolden(t *testing.T) {
	b, err := hex.DecodeString(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, forward, err := decodePass(b)
	if want, _ := goldenPass(); err != nil || forward || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, %v; want %+v", got, forward, err, want)
	}
}

func TestPassAndBack(t *testing.T) {
	want, in := goldenPass()
	for _, only := range []bool{false, true} {
		got, forward, err := decodePass(encodePass(want.Model, want.Seq, in, only))
		if err != nil || forward != only || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, %v; want %+v, %v", got, forward, err, want, only)
		}
	}
}

func TestResultsAndBack(t *testing.T) {
	r := passResult{Kind: "K", Metrics: map[string]float64{"loss:sum": 0.5, "n": 0}, Outputs: []map[string]tensor{
		{"logprobs": floats([]float32{-1, -2.5})}, {"logprobs": floats([]float32{-3})},
	}}
	if got, err := decodeResult(encodeResult(r)); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("got %+v, %v; want %+v", got, err, r)
	}
	half := -0.5
	s := sampleResult{Prompt: []*float64{nil, &half}, Sequences: []sequence{
		{Stop: "stop", Tokens: []int32{1, 70000}, LogProbs: []float64{-0.25, 0}}, {Stop: "length", Tokens: []int32{3}, LogProbs: []float64{-1}},
	}}
	if got, err := decodeSamples(encodeSamples(s)); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("got %+v, %v; want %+v", got, err, s)
	}
}

// Whatever bytes come, there is an error or a message that is read back as itself.
func FuzzProto(f *testing.F) {
	b, _ := hex.DecodeString(golden)
	f.Add(b)
	f.Add(encodeResult(passResult{Kind: "K", Outputs: []map[string]tensor{{"logprobs": floats([]float32{-1})}}, Metrics: map[string]float64{"a": 1}}))
	f.Add(encodeSamples(sampleResult{Sequences: []sequence{{Stop: "length", Tokens: []int32{3}, LogProbs: []float64{-1}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, only, err := decodePass(b); err == nil {
			again, forward, err := decodePass(encodePass(q.Model, q.Seq, *q.Backward, only))
			if err != nil || forward != only || again.Model != q.Model || len(again.Backward.Data) != len(q.Backward.Data) {
				t.Errorf("%+v became %+v: %v", q, again, err)
			}
			for _, d := range q.Backward.Data {
				_, _ = readRow(d, loss{name: "ppo"})
			}
		}
		if r, err := decodeResult(b); err == nil {
			if again, err := decodeResult(encodeResult(r)); err == nil && len(again.Outputs) != len(r.Outputs) {
				t.Errorf("%+v became %+v", r, again)
			}
		}
		if s, err := decodeSamples(b); err == nil {
			if again, err := decodeSamples(encodeSamples(s)); err != nil || len(again.Sequences) != len(s.Sequences) || len(again.Prompt) != len(s.Prompt) {
				t.Errorf("%+v became %+v: %v", s, again, err)
			}
		}
	})
}
