// Package chat turns messages into token ids and back: templates and byte-level BPE tokenizers.
package chat

// Role says who speaks.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one thing said.
type Message struct {
	Role Role
	Text string
}
