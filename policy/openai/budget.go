package openai

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// Budget is the most that a client may spend. The zero Budget has no limit.
type Budget struct {
	Tokens int64   `json:"tokens"`       // of prompts and replies together; 0: no limit
	Money  float64 `json:"money"`        // in the currency of the prices; 0: no limit
	Prompt float64 `json:"prompt_price"` // of a million ids of prompts
	Reply  float64 `json:"reply_price"`  // of a million ids of replies
}

// Validate reports limits and prices that cannot be.
func (b Budget) Validate() error {
	for _, v := range []float64{b.Money, b.Prompt, b.Reply, float64(b.Tokens)} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("the budget holds %v: limits and prices are at least 0", v)
		}
	}
	if b.Money > 0 && b.Prompt == 0 && b.Reply == 0 {
		return errors.New("the budget limits money and names no price")
	}
	return nil
}

// ErrBudget says that what is left of the budget may not suffice for a request, which was not sent.
var ErrBudget = errors.New("the budget is spent")

// Spent is what a client has done so far.
type Spent struct {
	Requests int   // that were answered
	Retries  int   // tries after the first one of a request
	Failed   int   // requests that ended with an error, the cancelled left out
	Prompt   int64 // ids of prompts
	Reply    int64 // ids of replies
	// Guessed are those of Prompt and Reply that no server counted: of tries that broke off after they were sent, and of
	// replies without a count. They are the most there can have been.
	Guessed int64
	Money   float64
}

// usage counts ids.
type usage struct{ prompt, reply int64 }

func (u usage) sum() int64 { return u.prompt + u.reply }

// price is what u costs.
func (b Budget) price(u usage) float64 {
	return (float64(u.prompt)*b.Prompt + float64(u.reply)*b.Reply) / 1e6
}

// ledger keeps to a budget: what a try may cost at most is set aside before it is sent.
type ledger struct {
	budget Budget

	mu     sync.Mutex
	spent  Spent
	aside  usage // of tries under way
	tokens usage // spent
}

// Spent returns what was done so far.
func (c *Client) Spent() Spent {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	return c.ledger.spent
}

func (l *ledger) reserve(most usage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := usage{l.tokens.prompt + l.aside.prompt + most.prompt, l.tokens.reply + l.aside.reply + most.reply}
	switch b := l.budget; {
	case b.Tokens > 0 && all.sum() > b.Tokens:
		return fmt.Errorf("%w: %d of %d ids, %d more are set aside, and the next request may take %d",
			ErrBudget, l.tokens.sum(), b.Tokens, l.aside.sum(), most.sum())
	case b.Money > 0 && b.price(all) > b.Money:
		return fmt.Errorf("%w: %.4f of %.4f in money, %.4f more are set aside, and the next request may take %.4f",
			ErrBudget, b.price(l.tokens), b.Money, b.price(l.aside), b.price(most))
	}
	l.aside = usage{l.aside.prompt + most.prompt, l.aside.reply + most.reply}
	return nil
}

// settle replaces what was set aside by what was spent.
func (l *ledger) settle(most, spent usage, guessed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aside = usage{l.aside.prompt - most.prompt, l.aside.reply - most.reply}
	l.tokens = usage{l.tokens.prompt + spent.prompt, l.tokens.reply + spent.reply}
	l.spent.Prompt, l.spent.Reply, l.spent.Money = l.tokens.prompt, l.tokens.reply, l.budget.price(l.tokens)
	if guessed {
		l.spent.Guessed += spent.sum()
	}
}

// count adds to the counters of requests.
func (l *ledger) count(change func(s *Spent)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.spent)
}
