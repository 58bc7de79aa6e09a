#!/usr/bin/env python3
"""Write the three foreign games: a domain, a problem and a grammar as one game.tw-pddl each.

    python make.py          # writes */game.tw-pddl and */traj_data.json beside this file

They are unlike the household: a harbour (slots, costs, a disjunction, types below types), a laboratory (conditional and
universal effects, quantifiers, implications) and a library (a type tree four levels deep, lists in lists).
"""
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
LISTS = """
  "list_empty": [{"rhs": "nothing"}],
  "list_separator": [{"rhs": ", "}],
  "list_last_separator": [{"rhs": ", and "}]
"""

HARBOUR_DOMAIN = """; Boats, cargo, fog.
(define (domain harbour)
  (:requirements :strips :typing :equality :negative-preconditions :disjunctive-preconditions :action-costs)
  (:types port movable slot person - object
          boat cargo - movable
          crate barrel - cargo)
  (:constants captain - person)
  (:predicates (at ?m - movable ?p - port) (route ?a ?b - port) (helm ?w - person ?b - boat) (aboard ?c - cargo ?b - boat)
               (slotof ?s - slot ?b - boat) (free ?s - slot) (fills ?c - cargo ?s - slot) (foggy ?p - port) (lit ?p - port)
               (haslamp ?p - port) (tied ?c - cargo) (told ?x - object))
  (:functions (total-cost) - number (miles ?a ?b - port) - number)
  (:action look :parameters (?w - person ?b - boat ?p - port)
    :precondition (and (helm ?w ?b) (at ?b ?p)) :effect (and (told ?p)))
  (:action manifest :parameters (?w - person ?b - boat)
    :precondition (helm ?w ?b) :effect (told ?b))
  (:action sail :parameters (?w - person ?b - boat ?f ?t - port)
    :precondition (and (helm ?w ?b) (at ?b ?f) (route ?f ?t) (or (not (foggy ?t)) (lit ?t)))
    :effect (and (not (at ?b ?f)) (at ?b ?t) (increase (total-cost) (miles ?f ?t))))
  (:action change :parameters (?w - person ?a ?b - boat ?p - port)
    :precondition (and (helm ?w ?a) (at ?a ?p) (at ?b ?p) (not (= ?a ?b)))
    :effect (and (not (helm ?w ?a)) (helm ?w ?b) (increase (total-cost) 1)))
  (:action load :parameters (?w - person ?b - boat ?c - cargo ?s - slot ?p - port)
    :precondition (and (helm ?w ?b) (at ?b ?p) (at ?c ?p) (slotof ?s ?b) (free ?s) (tied ?c))
    :effect (and (not (at ?c ?p)) (not (free ?s)) (aboard ?c ?b) (fills ?c ?s) (increase (total-cost) 2)))
  (:action unload :parameters (?w - person ?b - boat ?c - cargo ?s - slot ?p - port)
    :precondition (and (helm ?w ?b) (at ?b ?p) (aboard ?c ?b) (fills ?c ?s))
    :effect (and (at ?c ?p) (free ?s) (not (aboard ?c ?b)) (not (fills ?c ?s)) (increase (total-cost) 2)))
  (:action tie :parameters (?w - person ?b - boat ?c - cargo ?p - port)
    :precondition (and (helm ?w ?b) (at ?b ?p) (at ?c ?p))
    :effect (and (when (tied ?c) (not (tied ?c))) (when (not (tied ?c)) (tied ?c))))
  (:action light :parameters (?w - person ?b - boat ?p - port)
    :precondition (and (helm ?w ?b) (at ?b ?p) (haslamp ?p) (not (lit ?p)))
    :effect (lit ?p))
)
"""
HARBOUR_PROBLEM = """(define (problem two-crates) (:domain harbour)
  (:objects port_bar_ness port_bar_ayr port_bar_oban port_bar_skye - port
            boat_bar_heron boat_bar_tern - boat
            crate_bar_a crate_bar_b - crate barrel_bar_rum barrel_bar_tar - barrel
            slot_bar_1 slot_bar_2 slot_bar_3 - slot)
  (:init (= (total-cost) 0) (helm captain boat_bar_heron) (at boat_bar_heron port_bar_ness) (at boat_bar_tern port_bar_ayr)
    (at crate_bar_a port_bar_ness) (at crate_bar_b port_bar_ayr) (at barrel_bar_rum port_bar_ness) (at barrel_bar_tar port_bar_oban)
    (tied crate_bar_a) (tied barrel_bar_rum) (tied crate_bar_b)
    (slotof slot_bar_1 boat_bar_heron) (slotof slot_bar_2 boat_bar_tern) (slotof slot_bar_3 boat_bar_tern)
    (free slot_bar_1) (free slot_bar_2) (free slot_bar_3)
    (route port_bar_ness port_bar_ayr) (route port_bar_ayr port_bar_ness) (route port_bar_ayr port_bar_oban) (route port_bar_oban port_bar_ayr)
    (route port_bar_oban port_bar_skye) (route port_bar_skye port_bar_oban) (route port_bar_ayr port_bar_skye)
    (= (miles port_bar_ness port_bar_ayr) 3) (= (miles port_bar_ayr port_bar_ness) 3) (= (miles port_bar_ayr port_bar_oban) 5)
    (= (miles port_bar_oban port_bar_ayr) 5) (= (miles port_bar_oban port_bar_skye) 2) (= (miles port_bar_skye port_bar_oban) 2) (= (miles port_bar_ayr port_bar_skye) 9)
    (foggy port_bar_skye) (foggy port_bar_oban) (haslamp port_bar_skye) (haslamp port_bar_ness) (lit port_bar_oban))
  (:goal (and (at crate_bar_a port_bar_oban) (at crate_bar_b port_bar_oban)))
  (:metric minimize (total-cost)))
"""
HARBOUR_GRAMMAR = """# A harbour.
grammar :: \"\"\"
{
  "intro": [{"rhs": "// The welcome.\\nWelcome aboard! #where#\\n\\nBring both crates to {c.name | route(b:port, c:port) & lit(c:port)}."}],
  "where": [{"rhs": "The captain steers [{b.name + ' at ' + p.name | helm(w:person, b:boat) & at(b:boat, p:port)}]."}],
  "port": [
    {"condition": "foggy(p:port) & lit(p:port)", "rhs": "{p.name.capitalize()} shines through the fog. #quay#"},
    {"condition": "foggy(p:port)", "rhs": "Fog lies over {p.name}. #quay#"},
    {"rhs": "The air over {p.name} is clear. #quay#"}
  ],
  "quay": [{"rhs": "On the quay: [{#cargo# | at(c:cargo, p:port)}]. Boats: [{k.name | at(k:boat, p:port)}]. From here one can sail to [{q.name + (' (lit)' if q.id == 'port_bar_oban' else '') | route(p:port, q:port)}]."}],
  "cargo": [
    {"condition": "tied(c:cargo)", "rhs": "{c.indefinite} tied {c.type} called {c.name}"},
    {"condition": "not_tied(c:cargo)", "rhs": "{c.indefinite} {c.type} that was untied"},
    {"rhs": "{c.indefinite} {c.type}, {c.name}"}
  ],
  "hold": [
    {"condition": "aboard(c:cargo, b:boat)", "rhs": "{b.name} carries [{c.definite + ' ' + c.name + ' in ' + s.name | aboard(c:cargo, b:boat) & fills(c:cargo, s:slot)}]"},
    {"rhs": "{b.name} is empty"}
  ],
  "freed": [{"condition": "not_free(s:slot)", "rhs": "No room in [{s.name | not_free(s:slot)}]."}, {"rhs": "Room everywhere."}],
""" + LISTS + """
}
\"\"\";
action look { template :: "look around"; feedback :: "#where# #port#"; }
action manifest { feedback :: "#hold#. #freed#"; template :: "read manifest of {b}"; }
action sail {
  template :: "sail from {f} to {t}"; # not ?from: that is no name for Python
  feedback :: "#sailed#";
  grammar :: \"\"\"{"sailed": [{"condition": "not_at(b:boat, f:port)", "rhs": "You leave {f.name} and [{x.name | not_at(b:boat, x:port)}] astern. #landed#"}],
    # what is bound already cannot be bound again
    "landed": [{"rhs": "{#arrival# | at(b:boat, t:port) & at(b:boat, t:port)}{#port# | at(b:boat, p:port)}"}],
    "arrival": [{"rhs": "{t.name.upper()}! Here: [{c.name | at(c:cargo, t:port)}]."}]}\"\"\";
}
action change { template :: "go aboard {b}"; feedback :: "You change from {a.name} to {b.name}. #hold#."; }
action load { template :: "load {c} into {s}"; feedback :: "Heave! {c.name} is in {s.name}. #hold#. #freed#"; }
action unload { template :: "unload {c}"; feedback :: "{c.name} stands on the quay: [{c.name | at(c:crate, p:port)}] of crates, [{x.name | at(x:cargo, p:port)}] in all. #freed#"; }
action tie { template :: "tie or untie {c}"; feedback :: "The rope of {c}: #cargo#. [{x.id | not_tied(x:barrel)}] untied of barrels."; }
action light { template :: "light the lamp"; feedback :: "{#port#}"; }
"""

