package track

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"skillmaster/report"
)

// PrometheusType is the media type of what WritePrometheus writes: the text exposition format, version 0.0.4.
const PrometheusType = "text/plain; version=0.0.4; charset=utf-8"

// WritePrometheus writes the state of runs, as gauges: every number of a run's newest round, under the name
// skillmaster_STREAM_QUANTITY with the whole key as a label, and the newest score of each panel that training plays. What
// the newest round did not measure is not there. unreadable are the names of runs that could not be read.
func WritePrometheus(w io.Writer, runs []*report.History, unreadable []string) error {
	e := exposition{}
	for _, name := range unreadable {
		e.add("skillmaster_run_readable", helpReadable, 0, "run", name)
	}
	for _, h := range runs {
		e.run(h)
	}
	for _, name := range slices.Sorted(maps.Keys(e)) {
		f := e[name]
		help := escapeHelp.Replace(strings.ToValidUTF8(f.help, "\ufffd"))
		if _, err := fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n%s", name, help, name, strings.Join(f.samples, "")); err != nil {
			return err
		}
	}
	return nil
}

const helpReadable = "Whether the records of the run can be read."

// exposition has the families of samples by name.
type exposition map[string]*family

type family struct {
	help    string
	samples []string // lines
}

func (e exposition) run(h *report.History) {
	e.add("skillmaster_run_readable", helpReadable, 1, "run", h.Name)
	e.add("skillmaster_run_rounds", "Rounds that the run has recorded, the warm start's among them.", float64(len(h.Rounds)), "run", h.Name)
	finished := 0.0
	if h.Finished() {
		finished = 1
	}
	e.add("skillmaster_run_finished", "Whether every iteration that was asked for is done.", finished, "run", h.Name)
	if len(h.Rounds) == 0 {
		return
	}
	e.add("skillmaster_run_kept_timestamp_seconds", "When the newest round was recorded.", seconds(h.Last()), "run", h.Name)
	newest := h.Rounds[len(h.Rounds)-1]
	for _, numbers := range []map[string]float64{newest.Metrics, newest.Seconds} {
		for _, key := range slices.Sorted(maps.Keys(numbers)) {
			e.add("skillmaster_"+gaugeName(key), "The newest round's "+key+".", numbers[key], "run", h.Name, "key", key)
		}
	}
	scores := map[string]int{} // panel to its newest evaluation
	valid := h.Valid()
	for i, v := range valid {
		if len(v.Results) > 0 {
			scores[v.Panel] = i
		}
	}
	for _, panel := range slices.Sorted(maps.Keys(scores)) {
		s := valid[scores[panel]].Summary()
		e.add("skillmaster_panel_success", "Share of the panel's tasks that succeeded when training last played it.", s.Rate, "run", h.Name, "panel", panel)
		e.add("skillmaster_panel_steps", "Mean steps over the panel's tasks when training last played it.", s.Steps, "run", h.Name, "panel", panel)
	}
}

// add puts a sample into its family; labels are names and values in turn.
func (e exposition) add(name, help string, value float64, labels ...string) {
	if e[name] == nil {
		e[name] = &family{help: help}
	}
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+`="`+escapeLabel.Replace(strings.ToValidUTF8(labels[i+1], "\ufffd"))+`"`)
	}
	e[name].samples = append(e[name].samples, name+"{"+strings.Join(pairs, ",")+"} "+strconv.FormatFloat(value, 'g', -1, 64)+"\n")
}

var (
	escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// gaugeName is a key in the characters of a metric's name. Two keys may have the same: their label tells them apart.
func gaugeName(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, key)
}
