package webshop

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The tables that catalogues are generated from; what a line holds stands above it in the file.
//
//go:embed tables/nodes.txt tables/attributes.txt tables/values.txt tables/phrases.txt
var tableFiles embed.FS

// node is a kind of product.
type node struct {
	family, category, path, query string
	heads                         []string // what a title calls it
	price                         float64  // median, dollars
	groups                        []OptionGroup
	attributes                    []attribute
}

// attribute is a phrase and where an instruction puts it.
type attribute struct {
	phrase string
	place  place
}

// place is where an instruction puts an attribute.
type place uint8

const (
	before place = iota
	with
	suited
)

var placeNames = map[string]place{"before": before, "with": with, "for": suited}

// tables are what the files hold.
type tables struct {
	nodes   []node
	phrases map[string][]string
}

// generatorTables reads the tables once. They are part of the program: a fault in them is one of ours.
var generatorTables = sync.OnceValue(func() tables {
	t := tables{phrases: map[string][]string{}}
	for _, line := range tableLines("values.txt") {
		name, values, _ := strings.Cut(line, ":")
		t.phrases["values "+name] = fields(values, ",")
	}
	for _, line := range tableLines("phrases.txt") {
		name, values, _ := strings.Cut(line, ":")
		sep := "|"
		if !strings.Contains(values, sep) {
			sep = " "
		}
		t.phrases[name] = fields(values, sep)
	}
	pools := map[string][]attribute{}
	for _, line := range tableLines("attributes.txt") {
		f := fields(line, "|")
		p, known := placeNames[f[1]]
		if !known {
			panic("attributes.txt: no such place: " + line)
		}
		for pool := range strings.FieldsSeq(f[2]) {
			pools[pool] = append(pools[pool], attribute{f[0], p})
		}
	}
	for _, line := range tableLines("nodes.txt") {
		t.nodes = append(t.nodes, t.node(fields(line, "|"), pools))
	}
	return t
})

func (t *tables) node(f []string, pools map[string][]attribute) node {
	price, err := strconv.ParseFloat(f[5], 64)
	if err != nil {
		panic(fmt.Sprintf("nodes.txt: %q: %v", f, err))
	}
	n := node{family: f[0], category: f[1], path: f[2], query: f[3], heads: fields(f[4], ","), price: price}
	rest := f[6]
	for rest != "" { // a group's name may have blanks in it: "fit type=fits"
		name, after, _ := strings.Cut(rest, "=")
		pool, more, _ := strings.Cut(after, " ")
		values := t.phrases["values "+pool]
		if len(values) == 0 {
			panic("nodes.txt: no such values: " + pool)
		}
		n.groups = append(n.groups, OptionGroup{name, values})
		rest = more
	}
	for pool := range strings.FieldsSeq(f[7]) {
		if len(pools[pool]) == 0 {
			panic("nodes.txt: no such attributes: " + pool)
		}
		for _, a := range pools[pool] {
			if !slices.Contains(n.attributes, a) {
				n.attributes = append(n.attributes, a)
			}
		}
	}
	return n
}

// tableLines are the lines of a table that are no comments.
func tableLines(name string) (lines []string) {
	b, err := tableFiles.ReadFile("tables/" + name)
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

func fields(s, sep string) []string {
	out := strings.Split(strings.TrimSpace(s), sep)
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}
