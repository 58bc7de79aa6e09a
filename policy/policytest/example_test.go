package policytest_test

import (
	"fmt"

	"skillmaster/policy/policytest"
)

// The ids of scripts are bytes, so that tests can be read.
func ExampleText() {
	fmt.Println(policytest.Text(policytest.Bytes("look")), policytest.Bytes("look"))
	// Output: look [108 111 111 107]
}
