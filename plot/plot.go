// Package plot draws charts as SVG text. Colours are classes of a style sheet ([Style]), so that one drawing serves
// light and dark pages; lines differ by dash as well as by colour and are named at their ends.
package plot

import (
	_ "embed" // the style sheet
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Style is the sheet that pages with charts need.
//
//go:embed style.css
var Style string

// Standalone makes a drawing a file of its own.
func Standalone(svg string) string {
	svg = strings.Replace(svg, "<svg ", `<svg xmlns="http://www.w3.org/2000/svg" `, 1)
	return strings.TrimSuffix(svg, "</svg>") + "<style>svg { font-family: system-ui, sans-serif; background: var(--card); }\n" + Style + "</style></svg>\n"
}

// Chart is a line chart. Its zero value draws an empty frame.
type Chart struct {
	Title   string
	Unit    string   // of the values, behind numbers, such as "%"; may be empty
	X       string   // what the x axis counts
	Series  []Series // at most eight are told apart
	From    *float64 // lowest value shown; nil: from the data
	To      *float64
	Stacked bool    // series are shares laid on each other
	Log     bool    // values on a log axis; those that are not positive are left out
	Rules   []Rule  // horizontal lines with a meaning
	Marks   []Mark  // moments worth a line
	Wide    bool    // twice as wide
	Scale   float64 // values are multiplied by it; 0 means 1
}

// Series is one line. X rises; a NaN in Y is a gap. Low and High are a band around it, or nil.
type Series struct {
	Name      string
	X, Y      []float64
	Low, High []float64
	Strong    bool // drawn thicker
}

// Rule is a horizontal line.
type Rule struct {
	Y    float64
	Name string
}

// Mark is a vertical line.
type Mark struct {
	X    float64
	Name string
}

// most is how many points of a series are drawn; more are joined.
const most = 240

const (
	chartWidth  = 400.0
	wideWidth   = 840.0
	chartHeight = 210.0
	left        = 44.0
	top         = 12.0
	bottom      = 28.0
)

// frame maps data to the drawing.
type frame struct {
	x0, x1, y0, y1 float64 // of the data
	width, right   float64 // of the drawing, and its margin for names
	log            bool
}

func (f frame) x(v float64) float64 {
	if f.x1 == f.x0 {
		return left
	}
	return left + (v-f.x0)/(f.x1-f.x0)*(f.width-left-f.right)
}

func (f frame) y(v float64) float64 {
	a, b := f.y0, f.y1
	if f.log {
		v, a, b = math.Log(v), math.Log(a), math.Log(b)
	}
	v = min(max(v, a), b)
	return top + (b-v)/(b-a)*(chartHeight-top-bottom)
}

// SVG draws the chart. All text in it is escaped.
func (c Chart) SVG() string {
	series := c.prepared()
	f := c.frame(series)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %s %s" role="img" tabindex="0" aria-label="%s" data-unit="%s" data-x="%s">`,
		num(f.width), num(chartHeight), html.EscapeString(c.describe(series)), html.EscapeString(c.Unit), html.EscapeString(c.X))
	c.axes(&b, f)
	if !slices.ContainsFunc(series, Series.drawn) {
		fmt.Fprintf(&b, `<text class="none" x="%s" y="%s">nothing measured yet</text></svg>`, num((left+f.width-f.right)/2), num(chartHeight/2))
		return b.String()
	}
	if c.Stacked {
		stack(&b, f, series)
	} else {
		lines(&b, f, series)
	}
	c.annotations(&b, f)
	ends(&b, f, series, c.Stacked)
	fmt.Fprintf(&b, `<g class="cursor" visibility="hidden"><line y1="%s" y2="%s"/></g></svg>`, num(top), num(chartHeight-bottom))
	return b.String()
}

// prepared scales and joins the series.
func (c Chart) prepared() []Series {
	scale := c.Scale
	if scale == 0 {
		scale = 1
	}
	out := make([]Series, len(c.Series))
	for i, s := range c.Series {
		s.X, s.Y = slices.Clone(s.X), scaled(s.Y, scale, c.Log)
		s.Low, s.High = scaled(s.Low, scale, c.Log), scaled(s.High, scale, c.Log)
		out[i] = s.joined(most)
	}
	return out
}

// beyond this no value is drawn: sums and differences of what is must be numbers.
const beyond = 1e300 / most

