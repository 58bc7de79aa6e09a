package alfworld

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf16"
)

// What is cut off, garbled, wrongly encoded or huge is an error that names the place, takes little memory, and gives no
// game.

// cuts are where a text of n bytes is cut off: everywhere near its ends, and now and then between.
func cuts(n int) (at []int) {
	near, stride := 1500, 61
	if raceDetector {
		near, stride = 40, 1997
	}
	for i := range n {
		if i < near || i >= n-near || i%stride == 0 {
			at = append(at, i)
		}
	}
	return at
}

func TestReleasedProblemCutOffAnywhere(t *testing.T) {
	text := strings.TrimSpace(problems(t, "valid_unseen", 1000)[0].Problem)
	for _, i := range cuts(len(text)) {
		if s, err := ReadProblem(text[:i]); err == nil || !strings.Contains(err.Error(), "line ") || !reflect.DeepEqual(s, Spec{}) {
			t.Fatalf("the first %d of %d bytes: got error %v and %+v", i, len(text), err, s)
		}
	}
}

// oneBroken sees that reading packed lines came to nothing but errors with the words.
func oneBroken(t *testing.T, file io.Reader, want string) {
	t.Helper()
	got, err := readPacked(t.Context(), file, nil)
	if all := errors.Join(got.broken...); err != nil || all == nil || !strings.Contains(all.Error(), want) || len(got.games)+len(got.skipped) > 0 {
		t.Fatalf("got %d games, %d skipped, broken %v, %v; want %q", len(got.games), len(got.skipped), got.broken, err, want)
	}
}

func kitchenLine(t testing.TB) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed(t, kitchens(t, "valid_seen/"+kitchenTask+"/trial_1"))))
	if err != nil {
		t.Fatal(err)
	}
	line, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(line))
}

func TestPackedLineCutOffAnywhere(t *testing.T) {
	line := kitchenLine(t)
	for _, i := range cuts(len(line)) {
		if o := readLine(packedLine{0, []byte(line[:i])}); o.err == nil || o.game != nil || o.skipped != nil || !strings.HasPrefix(o.err.Error(), "line 1: ") {
			t.Fatalf("the first %d of %d bytes: got %+v", i, len(line), o)
		}
	}
	oneBroken(t, bytes.NewReader(gz(line[:len(line)/2])), "line 1: ")
	oneBroken(t, bytes.NewReader(gz()), "no game in it")
}

