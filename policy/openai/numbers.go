package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"skillmaster/policy/remote"
)

// decode reads a reply. Fields nobody asked for are passed over, wrong types are errors.
func decode(reply []byte, v any) error {
	if err := json.Unmarshal(reply, v); err != nil {
		return fmt.Errorf("the reply cannot be read: %w (it begins %q)", err, remote.Printable(string(reply[:min(len(reply), 80)])))
	}
	return nil
}

// aboveZero is how far rounding may lift a log-probability.
const aboveZero = 1e-3

// numbers are log-probabilities.
func numbers(values []*float64) ([]float32, error) {
	out := make([]float32, len(values))
	for i, v := range values {
		if v == nil {
			return nil, fmt.Errorf("log-probability %d is missing", i)
		}
		if !(*v <= aboveZero && *v >= -math.MaxFloat32) {
			return nil, fmt.Errorf("log-probability %d is %v", i, *v)
		}
		out[i] = float32(*v)
	}
	return out, nil
}

// promptNumbers are those of a prompt, whose first id has none.
func promptNumbers(values []*float64) ([]float32, error) {
	if len(values) == 0 {
		return nil, errors.New("the log-probabilities of the prompt are missing")
	}
	if values[0] != nil {
		return nil, errors.New("the first id of a prompt came with a log-probability: does the server put one before it?")
	}
	rest, err := numbers(values[1:])
	return append([]float32{0}, rest...), err
}
