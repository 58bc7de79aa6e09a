package track

import (
	"bytes"
	_ "embed"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skillmaster/report"
	"skillmaster/store/storetest"
)

// events is what stock TensorBoard writes for the rounds of small, and then those of again: testdata/python/events.py.
//
//go:embed testdata/events.hex
var events string

func eventBytes(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(events), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// eventFile is the only file of a folder.
func eventFile(t *testing.T, folder string) (path string, content []byte) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	content, err = os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return found[0], content
}

func export(t *testing.T, folder string, h *report.History, want int) {
	t.Helper()
	got, err := TensorBoard(folder, h)
	if err != nil || got != want {
		t.Fatalf("%d rounds written, %v; want %d", got, err, want)
	}
}

// A run that grows, goes on from an earlier checkpoint, and is exported more than once: the bytes are those of stock
// TensorBoard.
func TestTensorBoardWritesWhatTensorBoardDoes(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "tb", "small")
	first := small()
	first.Rounds = first.Rounds[:1]
	export(t, folder, first, 1)
	export(t, folder, small(), 1)
	export(t, folder, small(), 0)
	export(t, folder, again(), 1)
	export(t, folder, again(), 0)
	path, got := eventFile(t, folder)
	if want := eventBytes(t); !bytes.Equal(got, want) {
		t.Errorf("got\n%x\nwant\n%x", got, want)
	}
	if filepath.Base(path) != "events.out.tfevents.1767323045.skillmaster" {
		t.Errorf("it is called %s", path)
	}
}

// Rounds that were taken back and not yet done again are taken back in the file.
func TestTensorBoardTakesBack(t *testing.T) {
	folder := t.TempDir()
	export(t, folder, small(), 2)
	first := small()
	first.Rounds = first.Rounds[:1]
	export(t, folder, first, 0)
	_, content := eventFile(t, folder)
	export(t, folder, first, 0)
	_, same := eventFile(t, folder)
	if !bytes.Equal(content, same) {
		t.Error("it is taken back twice")
	}
	records, _, err := readRecords(content)
	if err != nil {
		t.Fatal(err)
	}
	left, err := standing(records)
	if err != nil || len(left) != 1 || left[0].step != 1 {
		t.Errorf("%d rounds stand, %v; want the first", len(left), err)
	}
	export(t, folder, again(), 1)
}

// A crash may leave the file at any length: what was whole stays, the rest is written again.
func TestTensorBoardGoesOnAfterACrash(t *testing.T) {
	folder := t.TempDir()
	export(t, folder, small(), 2)
	path, whole := eventFile(t, folder)
	for n := range whole {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := TensorBoard(folder, small()); err != nil {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
		if _, got := eventFile(t, folder); !bytes.Equal(got, whole) {
			t.Fatalf("cut to %d bytes, it becomes\n%x\nwant\n%x", n, got, whole)
		}
	}
}

// What is not this run's is not written to.
func TestTensorBoardRefuses(t *testing.T) {
	folder := t.TempDir()
	export(t, folder, small(), 2)
	path, whole := eventFile(t, folder)
	other := small()
	other.Manifest.Created = start.Add(1e6) // within the same second
	elsewhen := small()
	elsewhen.Manifest.Created = start.AddDate(1, 0, 0)
	for name, h := range map[string]*report.History{"of the same second": other, "of another year": elsewhen} {
		if _, err := TensorBoard(folder, h); !errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), "folder") {
			t.Errorf("a run %s: %v", name, err)
		}
	}
	for _, i := range []int{0, 9, 13, 30, len(whole) - 1} { // length, its checksum, content of two records, checksum
		broken := bytes.Clone(whole)
		broken[i] ^= 0x40
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := TensorBoard(folder, small()); !errors.Is(err, ErrNotOurs) {
			t.Errorf("byte %d is wrong: %v", i, err)
		}
		if _, got := eventFile(t, folder); !bytes.Equal(got, broken) {
			t.Errorf("byte %d was wrong, and the file was changed", i)
		}
	}
}

// By hand: CRC32C of "123456789" is 0xe3069283 (RFC 3720's polynomial, the check value of the Rocksoft catalogue);
// rotated right by 15 that is 0x2507c60d, and with the constant 0xc78ab0e5.
func TestMasked(t *testing.T) {
	if c := crc32.Checksum([]byte("123456789"), castagnoli); c != 0xe3069283 {
		t.Fatalf("%#x", c)
	}
	if got := masked([]byte("123456789")); got != 0xc78ab0e5 {
		t.Errorf("got %#x", got)
	}
}

// A whole made-up run, exported round by round, is the same file as exported at once.
func TestTensorBoardRoundByRound(t *testing.T) {
	h := read(t, made(t, storetest.Shape{Seed: 5, Iterations: 6, Tasks: 2, Group: 2, Evaluate: 3, Panel: 4}))
	once, each := t.TempDir(), t.TempDir()
	export(t, once, h, len(h.Rounds))
	for n := range h.Rounds {
		part := *h
		part.Rounds = h.Rounds[:n+1]
		export(t, each, &part, 1)
	}
	_, want := eventFile(t, once)
	if _, got := eventFile(t, each); !bytes.Equal(got, want) {
		t.Error("round by round it is another file")
	}
}

// Whatever bytes a file has, reading ends, and what is read and framed again is the file up to its last whole record.
func FuzzReadRecords(f *testing.F) {
	whole := eventBytes(f)
	f.Add(whole)
	f.Add(whole[:40])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x29, 0x03, 0x98, 0x07})
	f.Add(appendRecord(appendRecord(nil, versionEvent(1)), []byte{0x10, 0xff, 0x3a}))
	f.Fuzz(func(t *testing.T, b []byte) {
		records, n, err := readRecords(b)
		if err != nil {
			return
		}
		var framed []byte
		for _, r := range records {
			framed = appendRecord(framed, r)
		}
		if !bytes.Equal(framed, b[:n]) {
			t.Fatalf("%x is read as %x", b[:n], framed)
		}
		_, _, _ = missing(records, small()) // must not panic
	})
}