func TestGameFileCutOffAnywhere(t *testing.T) {
	dir := t.TempDir()
	g := kitchens(t, "train/"+kitchenTask+"/trial_1")[0]
	if err := WriteOfficial(dir, g, texts(t)); err != nil {
		t.Fatal(err)
	}
	name := officialFolder + "/" + g.ID + "/"
	for _, file := range []string{gameFileName, trialFileName} {
		whole := fstest.MapFS{}
		for _, f := range []string{gameFileName, trialFileName} {
			whole[name+f] = &fstest.MapFile{Data: fileText(t, filepath.Join(dir, filepath.FromSlash(name+f)))}
		}
		text := whole[name+file].Data
		for _, i := range cuts(len(text)) {
			whole[name+file] = &fstest.MapFile{Data: text[:i]}
			s, err := OpenLayers([]Layer{{"games", whole}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Tasks("train")
			if err == nil || !strings.Contains(err.Error(), "games/"+name+file+": line 1: ") {
				t.Fatalf("%s, the first %d of %d bytes: got error %v", file, i, len(text), err)
			}
		}
	}
}

// TestPackedGarbledAnywhere turns each byte of a packed file: it is found out, or one of those that say nothing of the
// content.
func TestPackedGarbledAnywhere(t *testing.T) {
	games := kitchens(t, "valid_seen/"+kitchenTask+"/trial_1")
	whole := packed(t, games)
	for _, i := range cuts(len(whole)) {
		garbled := bytes.Clone(whole)
		garbled[i] ^= 0x55
		got, err := readPacked(t.Context(), bytes.NewReader(garbled), nil)
		if err != nil || len(got.broken) == 0 && (len(got.games) != 1 || !reflect.DeepEqual(got.games[0].Spec(), games[0].Spec())) {
			t.Fatalf("byte %d of %d: got %d games, broken %v, %v", i, len(whole), len(got.games), got.broken, err)
		}
	}
}

// TestPackedRefusesWhatDecodingPassesOver is of other encodings, keys given twice and values of other kinds.
func TestPackedRefusesWhatDecodingPassesOver(t *testing.T) {
	line := kitchenLine(t)
	sixteen := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(line)) {
		sixteen = append(sixteen, byte(u), byte(u>>8))
	}
	turn := func(old, by string) string {
		if !strings.Contains(line, old) {
			t.Fatalf("nothing to spoil: %q is not in %s", old, line)
		}
		return strings.Replace(line, old, by, 1)
	}
	for name, c := range map[string]struct{ line, want string }{
		"byte-order mark":  {"\xef\xbb\xbf" + line, "line 1: it begins with a byte-order mark"},
		"UTF-16":           {string(sixteen), "UTF-16"},
		"UTF-16, no mark":  {string(sixteen[2:]), "zero byte"},
		"latin-1":          {turn("Wash an apple", "Un caf\xe9 et"), "it is not UTF-8"},
		"zero in problem":  {turn("(:init", `(:init\u0000`), "game valid_seen/" + kitchenTask + "/trial_1: problem line "},
		"letter in an id":  {turn("Fridge_bar_", "Frîdge_bar_"), "problem line "},
		"zero in the goal": {turn("(isClean ?o)", `(isClean \u0000 ?o)`), "in :goal: got \"\\x00\""},
		"key twice":        {turn(`"task":`, `"task":"t.","task":`), `"task" is given twice`},
		"problem twice":    {turn(`"pddl_problem":`, `"pddl_problem":"","pddl_problem":`), `"pddl_problem" is given twice`},
		"id of a number":   {turn(`"id":"valid_seen/`+kitchenTask+`/trial_1"`, `"id":1`), "record.id"},
		"a sentence":       {turn(`["Wash an apple & chill it."]`, `"Wash."`), "record.annotations"},
		"problem of lists": {turn(`"pddl_problem":`, `"pddl_problem":[],"x":`), "record.pddl_problem"},
		"sliced in words":  {turn(`"object_sliced":false`, `"object_sliced":"no"`), "object_sliced"},
		"null":             {"null", "without id"},
		"a list":           {"[" + line + "]", "line 1: "},
		"deeply nested":    {strings.Repeat("[", 1<<20), "line 1: "},
	} {
		t.Run(name, func(t *testing.T) { oneBroken(t, bytes.NewReader(gz(c.line)), c.want) })
	}
}

// allocated is what f takes off the heap, all in all, bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// zipped is a packed file that repeats a text so often; it is made while it is read.
func zipped(text string, times int) io.Reader {
	r, w := io.Pipe()
	go func() {
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		b := []byte(strings.Repeat(text, max(1, 1<<16/len(text))))
		for n := times * len(text); n > 0; n -= len(b) {
			if _, err := z.Write(b[:min(n, len(b))]); err != nil {
				return // the reader has seen enough
			}
		}
		w.CloseWithError(z.Close())
	}()
	return r
}

const mega = 1 << 20

// huge is 100 MB; under the race detector, which makes a large text slow and has nothing to find in it, what is given.
func huge(underRace int) int {
	if raceDetector {
		return underRace
	}
	return 100 * mega
}

// TestHugeFilesTakeLittle reads what no game is as long as.
func TestHugeFilesTakeLittle(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		times int
		want  string
	}{
		"a line of parentheses": {"(", huge(17 * mega), "line 1: it has more than 16 MB"},
		"a text without an end": {`"pddl_problem`, 10 * mega, "line 1: it has more than 16 MB"},
		"lines of nothing":      {"\n", huge(mega), "reading stops"},
		"lines of parentheses":  {"((((((((\n", mega, "reading stops"},
	} {
		t.Run(name, func(t *testing.T) {
			file := zipped(c.text, c.times)
			defer file.(*io.PipeReader).Close()
			if took := allocated(func() { oneBroken(t, file, c.want) }); took > 64*mega {
				t.Errorf("took %d MB", took/mega)
			}
		})
	}
}

