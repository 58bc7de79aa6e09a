package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"skillmaster/policy/remote"
)

// ErrNotOffered says that the dialect has no way to ask for something.
var ErrNotOffered = errors.New("the server does not offer this")

// request is one thing asked of a server.
type request struct {
	method string
	path   string // of the table
	body   any    // nil: none
	most   usage  // it may cost
	// read takes the reply; what it finds wrong is a reason to ask again, unless it is final. A zero usage says that the
	// server did not count.
	read func(reply []byte) (usage, error)
}

// call asks until there is an answer.
func (c *Client) call(ctx context.Context, r request) error {
	err := c.ask(ctx, r)
	switch {
	case err == nil:
		c.ledger.count(func(s *Spent) { s.Requests++ })
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		c.ledger.count(func(s *Spent) { s.Failed++ })
		err = fmt.Errorf("%s: %w", c.at(r.path), err)
	}
	return err
}

func (c *Client) ask(ctx context.Context, r request) error {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return err
		}
	}
	if err := c.enter(ctx); err != nil {
		return err
	}
	defer c.leave()
	retries := remote.Retries{
		Tries: c.options.Limits.Tries, Pause: c.options.Limits.Pause, Notice: c.options.Notice,
		Count: func() { c.ledger.count(func(s *Spent) { s.Retries++ }) },
	}
	return retries.Do(ctx, body, func() error { return c.try(ctx, r, body) })
}

// try asks once.
func (c *Client) try(ctx context.Context, r request, body []byte) (err error) {
	key, err := c.options.Key.Secret()
	if err != nil {
		return remote.Final(err)
	}
	defer func() { err = remote.Scrubbed(err, key) }()
	if err := c.ledger.reserve(r.most); err != nil {
		return remote.Final(err)
	}
	spent, guessed := usage{}, false
	defer func() { c.ledger.settle(r.most, spent, guessed) }()
	reply, sent, err := c.exchange(ctx, r, body, key)
	if err != nil {
		if sent {
			spent, guessed = r.most, true
		}
		return err
	}
	spent, err = r.read(reply)
	if spent == (usage{}) {
		spent, guessed = r.most, r.most != usage{}
	}
	return err
}

// exchange sends a request and reads the reply. sent says, where that failed, that the server may have done the work.
func (c *Client) exchange(ctx context.Context, r request, body []byte, key string) (reply []byte, sent bool, err error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.at(r.path), bytes.NewReader(body))
	if err != nil {
		return nil, false, remote.Final(err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "skillmaster")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	reply, _, sent, err = remote.Exchange(ctx, c.http, req, key, c.options.Limits.Patience, c.options.Limits.Reply)
	return reply, sent, err
}