LABORATORY_DOMAIN = """(define (domain laboratory)
  (:requirements :adl)
  (:types room device vessel liquid gate person - object
          burner alarm - device
          flask beaker - vessel)
  (:predicates (in ?x - object ?r - room) (joins ?g - gate ?a ?b - room) (locked ?g - gate) (holds ?a - person ?v - vessel)
               (handsfree ?a - person) (tap ?l - liquid ?r - room) (filled ?v - vessel ?l - liquid) (on ?d - device) (hot ?v - vessel)
               (reacts ?l ?m - liquid) (product ?l - liquid) (broken ?v - vessel) (noted ?x - object))
  (:action wait :parameters (?a - person) :precondition () :effect (noted ?a))
  (:action examine :parameters (?a - person ?r - room) :precondition (in ?a ?r) :effect (noted ?r))
  (:action walk :parameters (?a - person ?r ?s - room ?g - gate)
    :precondition (and (in ?a ?r) (exists (?h - gate) (or (joins ?h ?r ?s) (joins ?h ?s ?r))) (or (joins ?g ?r ?s) (joins ?g ?s ?r)) (not (locked ?g)))
    :effect (and (not (in ?a ?r)) (in ?a ?s)
                 (forall (?v - vessel) (when (holds ?a ?v) (and (not (in ?v ?r)) (in ?v ?s))))))
  (:action take :parameters (?a - person ?v - vessel ?r - room)
    :precondition (and (in ?a ?r) (in ?v ?r) (handsfree ?a) (not (broken ?v)) (imply (hot ?v) (exists (?d - burner) (and (in ?d ?r) (not (on ?d))))))
    :effect (and (holds ?a ?v) (not (handsfree ?a))))
  (:action drop :parameters (?a - person ?v - vessel ?r - room)
    :precondition (and (in ?a ?r) (holds ?a ?v))
    :effect (and (not (holds ?a ?v)) (handsfree ?a)))
  (:action fill :parameters (?a - person ?v - vessel ?l - liquid ?r - room)
    :precondition (and (in ?a ?r) (holds ?a ?v) (tap ?l ?r) (not (filled ?v ?l)))
    :effect (filled ?v ?l))
  (:action pour :parameters (?a - person ?v ?u - vessel ?r - room)
    :precondition (and (in ?a ?r) (holds ?a ?v) (in ?u ?r) (not (= ?v ?u)) (not (broken ?u)) (exists (?l - liquid) (filled ?v ?l)))
    :effect (forall (?l - liquid) (when (filled ?v ?l) (and (not (filled ?v ?l)) (filled ?u ?l)))))
  (:action heat :parameters (?a - person ?v - vessel ?d - burner ?r - room)
    :precondition (and (in ?a ?r) (in ?d ?r) (in ?v ?r) (on ?d) (not (broken ?v)) (exists (?l - liquid) (filled ?v ?l)))
    :effect (and (hot ?v)
      (forall (?l ?m ?p - liquid) (when (and (reacts ?l ?m) (filled ?v ?l) (filled ?v ?m) (product ?p))
        (and (not (filled ?v ?l)) (not (filled ?v ?m)) (filled ?v ?p))))))
  (:action cool :parameters (?a - person ?v - vessel ?r - room)
    :precondition (and (in ?a ?r) (holds ?a ?v) (hot ?v))
    :effect (not (hot ?v)))
  (:action press :parameters (?a - person ?d - device ?r - room)
    :precondition (and (in ?a ?r) (in ?d ?r))
    :effect (and (when (on ?d) (not (on ?d))) (when (not (on ?d)) (on ?d))
                 (forall (?x - alarm ?g - gate) (when (and (= ?x ?d) (locked ?g)) (not (locked ?g))))))
  (:action smash :parameters (?a - person ?v - vessel ?r - room)
    :precondition (and (in ?a ?r) (in ?v ?r) (not (holds ?a ?v)) (forall (?l - liquid) (not (filled ?v ?l))))
    :effect (broken ?v))
)
"""
LABORATORY_PROBLEM = """(define (problem salt) (:domain laboratory)
  (:objects ada - person hall lab store - room gate_bar_lock gate_bar_open - gate
            flask_bar_1 flask_bar_2 - flask beaker_bar_1 - beaker burner_bar_1 - burner bell_bar_1 - alarm
            acid_bar_1 base_bar_1 salt_bar_1 water_bar_1 - liquid)
  (:init (in ada hall) (handsfree ada) (joins gate_bar_open hall lab) (joins gate_bar_lock store lab) (locked gate_bar_lock)
    (in flask_bar_1 hall) (in beaker_bar_1 lab) (in flask_bar_2 store) (in burner_bar_1 lab) (in bell_bar_1 hall)
    (tap water_bar_1 hall) (tap acid_bar_1 lab) (tap base_bar_1 store) (reacts acid_bar_1 base_bar_1) (reacts base_bar_1 acid_bar_1) (product salt_bar_1) (filled flask_bar_2 water_bar_1))
  (:goal (exists (?v - vessel) (and (filled ?v salt_bar_1) (not (hot ?v)) (forall (?d - burner) (not (on ?d)))))))
"""
LABORATORY_GRAMMAR = """grammar :: \"\"\"
{
  "intro": [{"rhs": "\\nYou are {a.name | handsfree(a:person)}. #room#\\n\\nMake cold salt, and leave no burner on."}],
  "room": [{"rhs": "{#inroom# | in(a:person, r:room)}"}],
  "inroom": [{"rhs": "You are in the {r.name}. Here: [{#vessel# | in(v:vessel, r:room)}] and [{#device# | in(d:device, r:room)}]. Taps: [{l.name | tap(l:liquid, r:room)}]. Gates: [{#gate# | joins(g:gate, r:room, s:room)}] and [{#gate# | joins(g:gate, s:room, r:room)}]."}],
  "arrival": [{"rhs": "{#view# | in(a:person, s:room)}"}],
  "view": [{"rhs": "The {s.name} has [{#vessel# | in(v:vessel, s:room)}] and [{#device# | in(d:device, s:room)}] (you came from the {r.name})."}],
  "vessel": [
    {"condition": "broken(v:vessel)", "rhs": "the shards of {v.name}"},
    {"condition": "hot(v:vessel)", "rhs": "hot #content#"},
    {"condition": "not_hot(v:vessel)", "rhs": "cooled #content#"},
    {"rhs": "#content#"}
  ],
  "content": [
    {"condition": "filled(v:vessel, l:liquid)", "rhs": "{v.name} with [{l.name | filled(v:vessel, l:liquid)}]"},
    {"rhs": "empty {v.name}"}
  ],
  "device": [{"condition": "on(d:device)", "rhs": "{d.name} (on)"}, {"condition": "not_on(d:device)", "rhs": "{d.name} (off again)"}, {"rhs": "{d.name} (off)"}],
  "gate": [{"condition": "locked(g:gate)", "rhs": "a locked gate"}, {"condition": "not_locked(g:gate)", "rhs": "a gate that was locked"}, {"rhs": "a gate"}],
  "hands": [{"condition": "holds(a:person, v:vessel)", "rhs": "In hand: {#vessel# | holds(a:person, v:vessel)}."}, {"rhs": "Your hands are free."}],
""" + LISTS.replace('", and "', '" / "') + """
}
\"\"\";
action wait { template :: "wait"; feedback :: "Time passes. #hands#"; }
action examine { template :: "examine the {r}"; feedback :: "#room#"; }
action walk { template :: "walk to {s} through {g}"; feedback :: "You walk. Behind you is [{r.name | not_in(a:person, r:room)}] and [{x.name | not_in(a:person, x:room)}]. #arrival#"; }
action take { template :: "take {v}"; feedback :: "Taken. #hands#"; }
action drop { template :: "drop {v}"; feedback :: "Dropped. #hands#"; }
action fill { template :: "fill {v} with {l}"; feedback :: "{l.name.title()} flows. #hands#"; }
action pour { template :: "pour {v} into {u}"; feedback :: "You pour. #hands# Not any more: [{x.name + ' in ' + y.name | not_filled(y:flask, x:liquid)}]."; }
action heat { template :: "heat {v} on {d}"; feedback :: "It bubbles: [{l.name | filled(f:flask, l:liquid)}] in flasks, [{l.name | filled(b:beaker, l:liquid)}] in beakers."; }
action cool { template :: "cool {v}"; feedback :: "Cold. #hands#"; }
action press { template :: "press {d}"; feedback :: "Click: [{#device# | in(d:device, r:room)}]. #gates#";
  grammar :: \"\"\"{"gates": [{"condition": "!locked(g:gate)", "rhs": "Unlocked: [{g.name | !locked(g:gate)}]."}, {"rhs": "Locked: [{g.name | locked(g:gate)}]."}]}\"\"\"; }
action smash { template :: "smash {v}"; feedback :: "Crash. #room#"; }
"""

