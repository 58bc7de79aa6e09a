package web

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"skillmaster/plot"
	"skillmaster/report"
	"skillmaster/store"
)

// functions are what templates may call.
func (s *Server) functions() template.FuncMap {
	return template.FuncMap{
		"short":   func(hash string) string { return hash[:min(10, len(hash))] },
		"percent": percent,
		"number":  plot.Short,
		"signed":  func(v float64) string { return fmt.Sprintf("%+.3f", v) },
		"points":  func(v float64) string { return fmt.Sprintf("%+.1f", 100*v) },
		"plain":   func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"div":     func(a, b float64) float64 { return a / b },
		"inc":     func(n int) int { return n + 1 },
		"share":   share,
		"chart":   func(c plot.Chart) template.HTML { return template.HTML(c.SVG()) },        // #nosec: plot escapes all text
		"spark":   func(ys []float64) template.HTML { return template.HTML(plot.Spark(ys)) }, // it holds numbers only
		"interval": func(title string, rows []plot.Interval) template.HTML {
			return template.HTML(plot.Intervals(title, rows))
		}, // plot escapes all text
		"date":    func(t time.Time) string { return t.Local().Format("2 Jan 2006, 15:04") },
		"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"ago":     func(t time.Time) string { return duration(s.now().Sub(t)) + " ago" },
		"address": address,
		"metric":  func(n store.Numbers, key string) string { return metricText(n, key, plot.Short) },
		"shareOf": func(n store.Numbers, key string) string { return metricText(n, key, percent) },
		"dot":     func(m store.Played) string { return outcomeMark(m) },
		"version": func(name string) string { return s.static[name].tag },
		"command": report.CommandLine,
	}
}

func share(part, all int) string {
	if all == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(all))
}

// metricText is a number of a round in a form of its own; a dash if it was not measured.
func metricText(n store.Numbers, key string, form func(float64) string) string {
	v, ok := n.Metrics[key]
	if !ok {
		return "–"
	}
	return form(v)
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func outcomeMark(m store.Played) string {
	if m.Success {
		return "won"
	}
	return "lost"
}

// duration is a time in the two largest units that count.
func duration(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(math.Round(d.Minutes())))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

// logarithm keeps curves of evidence readable.
func logarithm(v float64) float64 { return math.Log(max(v, 1e-6)) }
