package alfworld_test

import (
	"context"
	"fmt"
	"log"

	"skillmaster/env"
	"skillmaster/env/alfworld"
)

// Generated games need no download. An expert that knows the whole state plays a shortest plan.
func ExampleNewGenerated() {
	suite, err := alfworld.NewGenerated(alfworld.GeneratedOptions{Splits: map[string]int{"train": 6}})
	if err != nil {
		log.Fatal(err)
	}
	tasks, err := suite.Tasks("train")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	e, _, err := suite.Open(ctx, tasks[0], 0)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	expert, err := suite.Expert(e, env.Knows, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tasks[0].Goal)
	for {
		action, ok := expert.Next()
		if !ok {
			break
		}
		result, err := e.Step(ctx, action)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(action)
		expert.Observe(action, result)
		if result.Done {
			fmt.Println("success:", result.Success)
			break
		}
	}
	// Output:
	// put some soapbottle on toilet.
	// go to garbagecan 1
	// take soapbottle 2 from garbagecan 1
	// go to toilet 1
	// move soapbottle 2 to toilet 1
	// success: true
}
