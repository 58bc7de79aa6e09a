package webshop

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	mugJSON  = `{"asin":"B000000001","name":"Blue Mug","full_description":"A mug.","small_description":["Big ",""],"pricing":"$8.5","customization_options":{"Size":[{"value":" 1/2 L "},{"value":"1 L"}],"Color":null},"category":"garden","query":" Mugs ","product_category":"Home › Mugs"}`
	lampJSON = `{"asin":"B000000002","name":"Lamp","full_description":"","small_description":"Bright","pricing":"$10$20.50","customization_options":"","category":"garden","query":"lamps","product_category":"Home › Lamps"}`
	mugsAttr = `{"B000000001":{"attributes":["dishwasher safe"],"instruction":"Find me dishwasher safe mugs","instruction_attributes":["dishwasher safe"]},"B000000002":{"attributes":[]}}`
)

func read(t testing.TB, products, attributes string, o LoadOptions) (*Catalogue, Loaded, error) {
	t.Helper()
	return Read(t.Context(), Files{Products: strings.NewReader(products), Attributes: strings.NewReader(attributes)}, o)
}

func TestCleaning(t *testing.T) {
	var told []Progress
	c, got, err := read(t, `[`+mugJSON+`,`+lampJSON+`,{"asin":"nan"},{"asin":"B0000000012"},`+mugJSON+`]`, mugsAttr, LoadOptions{Progress: func(p Progress) { told = append(told, p) }})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Loaded{Entries: 5, Products: 2, Unnamed: 1, Overlong: 1, Repeated: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	want := []Product{
		{
			ASIN: "B000000001", Title: "Blue Mug", Description: "A mug.", Bullets: []string{"Big ", ""}, Price: Price{Low: 8.5, High: 8.5},
			Options:    []OptionGroup{{"size", []string{"1 | 2 l", "1 l"}}},
			Attributes: []string{"dishwasher safe"}, Category: "garden", Query: "mugs", Path: "Home › Mugs",
			Instruction: "Find me dishwasher safe mugs", InstructionAttributes: []string{"dishwasher safe"},
		},
		{
			ASIN: "B000000002", Title: "Lamp", Bullets: []string{"Bright"}, Price: Price{10, 20.5, true},
			Category: "garden", Query: "lamps", Path: "Home › Lamps",
		},
	}
	if got := []Product{c.Product(0), c.Product(1)}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if text, want := c.product(0).contents(), "blue mug a mug. big  size: 1 | 2 l, 1 l"; text != want {
		t.Errorf("contents: got %q, want %q", text, want)
	}
	if len(told) == 0 || told[len(told)-1].Entries != 5 {
		t.Errorf("told %v entries of 5", told)
	}
	if p, ok := c.Find("b000000002"); !ok || p.Title != "Lamp" {
		t.Errorf("found %+v, %v", p, ok)
	}
}

// A limit counts entries, those that are left out too, and what lies behind it is not read.
func TestLimit(t *testing.T) {
	c, got, err := read(t, `[{"asin":"nan"},`+mugJSON+`,`+lampJSON+`, this is not JSON`, mugsAttr, LoadOptions{Limit: 2})
	if err != nil || c.Len() != 1 || got.Entries != 2 || got.Unmatched != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A product that the attributes' file does not have gets the one attribute of the original; if there is none at all,
// the files belong to different catalogues.
func TestMismatchedFiles(t *testing.T) {
	c, got, err := read(t, `[`+mugJSON+`,`+lampJSON+`]`, `{"B000000001":{"attributes":[]},"B999999999":{}}`, LoadOptions{})
	if err != nil || got.Attributeless != 1 || got.Unmatched != 1 || c.product(1).Attributes[0] != noAttribute {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, _, err := read(t, `[`+mugJSON+`]`, `{"B999999999":{"attributes":[]}}`, LoadOptions{}); err == nil || !strings.Contains(err.Error(), "belong together") {
		t.Errorf("another catalogue's attributes: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	swap := func(old, new string) string {
		if !strings.Contains(mugJSON, old) {
			t.Fatalf("nothing to spoil: %s", old)
		}
		return `[` + lampJSON + `,` + strings.Replace(mugJSON, old, new, 1) + `]`
	}
	for name, c := range map[string]struct{ products, attributes, want string }{
		"no list":             {mugsAttr, mugsAttr, "begins with {"},
		"nothing":             {"", mugsAttr, "unexpected EOF"},
		"cut off":             {`[` + mugJSON, mugsAttr, "unexpected EOF"},
		"cut off in an entry": {`[` + mugJSON[:60], mugsAttr, "entry 1"},
		"more behind it":      {`[` + mugJSON + `]]`, mugsAttr, "more"},
		"price without sign":  {swap("$8.5", "8.5"), mugsAttr, `B000000001: price "8.5" has no $`},
		"price of no digits":  {swap("$8.5", "$"), mugsAttr, "no digits"},
		"price of two points": {swap("$8.5", "$8.5.1"), mugsAttr, `"8.5.1" is no number`},
		"price too large":     {swap("$8.5", "$"+strings.Repeat("9", 400)), mugsAttr, "is no number"},
		"price a number":      {swap(`"$8.5"`, "8.5"), mugsAttr, "entry 2"},
		"no asin":             {swap(`"asin":"B000000001"`, `"x":1`), mugsAttr, "no asin"},
		"no name":             {swap(`"name"`, `"title"`), mugsAttr, "B000000001 has no name"},
		"query null":          {swap(`" Mugs "`, `null`), mugsAttr, "B000000001 has no query"},
		"no UTF-8":            {swap("Blue", "Bl\xffue"), mugsAttr, "UTF-8"},
		"option not a list":   {swap(`[{"value":" 1/2 L "},{"value":"1 L"}]`, `"L"`), mugsAttr, `option group "Size"`},
		"option valueless":    {swap(`"value":" 1/2 L "`, `"image":""`), mugsAttr, `option group "Size": value 1`},
		"attributes a list":   {`[` + mugJSON + `]`, `[]`, "attributes of the products: it begins with ["},
		"attributes cut off":  {`[` + mugJSON + `]`, mugsAttr[:30], "unexpected EOF"},
		"attributes no UTF-8": {`[` + mugJSON + `]`, strings.Replace(mugsAttr, "safe", "s\xfffe", 1), "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := read(t, c.products, c.attributes, LoadOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	nouns := Files{Products: strings.NewReader(`[` + mugJSON + `]`), Attributes: strings.NewReader(mugsAttr), Nouns: strings.NewReader(`{"asin":"B999999999","nouns":[]}`)}
	if _, _, err := Read(t.Context(), nouns, LoadOptions{}); err == nil || !strings.Contains(err.Error(), "of this catalogue") {
		t.Errorf("nouns of another catalogue: %v", err)
	}
	human := Files{Products: strings.NewReader(`[` + mugJSON + `]`), Attributes: strings.NewReader(mugsAttr), Human: strings.NewReader(`{"B000000001":[{"instruction_attributes":[]}]}`)}
	if _, _, err := Read(t.Context(), human, LoadOptions{}); err == nil || !strings.Contains(err.Error(), "instruction 1 is missing") {
		t.Errorf("human instruction without a text: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Read(ctx, Files{Products: strings.NewReader(`[` + mugJSON + `]`), Attributes: strings.NewReader(mugsAttr)}, LoadOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestPrices(t *testing.T) {
	for text, want := range map[string]string{
		"": "$100.0", "$27": "$27.0", "$13.50": "$13.5", "$19.99$27.99": "$19.99 to $27.99", "$9.99 - $5": "$9.99 to $5.0",
		"from $1,299.00 to $2,000.00 or $3": "$1299.0 to $2000.0", "$5$5": "$5.0 to $5.0", "US$ 7": "$7.0",
	} {
		p, err := parsePrice(text)
		if err != nil || p.String() != want {
			t.Errorf("%q: got %q, %v, want %q", text, p, err, want)
		}
	}
}

// Values from CPython 3.11.
func TestPythonText(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", 1: "1.0", 0.1: "0.1", 2.0 / 3: "0.6666666666666666", 1e15: "1000000000000000.0", 1e16: "1e+16", 1e22: "1e+22",
		0.0001: "0.0001", 0.00001: "1e-05", 123456.789: "123456.789", -2.5: "-2.5",
	} {
		if got := float(f); got != want {
			t.Errorf("float(%v): got %s, want %s", f, got, want)
		}
	}
	for s, want := range map[string]string{
		"ABC é É": "abc é é", "İ": "i̇", "ΟΔΟΣ ΣΑΣ Σ": "οδος σας σ", "ΑΣ'Σ": "ασ'ς", "ẞ": "ß", "ΑΣ.": "ας.",
	} {
		if got := lower(s); got != want {
			t.Errorf("lower(%q): got %q, want %q", s, got, want)
		}
	}
	if got := trim("\x1c\u00a0\u3000 a b\t\x1f\u2028"); got != "a b" {
		t.Errorf("trim: got %q", got)
	}
}

func FuzzPrice(f *testing.F) {
	for _, s := range []string{"", "$1", "$1$2", "1", "$", "$1.2.3", "$1e5", "$-1", "$٣", "$0.00001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := parsePrice(s); err == nil && plain(p.Low) && plain(p.High) {
			if again, err := parsePrice(p.String()); err != nil || again != p {
				t.Errorf("%q is %v, which is read %v, %v", s, p, again, err)
			}
		}
	})
}

// plain tells whether an amount is shown without an exponent.
func plain(f float64) bool { return !strings.Contains(float(f), "e") }

func FuzzRead(f *testing.F) {
	human := `{"B000000001":[{"instruction":"i need a mug.","instruction_attributes":["dishwasher safe"],"instruction_options":["1 l"]}]}`
	f.Add(`[`+mugJSON+`,`+lampJSON+`]`, mugsAttr, human, `{"asin":"B000000001","nouns":["mug"]}`)
	f.Add(`[{"asin":"B0","name":"","category":"","query":"","customization_options":{"a":[],"A":[{"value":"/"}]}}]`, `{"B0":{"attributes":null,"instruction":"x"}}`, `{}`, `{"asin":"B0"}`)
	f.Add(`[{"asin":"nan"}]`, `{}`, `{}`, ``)
	f.Fuzz(func(t *testing.T, products, attributes, human, nouns string) {
		c, got, err := Read(t.Context(), Files{
			Products: strings.NewReader(products), Attributes: strings.NewReader(attributes), Human: strings.NewReader(human), Nouns: strings.NewReader(nouns),
		}, LoadOptions{})
		if err != nil {
			return
		}
		if got.Products+got.Unnamed+got.Overlong+got.Repeated != got.Entries || c.Len() != got.Products {
			t.Errorf("%+v does not add up to %d products", got, c.Len())
		}
		for i := range c.Len() {
			p := c.Product(i)
			if utf8.RuneCountInString(p.ASIN) > longestASIN || !utf8.ValidString(p.contents()) {
				t.Errorf("unclean product %+v", p)
			}
		}
		for _, human := range []bool{false, true} {
			s, err := NewShop(c, GoalOptions{Human: human})
			if err != nil {
				continue
			}
			g := s.Goal(s.Goals() - 1)
			if r := s.Score(g, g.Product, g.Options); !(r.Total >= 0 && r.Total <= 1) {
				t.Errorf("%+v is worth %+v", g, r)
			}
		}
	})
}
