package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"skillmaster/env/webshop"
	"skillmaster/fetch"
)

// archive is a file of a world's release.
type archive struct {
	name, url, holds string
	extra            bool   // can be left out
	file             string // what it is called where it is kept; "": as at its address
	sha256           string // "" if nobody knows it
}

// releases are the archives of each world, as the makers' own download script names them.
var releases = map[string][]archive{
	realGames: {
		{name: "games", url: "https://github.com/alfworld/alfworld/releases/download/0.4.2/json_2.1.3_tw-pddl.zip", holds: "the text games"},
		{name: "trials", url: "https://github.com/alfworld/alfworld/releases/download/0.2.2/json_2.1.1_json.zip", holds: "people's sentences for the goals", extra: true},
	},
}

type dataGetCmd struct {
	World       string            `arg:"" help:"World: alfworld or webshop." enum:"alfworld,webshop"`
	To          string            `help:"Folder to write to." required:"" placeholder:"DIR"`
	URL         map[string]string `help:"Other address of an archive (alfworld: games, trials; webshop: products, attributes, human). Can be given several times." name:"url" mapsep:"none" placeholder:"NAME=URL"`
	SHA256      map[string]string `help:"Checksum an archive must have. Can be given several times." name:"sha256" mapsep:"none" placeholder:"NAME=HEX"`
	Annotations bool              `help:"Fetch people's own sentences for the goals too; --no-annotations leaves that archive out." default:"true" negatable:""`
	Keep        bool              `help:"Keep the archives (alfworld)."`
	Full        bool              `help:"The catalogue of 1.18 million products, not that of 1,000 (webshop)."`
}

// Help is shown under --help.
func (dataGetCmd) Help() string {
	var archives, shop strings.Builder
	for _, a := range releases[realGames] {
		fmt.Fprintf(&archives, "\n  %-7s %s\n          (%s)", a.name, a.url, a.holds)
	}
	for _, size := range []webshop.Size{webshop.Small, webshop.Full} {
		for _, a := range shopFiles[size] {
			fmt.Fprintf(&shop, "\n  %-10s %s\n             (%s)", a.name, a.url, a.holds)
		}
	}
	return "alfworld: downloads the release's archives and packs their games into DIR, ready for --env alfworld --data DIR:\n" + archives.String() + `

A third archive of the release, json_2.1.1_pddl.zip, is not needed: the game files hold the same problems.

A download that was stopped goes on where it was, if the server can and has the same version; broken connections, stalls
and passing errors of the server are tried again. HTTP_PROXY, HTTPS_PROXY and NO_PROXY are heeded. The archives are read
as they are: nothing is unpacked on the way, and no file of more than 16 MB is read out of them.

The makers publish no checksums, so none is known here. The checksum of an archive that came is printed and, once its
games are packed, recorded in DIR/ARCHIVE.sha256; a later download there must have the same. With --sha256 it must have
the one you give.

webshop: downloads the files of the shop of 1,000 products, or, with --full, of 1.18 million, and keeps them as they are; their
checksums are known, so that a mirror will do:
` + shop.String() + `

Examples:
  skillmaster data get alfworld --to games
  skillmaster data get alfworld --to games --url games=https://mirror.example/json_2.1.3_tw-pddl.zip --no-annotations
  skillmaster train --env alfworld --data games
  skillmaster data get webshop --to shop`
}

// shopFiles are the files of the catalogue that is asked for, if one is.
func (c *dataGetCmd) shopFiles() []archive {
	if c.World != realShop {
		return nil
	}
	return shopFiles[sizeOf(c.Full)]
}