func scaled(vs []float64, by float64, positive bool) []float64 {
	if vs == nil {
		return nil
	}
	out := make([]float64, len(vs))
	for i, v := range vs {
		out[i] = v * by
		if math.Abs(out[i]) > beyond || positive && out[i] <= 0 {
			out[i] = math.NaN()
		}
	}
	return out
}

func (s Series) drawn() bool {
	return slices.ContainsFunc(s.Y, func(v float64) bool { return !math.IsNaN(v) })
}

// joined returns the series with at most n points: means of equally many neighbours, with a band from their least to
// their greatest where there was none.
func (s Series) joined(n int) Series {
	if len(s.Y) <= n {
		return s
	}
	per := (len(s.Y) + n - 1) / n
	out := Series{Name: s.Name, Strong: s.Strong}
	for from := 0; from < len(s.Y); from += per {
		to := min(from+per, len(s.Y))
		low, high := s.Y[from:to], s.Y[from:to]
		if s.Low != nil {
			low, high = s.Low[from:to], s.High[from:to]
		}
		out.X = append(out.X, mean(s.X[from:to]))
		out.Y = append(out.Y, mean(s.Y[from:to]))
		out.Low = append(out.Low, extreme(low, math.Min))
		out.High = append(out.High, extreme(high, math.Max))
	}
	return out
}

// mean leaves NaNs out; NaN for nothing.
func mean(vs []float64) float64 {
	n, sum := 0.0, 0.0
	for _, v := range vs {
		if !math.IsNaN(v) {
			n++
			sum += v
		}
	}
	return sum / n
}

func extreme(vs []float64, pick func(a, b float64) float64) float64 {
	out := math.NaN()
	for _, v := range vs {
		if math.IsNaN(out) {
			out = v
		} else if !math.IsNaN(v) {
			out = pick(out, v)
		}
	}
	return out
}

// frame finds the ranges.
func (c Chart) frame(series []Series) frame {
	f := frame{x0: math.Inf(1), x1: math.Inf(-1), y0: math.Inf(1), y1: math.Inf(-1), width: chartWidth, right: margin(series), log: c.Log}
	if c.Wide {
		f.width = wideWidth
	}
	see := func(v float64) {
		if !math.IsNaN(v) {
			f.y0, f.y1 = min(f.y0, v), max(f.y1, v)
		}
	}
	for _, s := range series {
		for i, x := range s.X {
			f.x0, f.x1 = min(f.x0, x), max(f.x1, x)
			see(s.Y[i])
			if s.Low != nil {
				see(s.Low[i])
				see(s.High[i])
			}
		}
	}
	for _, r := range c.Rules {
		see(r.Y)
	}
	if c.Stacked {
		f.y0, f.y1 = 0, 1
	}
	if c.From != nil {
		f.y0 = *c.From
	}
	if c.To != nil {
		f.y1 = *c.To
	}
	if math.IsInf(f.x0, 0) {
		f.x0, f.x1 = 0, 1
	}
	if math.IsInf(f.y0, 0) || math.IsInf(f.y1, 0) {
		f.y0, f.y1 = 0, 1
		if c.Log {
			f.y0 = 0.1
		}
	}
	if f.y0 >= f.y1 {
		if d := max(math.Abs(f.y0)*0.1, 0.5); c.From != nil {
			f.y1 = f.y0 + 1
		} else if c.Log {
			f.y0, f.y1 = f.y0/2, f.y1*2
		} else {
			f.y0, f.y1 = f.y0-d, f.y0+d
		}
	}
	return f
}

// margin leaves room for the longest name.
func margin(series []Series) float64 {
	n := 4
	for _, s := range series {
		n = max(n, len([]rune(clip(s.Name, longest))))
	}
	return 14 + 5.9*float64(n)
}

// longest name that is written whole.
const longest = 22

func (c Chart) axes(b *strings.Builder, f frame) {
	b.WriteString(`<g class="axis">`)
	ticks := Ticks(f.y0, f.y1, 4)
	if c.Log {
		ticks = logTicks(f.y0, f.y1)
	}
	unit, per := c.Unit, 1.0
	if c.Stacked {
		unit, per = "%", 100
	}
	for _, v := range ticks {
		y := num(f.y(v))
		fmt.Fprintf(b, `<line x1="%s" x2="%s" y1="%s" y2="%s"/><text x="%s" y="%s" dy="4">%s</text>`,
			num(left), num(f.width-f.right), y, y, num(left-6), y, html.EscapeString(Short(v*per)+tight(unit)))
	}
	b.WriteString(`</g><g class="axis bottom">`)
	for _, v := range Ticks(f.x0, f.x1, 5) {
		if v == math.Trunc(v) {
			fmt.Fprintf(b, `<text x="%s" y="%s">%s</text>`, num(f.x(v)), num(chartHeight-bottom+16), Short(v))
		}
	}
	b.WriteString(`</g>`)
}