LIBRARY_DOMAIN = """(define (domain library)
  (:requirements :strips :typing :negative-preconditions :universal-preconditions :existential-preconditions :equality)
  (:types thing place person - object
          item - thing
          book lamp - item
          novel atlas - book
          shelf desk - place
          tallshelf - shelf
          reader clerk - person
          child - reader)
  (:predicates (on ?i - item ?p - place) (at ?c - person ?p - place) (path ?a ?b - place) (carries ?c - clerk ?i - item)
               (wants ?r - reader ?b - book) (has ?r - person ?b - book) (above ?i - item ?j - item) (clear ?i - item) (stamped ?b - book)
               (open ?p - place) (thin ?b - book) (glows ?l - lamp) (seen ?x - object))
  (:action survey :parameters (?c - clerk ?p - place) :precondition (at ?c ?p) :effect (seen ?p))
  (:action go :parameters (?c - clerk ?p ?q - place) :precondition (and (at ?c ?p) (path ?p ?q)) :effect (and (not (at ?c ?p)) (at ?c ?q)))
  (:action pick :parameters (?c - clerk ?i - item ?p - place)
    :precondition (and (at ?c ?p) (on ?i ?p) (clear ?i) (forall (?j - lamp) (not (carries ?c ?j))))
    :effect (and (not (on ?i ?p)) (carries ?c ?i) (not (clear ?i))))
  (:action lay :parameters (?c - clerk ?i - item ?p - place)
    :precondition (and (at ?c ?p) (carries ?c ?i))
    :effect (and (on ?i ?p) (clear ?i) (not (carries ?c ?i))))
  (:action stack :parameters (?c - clerk ?i ?j - book ?p - place)
    :precondition (and (at ?c ?p) (carries ?c ?i) (on ?j ?p) (clear ?j) (not (= ?i ?j)))
    :effect (and (on ?i ?p) (above ?i ?j) (clear ?i) (not (clear ?j)) (not (carries ?c ?i))))
  (:action unstack :parameters (?c - clerk ?i ?j - book ?p - place)
    :precondition (and (at ?c ?p) (on ?i ?p) (above ?i ?j) (clear ?i))
    :effect (and (not (on ?i ?p)) (not (above ?i ?j)) (clear ?j) (not (clear ?i)) (carries ?c ?i)))
  (:action stamp :parameters (?c - clerk ?b - book) :precondition (and (carries ?c ?b) (not (stamped ?b)) (exists (?l - lamp) (glows ?l))) :effect (stamped ?b))
  (:action lend :parameters (?c - clerk ?b - book ?r - reader ?p - place)
    :precondition (and (at ?c ?p) (at ?r ?p) (carries ?c ?b) (stamped ?b) (wants ?r ?b))
    :effect (and (has ?r ?b) (not (wants ?r ?b)) (not (carries ?c ?b))))
  (:action lightup :parameters (?c - clerk ?l - lamp ?p - place) :precondition (and (at ?c ?p) (on ?l ?p)) :effect (glows ?l))
)
"""
LIBRARY_PROBLEM = """(define (problem two-readers) (:domain library)
  (:objects clerk_bar_1 - clerk reader_bar_1 - reader child_bar_1 - child
            desk_bar_1 - desk shelf_bar_1 - shelf tallshelf_bar_1 tallshelf_bar_2 - tallshelf
            novel_bar_1 novel_bar_2 novel_bar_3 - novel atlas_bar_1 - atlas book_bar_1 - book lamp_bar_1 - lamp vase_bar_1 - item)
  (:init (at clerk_bar_1 desk_bar_1) (at reader_bar_1 desk_bar_1) (at child_bar_1 shelf_bar_1)
    (path desk_bar_1 shelf_bar_1) (path shelf_bar_1 desk_bar_1) (path shelf_bar_1 tallshelf_bar_1) (path tallshelf_bar_1 shelf_bar_1)
    (path desk_bar_1 tallshelf_bar_2) (path tallshelf_bar_2 desk_bar_1)
    (on novel_bar_1 shelf_bar_1) (on novel_bar_2 shelf_bar_1) (on atlas_bar_1 shelf_bar_1) (on novel_bar_3 tallshelf_bar_1) (on book_bar_1 tallshelf_bar_2)
    (on lamp_bar_1 desk_bar_1) (on vase_bar_1 shelf_bar_1)
    (above novel_bar_2 novel_bar_1) (clear novel_bar_2) (clear atlas_bar_1) (clear novel_bar_3) (clear book_bar_1) (clear lamp_bar_1) (clear vase_bar_1)
    (thin novel_bar_1) (wants reader_bar_1 novel_bar_1) (wants child_bar_1 atlas_bar_1) (wants child_bar_1 book_bar_1))
  (:goal (and (forall (?r - reader) (exists (?b - book) (has ?r ?b))) (exists (?p - tallshelf) (on novel_bar_2 ?p)))))
"""
LIBRARY_GRAMMAR = """grammar :: \"\"\"
{
  "intro": [{"rhs": "Silence, please.\\n\\nItems: [{i.name | on(i:item, p:place)}].\\nBooks: [{i.name | on(i:book, p:place)}].\\nNovels: [{i.name | on(i:novel, p:shelf)}].\\nAll: [{i.name | on(i:thing, p:place)}].\\nReaders: [{#reader# | at(r:reader, p:place)}]."}],
  "reader": [
    {"condition": "wants(r:reader, b:book)", "rhs": "{r.name} ({r.type}) who wants [{#book# | wants(r:reader, b:book)}]"},
    {"rhs": "{r.name} ({r.type})"}
  ],
  "book": [
    {"condition": "thin(b:book)", "rhs": "the thin {b.name}"},
    {"condition": "stamped(b:book)", "rhs": "the stamped {b.name}"},
    {"rhs": "{b.definite} {b.name}"}
  ],
  "place": [{"rhs": "On the {p.name}: [{#item# | on(i:item, p:place)}]."}],
  "item": [
    {"condition": "above(i:item, j:item)", "rhs": "{i.name} upon [{j.name | above(i:item, j:item)}]"},
    {"condition": "above(j:item, i:item)", "rhs": "{i.name} under {j.name | above(j:item, i:item)}"},
    {"rhs": "{i.name}"}
  ],
  "load": [{"rhs": "You carry [{x.name | carries(c:clerk, x:item)}], of books [{b.name | carries(c:clerk, b:book)}]."}],
""" + LISTS + """
}
\"\"\";
action survey { template :: "survey {p}"; feedback :: "#place# {'Also here: '}[{#reader# | at(r:reader, p:place)}]."; }
action go { template :: "go to {q}"; feedback :: "#there#"; grammar :: \"\"\"{"there": [{"rhs": "{#all# | at(c:clerk, x:place)}"}], "all": [{"rhs": "You stand at {x.name}: [{i.name + ' ' + k.name | on(i:item, k:shelf)}]."}]}\"\"\"; }
action pick { template :: "take {i} from {p}"; feedback :: "#load# Gone: [{y.name + ' off ' + z.name | not_on(y:item, z:place)}]."; }
action lay { template :: "lay {i} on {p}"; feedback :: "Laid. #load# {#place#}"; }
action stack { template :: "put {i} upon {j}"; feedback :: "#load# [{x.name + '/' + y.name | above(x:book, y:book)}]."; }
action unstack { template :: "lift {i} off {j}"; feedback :: "#load# [{x.name + '/' + y.name | above(x:book, y:book)}], never [{x.name | not_above(x:novel, y:novel)}]."; }
action stamp { template :: "stamp {b}"; feedback :: "Thump! [{x.name | stamped(x:book)}]."; }
action lend { template :: "lend {b} to {r}"; feedback :: "{r.name} thanks you. [{#reader# | at(r:reader, p:desk)}]. [{x.name + ' has ' + y.name | has(x:person, y:book)}]."; }
action lightup { template :: "light {l}"; feedback :: "It glows."; }
"""

