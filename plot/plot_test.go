package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// wellFormed reads SVG as XML and returns how many elements of each name it has.
func wellFormed(t testing.TB, svg string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
			for _, a := range e.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Fatalf("%s of %s is %s", a.Name.Local, e.Name.Local, a.Value)
				}
			}
		}
	}
}

func charts(ys []float64, name string) []Chart {
	xs := make([]float64, len(ys))
	for i := range xs {
		xs[i] = float64(i)
	}
	s := []Series{{Name: name, X: xs, Y: ys}, {Name: name + "2", X: xs, Y: ys, Low: ys, High: ys}}
	zero := 0.0
	return []Chart{
		{Title: name, Series: s, Unit: name, X: name, Rules: []Rule{{1, name}}, Marks: []Mark{{1, name}}},
		{Series: s, Stacked: true},
		{Series: s, Log: true, Rules: []Rule{{20, name}}},
		{Series: s, From: &zero, Scale: 100, Wide: true},
		{},
	}
}

// Whatever the values, the drawing is well-formed, and no coordinate is not a number.
func TestEveryDrawingIsWellFormed(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	long := make([]float64, 1000)
	for i := range long {
		long[i] = math.Sin(float64(i))
	}
	for name, ys := range map[string][]float64{
		"none": {}, "one": {3}, "equal": {2, 2, 2}, "zeros": {0, 0}, "nothing measured": {nan, nan}, "gaps": {nan, 1, nan, 2, 3, nan}, "infinite": {1, inf, 2},
		"negative": {-5, -1}, "huge": {1e300, -1e300}, "tiny": {1e-300, 2e-300}, "long": long, `"<&'` + "\x00": {1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range charts(ys, strings.ReplaceAll(name, "\x00", "")) {
				if n := wellFormed(t, c.SVG()); n["svg"] != 1 {
					t.Errorf("%d drawings", n["svg"])
				}
				wellFormed(t, Standalone(c.SVG()))
			}
			wellFormed(t, Spark(ys)+"<end/>")
		})
	}
	rows := []Interval{{Name: "<a>", Value: 0.5, Low: 0.2, High: 0.9, Note: `"n"`}, {Apart: true}}
	if n := wellFormed(t, Intervals("<t>", rows)); n["circle"] != 2 {
		t.Errorf("%d dots, want 2", n["circle"])
	}
}

func FuzzChart(f *testing.F) {
	f.Add(int64(1), 10, "name")
	f.Add(int64(2), 500, "<svg onload=x>")
	f.Fuzz(func(t *testing.T, seed int64, n int, name string) {
		if n < 0 || n > 2000 || !validXML(name) {
			t.Skip()
		}
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		ys := make([]float64, n)
		for i := range ys {
			ys[i] = math.Float64frombits(rng.Uint64())
		}
		for _, c := range charts(ys, name) {
			wellFormed(t, c.SVG())
		}
	})
}

// validXML tells whether XML can hold a text at all.
func validXML(s string) bool {
	for _, r := range s {
		if r == 0xFFFD || r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r >= 0xFFFE && r <= 0xFFFF {
			return false
		}
	}
	return true
}

// A series that is too long to draw keeps its mean and its extremes.
func TestJoined(t *testing.T) {
	s := Series{X: []float64{0, 1, 2, 3, 4}, Y: []float64{1, 3, math.NaN(), 5, 7}}
	got := s.joined(3)
	if want := []float64{2, 5, 7}; !slices.Equal(got.Y, want) {
		t.Errorf("means %v, want %v", got.Y, want)
	}
	if want := []float64{1, 5, 7}; !slices.Equal(got.Low, want) {
		t.Errorf("least %v, want %v", got.Low, want)
	}
	if want := []float64{3, 5, 7}; !slices.Equal(got.High, want) {
		t.Errorf("greatest %v, want %v", got.High, want)
	}
	if same := s.joined(5); len(same.Y) != 5 || same.Low != nil {
		t.Error("a short series was changed")
	}
}

