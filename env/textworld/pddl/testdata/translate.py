"""Grounds problems with the translator that TextWorld uses, plays each for a while with its planner library, and writes
what comes out, a line of JSON each.

    python translate.py NAME.pddl ... | gzip -9n > translated.jsonl.gz

Each file holds a domain and a problem, one after the other. Made with fast-downward-textworld 20.6.4.
"""

import json
import random
import signal
import sys

files, sys.argv = sys.argv[1:], ["translate", "domain", "problem"]
from fast_downward import Atom, Operator, load_lib, pddl2sas  # noqa: E402

STEPS, MOST = 40, 300
library = load_lib()


def pairs(lines, n):
    return [[int(x) for x in next(lines).split()] for _ in range(n)]


def translate(domain, problem):
    _, sas = pddl2sas(domain, problem)
    lines = iter(sas.split("\n"))
    while next(lines) != "end_metric":
        pass
    variables, derived, operators = [], [], []
    for _ in range(int(next(lines))):
        next(lines), next(lines)
        derived.append(int(next(lines)) >= 0)
        values = [next(lines) for _ in range(int(next(lines)))]
        assert len(values) == 2, "the original makes variables of two values only"
        variables.append(values[0])
        next(lines)
    assert next(lines) == "0", "no mutex groups"
    next(lines)
    start = [int(next(lines)) for _ in variables]
    next(lines), next(lines)
    pairs(lines, int(next(lines)))  # the goal
    next(lines)
    for _ in range(int(next(lines))):
        next(lines)
        name = next(lines).strip()
        prevail = pairs(lines, int(next(lines)))
        effects = []
        for row in pairs(lines, int(next(lines))):
            when = [row[1 + 2 * i:3 + 2 * i] for i in range(row[0])]
            variable, before, after = row[1 + 2 * row[0]:]
            effects.append({"Variable": variable, "Before": before, "After": after, "When": when})
        next(lines), next(lines)
        operators.append({"Name": name, "Prevail": prevail, "Effects": effects})
    return {"Domain": domain, "Problem": problem, "Variables": variables, "Derived": derived, "Start": start,
            "Operators": operators, "Walk": walk(sas)}


def walk(sas):
    """What is possible at each step, in the library's order, which of it is done, and whether the goal holds then."""
    chance = random.Random(len(sas))
    library.load_sas(sas.encode())
    steps = []
    for _ in range(STEPS):
        found = (Operator * library.get_applicable_operators_count())()
        library.get_applicable_operators(found)
        if not found:
            break
        done = chance.randrange(len(found))
        library.apply_operator(found[done].id, (Atom * found[done].nb_effect_atoms)())
        steps.append({"Possible": [o.name.strip() for o in found], "Done": done, "Won": library.check_goal()})
    return steps


class TooLong(Exception):
    pass


def give_up(*_):
    raise TooLong


signal.signal(signal.SIGALRM, give_up)
for path in files:
    with open(path) as f:
        domain, problem = f.read().split("(define (problem")
    signal.alarm(5)
    try:
        done = translate(domain, "(define (problem" + problem)
    except TooLong:
        print(path, "takes long", file=sys.stderr)
        continue
    signal.alarm(0)
    if done["Variables"][0].startswith("Atom dummy("):
        print(path, "is given up on", file=sys.stderr)
    elif len(done["Operators"]) > MOST:
        print(path, "has many operators", file=sys.stderr)
    else:
        print(json.dumps(done))
