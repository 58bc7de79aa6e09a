package skill_test

import (
	"fmt"
	"log"

	"skillmaster/skill"
)

// A bank is a value: an edit makes another one, and both can be played.
func ExampleBank_Apply() {
	call := skill.ParseCall(`<tool_call>{"name":"propose_skill","arguments":{"category":"clean","title":"Wash at the sink",
		"principle":"Take plates to the sinkbasin to clean them.","when_to_apply":"the task says clean","evidence":"it worked"}}</tool_call>`, skill.Strict)
	var before skill.Bank
	after, outcome := before.Apply(call.Edit, skill.Permission{Category: "clean"})
	fmt.Println(outcome, before.Len(), after.Len())
	_, again := after.Apply(call.Edit, skill.Permission{Category: "clean"})
	fmt.Println(again)
	// Output:
	// added 0 1
	// duplicate
}

func ExampleRetrieve() {
	bank, err := skill.New([]skill.Skill{
		{Category: "clean", Title: "Wash at the sink", Principle: "Take plates to the sinkbasin to clean them."},
		{Category: "heat", Title: "Use the microwave", Principle: "Heat apples in the microwave."},
		{Category: skill.General, Title: "Search in order", Principle: "Look into closed drawers last."},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	found := skill.Retrieve(bank, skill.Query{How: skill.Ranked, Category: "clean", Text: "put a clean plate on the shelf", MaxSkills: 1})
	fmt.Print(skill.Render(found, nil))
	// Output: [dyn_001] Wash at the sink: Take plates to the sinkbasin to clean them.
}