// Positions by hand: the least value is at the bottom, the greatest at the top, and one between where its share says.
func TestFrame(t *testing.T) {
	c := Chart{Series: []Series{{X: []float64{0, 10}, Y: []float64{2, 6}}}}
	f := c.frame(c.prepared())
	if f.x(0) != left || f.x(10) != chartWidth-f.right || f.y(2) != chartHeight-bottom || f.y(6) != top || f.y(4) != (top+chartHeight-bottom)/2 {
		t.Errorf("%v %v %v %v %v", f.x(0), f.x(10), f.y(2), f.y(6), f.y(4))
	}
	c = Chart{Log: true, Series: []Series{{X: []float64{0, 1}, Y: []float64{1, 100}}}}
	if f = c.frame(c.prepared()); math.Abs(f.y(10)-(top+chartHeight-bottom)/2) > 1e-9 {
		t.Errorf("10 between 1 and 100 is at %v on a log axis", f.y(10))
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      []float64
	}{
		{0, 100, []float64{0, 25, 50, 75, 100}}, {0, 1, []float64{0, 0.25, 0.5, 0.75, 1}}, {-1, 1, []float64{-1, -0.5, 0, 0.5, 1}}, {3, 3, []float64{3}}, {0.13, 0.19, []float64{0.14, 0.16, 0.18}},
	} {
		got := Ticks(c.low, c.high, 4)
		if len(got) != len(c.want) {
			t.Errorf("Ticks(%v, %v) = %v, want %v", c.low, c.high, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9 {
				t.Errorf("Ticks(%v, %v) = %v, want %v", c.low, c.high, got, c.want)
			}
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", -0.00001: "-1e-05", 0.0305: "0.0305", 0.1234: "0.123", 1.005: "1", 12.34: "12.3", 999.5: "1000", 9999: "9999", 12345: "12.3k", 2.5e6: "2.5M", -0.001: "-0.001", 1e12: "1e+12"} {
		if got := Short(v); got != want {
			t.Errorf("Short(%v) = %s, want %s", v, got, want)
		}
	}
	if Short(math.NaN()) != "–" {
		t.Error("not measured is a number")
	}
}

// Names at the ends of lines do not lie on each other, and stay inside.
func TestEndsKeepApart(t *testing.T) {
	var s []Series
	for i := range 8 {
		s = append(s, Series{Name: "n" + strconv.Itoa(i), X: []float64{0, 1}, Y: []float64{0, 0.01 * float64(i)}})
	}
	svg := Chart{Series: append(s, Series{Name: "top", X: []float64{0, 1}, Y: []float64{0, 9}})}.SVG()
	var ys []float64
	for _, part := range strings.Split(svg, `class="end`)[1:] {
		at := strings.Split(strings.Split(part, ` y="`)[1], `"`)[0]
		y, err := strconv.ParseFloat(at, 64)
		if err != nil {
			t.Fatal(err)
		}
		ys = append(ys, y)
	}
	slices.Sort(ys)
	if len(ys) != 9 || ys[8] > chartHeight-bottom+0.1 {
		t.Errorf("names are at %v", ys)
	}
	for i := 1; i < len(ys); i++ {
		if ys[i]-ys[i-1] < 11.9 {
			t.Errorf("names are at %v", ys)
		}
	}
}

// A share of a stack that was ever large has its name, also where it is nothing in the last column, or that was not measured.
func TestStackNamesWhatWasSeen(t *testing.T) {
	nan := math.NaN()
	x := []float64{1, 2, 3}
	svg := Chart{Stacked: true, Series: []Series{
		{Name: "always", X: x, Y: []float64{0.5, 0.995, nan}}, {Name: "once", X: x, Y: []float64{0.5, 0, nan}}, {Name: "hardly", X: x, Y: []float64{0, 0.005, nan}},
	}}.SVG()
	var names []string
	for _, part := range strings.Split(svg, `class="end`)[1:] {
		names = append(names, part[strings.Index(part, ">")+1:strings.Index(part, "<")])
	}
	if slices.Sort(names); !slices.Equal(names, []string{"always", "once"}) {
		t.Errorf("named are %q", names)
	}
	if want := `aria-label="; always: last 99.5 %; once: last 0 %; hardly: last 0.5 %"`; !strings.Contains(svg, want) {
		t.Errorf("it is described otherwise than by %s: %.200s", want, svg)
	}
}
