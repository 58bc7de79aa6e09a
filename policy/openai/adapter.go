package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// adapterName is what adapters may be called: nothing that a server could take for a path.
var adapterName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// LoadAdapter makes the server load an adapter (LoRA, in the layout of PEFT) from a folder of its own machine. Give every
// version of a policy its own name, such as run-000123: then no reply can be of other weights than it says, and a name
// that is taken is an error.
func (c *Client) LoadAdapter(ctx context.Context, name, folder string) error {
	if err := c.adapters(name); err != nil {
		return err
	}
	if folder == "" {
		return errors.New("no folder of an adapter is given")
	}
	there, err := c.lists(ctx, name)
	if err != nil {
		return err
	}
	if there {
		return fmt.Errorf("the server has an adapter %s already: each version needs its own name", name)
	}
	err = c.say(ctx, c.dialect.load, fields{"lora_name": name, "lora_path": folder})
	if err == nil || ctx.Err() != nil {
		return err
	}
	// The answer may have been lost, and another try refused because the first one worked.
	if there, look := c.lists(ctx, name); look == nil && there {
		return nil
	}
	return fmt.Errorf("load adapter %s: %w (vLLM needs --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True, SGLang --enable-lora)", name, err)
}

// UnloadAdapter makes the server forget an adapter.
func (c *Client) UnloadAdapter(ctx context.Context, name string) error {
	if err := c.adapters(name); err != nil {
		return err
	}
	if err := c.say(ctx, c.dialect.unload, fields{"lora_name": name}); err != nil {
		return fmt.Errorf("unload adapter %s: %w", name, err)
	}
	return nil
}

func (c *Client) adapters(name string) error {
	if c.dialect.load == "" {
		return fmt.Errorf("loading adapters: %w (dialect %s)", ErrNotOffered, c.options.Dialect)
	}
	if !adapterName.MatchString(name) {
		return fmt.Errorf("adapter name %q: want letters, digits, - and _ only", name)
	}
	return nil
}

// say posts something whose answer matters only in that it is one.
func (c *Client) say(ctx context.Context, path string, body fields) error {
	return c.call(ctx, request{method: http.MethodPost, path: path, body: body, read: func([]byte) (usage, error) { return usage{}, nil }})
}

func (c *Client) lists(ctx context.Context, name string) (bool, error) {
	models, err := c.Models(ctx)
	return slices.ContainsFunc(models, func(m Model) bool { return m.ID == name }), err
}