func tight(unit string) string {
	if unit == "%" {
		return unit
	}
	return ""
}

func lines(b *strings.Builder, f frame, series []Series) {
	for i, s := range series {
		if s.Low != nil {
			area(b, f, "band s"+strconv.Itoa(i%8), s.X, s.Low, s.High)
		}
	}
	for i, s := range series {
		strong := ""
		if s.Strong {
			strong = " strong"
		}
		fmt.Fprintf(b, `<path class="line s%d%s" d="%s" data-name="%s" data-xs="%s" data-ys="%s" data-px="%s"/>`, i%8, strong, path(f, s.X, s.Y),
			html.EscapeString(s.Name), joinNumbers(s.X, identity), joinNumbers(s.Y, identity), joinNumbers(s.X, f.x))
		for k, v := range s.Y { // a point between gaps has no line
			if !math.IsNaN(v) && (k == 0 || math.IsNaN(s.Y[k-1])) && (k == len(s.Y)-1 || math.IsNaN(s.Y[k+1])) {
				fmt.Fprintf(b, `<circle class="dot s%d" cx="%s" cy="%s" r="2.5"/>`, i%8, num(f.x(s.X[k])), num(f.y(v)))
			}
		}
	}
}

// stack lays shares on each other, the first series lowest.
func stack(b *strings.Builder, f frame, series []Series) {
	if len(series) == 0 {
		return
	}
	base := make([]float64, len(series[0].Y))
	for i, s := range series {
		upper := make([]float64, len(base))
		for k := range base {
			upper[k] = base[k]
			if k < len(s.Y) && !math.IsNaN(s.Y[k]) {
				upper[k] += s.Y[k]
			}
		}
		area(b, f, "fill s"+strconv.Itoa(i%8), s.X, base, upper)
		hundred := func(v float64) float64 { return 100 * v }
		fmt.Fprintf(b, `<path class="line hidden" d="" data-name="%s" data-unit="%%" data-xs="%s" data-ys="%s" data-px="%s"/>`,
			html.EscapeString(s.Name), joinNumbers(s.X, identity), joinNumbers(s.Y, hundred), joinNumbers(s.X, f.x))
		base = upper
	}
}

func (c Chart) annotations(b *strings.Builder, f frame) {
	for _, r := range c.Rules {
		y := num(f.y(r.Y))
		fmt.Fprintf(b, `<g class="rule"><line x1="%s" x2="%s" y1="%s" y2="%s"/><text x="%s" y="%s" dy="-4">%s</text></g>`,
			num(left), num(f.width-f.right), y, y, num(left+4), y, html.EscapeString(r.Name))
	}
	for _, m := range c.Marks {
		if m.X >= f.x0 && m.X <= f.x1 {
			x := num(f.x(m.X))
			fmt.Fprintf(b, `<g class="mark"><line x1="%s" x2="%s" y1="%s" y2="%s"/><title>%s</title></g>`, x, x, num(top), num(chartHeight-bottom), html.EscapeString(m.Name))
		}
	}
}

// ends names the series at their last points, apart from each other. In a stack every share has its name that was ever large
// enough to be seen, at its place in the last column that was measured.
func ends(b *strings.Builder, f frame, series []Series, stacked bool) {
	type end struct {
		class  int
		name   string
		at, to float64
	}
	var all []end
	var base float64
	column := 0
	for _, s := range series {
		column = max(column, lastAt(s.Y))
	}
	for i, s := range series {
		v := last(s.Y)
		if stacked {
			if v = s.Y[column]; math.IsNaN(v) {
				v = 0
			}
			v, base = base+v/2, base+v
			if !slices.ContainsFunc(s.Y, func(y float64) bool { return y >= 0.02 }) {
				continue
			}
		}
		if !math.IsNaN(v) {
			all = append(all, end{i % 8, s.Name, f.y(v), f.y(v)})
		}
	}
	slices.SortStableFunc(all, func(a, b end) int { return int(math.Copysign(1, a.at-b.at)) })
	const gap = 12
	for i := range all {
		if i > 0 {
			all[i].to = max(all[i].to, all[i-1].to+gap)
		}
	}
	limit := chartHeight - bottom
	for i := len(all) - 1; i >= 0; i-- {
		all[i].to = min(all[i].to, limit)
		limit = all[i].to - gap
	}
	for _, e := range all {
		fmt.Fprintf(b, `<text class="end s%d" x="%s" y="%s" dy="4">%s</text>`, e.class, num(f.width-f.right+6), num(e.to), html.EscapeString(clip(e.name, longest)))
	}
}

