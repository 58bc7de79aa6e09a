; Plain goal with denied facts, static denials, untyped predicates, arguments that repeat.
(define (domain ferry)
  (:predicates (bank ?b) (car ?c) (boat_at ?b) (on ?c) (parked ?c ?b) (empty) (likes ?a ?b) (bumped ?a ?b) (rusty ?c))
  (:action sail
    :parameters (?from ?to)
    :precondition (and (bank ?from) (bank ?to) (boat_at ?from) (not (likes ?from ?to)))
    :effect (and (boat_at ?to) (not (boat_at ?from))))
  (:action board
    :parameters (?c ?b)
    :precondition (and (car ?c) (parked ?c ?b) (boat_at ?b) (empty))
    :effect (and (on ?c) (not (parked ?c ?b)) (not (empty))))
  (:action debark
    :parameters (?c ?b)
    :precondition (and (bank ?b) (on ?c) (boat_at ?b))
    :effect (and (parked ?c ?b) (not (on ?c)) (empty)))
  (:action bump
    :parameters (?c ?d ?b)
    :precondition (and (parked ?c ?b) (parked ?d ?b) (or (likes ?c ?c) (not (likes ?d ?c))))
    :effect (and (bumped ?c ?d) (not (bumped ?d ?d)) (when (not (rusty ?d)) (rusty ?c)) (when (rusty ?c) (not (rusty ?d))))))
(define (problem two-cars)
  (:domain ferry)
  (:objects left right island red blue)
  (:init (bank left) (bank right) (bank island) (car red) (car blue) (boat_at left) (parked red left) (parked blue right)
         (empty) (likes red red) (likes left left) (likes island right))
  (:goal (and (parked red right) (not (boat_at right)) (not (likes left right)) (bank left))))
