package simd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGenerated: the generator writes the assembly that is committed, byte for byte. It is skipped where the generator's own
// modules cannot be had.
func TestGenerated(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "asm"), os.DirFS("asm")); err != nil {
		t.Fatal(err)
	}
	run := func(arguments ...string) ([]byte, error) {
		command := exec.Command("go", arguments...)
		command.Dir = filepath.Join(folder, "asm")
		return command.CombinedOutput()
	}
	if out, err := run("mod", "download"); err != nil {
		t.Skipf("not checked, the generator's modules cannot be had: %v\n%s", err, out)
	}
	if out, err := run("run", ".", "-out", "../simd_amd64.s", "-stubs", "../stubs_amd64.go", "-pkg", "simd"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"simd_amd64.s", "stubs_amd64.go"} {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what its generator writes: run make generate and commit both", name)
		}
	}
}
