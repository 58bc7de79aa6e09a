package tinker

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skillmaster/grpo"
	"skillmaster/policy"
	"skillmaster/policy/transformer"
)

// A SkyRL server with the JAX backend and our engine have the same log-probabilities and take the same optimiser step, from
// the same model and the same adapter: the server's first one, which our engine reads. Named by a dialect that adds up, the
// server is refused. The server is one that
// testdata/python/skyrl.sh starts; elsewhere this is not run.
func TestSkyRL(t *testing.T) {
	url, dir, kept := os.Getenv("SKILLMASTER_SKYRL_URL"), os.Getenv("SKILLMASTER_SKYRL_MODEL"), os.Getenv("SKILLMASTER_SKYRL_KEPT")
	if url == "" {
		t.Skip("no server: make skyrl-python starts one")
	}
	c := client(t, Options{URL: url, Dialect: SkyRLJAX, Notice: func(text string) { t.Log(text) }, Limits: Limits{Patience: 6 * time.Minute}})
	o := LearnerOptions{Base: dir, Rank: 8, Seed: 1, Context: 256}
	wrong := client(t, Options{URL: url, Dialect: Hosted, Limits: Limits{Patience: 6 * time.Minute}})
	if err := wrong.Check(t.Context(), o); err == nil || !strings.Contains(err.Error(), "the server divides by something") {
		t.Errorf("a dialect that is not the server's: %v", err)
	} else {
		t.Logf("refused: %v", err)
	}
	there, err := c.NewLearner(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := there.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	here := readsAdapter(t, there, dir, kept)
	batch := realRows()
	before := scores(t, here, batch)
	if d := apart(scores(t, there, batch), before); d > 1e-3 {
		t.Errorf("log-probabilities differ by %v", d)
	} else {
		t.Logf("log-probabilities differ by at most %.2g", d)
	}
	for i := range batch {
		batch[i].LogProb, batch[i].Ref = before[i], before[i]
	}
	step := policy.Optim{Loss: grpo.Loss{Kind: grpo.PolicyGradient, ClipLow: 0.2, ClipHigh: 0.28, DualClip: 3, KL: 0.01}, Rate: 1e-2, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8}
	want, err := here.Update(t.Context(), batch, step)
	if err != nil {
		t.Fatal(err)
	}
	got, err := there.Update(t.Context(), batch, step)
	if err != nil {
		t.Fatal(err)
	}
	if !near(got.GradNorm, want.GradNorm, 1e-2) || !near(got.Loss, want.Loss, 1e-3) {
		t.Errorf("the gradient has norm %v at loss %v, here %v at %v", got.GradNorm, got.Loss, want.GradNorm, want.Loss)
	}
	after := scores(t, here, batch)
	moved, d := apart(after, before), apart(scores(t, there, batch), after)
	if d > 0.02*moved {
		t.Errorf("a step that moves log-probabilities by up to %v leaves them %v apart", moved, d)
	} else {
		t.Logf("after a step that moves them by up to %.2g they differ by at most %.2g; norms %.5g and %.5g", moved, d, got.GradNorm, want.GradNorm)
	}
}

// realRows are sequences of different lengths and weights.
func realRows() []grpo.Datum {
	out := rows(11, 5)
	for i := range out {
		out[i].LogProb, out[i].Ref = nil, nil
	}
	return out
}

// readsAdapter is a learner of the model in a directory with the adapter that another learner on the server begins with, as
// the server keeps it for samplers: a folder of PEFT's in a tar.
func readsAdapter(t *testing.T, l *Learner, dir, kept string) *transformer.Learner {
	t.Helper()
	var p promise
	if err := l.client.post(t.Context(), "save_weights_for_sampler", saveWeights{Model: l.model, Path: "first", Seq: l.next(), Type: "save_weights_for_sampler"}, &p); err != nil {
		t.Fatal(err)
	}
	var r savedWeights
	if err := l.client.result(t.Context(), p, "SaveWeightsForSampler", &r); err != nil {
		t.Fatal(err)
	}
	adapter := t.TempDir()
	untar(t, filepath.Join(kept, l.model, "sampler_weights", "first.tar.gz"), adapter)
	m, err := transformer.ReadPretrained(t.Context(), dir, transformer.PretrainedOptions{Context: l.options.Context})
	if err == nil {
		err = m.ReadAdapter(t.Context(), adapter)
	}
	if err != nil {
		t.Fatal(err)
	}
	return transformer.NewLearner(m, transformer.LearnerOptions{Workers: 2})
}

func untar(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(r, 1<<28))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(h.Name)), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
