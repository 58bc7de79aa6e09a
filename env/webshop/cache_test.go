package webshop

import (
	"bytes"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"skillmaster/bm25"
)

// shopFiles writes the files of a small catalogue to a folder.
func shopFiles(t testing.TB, products string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"items_shuffle_1000.json": products, "items_ins_v2_1000.json": mugsAttr} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The cache of a catalogue is opened as long as its files are the same, made anew when they are not, and refused when it is
// damaged or has another catalogue's index.
func TestCache(t *testing.T) {
	dir := shopFiles(t, `[`+mugJSON+`,`+lampJSON+`,{"asin":"nan"}]`)
	o := LoadOptions{Cache: filepath.Join(t.TempDir(), "cache")}
	read := 0
	o.Progress = func(p Progress) {
		if p.Products == 0 {
			read++
		}
	}
	var first []Product
	for _, made := range []bool{true, false} {
		read = 0
		c, loaded, err := OpenCatalogue(t.Context(), dir, Small, o)
		if err != nil {
			t.Fatal(err)
		}
		if want := (Loaded{Entries: 3, Products: 2, Unnamed: 1}); loaded != want || read > 0 != made {
			t.Errorf("loaded %+v, want %+v; read %d times, made %v", loaded, want, read, made)
		}
		if hits := c.answer("bright blue", 0); !slices.Equal(hits, []int32{1, 0}) {
			t.Errorf("found %v", hits)
		}
		var all []Product
		for i := range c.Len() {
			p := c.Product(i)
			p.Title = strings.Clone(p.Title)
			all = append(all, p)
		}
		if p, ok := c.Find("b000000002"); !ok || p.Title != "Lamp" {
			t.Errorf("found %+v, %v", p, ok)
		}
		if first == nil {
			first = all
		} else if all[0].Title != first[0].Title || all[1].Price != first[1].Price {
			t.Errorf("read again it is %+v, it was %+v", all, first)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "items_shuffle_1000.json"), []byte(`[`+mugJSON+`]`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, loaded, err := OpenCatalogue(t.Context(), dir, Small, o)
	if err != nil || loaded.Products != 1 {
		t.Fatalf("other files: %+v, %v", loaded, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	other := LoadOptions{Cache: filepath.Join(t.TempDir(), "other")}
	c, _, err = OpenCatalogue(t.Context(), shopFiles(t, `[`+lampJSON+`]`), Small, other)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), os.Rename(other.Cache+indexEnding, o.Cache+indexEnding)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenCatalogue(t.Context(), dir, Small, o); !errors.Is(err, bm25.ErrOther) || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("another catalogue's index: %v", err)
	}
	whole, err := os.ReadFile(o.Cache + productsEnding)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		bad := slices.Clone(whole)
		bad[i] ^= 0x40
		if _, err := readShelf(bad); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d is damaged: %v", i, err)
		}
		if _, err := readShelf(whole[:i]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut off at byte %d: %v", i, err)
		}
	}
	if err := os.WriteFile(o.Cache+productsEnding, whole[:40], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenCatalogue(t.Context(), dir, Small, o); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("a damaged cache: %v", err)
	}
	left, err := filepath.Glob(o.Cache + "*.tmp")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What cannot be read leaves no cache.
func TestNoCacheOfBrokenFiles(t *testing.T) {
	o := LoadOptions{Cache: filepath.Join(t.TempDir(), "cache")}
	if _, _, err := OpenCatalogue(t.Context(), shopFiles(t, `[`+mugJSON+`,`+mugJSON[:40]), Small, o); err == nil || !strings.Contains(err.Error(), "entry 2") {
		t.Errorf("got %v", err)
	}
	if left, err := filepath.Glob(filepath.Dir(o.Cache) + "/*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, _, err := OpenCatalogue(t.Context(), shopFiles(t, `[`+mugJSON+`]`), Small, LoadOptions{Cache: filepath.Join(t.TempDir(), "no", "such")}); err == nil {
		t.Error("a folder that there is not")
	}
}

// A shelf holds what was packed.
func TestShelf(t *testing.T) {
	products := generate(GenerateOptions{Seed: 4, Products: 60})
	var b bytes.Buffer
	k := packer{w: &b}
	for i := range products {
		if err := k.add(&products[i]); err != nil {
			t.Fatal(err)
		}
	}
	image := shelfImage(t, &k, &b)
	s, err := readShelf(image)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range products {
		if len(want.Attributes) == 0 {
			want.Attributes = nil
		}
		got := *s.product(i)
		if !reflect.DeepEqual(got, want) || s.asin(i) != want.ASIN || s.title(i) != want.Title {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
		n, ok := s.find(want.ASIN)
		if !ok || int(n) != i {
			t.Errorf("%s is %d, %v", want.ASIN, n, ok)
		}
		for _, a := range want.Attributes {
			if !s.hasAttribute(i, a) || s.hasAttribute(i, a+"x") {
				t.Errorf("%s: attribute %q", want.ASIN, a)
			}
		}
	}
	if _, ok := s.find("B0"); ok {
		t.Error("found what is not there")
	}
	if err := k.add(&products[3]); err != nil {
		t.Fatal(err)
	}
	if _, err := k.tables(); err == nil || !strings.Contains(err.Error(), "products 4 and 61 have the same ASIN") {
		t.Errorf("one ASIN twice: %v", err)
	}
}

// shelfImage is the file of what was packed.
func shelfImage(t testing.TB, k *packer, records *bytes.Buffer) []byte {
	t.Helper()
	tables, err := k.tables()
	if err != nil {
		t.Fatal(err)
	}
	body := slices.Concat(records.Bytes(), tables)
	f := footer{records: k.written, products: uint64(len(k.asins))}
	return f.append(body, crc32.Checksum(body, castagnoli))
}

// FuzzShelf opens whatever has a right checksum: it is refused or can be read.
func FuzzShelf(f *testing.F) {
	products := generate(GenerateOptions{Seed: 4, Products: 5})
	var b bytes.Buffer
	k := packer{w: &b}
	for i := range products {
		if err := k.add(&products[i]); err != nil {
			f.Fatal(err)
		}
	}
	whole := shelfImage(f, &k, &b)
	f.Add(whole[:len(whole)-footerSize], k.written, uint64(5))
	f.Add([]byte{}, uint64(0), uint64(0))
	f.Add([]byte{0, 0}, uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, body []byte, records, n uint64) {
		ft := footer{records: records, products: n}
		s, err := readShelf(ft.append(slices.Clone(body), crc32.Checksum(body, castagnoli)))
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("got %v", err)
			}
			return
		}
		for i := range s.len() {
			p := s.product(i)
			_ = p.contents()
			s.find(p.ASIN)
		}
	})
}

func TestFolderWithoutCatalogue(t *testing.T) {
	folder := t.TempDir()
	_, _, err := OpenCatalogue(t.Context(), folder, Small, LoadOptions{})
	if err == nil || !strings.Contains(err.Error(), folder) || !strings.Contains(err.Error(), "generated shop") {
		t.Errorf("an empty folder is answered with %v", err)
	}
}
