package webshop

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// written are the files of a catalogue.
type written struct{ products, attributes, human, nouns bytes.Buffer }

func writeAll(t *testing.T, c *Catalogue) *written {
	t.Helper()
	var w written
	if err := c.Write(Sinks{&w.products, &w.attributes, &w.human, &w.nouns}); err != nil {
		t.Fatal(err)
	}
	return &w
}

// A generated catalogue is written in the original's formats and is the same when it is read.
func TestWriteAndRead(t *testing.T) {
	c := made(t)
	w := writeAll(t, c)
	if again := writeAll(t, c); !bytes.Equal(w.products.Bytes(), again.products.Bytes()) || !bytes.Equal(w.attributes.Bytes(), again.attributes.Bytes()) {
		t.Error("written twice, the bytes differ")
	}
	got, loaded, err := Read(t.Context(), Files{&w.products, &w.attributes, &w.human, &w.nouns}, LoadOptions{})
	if err != nil || loaded != (Loaded{Entries: c.Len(), Products: c.Len()}) {
		t.Fatalf("%+v, %v", loaded, err)
	}
	for i := range c.Len() {
		want, p := c.Product(i), got.Product(i)
		if !reflect.DeepEqual(p, want) {
			t.Fatalf("got %+v\nwant %+v", p, want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestWriteReportsAFullDisk(t *testing.T) {
	var b bytes.Buffer
	if err := made(t).Write(Sinks{&b, full{}, &b, &b}); err == nil {
		t.Error("no error")
	}
}