// lastAt is where the last number is that is one; -1 for none.
func lastAt(vs []float64) int {
	for i, v := range slices.Backward(vs) {
		if !math.IsNaN(v) {
			return i
		}
	}
	return -1
}

// last is that number; NaN for none.
func last(vs []float64) float64 {
	if i := lastAt(vs); i >= 0 {
		return vs[i]
	}
	return math.NaN()
}

// clip shortens a name to n characters.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// describe says in words what the chart shows, for who cannot see it.
func (c Chart) describe(series []Series) string {
	parts := []string{c.Title}
	for _, s := range series {
		if v := last(s.Y); !math.IsNaN(v) {
			unit := c.Unit
			if c.Stacked {
				v, unit = 100*v, "%"
			}
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s: last %s %s", s.Name, Short(v), unit)))
		}
	}
	return strings.Join(parts, "; ")
}

func path(f frame, xs, ys []float64) string {
	var b strings.Builder
	pen := false
	for i, y := range ys {
		if math.IsNaN(y) {
			pen = false
			continue
		}
		op := "L"
		if !pen {
			op = "M"
		}
		pen = true
		b.WriteString(op + num(f.x(xs[i])) + " " + num(f.y(y)))
	}
	return b.String()
}

// area fills between two lines, once for each stretch without gaps.
func area(b *strings.Builder, f frame, class string, xs, low, high []float64) {
	for from := 0; from < len(low); from++ {
		if math.IsNaN(low[from]) {
			continue
		}
		to := from
		for to < len(low) && !math.IsNaN(low[to]) {
			to++
		}
		var d strings.Builder
		for i := from; i < to; i++ {
			op := "L"
			if i == from {
				op = "M"
			}
			d.WriteString(op + num(f.x(xs[i])) + " " + num(f.y(high[i])))
		}
		for i := to - 1; i >= from; i-- {
			d.WriteString("L" + num(f.x(xs[i])) + " " + num(f.y(low[i])))
		}
		fmt.Fprintf(b, `<path class="%s" d="%sZ"/>`, class, d.String())
		from = to
	}
}

func identity(v float64) float64 { return v }

func joinNumbers(vs []float64, of func(float64) float64) string {
	parts := make([]string, len(vs))
	for i, v := range vs {
		if !math.IsNaN(v) {
			parts[i] = strconv.FormatFloat(of(v), 'g', 4, 64)
		}
	}
	return strings.Join(parts, ",")
}

// num is a coordinate.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// Ticks are round numbers in [low, high], about n of them.
func Ticks(low, high float64, n int) []float64 {
	if !(high > low) || n < 1 {
		return []float64{low}
	}
	raw := (high - low) / float64(n)
	magnitude := math.Pow(10, math.Floor(math.Log10(raw)))
	step := magnitude * 10
	for _, m := range []float64{1, 2, 2.5, 5} {
		if raw <= m*magnitude {
			step = m * magnitude
			break
		}
	}
	var out []float64
	for i := math.Ceil(low/step - 1e-9); i*step <= high+step*1e-9; i++ {
		out = append(out, i*step+0) // +0: no negative zero
	}
	return out
}

func logTicks(low, high float64) []float64 {
	var out []float64
	for e := math.Ceil(math.Log10(low) - 1e-9); e <= math.Log10(high)+1e-9; e++ {
		out = append(out, math.Pow(10, e))
	}
	if len(out) < 2 {
		return Ticks(low, high, 3)
	}
	for len(out) > 6 {
		var half []float64
		for i := 0; i < len(out); i += 2 {
			half = append(half, out[i])
		}
		out = half
	}
	return out
}

// Short is a number as people like to read it: three digits, k and M for thousands and millions.
func Short(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "–"
	case a >= 1e9 || a > 0 && a < 1e-4:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a >= 1e6:
		return trim(v/1e6) + "M"
	case a >= 1e4:
		return trim(v/1e3) + "k"
	}
	return trim(v)
}

func trim(v float64) string {
	digits := 2
	switch a := math.Abs(v); {
	case a >= 100:
		digits = 0
	case a >= 10:
		digits = 1
	case a < 0.1:
		digits = 4
	case a < 1:
		digits = 3
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}
