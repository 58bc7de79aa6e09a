package webshop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"skillmaster/env"
	"skillmaster/episode"
)

// fullEntries is how many products the original's full catalogue has; a hundredth of it with -short.
func fullEntries() int {
	if testing.Short() {
		return 11_814
	}
	return 1_181_436
}

// BenchmarkFullCatalogue measures a catalogue of the size of the original's full one: reading its files into a cache,
// starting from the cache, searches, clicks, open visits and memory. Its products are generated a thousand at a time and get
// descriptions of the words of a hundred others, so that texts are about as long as the real ones; the last six entries have
// ids that were there before. Use -benchtime 1x. Where SKILLMASTER_FULL names a folder, files and cache are kept there, and
// those that are there are used.
func BenchmarkFullCatalogue(b *testing.B) {
	dir := os.Getenv("SKILLMASTER_FULL")
	if dir == "" {
		dir = b.TempDir()
	}
	size := writeFull(b, dir)
	o := LoadOptions{Cache: filepath.Join(dir, "cache")}
	b.Run("make", func(b *testing.B) {
		for b.Loop() {
			c, loaded, err := OpenCatalogue(b.Context(), dir, Full, o)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(loaded.Products), "products")
			b.ReportMetric(float64(loaded.Repeated), "repeated")
			if err := c.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(size), "file-bytes")
		b.ReportMetric(float64(status(b, "VmHWM")), "most-memory-bytes")
	})
	var shop *Shop
	runtime.GC()
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			if shop != nil {
				b.StopTimer()
				if err := shop.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			c, _, err := OpenCatalogue(b.Context(), dir, Full, o)
			if err != nil {
				b.Fatal(err)
			}
			shop = newShop(b, c, GoalOptions{})
		}
		b.ReportMetric(float64(shop.Goals()), "goals")
	})
	if shop == nil {
		return // not asked to start
	}
	defer shop.Close()
	s := NewSuite(shop, Options{StepLimit: 1 << 40})
	tasks := reportTasks(b, s)
	b.Run("search", func(b *testing.B) {
		timeSteps(b, func(i int) (env.Env, []episode.Action) {
			return openTask(b, s, tasks[i%len(tasks)]), []episode.Action{searchFor(tasks[i%len(tasks)].Goal)}
		})
	})
	b.Run("click", func(b *testing.B) {
		timeSteps(b, func(i int) (env.Env, []episode.Action) {
			e := openTask(b, s, tasks[i%len(tasks)])
			if _, err := e.Step(b.Context(), searchFor(tasks[i%len(tasks)].Goal)); err != nil {
				b.Fatal(err)
			}
			first := press(toNext)
			if hits := e.visit.hits; len(hits) > 0 {
				first = clickOn(shop.asin(int(hits[0])))
			}
			return e, []episode.Action{first, press(features), press(toPrevious), press(toPrevious), press(toNext)}
		})
	})
	b.Run("visits", func(b *testing.B) {
		open := make([]*Env, 10_000)
		for b.Loop() {
			before := heap()
			for i := range open {
				open[i] = openTask(b, s, tasks[i%len(tasks)])
				if _, err := open[i].Step(b.Context(), searchFor(tasks[i%len(tasks)].Goal)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(heap()-before), "bytes-of-10000")
		}
		runtime.KeepAlive(open)
		for _, m := range []string{"VmRSS", "RssAnon", "RssFile"} {
			b.ReportMetric(float64(status(b, m)), m+"-bytes")
		}
		b.ReportMetric(float64(heap()), "heap-bytes")
	})
}

func openTask(b *testing.B, s *Suite, task episode.Task) *Env {
	e, _, err := s.Open(b.Context(), task, 0)
	if err != nil {
		b.Fatal(err)
	}
	return e.(*Env)
}

// timeSteps reports what half and 99 of 100 steps take, text and admissible actions included.
func timeSteps(b *testing.B, visit func(i int) (env.Env, []episode.Action)) {
	var took []time.Duration
	for b.Loop() {
		for i := range 1000 {
			e, actions := visit(i)
			for _, a := range actions {
				start := time.Now()
				_, err := e.Step(b.Context(), a)
				took = append(took, time.Since(start))
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[(len(took)-1)*p/100].Nanoseconds())/1e3, fmt.Sprintf("µs-p%d", p))
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// status is a line of what Linux says of this process, bytes; 0 elsewhere.
func status(b *testing.B, name string) int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Logf("no memory of the process: %v", err)
		return 0
	}
	m := regexp.MustCompile(`(?m)^` + name + `:\s*(\d+) kB`).FindSubmatch(text)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		b.Fatal(err)
	}
	return n << 10
}

// writeFull writes the files of a full catalogue, and returns the size of the products'.
func writeFull(b *testing.B, dir string) int64 {
	b.Helper()
	names := FileNames(Full)
	if info, err := os.Stat(filepath.Join(dir, names[0])); err == nil {
		return info.Size()
	}
	products, attributes := createList(b, filepath.Join(dir, names[0]), "[", "]"), createList(b, filepath.Join(dir, names[1]), "{", "}")
	const repeated = 6 // as in the original's
	for n := 0; n < fullEntries(); n += defaultProducts {
		part := generate(GenerateOptions{Seed: episode.Seed(n), Products: min(defaultProducts, fullEntries()-n)})
		for i := range part {
			p := &part[i]
			first := n+i < fullEntries()-repeated
			if p.ASIN = fullASIN(n + i); !first {
				p.ASIN = fullASIN(n + i - fullEntries()/2)
			}
			for j := 1; len(p.Description) < 900; j++ {
				p.Description += " " + strings.Join(part[(i+37*j)%len(part)].Bullets, ". ")
			}
			products.put(b, "", productOut{
				ASIN: p.ASIN, Name: p.Title, Description: p.Description, Bullets: p.Bullets, Pricing: pricing(p.Price), Options: p.Options,
				Category: p.Category, Query: p.Query, Path: p.Path, Images: []string{},
			})
			if first {
				attributes.put(b, p.ASIN, attributesOut{p.Attributes, p.Instruction, p.InstructionAttributes})
			}
		}
	}
	attributes.close(b)
	return products.close(b)
}

// fullASIN is the n-th ASIN.
func fullASIN(n int) string {
	return fmt.Sprintf("B0%08s", strings.ToUpper(strconv.FormatInt(int64(n)*1_000_003, 36)))
}

// fileList is a list that is written to a file.
type fileList struct {
	file     *os.File
	w        *bufio.Writer
	sep, end string
}

func createList(b *testing.B, path, begin, end string) *fileList {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	return &fileList{f, bufio.NewWriterSize(f, 1<<20), begin, end}
}

func (l *fileList) put(b *testing.B, name string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	if name != "" {
		text = slices.Concat([]byte(strconv.Quote(name)+":"), text)
	}
	if _, err := l.w.Write(bytes.Join([][]byte{[]byte(l.sep), text}, nil)); err != nil {
		b.Fatal(err)
	}
	l.sep = ",\n"
}

func (l *fileList) close(b *testing.B) int64 {
	_, err := l.w.WriteString(l.end)
	if err == nil {
		err = l.w.Flush()
	}
	info, err2 := l.file.Stat()
	if err != nil || err2 != nil || l.file.Close() != nil {
		b.Fatal(err, err2)
	}
	return info.Size()
}
