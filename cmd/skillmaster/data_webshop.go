package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skillmaster/env/webshop"
	"skillmaster/fetch"
)

// driveAddress is where the makers keep a file. Their own script names it by its id.
func driveAddress(id string) string {
	return "https://drive.usercontent.google.com/download?export=download&confirm=t&id=" + id
}

// humanFile is what people wrote, for both catalogues.
var humanFile = archive{
	name: "human", url: driveAddress("14Kb5SPBk_jfdLZ_CDBNitW98QLDlKR5O"), holds: "people's own instructions",
	sha256: "cf78667548a71786e1d9049c24b802e48e1084ad4bb021cae56ce1f6d96954a3",
}

// shopFiles are the files of a catalogue, in the order of webshop.FileNames. The makers publish no checksums; these are what
// several independent projects pin.
var shopFiles = map[webshop.Size][]archive{
	webshop.Small: {
		{
			name: "products", url: driveAddress("1EgHdxQ_YxqIQlvvq5iKlCrkEKR6-j0Ib"), holds: "1,000 products, 4 MB",
			sha256: "30a4765c3a327af72d9a9a95a6b2486d516f0fa1d3ecd83681901ce82a21b269",
		},
		{
			name: "attributes", url: driveAddress("1IduG0xl544V_A_jv3tHXC0kyFi7PnyBu"), holds: "their attributes and instructions",
			sha256: "f88a36314a397b53b3d9c3fa5878e5f7b26d35019a51ec83fbedeca61a948f6f",
		},
		humanFile,
	},
	webshop.Full: {
		{
			name: "products", url: driveAddress("1A2whVgOO0euk5O13n2iYDM0bQRkkRduB"), holds: "1.18 million products, 5.5 GB",
			sha256: "2ef591d65df3af89e972ab72468eb82cbf124d876552d9f3678667edd620a6c8",
		},
		{
			name: "attributes", url: driveAddress("1s2j6NgHljiZzQNL3veZaAiyW_qDEgBNi"), holds: "their attributes and instructions, 186 MB",
			sha256: "1d36af476bdb8f82a5da62bd8acdabe54cd8de2fa84010d37da5c4890feb447e",
		},
		humanFile,
	},
}

// sizeOf is the catalogue that a flag asks for.
func sizeOf(full bool) webshop.Size {
	if full {
		return webshop.Full
	}
	return webshop.Small
}

// getShop downloads the files of a catalogue. They are used as they come.
func (c *dataGetCmd) getShop(ctx context.Context, stdout, stderr io.Writer) error {
	size := sizeOf(c.Full)
	names := webshop.FileNames(size)
	if err := os.MkdirAll(c.To, 0o755); err != nil {
		return err
	}
	for i, a := range shopFiles[size] {
		a.file = names[i]
		_, _, err := c.download(ctx, a, stdout, stderr)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w (run the same command again to go on)", err)
		case errors.Is(err, fetch.ErrChecksum) && c.SHA256[a.name] == "":
			return fmt.Errorf("%w: it is not %s as it was released; where a server gives a page to sign in in its place, name another with --url %s=ADDRESS", err, a.file, a.name)
		case err != nil:
			return err
		}
	}
	more := ""
	if c.Full {
		more = " --set world.full=true"
	}
	_, err := fmt.Fprintf(stdout, "ready: skillmaster train --env %s --data %s%s\n", realShop, c.To, more)
	return err
}

// importShop packs the files of a catalogue that are there already, if all of it can be read.
func (c *dataImportCmd) importShop(ctx context.Context, stdout, stderr io.Writer) error {
	size := sizeOf(c.Full)
	if len(c.From) != 1 {
		return usage(errors.New("the shop is imported from one folder"))
	}
	paths, err := webshop.Paths(c.From[0], size)
	if err != nil {
		return err
	}
	names := webshop.FileNames(size)
	for i, path := range paths {
		to := filepath.Join(c.To, names[i]+".gz")
		if _, err := os.Lstat(to); err == nil && path != "" {
			return fmt.Errorf("%s is there already: remove it, or choose another --to", to)
		}
	}
	shop, loaded, err := openShopFiles(ctx, c.From[0], size, stderr)
	if err != nil {
		return fmt.Errorf("%w; nothing is written", err)
	}
	if err := shop.Close(); err != nil {
		return err
	}
	printLoaded(stdout, loaded)
	if err := os.MkdirAll(c.To, 0o755); err != nil {
		return err
	}
	for i, path := range paths {
		if path == "" {
			continue
		}
		to := filepath.Join(c.To, names[i]+".gz")
		if err := writeWhole(to, func(w io.Writer) error { return packFile(stopping{ctx, w}, path) }); err != nil {
			return err
		}
		fmt.Fprintln(stdout, to)
	}
	return nil
}

// openShopFiles reads a catalogue, the full one by way of its cache.
func openShopFiles(ctx context.Context, data string, size webshop.Size, stderr io.Writer) (*webshop.Catalogue, webshop.Loaded, error) {
	var o webshop.LoadOptions
	if size == webshop.Full {
		o.Cache = fullCache(data)
	}
	return openCatalogue(ctx, data, size, o, stderr)
}

// packFile copies a file, packed or not, into a packed one.
func packFile(w io.Writer, path string) error {
	text, closer, err := unpacked(path)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(w)
	_, err = io.Copy(z, text)
	return errors.Join(err, z.Close(), closer.Close())
}

// unpacked is the text of a file that may be packed.
func unpacked(path string) (io.Reader, io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if !strings.HasSuffix(path, ".gz") {
		return f, f, nil
	}
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return z, f, nil
}

