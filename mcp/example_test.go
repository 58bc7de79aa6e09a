package mcp_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"skillmaster/mcp"
	"skillmaster/skill"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Any client of the protocol can search a bank. Without a quarantine it can change nothing.
func Example() {
	bank, err := skill.New([]skill.Skill{{Category: "clean", Title: "Wash at the sink", Principle: "Plates are cleaned in the sink."}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	ours, theirs := sdk.NewInMemoryTransports()
	if _, err := mcp.New("1", mcp.File{Content: bank}, nil, slog.New(slog.DiscardHandler)).Connect(ctx, ours, nil); err != nil {
		log.Fatal(err)
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, theirs, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	tools, err := client.ListTools(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tools.Tools {
		fmt.Println(t.Name)
	}
	// Output:
	// list_skills
	// read_skill
	// search_skills
}
