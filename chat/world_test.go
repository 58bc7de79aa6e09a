package chat

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// worldTexts returns texts of n made-up episodes of a world of numbered things, the same ones every time.
func worldTexts(n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	places := []string{"cabinet", "drawer", "shelf", "table"}
	things := []string{"mug", "pot", "potato", "cd", "apple"}
	pick := func(words []string) string { return words[r.IntN(len(words))] }
	thing := func(words []string) string { return fmt.Sprintf("%s %d", pick(words), 1+r.IntN(4)) }
	var texts []string
	for range n {
		seen := []string{}
		for range 1 + r.IntN(5) {
			seen = append(seen, "a "+thing(places))
		}
		texts = append(texts, fmt.Sprintf("You stand in a room. You see %s, and a %s.\n\nYour task: put %s %s in %s.",
			strings.Join(seen, ", "), thing(places), pick([]string{"a clean", "a hot", "two", "some"}), pick(things), pick(places)))
		for range 4 {
			p, m := thing(places), thing(things)
			texts = append(texts,
				"<think>It may be there.</think><action>go to "+p+"</action>",
				fmt.Sprintf("You arrive at %s. On the %s, you see a %s, a %s, and a %s.", p, p, m, thing(things), thing(things)),
				"<action>take "+m+" from "+p+"</action>",
				fmt.Sprintf("You pick up the %s from the %s.", m, p))
		}
		texts = append(texts, fmt.Sprintf(`<tool_call>{"name":"propose_skill","arguments":{"category":"clean","title":"Look at the %s"}}</tool_call>`, pick(places)))
	}
	return texts
}