// TestHugeProblemsTakeLittle reads problems of 100 MB, or with a million of something.
func TestHugeProblemsTakeLittle(t *testing.T) {
	text := mustGame(t, kitchen()).Problem()
	objects, rest, _ := strings.Cut(text, ")\n(:init")
	many := func(n int, each func(b *strings.Builder, i int)) string {
		var b strings.Builder
		for i := range n {
			each(&b, i)
		}
		return b.String()
	}
	words := many(mega, func(b *strings.Builder, i int) { b.WriteString(" o" + strconv.Itoa(i)) })
	things := many(2000, func(b *strings.Builder, i int) { b.WriteString(" o" + strconv.Itoa(i)) })
	facts := many(2000, func(b *strings.Builder, i int) { b.WriteString(" (pickupable o" + strconv.Itoa(i) + ")") })
	for name, c := range map[string]struct{ text, want string }{
		"parentheses":         {strings.Repeat("(", huge(mega)), "problem line 1"},
		"closing parentheses": {strings.Repeat(")", huge(mega)), "problem line 1"},
		"in :init":            {objects + ")\n(:init" + strings.Repeat("(", huge(mega)), "in :init"},
		"in :goal":            {strings.Replace(text, "(:goal", "(:goal "+strings.Repeat("(", huge(mega)), 1), "nested more than 32"},
		"a goal of words":     {strings.Replace(text, "(:goal", "(:goal (and"+words+"))", 1), "in :goal: it has more than 4096 bytes"},
		"lines":               {strings.Repeat("\n", huge(mega)), "the end of the text"},
		"a word":              {strings.Repeat("x", huge(mega)), "problem line 1"},
		"ids":                 {objects + words + " - object)\n(:init" + rest, "more than 16384 ids"},
		"ids without a type":  {objects + words, "more than 16384 ids"},
		"objects":             {objects + things + " - object)\n(:init" + facts + rest, "more than 1024 of a kind"},
	} {
		t.Run(name, func(t *testing.T) {
			took := allocated(func() {
				s, err := ReadProblem(c.text)
				if err == nil {
					s.ID, s.Task = "x", "t."
					_, err = NewGame(s)
				}
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got error %v, want one with %q", err, c.want)
				}
			})
			if took > 16*mega {
				t.Errorf("took %d MB", took/mega)
			}
		})
	}
}

// FuzzRecord reads one line of a packed file: an error, or a game that is written and read as itself.
func FuzzRecord(f *testing.F) {
	f.Add(kitchenLine(f))
	for _, r := range seedGames(f) {
		line, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(line))
	}
	f.Fuzz(func(t *testing.T, line string) {
		o := readLine(packedLine{0, []byte(line)})
		if o.err != nil {
			if o.game != nil || !strings.Contains(o.err.Error(), "line 1: ") {
				t.Errorf("got %v with error %v", o.game, o.err)
			}
			return
		}
		if o.game == nil {
			return // of a kind that is not played
		}
		again, err := readPacked(t.Context(), bytes.NewReader(packed(t, []*Game{o.game})), nil)
		if err != nil || len(again.games) != 1 || !reflect.DeepEqual(again.games[0].Spec(), o.game.Spec()) {
			t.Errorf("packed again: %+v, %v\nwant %+v", again, err, o.game.Spec())
		}
	})
}

func fileText(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
