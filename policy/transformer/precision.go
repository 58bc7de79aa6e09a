package transformer

import "fmt"

// Precision is how the products of activations with weights are computed; sums, norms, attention, the optimiser and what is
// saved are float32 always. The zero Precision is Float32.
type Precision uint8

// The precisions.
const (
	Float32 Precision = iota
	// BFloat16 rounds both sides of a product to bfloat16 (8 bits of mantissa). It pays where the processor has a matrix
	// unit (see KernelBF16); elsewhere it is computed in plain Go, or by instructions that need not be faster.
	BFloat16
	precisions // their number
)

var precisionNames = [precisions]string{"float32", "bfloat16"}

func (p Precision) String() string {
	if p < precisions {
		return precisionNames[p]
	}
	return fmt.Sprintf("precision %d", uint8(p))
}

// MarshalText writes the name.
func (p Precision) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a name.
func (p *Precision) UnmarshalText(b []byte) error {
	for i, name := range precisionNames {
		if name == string(b) {
			*p = Precision(i)
			return nil
		}
	}
	return fmt.Errorf("there is no precision %q: it is float32 or bfloat16", b)
}
