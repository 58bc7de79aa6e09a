package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// built is what official made once: under the race detector the real games take a while to read.
var built []byte

// official writes eight real games and, in the older wording, six generated ones into a folder of the official layout, and
// packs the same.
func official(t *testing.T) (folder, packed string) {
	t.Helper()
	data, dir := realData(t), t.TempDir()
	folder, packed = filepath.Join(dir, "official"), filepath.Join(dir, "packed")
	if built == nil {
		pack := func(args ...string) {
			t.Helper()
			must(t, 0, append([]string{"data", "pack"}, args...)...)
		}
		texts := filepath.Join(data, "alfworld")
		pack("--env", "alfworld", "--data", data, "--split", "valid_unseen", "--games", "8", "--to", packed)
		pack("--env", "alfworld", "--data", packed, "--form", "official", "--texts", texts, "--to", folder)
		pack("--split", "train", "--games", "6", "--wording", "put", "--form", "official", "--texts", texts, "--to", folder)
		pack("--env", "alfworld", "--data", folder, "--split", "train", "--to", packed) // now with walkthroughs
		built = zipped(t, dir, "")
	}
	z, err := zip.NewReader(bytes.NewReader(built), int64(len(built)))
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "official"), filepath.Join(dir, "packed")
}

// zipped packs files of a folder whose names end in something.
func zipped(t *testing.T, folder, suffix string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		w, err := z.Create(filepath.ToSlash(name))
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// same sees that two folders hold the same files.
func same(t *testing.T, got, want string) {
	t.Helper()
	for _, way := range [][2]string{{got, want}, {want, got}} {
		err := fs.WalkDir(os.DirFS(way[0]), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Base(filepath.Dir(path)) == "logic" {
				return err
			}
			a, err := os.ReadFile(filepath.Join(way[0], path))
			if err != nil {
				return err
			}
			if b, err := os.ReadFile(filepath.Join(way[1], path)); err != nil || !bytes.Equal(a, b) {
				t.Errorf("%s is another in %s (%v)", path, way[1], err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Games go from the official layout or the release's archives into packed files and back, and nothing is lost.
func TestDataImport(t *testing.T) {
	folder, packed := official(t)
	dir := t.TempDir()
	gamesZip, trialsZip := filepath.Join(dir, "json_2.1.3_tw-pddl.zip"), filepath.Join(dir, "json_2.1.1_json.zip")
	write(t, gamesZip, zipped(t, folder, ".tw-pddl"))
	write(t, trialsZip, zipped(t, folder, ".json"))
	for name, from := range map[string][]string{
		"folder":         {folder},
		"json_2.1.1":     {filepath.Join(folder, "json_2.1.1")},
		"archives":       {gamesZip, trialsZip},
		"zip and folder": {gamesZip, folder},
	} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "games")
			out, _ := must(t, 0, append(append([]string{"data", "import"}, from...), "--to", to)...)
			if !strings.Contains(out, filepath.Join(to, "valid_unseen.jsonl.gz")) {
				t.Errorf("prints %s", out)
			}
			same(t, to, packed)
			again := filepath.Join(t.TempDir(), "official")
			must(t, 0, "data", "pack", "--env", "alfworld", "--data", to, "--form", "official", "--to", again)
			same(t, again, folder)
		})
	}
	t.Run("without sentences", func(t *testing.T) {
		to := t.TempDir()
		must(t, 0, "data", "import", gamesZip, "--to", to)
		out, _ := must(t, 0, "data", "verify", "--env", "alfworld", "--data", to, "--json")
		var found verified
		if err := json.Unmarshal([]byte(out), &found); err != nil || found.Splits[0].Annotated != 0 || found.Splits[1].Games != 8 {
			t.Errorf("%v: %s", err, out)
		}
	})
}

func TestDataImportRefuses(t *testing.T) {
	folder, packed := official(t)
	dir := t.TempDir()
	trials, page := filepath.Join(dir, "json_2.1.1_json.zip"), filepath.Join(dir, "page.zip")
	write(t, trials, zipped(t, folder, ".json"))
	write(t, page, []byte("<!DOCTYPE html><p>Log in first."))
	for want, from := range map[string]string{
		"no game to pack":  trials,
		"starts with":      page,
		"no such file":     filepath.Join(dir, "none"),
		"reads an archive": dir,
	} {
		to := filepath.Join(t.TempDir(), "games")
		if _, errs := must(t, 1, "data", "import", from, "--to", to); !strings.Contains(errs, want) {
			t.Errorf("%s is answered with %q, want %q", from, errs, want)
		}
		if left, _ := filepath.Glob(filepath.Join(to, "*")); len(left) > 0 {
			t.Errorf("%s left %q behind", from, left)
		}
	}
	if _, errs := must(t, 1, "data", "import", folder, "--to", packed); !strings.Contains(errs, "there already") {
		t.Errorf("importing over games is answered with %q", errs)
	}
}

// An archive that lies, is damaged inside or leads out of its folder is answered with the name of what is wrong, and nothing
// is written anywhere.
func TestDataImportHostile(t *testing.T) {
	folder, _ := official(t)
	whole := zipped(t, folder, ".tw-pddl")
	const game = "json_2.1.1/train/pick_and_place_simple-Pen-None-Desk-301/t/game.tw-pddl"
	with := func(name string, add func(z *zip.Writer) error) string {
		r, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, f := range r.File {
			if err := z.Copy(f); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(add(z), z.Close()); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name+".zip")
		write(t, path, b.Bytes())
		return path
	}
	file := func(name string, text []byte) func(z *zip.Writer) error {
		return func(z *zip.Writer) error {
			w, err := z.Create(name)
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		}
	}
	raw := func(h zip.FileHeader, text []byte) func(z *zip.Writer) error {
		return func(z *zip.Writer) error {
			h.Name = game
			w, err := z.CreateRaw(&h)
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		}
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/3] ^= 0xff
	cut, inside := filepath.Join(t.TempDir(), "cut.zip"), filepath.Join(t.TempDir(), "inside.zip")
	write(t, cut, whole[:len(whole)-100])
	write(t, inside, damaged)
	for from, want := range map[string]string{
		with("bomb", file(game, make([]byte, 20<<20))):                                                            game + ": it has more than 16 MB",
		with("claims", raw(zip.FileHeader{UncompressedSize64: 1 << 60, CompressedSize64: 2}, []byte("{}"))):       game + ": ",
		with("locked", raw(zip.FileHeader{Method: 99, UncompressedSize64: 2, CompressedSize64: 2}, []byte("{}"))): "unsupported compression",
		cut:    "not a whole zip archive",
		inside: "damaged",
	} {
		to := filepath.Join(t.TempDir(), "games")
		out, errs := must(t, 1, "data", "import", from, "--to", to)
		if !strings.Contains(out+errs, want) {
			t.Errorf("%s is answered with %q, want %q", from, out+errs, want)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%s left something behind", from)
		}
	}
	dir := t.TempDir()
	to := filepath.Join(dir, "in", "games")
	must(t, 0, "data", "import", with("out", file("../../json_2.1.1/../../evil/train/a/b/game.tw-pddl", []byte("{}"))), "--to", to)
	for at, want := range map[string]string{dir: "in", filepath.Join(dir, "in"): "games", to: "logic train.jsonl.gz valid_unseen.jsonl.gz"} {
		if got := names(t, at); got != want {
			t.Errorf("in %s there are %s, want %s", at, got, want)
		}
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// What is damaged is named and does not hide the rest; what is left out is counted by reason.
func TestDataVerifyGoesOn(t *testing.T) {
	folder, _ := official(t)
	files, err := filepath.Glob(filepath.Join(folder, "json_2.1.1", "valid_unseen", "*", "*", "game.tw-pddl"))
	if err != nil || len(files) != 8 {
		t.Fatal(files, err)
	}
	change := func(i int, f func([]byte) []byte) {
		b, err := os.ReadFile(files[i])
		if err != nil {
			t.Fatal(err)
		}
		write(t, files[i], f(b))
	}
	change(0, func(b []byte) []byte { return b[:len(b)/2] })
	change(1, func(b []byte) []byte { return bytes.Replace(b, []byte("(:goal"), []byte("(:aim"), 1) })
	change(2, func(b []byte) []byte { return bytes.Replace(b, []byte("You open the"), []byte("You unlock the"), 1) })
	for i := 3; i < 6; i++ {
		if err := os.Remove(files[i]); err != nil {
			t.Fatal(err)
		}
	}
	out, errs := must(t, 1, "data", "verify", "--env", "alfworld", "--data", folder)
	for _, want := range []string{"valid_unseen: 3 left out: no game.tw-pddl (valid_unseen/", "and 1 more)", "2 damaged", files[0], files[1]} {
		if !strings.Contains(out, want) {
			t.Errorf("verify does not say %q: %s", want, out)
		}
	}
	if !strings.Contains(errs, "things that are wrong: 2") {
		t.Errorf("verify ends with %q", errs)
	}
	out, _ = must(t, 1, "data", "verify", "--env", "alfworld", "--data", folder, "--json")
	var found verified
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	if s := found.Splits[1]; s.Split != "valid_unseen" || len(s.Broken) != 2 || len(s.Skipped) < 3 || s.Games+len(s.Skipped) != 6 || found.Splits[0].Games != 6 {
		t.Errorf("verify finds %+v", found.Splits)
	}
	if _, errs := must(t, 1, "data", "list", "--env", "alfworld", "--data", folder); !strings.Contains(errs, "damaged files: 2") {
		t.Errorf("list ends with %q", errs)
	}
	to := filepath.Join(t.TempDir(), "games")
	if _, errs := must(t, 1, "data", "import", folder, "--to", to); !strings.Contains(errs, "nothing is written") {
		t.Errorf("import ends with %q", errs)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("import of damaged files wrote something")
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// mirror serves archives by name, and remembers what was asked for.
type mirror struct {
	files  map[string][]byte
	asked  []string
	before func(w http.ResponseWriter, r *http.Request) // each answer
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.asked = append(m.asked, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Range")))
	if m.before != nil {
		m.before(w, r)
	}
	b, ok := m.files[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		w.WriteHeader(http.StatusConflict)
		return
	}
	http.ServeContent(w, r, "", time.Unix(1_700_000_000, 0), bytes.NewReader(b))
}

func hash(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func TestDataGet(t *testing.T) {
	folder, packed := official(t)
	m := &mirror{files: map[string][]byte{"g.zip": zipped(t, folder, ".tw-pddl"), "t.zip": zipped(t, folder, ".json"), "page.zip": []byte("<html>")}}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	get := func(code int, to, games string, more ...string) (out, errs string) {
		t.Helper()
		return must(t, code, append([]string{"data", "get", "alfworld", "--to", to, "--url", "games=" + server.URL + "/" + games, "--url", "trials=" + server.URL + "/t.zip"}, more...)...)
	}
	sum := hash(m.files["g.zip"])

	t.Run("all", func(t *testing.T) {
		to := filepath.Join(t.TempDir(), "games")
		out, errs := get(0, to, "g.zip", "--sha256", "games="+strings.ToUpper(sum))
		if !strings.Contains(out, "sha256 "+sum) || !strings.Contains(out, "ready: skillmaster train --env alfworld --data "+to) {
			t.Errorf("prints %s", out)
		}
		if strings.Contains(errs, "g.zip: no checksum") || !strings.Contains(errs, "t.zip: no checksum is known") {
			t.Errorf("says %s", errs)
		}
		if got := names(t, to); got != "g.zip.sha256 logic t.zip.sha256 train.jsonl.gz valid_unseen.jsonl.gz" {
			t.Errorf("left %s", got)
		}
		for _, f := range []string{"g.zip.sha256", "t.zip.sha256"} {
			if err := os.Rename(filepath.Join(to, f), filepath.Join(t.TempDir(), f)); err != nil {
				t.Fatal(err)
			}
		}
		same(t, to, packed)
		if _, errs := get(1, to, "g.zip"); !strings.Contains(errs, "there already") {
			t.Errorf("getting over games is answered with %q", errs)
		}
	})
	t.Run("kept", func(t *testing.T) {
		to := t.TempDir()
		m.asked = nil
		get(0, to, "g.zip", "--keep", "--no-annotations")
		if got := names(t, to); got != "g.zip g.zip.sha256 logic train.jsonl.gz valid_unseen.jsonl.gz" {
			t.Errorf("left %s", got)
		}
		if got := fmt.Sprint(m.asked); got != "[/g.zip]" {
			t.Errorf("asked for %s", got)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		to := t.TempDir()
		ctx, stop := context.WithCancel(t.Context())
		m.asked, m.before = nil, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Last-Modified", time.Unix(1_700_000_000, 0).UTC().Format(http.TimeFormat))
			w.Header().Set("Content-Length", strconv.Itoa(len(m.files["g.zip"])))
			w.Write(m.files["g.zip"][:1000])
			w.(http.Flusher).Flush()
			for { // until it has come
				if info, err := os.Stat(filepath.Join(to, "g.zip.part")); err == nil && info.Size() == 1000 {
					break
				}
			}
			stop()
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
		var out strings.Builder
		if code := execute(ctx, []string{"data", "get", "alfworld", "--to", to, "--url", "games=" + server.URL + "/g.zip", "--no-annotations"}, nil, &out, &out); code != exitInterrupted || !strings.Contains(out.String(), "to go on") {
			t.Errorf("ended with %d: %s", code, out.String())
		}
		m.before = nil
		get(0, to, "g.zip", "--no-annotations")
		if got := fmt.Sprint(m.asked); got != "[/g.zip /g.zip bytes=1000-]" {
			t.Errorf("asked for %s", got)
		}
	})
	t.Run("refused", func(t *testing.T) {
		to := t.TempDir()
		if _, errs := get(1, to, "g.zip", "--sha256", "games="+hash(nil)); !strings.Contains(errs, "wrong checksum: want "+hash(nil)+", got "+sum) {
			t.Errorf("another archive is answered with %q", errs)
		}
		write(t, filepath.Join(to, "g.zip.sha256"), []byte(hash(nil)+"  g.zip\n"))
		if _, errs := get(1, to, "g.zip"); !strings.Contains(errs, "recorded in "+filepath.Join(to, "g.zip.sha256")) {
			t.Errorf("another archive than before is answered with %q", errs)
		}
		write(t, filepath.Join(to, "g.zip.sha256"), []byte("none"))
		if _, errs := get(1, to, "g.zip"); !strings.Contains(errs, "holds no checksum") {
			t.Errorf("a record of nothing is answered with %q", errs)
		}
		if _, errs := get(1, to, "gone.zip"); !strings.Contains(errs, "409") {
			t.Errorf("an archive that is not public is answered with %q", errs)
		}
		if _, errs := get(1, to, "page.zip"); !strings.Contains(errs, "starts with \"<html>\"") {
			t.Errorf("a page is answered with %q", errs)
		}
		if _, err := os.Stat(filepath.Join(to, "page.zip.sha256")); err == nil {
			t.Error("the checksum of a page is recorded")
		}
		if _, errs := get(2, to, "t.zip"); !strings.Contains(errs, "two archives") {
			t.Errorf("one name for two is answered with %q", errs)
		}
		for _, more := range [][]string{{"--url", "game=http://x/y.zip"}, {"--sha256", "game=00"}, {"--sha256", "games=00"}} {
			get(2, to, "g.zip", more...)
		}
		must(t, 2, "data", "get", "thor", "--to", to)
	})
}

func TestBar(t *testing.T) {
	var out strings.Builder
	b := newBar(&out, "train", inGames)
	b.every = 0
	b.update(10, 40)
	b.update(40, 40)
	b.end()
	if got, want := out.String(), "train: [#####...............] 10 of 40 games\ntrain: [####################] 40 of 40 games\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	out.Reset()
	b = newBar(&out, "a.zip", inMegabytes)
	b.every, b.live = 0, true
	b.update(1_500_000, -1)
	b.say("a.zip: the server is slow")
	b.end()
	if got, want := out.String(), "\ra.zip: 1.5 MB\r             \ra.zip: the server is slow\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
