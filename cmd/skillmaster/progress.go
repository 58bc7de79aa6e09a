package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// changingLine is the last line on a terminal, written over again and again.
type changingLine struct {
	w     io.Writer
	shown int // its width
}

// set writes over the line.
func (l *changingLine) set(text string) {
	fmt.Fprintf(l.w, "\r%s%s", text, strings.Repeat(" ", max(0, l.shown-len(text))))
	l.shown = len(text)
}

// clear leaves an empty line to write on.
func (l *changingLine) clear() {
	if l.shown > 0 {
		l.set("")
		fmt.Fprint(l.w, "\r")
	}
}

// bar shows how far a piece of work is: on a terminal on a line that changes, elsewhere now and then on a line of its own.
type bar struct {
	line  changingLine
	live  bool
	what  string
	unit  unit
	every time.Duration // between two lines
	began time.Time
	last  time.Time
	first int64 // done when it began
	done  int64
}

func newBar(w io.Writer, what string, unit unit) *bar {
	b := &bar{line: changingLine{w: w}, live: isTerminal(w), what: what, unit: unit, every: 10 * time.Second, began: time.Now(), first: -1}
	if b.live {
		b.every = 100 * time.Millisecond
	}
	b.last = b.began
	return b
}

// update says what is done; total is 0 or less if nobody knows.
func (b *bar) update(done, total int64) {
	if b.first < 0 || done < b.first {
		b.first, b.began = done, time.Now()
	}
	b.done = done
	now := time.Now()
	if now.Sub(b.last) < b.every {
		return
	}
	b.last = now
	text := fmt.Sprintf("%s: %s %s", b.what, b.unit.count(done), b.unit.name)
	if total > 0 {
		const width = 20
		full := int(min(width, width*done/total))
		text = fmt.Sprintf("%s: [%s%s] %s of %s %s", b.what, strings.Repeat("#", full), strings.Repeat(".", width-full), b.unit.count(done), b.unit.count(total), b.unit.name)
		if since := now.Sub(b.began); done > b.first && since > time.Second {
			left := time.Duration(float64(since) / float64(done-b.first) * float64(total-done))
			text += ", " + left.Round(time.Second).String() + " left"
		}
	}
	b.write(text)
}

func (b *bar) write(text string) {
	if b.live {
		b.line.set(text)
	} else {
		fmt.Fprintln(b.line.w, text)
	}
}

// say writes a line that stays, above the changing one.
func (b *bar) say(text string) {
	b.line.clear()
	fmt.Fprintln(b.line.w, text)
}

// end takes the changing line away, or says what was done if that took long enough to wonder.
func (b *bar) end() {
	b.line.clear()
	if since := time.Since(b.began); b.done > 0 && since > time.Second {
		fmt.Fprintf(b.line.w, "%s: %s %s in %.1f s\n", b.what, b.unit.count(b.done), b.unit.name, since.Seconds())
	}
}

// unit is what a bar counts in.
type unit struct {
	name string
	of   float64 // how many of what is counted make one
}

var (
	inGames     = unit{"games", 1}
	inProducts  = unit{"products", 1}
	inMegabytes = unit{"MB", 1e6}
)

func (u unit) count(n int64) string {
	if u.of == 1 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%.1f", float64(n)/u.of)
}
