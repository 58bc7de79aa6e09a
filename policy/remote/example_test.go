package remote_test

import (
	"fmt"

	"skillmaster/policy/remote"
)

// A key never travels in clear text to another machine, and stands in no message.
func ExampleAddress() {
	_, err := remote.Address("http://inference.example", true, false)
	fmt.Println(err != nil)
	at, err := remote.Address("https://inference.example", true, false)
	fmt.Println(at, err)
	fmt.Println(remote.Strike("401: the key sk-secret-0123456789 is wrong", "sk-secret-0123456789"))
	// Output:
	// true
	// https://inference.example <nil>
	// 401: the key [key] is wrong
}