// validate reports archives that there are not, and checksums that can be none.
func (c *dataGetCmd) validate() error {
	var names []string
	for _, a := range append(releases[c.World], c.shopFiles()...) {
		names = append(names, a.name)
	}
	if c.Full && c.World != realShop {
		return fmt.Errorf("--full is for %s", realShop)
	}
	for _, name := range slices.Sorted(maps.Keys(c.URL)) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--url %s=…: the archives are %s", name, strings.Join(names, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.SHA256)) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--sha256 %s=…: the archives are %s", name, strings.Join(names, ", "))
		}
		if b, err := hex.DecodeString(c.SHA256[name]); err != nil || len(b) != 32 {
			return fmt.Errorf("--sha256 %s=%s: want 64 hexadecimal digits", name, c.SHA256[name])
		}
	}
	return nil
}

func (c *dataGetCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	if err := c.validate(); err != nil {
		return usage(err)
	}
	if c.World == realShop {
		return c.getShop(ctx, stdout, stderr)
	}
	if err := nothingIn(c.To); err != nil {
		return err
	}
	if err := os.MkdirAll(c.To, 0o755); err != nil {
		return err
	}
	var files, sums []string
	for _, a := range releases[c.World] {
		if a.extra && !c.Annotations {
			continue
		}
		file, sum, err := c.download(ctx, a, stdout, stderr)
		if ctx.Err() != nil {
			return fmt.Errorf("%w (run the same command again to go on)", err)
		}
		if err != nil {
			return err
		}
		if slices.Contains(files, file) {
			return usage(fmt.Errorf("two archives would both be %s: rename one at its address", file))
		}
		files, sums = append(files, file), append(sums, sum)
	}
	if err := importGames(ctx, files, c.To, stdout, stderr); err != nil {
		return err
	}
	for i, file := range files {
		if err := recordSum(file, sums[i]); err != nil {
			return err
		}
		if c.Keep {
			continue
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(stdout, "ready: skillmaster train --env %s --data %s\n", c.World, c.To)
	return err
}

// download brings an archive, and prints its checksum.
func (c *dataGetCmd) download(ctx context.Context, a archive, stdout, stderr io.Writer) (file, sum string, err error) {
	address := a.url
	if u := c.URL[a.name]; u != "" {
		address = u
	}
	name := path.Base(a.url)
	if u, err := url.Parse(address); err == nil && strings.HasSuffix(u.Path, ".zip") {
		name = path.Base(u.Path)
	}
	name = cmp.Or(a.file, name)
	file = filepath.Join(c.To, name)
	want := cmp.Or(c.SHA256[a.name], a.sha256)
	recorded, err := recordedSum(file)
	if err != nil {
		return "", "", err
	}
	if want == "" {
		want = recorded
	}
	progress := newBar(stderr, name, inMegabytes)
	client := fetch.Client{Progress: progress.update, Notice: func(text string) { progress.say(name + ": " + text) }}
	got, err := client.Download(ctx, fetch.Request{URL: address, Path: file, SHA256: want})
	progress.end()
	switch {
	case errors.Is(err, fetch.ErrChecksum) && c.SHA256[a.name] == "" && a.sha256 == "":
		return "", "", fmt.Errorf("%w; the one wanted was recorded in %s when the archive was first fetched: remove that file if the archive may be another now", err, sumFile(file))
	case err != nil:
		return "", "", err
	case want == "":
		progress.say(name + ": no checksum is known to compare with (--sha256 gives one)")
	}
	_, err = fmt.Fprintf(stdout, "%s: %s MB, sha256 %s\n", name, inMegabytes.count(got.Bytes), got.SHA256)
	return file, got.SHA256, err
}

// sumFile is where the checksum of an archive is recorded, in the form of sha256sum.
func sumFile(file string) string { return file + ".sha256" }

func recordSum(file, sum string) error {
	return writeWhole(sumFile(file), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s  %s\n", sum, filepath.Base(file))
		return err
	})
}

// recordedSum is "" if none is recorded.
func recordedSum(file string) (string, error) {
	text, err := os.ReadFile(sumFile(file))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	sum, _, _ := strings.Cut(string(text), " ")
	if b, wrong := hex.DecodeString(sum); err == nil && (wrong != nil || len(b) != 32) {
		err = fmt.Errorf("%s holds no checksum: remove it", sumFile(file))
	}
	return sum, err
}
