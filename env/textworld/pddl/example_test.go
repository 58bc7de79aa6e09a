package pddl_test

import (
	"fmt"
	"log"

	"skillmaster/env/textworld/pddl"
)

func ExampleRead() {
	problem, err := pddl.Read(`(define (domain lamp)
		(:requirements :strips)
		(:predicates (off) (on))
		(:action switch-on :parameters () :precondition (off) :effect (and (on) (not (off)))))`,
		`(define (problem dark) (:domain lamp) (:init (off)) (:goal (on)))`)
	if err != nil {
		log.Fatal(err)
	}
	state := problem.Start()
	for _, operator := range state.Possible(nil) {
		fmt.Println(problem.Action(operator))
		state.Apply(operator)
	}
	fmt.Println(state.Won())
	// Output:
	// switch-on
	// true
}
