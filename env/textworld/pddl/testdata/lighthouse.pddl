; A keeper, rooms, a lamp: conditional effects, universal effects, disjunctions, constants.
(define (domain lighthouse)
  (:requirements :adl :typing :action-costs)
  (:types place thing - object
          room stair - place
          tool supply - thing
          lens - tool)
  (:constants keeper - object lampRoom - room)
  (:predicates
    (at ?p - place) (joined ?a ?b - place) (in ?t - thing ?p - place) (held ?t - thing)
    (dark ?p - place) (lit ?p - place) (broken ?t - thing) (dusty ?l - lens) (not_safe ?p - place) (safe ?p - place)
    (tired) (rested ?who) (heavy ?t - thing))
  (:functions (effort ?a ?b - place) - number (total-cost) - number)
  (:action climb
    :parameters (?from ?to - place)
    :precondition (and (at ?from) (or (joined ?from ?to) (joined ?to ?from)) (not (= ?from ?to)))
    :effect (and (not (at ?from)) (at ?to) (increase (total-cost) 2)
                 (when (and (tired) (dark ?to)) (not_safe ?to))
                 (when (and (not (tired)) (safe ?from)) (and (tired) (not (rested keeper))))))
  (:action take
    :parameters (?t - thing ?p - place)
    :precondition (and (at ?p) (in ?t ?p) (imply (heavy ?t) (rested keeper))
                       (forall (?x - thing) (not (held ?x))))
    :effect (and (held ?t) (not (in ?t ?p))))
  (:action drop
    :parameters (?t - thing)
    :precondition (held ?t)
    :effect (and (not (held ?t)) (forall (?p - place) (when (at ?p) (in ?t ?p)))))
  (:action drop-all
    :parameters (?p - place)
    :precondition (and (at ?p) (exists (?t - tool) (held ?t)))
    :effect (forall (?t - thing) (when (held ?t) (and (not (held ?t)) (in ?t ?p)))))
  (:action polish
    :parameters (?l - lens)
    :precondition (and (held ?l) (or (dusty ?l) (exists (?s - supply) (and (in ?s lampRoom) (not (broken ?s))))))
    :effect (and (not (dusty ?l)) (when (broken ?l) (dusty ?l)) (rested keeper) (not (rested keeper))))
  (:action light
    :parameters (?p - room)
    :precondition (and (at ?p) (dark ?p) (exists (?l - lens) (and (in ?l ?p) (not (dusty ?l)))))
    :effect (and (lit ?p) (not (dark ?p)) (not (not_safe ?p)) (safe ?p)))
  (:action rest
    :parameters ()
    :precondition (tired)
    :effect (and (not (tired)) (rested keeper) (forall (?p - place) (not (not_safe ?p)))))
  (:action strike
    :parameters (?t - thing ?u - tool)
    :precondition (and (held ?u) (not (broken ?u)) (or (held ?t) (exists (?p - place) (and (at ?p) (in ?t ?p)))))
    :effect (and (broken ?t) (when (= ?t ?u) (not (held ?u))) (when (heavy ?t) (broken ?u))))
  (:action sing :parameters () :precondition () :effect ()))
(define (problem night)
  (:domain lighthouse)
  (:objects hall - room spiral - stair store - room wick oil - supply hammer - tool big-lens small-lens - lens)
  (:init (at hall) (joined hall spiral) (joined spiral lamproom) (joined hall store) (dark lamproom) (dark spiral)
         (in wick store) (in oil store) (in hammer hall) (in big-lens lamproom) (in small-lens store)
         (dusty big-lens) (heavy hammer) (heavy big-lens) (safe hall) (= (effort hall spiral) 3) (= (total-cost) 0))
  (:goal (and (lit lampRoom) (forall (?l - lens) (not (dusty ?l))) (or (held oil) (not (tired)))))
  (:metric minimize (total-cost)))
