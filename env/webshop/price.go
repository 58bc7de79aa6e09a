package webshop

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// unpriced is what a product without a price costs, dollars.
const unpriced = 100

// Price is what a product's page says it costs, dollars: one amount, or two of which the second may be the smaller or
// the same.
type Price struct {
	Low, High float64
	Ranged    bool // there are two amounts; else High is Low
}

func (p Price) String() string {
	b := appendFloat(append(make([]byte, 0, 48), '$'), p.Low)
	if p.Ranged {
		b = appendFloat(append(b, " to $"...), p.High)
	}
	return string(b)
}

// parsePrice reads a price: amounts that each follow a "$", of which the first two count. Of an amount only digits and
// points are read. No text is no price.
func parsePrice(text string) (Price, error) {
	if text == "" {
		return Price{Low: unpriced, High: unpriced}, nil
	}
	parts := strings.Split(text, "$")[1:]
	if len(parts) == 0 {
		return Price{}, fmt.Errorf("price %q has no $ sign", text)
	}
	amounts := make([]float64, len(parts))
	for i, part := range parts {
		f, err := parseAmount(part)
		if err != nil {
			return Price{}, fmt.Errorf("price %q: amount %d: %w", text, i+1, err)
		}
		amounts[i] = f
	}
	if len(amounts) == 1 {
		return Price{Low: amounts[0], High: amounts[0]}, nil
	}
	return Price{amounts[0], amounts[1], true}, nil
}

func parseAmount(s string) (float64, error) {
	digits := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return -1
	}, s)
	if digits == "" {
		return 0, errors.New("there are no digits")
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", digits)
	}
	return f, nil
}
