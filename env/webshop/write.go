package webshop

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

// Sinks are what a catalogue is written to, in the formats that Files are read in.
type Sinks struct{ Products, Attributes, Human, Nouns io.Writer }

// Write writes a catalogue; reading it gives the same one. The same catalogue gives the same bytes.
func (c *Catalogue) Write(s Sinks) error {
	var products, attributes, human, nouns listWriter
	products.begin(s.Products, "[", "]\n")
	attributes.begin(s.Attributes, "{", "}\n")
	human.begin(s.Human, "{", "}\n")
	nouns.begin(s.Nouns, "", "\n")
	nouns.comma = "\n"
	for i := range c.len() {
		p := c.product(i)
		products.put("", productOut{
			ASIN: p.ASIN, Name: p.Title, Description: p.Description, Bullets: p.Bullets, Pricing: pricing(p.Price), Options: p.Options,
			Category: p.Category, Query: p.Query, Path: p.Path, Images: []string{},
		})
		attributes.put(p.ASIN, attributesOut{p.Attributes, p.Instruction, p.InstructionAttributes})
		if len(p.Human) > 0 {
			list := make([]humanOut, len(p.Human))
			for j, h := range p.Human {
				list[j] = humanOut{p.ASIN, h.Text, p.Attributes, h.Attributes, h.Options}
			}
			human.put(p.ASIN, list)
		}
		nouns.put("", nounsJSON{p.ASIN, c.nounsOf(p)})
	}
	return errors.Join(products.end(), attributes.end(), human.end(), nouns.end())
}

// pricing is a price as the products' file has it.
func pricing(p Price) string {
	text := "$" + float(p.Low)
	if p.Ranged {
		text += "$" + float(p.High)
	}
	return text
}

// listWriter writes a list or an object of JSON, a line for each member. Its error comes at the end.
type listWriter struct {
	w      *bufio.Writer
	close  string
	before string // the next member
	comma  string
	err    error
}

func (l *listWriter) begin(w io.Writer, start, end string) {
	l.w, l.close, l.before, l.comma = bufio.NewWriter(w), end, start, ",\n"
}

// put writes a member; the name is for objects.
func (l *listWriter) put(name string, v any) {
	b, err := json.Marshal(v)
	l.err = errors.Join(l.err, err)
	l.w.WriteString(l.before)
	if name != "" {
		key, _ := json.Marshal(name) // a string cannot fail
		l.w.Write(append(key, ':'))
	}
	l.w.Write(b)
	l.before = l.comma
}

func (l *listWriter) end() error {
	if l.before != l.comma {
		l.w.WriteString(l.before)
	}
	l.w.WriteString(l.close)
	return errors.Join(l.err, l.w.Flush())
}

// productOut is an entry of the products' file.
type productOut struct {
	ASIN        string     `json:"asin"`
	Name        string     `json:"name"`
	Description string     `json:"full_description"`
	Bullets     []string   `json:"small_description"`
	Pricing     string     `json:"pricing"`
	Options     optionsOut `json:"customization_options"`
	Images      []string   `json:"images"`
	Category    string     `json:"category"`
	Query       string     `json:"query"`
	Path        string     `json:"product_category"`
}

// optionsOut is written as an object in the order of the groups, or as "".
type optionsOut []OptionGroup

// MarshalJSON implements json.Marshaler.
func (o optionsOut) MarshalJSON() ([]byte, error) {
	if len(o) == 0 {
		return []byte(`""`), nil
	}
	b := []byte{'{'}
	for i, g := range o {
		values := make([]map[string]string, len(g.Values))
		for j, v := range g.Values {
			values[j] = map[string]string{"value": v}
		}
		key, _ := json.Marshal(g.Name) // a string cannot fail
		list, err := json.Marshal(values)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, key...), ':'), list...)
	}
	return append(b, '}'), nil
}

type attributesOut struct {
	Attributes            []string `json:"attributes"`
	Instruction           string   `json:"instruction,omitempty"`
	InstructionAttributes []string `json:"instruction_attributes,omitempty"`
}

type humanOut struct {
	ASIN                  string   `json:"asin"`
	Instruction           string   `json:"instruction"`
	Attributes            []string `json:"attributes"`
	InstructionAttributes []string `json:"instruction_attributes"`
	InstructionOptions    []string `json:"instruction_options"`
}
