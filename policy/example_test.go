package policy_test

import (
	"context"
	"fmt"
	"log"

	"skillmaster/chat"
	"skillmaster/policy"
	"skillmaster/policy/policytest"
)

// A policy answers messages, wherever its weights are. This one says what it is told to say.
func ExamplePolicy() {
	var p policy.Policy = policytest.Lines("<action>look</action>")
	c, err := p.Complete(context.Background(), policy.Request{
		Messages: []chat.Message{{Role: chat.User, Text: "You are in a hall."}}, Sampling: policy.Sampling{MaxTokens: 32},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Text)
	// Output: <action>look</action>
}
