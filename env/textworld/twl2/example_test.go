package twl2_test

import (
	"fmt"
	"log"

	"skillmaster/env/textworld/twl2"
)

func ExampleParse() {
	grammar, err := twl2.Parse("grammar :: \"\"\"\n{\"greeting\": [{\"rhs\": \"Hello, #who#.\"}], \"who\": [{\"rhs\": \"world\"}]}\n\"\"\";\n")
	if err != nil {
		log.Fatal(err)
	}
	text, err := grammar.Expand("greeting", nil, nil, nil)
	fmt.Println(text, err)
	// Output: Hello, world. <nil>
}