// printLoaded says what was read of a catalogue and what was left out.
func printLoaded(w io.Writer, l webshop.Loaded) {
	fmt.Fprintf(w, "%d products of %d entries; left out: %d repeated, %d with an id longer than 10 characters, %d without one\n", l.Products, l.Entries, l.Repeated, l.Overlong, l.Unnamed)
	if l.Attributeless > 0 {
		fmt.Fprintf(w, "%d products are not in the file of attributes: they have no synthetic goals\n", l.Attributeless)
	}
	if l.Unmatched > 0 {
		fmt.Fprintf(w, "%d products of the other files are not in the catalogue\n", l.Unmatched)
	}
}

// shopFound is what was found of a shop.
type shopFound struct {
	Loaded     *webshop.Loaded `json:"loaded,omitempty"` // nil: the shop is generated
	Splits     []splitRow      `json:"splits"`
	Winnable   int             `json:"winnable"` // goals whose own product is worth exactly 1
	Goals      int             `json:"goals"`
	Human      int             `json:"human_goals"`
	Unreleased []string        `json:"unreleased"` // files that are not as they were released
}

// verifyShop reads a shop and says what is there.
func (c *dataVerifyCmd) verifyShop(ctx context.Context, stdout, stderr io.Writer) error {
	w := ownShop(c.Env)
	w.Full = c.Full
	suite, loaded, err := openShop(ctx, w, c.Data, stderr)
	if err != nil {
		return err
	}
	found := shopFound{Unreleased: []string{}, Goals: suite.Shop().Goals()}
	if c.Env == realShop {
		found.Loaded = &loaded
	}
	if found.Splits, err = shopRows(suite, suite.Splits()); err != nil {
		return err
	}
	for _, r := range found.Splits {
		for _, t := range r.Tasks {
			can, err := suite.Winnable(t)
			if err != nil {
				return err
			}
			if can {
				found.Winnable++
			}
		}
	}
	for i := range found.Splits {
		found.Splits[i].Tasks = nil
	}
	if people, err := webshop.NewShop(suite.Shop().Catalogue, webshop.GoalOptions{Human: true}); err == nil { // else there are none
		found.Human = people.Goals()
	}
	if c.Released && c.Env == realShop {
		if found.Unreleased, err = unreleased(ctx, c.Data, sizeOf(c.Full)); err != nil {
			return err
		}
	}
	if err := c.printShop(stdout, found); err != nil {
		return err
	}
	if n := len(found.Unreleased); n > 0 {
		return fmt.Errorf("files that are not as they were released: %d", n)
	}
	if c.Env == madeShop && found.Winnable < found.Goals {
		return fmt.Errorf("generated goals that cannot be won: %d", found.Goals-found.Winnable)
	}
	return nil
}

func (c *dataVerifyCmd) printShop(stdout io.Writer, f shopFound) error {
	if c.JSON {
		return printJSON(stdout, f)
	}
	if f.Loaded != nil {
		printLoaded(stdout, *f.Loaded)
	}
	if err := printSplits(stdout, f.Splits); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d of %d goals can be won with the product they were made for; goals that people wrote: %d\n", f.Winnable, f.Goals, f.Human)
	for _, name := range f.Unreleased {
		fmt.Fprintln(stdout, "wrong:", name)
	}
	return nil
}

// ownShop is a shop without those of a warm start.
func ownShop(name string) worldConfig {
	w := gamesOf(name)
	if name == madeShop {
		w.Sizes = map[string]int{"products": w.Sizes["products"]}
	}
	return w
}

// shopRows lists the goals of a shop.
func (c *dataListCmd) shopRows(ctx context.Context, stderr io.Writer) ([]splitRow, error) {
	suite, _, err := openShop(ctx, ownShop(c.Env), c.Data, stderr)
	if err != nil {
		return nil, err
	}
	splits := suite.Splits()
	if c.Split != "" {
		splits = []string{c.Split}
	}
	return shopRows(suite, splits)
}

// shopRows lists splits of a shop.
func shopRows(suite *webshop.Suite, splits []string) ([]splitRow, error) {
	rows := make([]splitRow, len(splits))
	for i, s := range splits {
		tasks, err := suite.Tasks(s)
		if err != nil {
			return nil, usage(err)
		}
		rows[i] = splitRow{Split: s, Games: len(tasks), Families: map[string]int{}, Tasks: tasks, Skipped: []leftOut{}, Broken: []string{}}
		for _, t := range tasks {
			rows[i].Families[t.Family]++
		}
	}
	return rows, nil
}

// unreleased names the files of a catalogue whose checksums are not those of the release.
func unreleased(ctx context.Context, data string, size webshop.Size) ([]string, error) {
	paths, err := webshop.Paths(data, size)
	if err != nil {
		return nil, err
	}
	wrong := []string{}
	for i, a := range shopFiles[size] {
		if paths[i] == "" {
			wrong = append(wrong, webshop.FileNames(size)[i]+" is not there")
			continue
		}
		text, closer, err := unpacked(paths[i])
		if err != nil {
			return nil, err
		}
		h := sha256.New()
		_, err = io.Copy(stopping{ctx, h}, text)
		if err := errors.Join(err, closer.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", paths[i], err)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != a.sha256 {
			wrong = append(wrong, fmt.Sprintf("%s has the checksum %s, as released it is %s", paths[i], got, a.sha256))
		}
	}
	return slices.Clip(wrong), nil
}
