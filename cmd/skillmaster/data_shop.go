package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"skillmaster/env/webshop"
	"skillmaster/episode"
)

// dataShopCmd writes a generated catalogue.
type dataShopCmd struct {
	To       string `help:"Folder to write to; it is made." required:"" placeholder:"DIR"`
	Products int    `help:"Number of products." default:"1000"`
	Seed     uint64 `help:"Seed of the catalogue: which shop." default:"1"`
	Skewed   bool   `help:"Families as common as among the real goals, where half is clothing; not all alike."`
}

// Help is shown under --help.
func (dataShopCmd) Help() string {
	return `Writes a catalogue of invented products in the files of the real shop, and the nouns of its titles: the same bytes for
the same options. Files that are there are written over.

Examples:
  skillmaster data shop --to shops/first
  skillmaster play --env webshop --data shops/first`
}

func (c *dataShopCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	if c.Products < 1 {
		return usage(errors.New("--products must be positive"))
	}
	catalogue, err := webshop.Generate(ctx, webshop.GenerateOptions{Seed: episode.Seed(c.Seed), Products: c.Products, Skewed: c.Skewed})
	if err != nil {
		return err
	}
	var products, attributes, human, nouns bytes.Buffer
	if err := catalogue.Write(webshop.Sinks{Products: &products, Attributes: &attributes, Human: &human, Nouns: &nouns}); err != nil {
		return err
	}
	if err := os.MkdirAll(c.To, 0o755); err != nil {
		return err
	}
	for i, text := range []*bytes.Buffer{&products, &attributes, &human, &nouns} {
		name := webshop.FileNames(webshop.Small)[i]
		if err := writeWhole(filepath.Join(c.To, name), func(w io.Writer) error {
			_, err := text.WriteTo(w)
			return err
		}); err != nil {
			return err
		}
		fmt.Fprintln(stdout, filepath.Join(c.To, name))
	}
	return nil
}
