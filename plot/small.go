package plot

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Spark draws a line a word wide. Hidden from readers that cannot see: say the value beside it.
func Spark(ys []float64) string {
	const w, h = 96.0, 24.0
	s := Series{X: make([]float64, len(ys)), Y: scaled(ys, 1, false)}
	for i := range ys {
		s.X[i] = float64(i)
	}
	s = s.joined(48)
	low, high := extreme(s.Y, math.Min), extreme(s.Y, math.Max)
	if math.IsNaN(low) {
		return ""
	}
	if high == low {
		low, high = low-0.5, high+0.5
	}
	var d strings.Builder
	lastX, lastY, pen := 0.0, 0.0, false
	for i, y := range s.Y {
		if math.IsNaN(y) {
			pen = false
			continue
		}
		lastX, lastY = 2, h-3-(y-low)/(high-low)*(h-6)
		if len(s.Y) > 1 {
			lastX = 2 + float64(i)/float64(len(s.Y)-1)*(w-6)
		}
		op := "L"
		if !pen {
			op = "M"
		}
		pen = true
		d.WriteString(op + num(lastX) + " " + num(lastY))
	}
	return fmt.Sprintf(`<svg class="spark" viewBox="0 0 %s %s" aria-hidden="true"><path class="line s0" d="%s"/><circle class="dot s0" cx="%s" cy="%s" r="2"/></svg>`,
		num(w), num(h), d.String(), num(lastX), num(lastY))
}

// Interval is a share with its interval.
type Interval struct {
	Name      string
	Value     float64
	Low, High float64
	Note      string // beside the bar, such as "17 of 20"
	Class     int    // colour
	Apart     bool   // leave room above
}

// Intervals draws shares from 0 to 1 as dots on their intervals, one under the other.
func Intervals(title string, rows []Interval) string {
	const w, name, note, line = 420.0, 130.0, 100.0, 24.0
	height := 26.0
	for _, r := range rows {
		height += line
		if r.Apart {
			height += line / 2
		}
	}
	x := func(v float64) float64 { return name + v*(w-name-note) }
	var words []string
	for _, r := range rows {
		words = append(words, fmt.Sprintf("%s %.0f%% (%.0f to %.0f)", r.Name, 100*r.Value, 100*r.Low, 100*r.High))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart intervals" viewBox="0 0 %s %s" role="img" aria-label="%s">`, num(w), num(height), html.EscapeString(title+": "+strings.Join(words, ", ")))
	b.WriteString(`<g class="axis bottom">`)
	for _, v := range []float64{0, 0.25, 0.5, 0.75, 1} {
		fmt.Fprintf(&b, `<line x1="%s" x2="%s" y1="4" y2="%s"/><text x="%s" y="%s">%.0f%%</text>`, num(x(v)), num(x(v)), num(height-20), num(x(v)), num(height-6), 100*v)
	}
	b.WriteString(`</g>`)
	y := line/2 + 4
	for _, r := range rows {
		if r.Apart {
			y += line / 2
		}
		fmt.Fprintf(&b, `<text class="name" x="%s" y="%s" dy="4">%s</text>`, num(name-10), num(y), html.EscapeString(clip(r.Name, 20)))
		fmt.Fprintf(&b, `<line class="whisker s%d" x1="%s" x2="%s" y1="%s" y2="%s"/>`, r.Class%8, num(x(r.Low)), num(x(r.High)), num(y), num(y))
		fmt.Fprintf(&b, `<circle class="dot s%d" cx="%s" cy="%s" r="4"/>`, r.Class%8, num(x(r.Value)), num(y))
		fmt.Fprintf(&b, `<text class="note" x="%s" y="%s" dy="4">%s</text>`, num(w-note+12), num(y), html.EscapeString(r.Note))
		y += line
	}
	b.WriteString(`</svg>`)
	return b.String()
}
