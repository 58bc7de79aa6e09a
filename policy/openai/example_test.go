package openai_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"skillmaster/chat"
	"skillmaster/policy"
	"skillmaster/policy/openai"
)

// A model on any server that speaks the protocol is a policy.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","created":1,"model":"tiny",
			"choices":[{"index":0,"message":{"role":"assistant","content":"<action>look</action>"},"finish_reason":"stop"}],
			"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14}}`)
	}))
	defer server.Close()
	client, err := openai.New(openai.Options{URL: server.URL, Dialect: openai.Generic, Model: "tiny"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	c, err := client.Policy(0).Complete(context.Background(), policy.Request{
		Messages: []chat.Message{{Role: chat.User, Text: "You are in a hall."}}, Sampling: policy.Sampling{MaxTokens: 32},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Text)
	// Output: <action>look</action>
}
