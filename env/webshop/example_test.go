package webshop_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"skillmaster/env/webshop"
)

// A shop of invented products needs no download.
func ExampleNewShop() {
	ctx := context.Background()
	catalogue, err := webshop.Generate(ctx, webshop.GenerateOptions{Seed: 1, Products: 200})
	if err != nil {
		log.Fatal(err)
	}
	shop, err := webshop.NewShop(catalogue, webshop.GoalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	suite := webshop.NewSuite(shop, webshop.Options{})
	tasks, err := suite.Tasks("report")
	if err != nil {
		log.Fatal(err)
	}
	e, first, err := suite.Open(ctx, tasks[0], 0)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	fmt.Println(first.More, "a search is possible")
	result, err := e.Step(ctx, "search[running shoes]")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(result.Observation.Text, "Total results"))
	// Output:
	// true a search is possible
	// true
}
