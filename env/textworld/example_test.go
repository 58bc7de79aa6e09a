package textworld_test

import (
	"context"
	"fmt"
	"log"
	"path/filepath"
	"strings"

	"skillmaster/env/textworld"
)

// A game is a domain, a problem and a grammar, whoever wrote them.
func ExampleOpen() {
	suite, err := textworld.Open(filepath.Join("testdata", "games"), textworld.Options{})
	if err != nil {
		log.Fatal(err)
	}
	tasks, err := suite.Tasks(textworld.Split)
	if err != nil {
		log.Fatal(err)
	}
	e, first, err := suite.Open(context.Background(), tasks[0], 0)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	opening, _, _ := strings.Cut(first.Text, "\n")
	fmt.Println(opening)
	// Output: Welcome aboard! The captain steers boat_bar_heron at port_bar_ness.
}
