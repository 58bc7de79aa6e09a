package transformer

import (
	"os"
	"os/exec"
	"testing"

	"skillmaster/policy/transformer/internal/simd"
)

// TestEveryKernel runs tests of the whole model once more for each implementation of the arithmetic that this machine can
// run, chosen as a user would choose it.
func TestEveryKernel(t *testing.T) {
	for _, name := range simd.Kernels() {
		if name == Kernel() {
			continue // all other tests are of this one
		}
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^(TestKernelIsTheOneAskedFor|TestAgainstTorch|TestStepByHand|TestGroupSharesItsPrompt)$")
			c.Env = append(os.Environ(), "SKILLMASTER_KERNEL="+name)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestKernelIsTheOneAskedFor(t *testing.T) {
	if want := os.Getenv("SKILLMASTER_KERNEL"); want != "" && Kernel() != want {
		t.Errorf("the kernel is %s, SKILLMASTER_KERNEL asks for %s", Kernel(), want)
	}
}