GAMES = {
    "harbour": (HARBOUR_DOMAIN, HARBOUR_PROBLEM, HARBOUR_GRAMMAR, [
        "load crate_bar_a into slot_bar_1", "sail from port_bar_ness to port_bar_ayr", "unload crate_bar_a", "go aboard boat_bar_tern",
        "load crate_bar_a into slot_bar_2", "load crate_bar_b into slot_bar_3", "sail from port_bar_ayr to port_bar_oban",
        "unload crate_bar_b", "unload crate_bar_a"]),
    "laboratory": (LABORATORY_DOMAIN, LABORATORY_PROBLEM, LABORATORY_GRAMMAR, [
        "take flask_bar_1", "fill flask_bar_1 with water_bar_1", "drop flask_bar_1", "press bell_bar_1", "take flask_bar_1", "walk to lab through gate_bar_open",
        "fill flask_bar_1 with acid_bar_1", "pour flask_bar_1 into beaker_bar_1", "walk to store through gate_bar_lock", "fill flask_bar_1 with base_bar_1",
        "walk to lab through gate_bar_lock", "pour flask_bar_1 into beaker_bar_1", "press burner_bar_1", "heat beaker_bar_1 on burner_bar_1",
        "drop flask_bar_1", "press burner_bar_1", "take beaker_bar_1", "cool beaker_bar_1"]),
    "library": (LIBRARY_DOMAIN, LIBRARY_PROBLEM, LIBRARY_GRAMMAR, [
        "light lamp_bar_1", "go to shelf_bar_1", "lift novel_bar_2 off novel_bar_1", "take novel_bar_1 from shelf_bar_1", "stamp novel_bar_1",
        "take atlas_bar_1 from shelf_bar_1", "stamp atlas_bar_1", "lend atlas_bar_1 to child_bar_1", "go to tallshelf_bar_1", "put novel_bar_2 upon novel_bar_3",
        "go to shelf_bar_1", "go to desk_bar_1", "lend novel_bar_1 to reader_bar_1"]),
}

if __name__ == "__main__":
    for name, (domain, problem, grammar, walkthrough) in GAMES.items():
        os.makedirs(os.path.join(HERE, name), exist_ok=True)
        with open(os.path.join(HERE, name, "game.tw-pddl"), "w") as f:
            json.dump({"pddl_domain": domain, "grammar": grammar, "pddl_problem": problem, "solvable": True, "walkthrough": walkthrough}, f, indent=1)
            f.write("\n")
        with open(os.path.join(HERE, name, "traj_data.json"), "w") as f:
            json.dump({"task_id": "trial_" + name, "task_type": "pick_and_place_simple"}, f)
            f.write("\n")
