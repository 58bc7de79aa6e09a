"""Writes small domains and problems drawn at random, with all constructs that are read, for translate.py.

    python random_domains.py FOLDER 0 160
    python translate.py FOLDER/*.pddl | gzip -9n > random.jsonl.gz

translate.py passes over problems that the original gives up on, and those that take it long.
"""

import os
import random
import sys


class Draw:
    def __init__(self, seed):
        self.r = r = random.Random(seed)
        self.count = 0
        self.types = ["t%d" % i for i in range(r.randint(1, 4))]
        self.above = {t: r.choice(["object"] + self.types[:i]) for i, t in enumerate(self.types)}
        kinds = self.types + ["object"]
        self.predicates = [("p%d" % i, [r.choice(kinds) for _ in range(r.choice([0, 1, 1, 2, 2]))]) for i in range(r.randint(3, 7))]
        self.objects = [("o%d" % i, r.choice(self.types)) for i in range(r.randint(3, 5))]
        self.constants = [("c%d" % i, r.choice(self.types)) for i in range(r.randint(0, 2))]

    def is_a(self, kind, other):
        return kind == other or kind != "object" and self.is_a(self.above[kind], other)

    def variables(self, most):
        found = []
        for _ in range(self.r.randint(1, most) if most else 0):
            self.count += 1
            found.append(("?v%d" % self.count, self.r.choice(self.types + ["object"])))
        return found

    def term(self, scope, kind):
        fits = [n for n, k in scope if self.is_a(k, kind)] or [n for n, _ in scope + self.constants]
        return self.r.choice(fits) if fits else None

    def atom(self, scope):
        for _ in range(10):
            name, kinds = self.r.choice(self.predicates)
            terms = [self.term(scope, k) for k in kinds]
            if None not in terms:
                return "(" + " ".join([name] + terms) + ")"
        return None

    def condition(self, scope, depth):
        choice = self.r.random()
        if depth == 0 or choice < 0.45:
            atom = self.atom(scope)
            if atom is None or len(scope) >= 2 and self.r.random() < 0.12:
                if not scope:
                    return "(and)"
                atom = "(= %s %s)" % (self.r.choice(scope)[0], self.r.choice(scope)[0])
            return "(not %s)" % atom if self.r.random() < 0.3 else atom
        if choice < 0.78:
            parts = [self.condition(scope, depth - 1) for _ in range(self.r.randint(1, 3))]
            return "(%s %s)" % ("and" if choice < 0.65 else "or", " ".join(parts[:3 if choice < 0.65 else 2]))
        if choice < 0.82:
            return "(not %s)" % self.condition(scope, depth - 1)
        if choice < 0.85:
            return "(imply %s %s)" % (self.condition(scope, depth - 1), self.condition(scope, depth - 1))
        vs = self.variables(2)
        return "(%s (%s) %s)" % (self.r.choice(["exists"] * 3 + ["forall"]), listed(vs), self.condition(scope + vs, depth - 1))

    def effect(self, scope, depth):
        choice = self.r.random()
        if depth == 0 or choice < 0.6:
            atom = self.atom(scope)
            return "(not %s)" % atom if atom and self.r.random() < 0.45 else atom
        if choice < 0.8:
            effect = self.effect(scope, depth - 1)
            return effect and "(when %s %s)" % (self.condition(scope, 1), effect)
        if choice < 0.9:
            vs = self.variables(1)
            effect = self.effect(scope + vs, depth - 1)
            return effect and "(forall (%s) %s)" % (listed(vs), effect)
        parts = [e for e in (self.effect(scope, depth - 1) for _ in range(2)) if e]
        return "(and %s)" % " ".join(parts) if parts else None

    def action(self, i):
        vs = self.variables(self.r.randint(0, 3))
        effects = [e for e in (self.effect(vs, 2) for _ in range(self.r.randint(1, 4))) if e]
        when = self.condition(vs, 3) if self.r.random() < 0.9 else "()"
        return "  (:action a%d :parameters (%s)\n    :precondition %s\n    :effect (and %s))" % (i, listed(vs), when, " ".join(effects))

    def text(self):
        lines = ["(define (domain drawn)", "  (:types %s)" % listed(self.above.items())]
        if self.constants:
            lines.append("  (:constants %s)" % listed(self.constants))
        declared = [" ".join([n] + ["?x%d - %s" % (i, k) for i, k in enumerate(kinds)]) for n, kinds in self.predicates]
        lines.append("  (:predicates %s)" % " ".join("(%s)" % d for d in declared))
        lines += [self.action(i) for i in range(self.r.randint(2, 5))]
        everything = self.objects + self.constants
        facts = set()
        for name, kinds in self.predicates:
            for _ in range(self.r.randint(0, 4)):
                terms = [self.r.choice([o for o, k in everything if self.is_a(k, kind)] or [o for o, _ in everything]) for kind in kinds]
                facts.add("(" + " ".join([name] + terms) + ")")
        goal = self.condition(everything, self.r.choice([0, 1, 2]))
        lines[-1] += ")"
        lines += ["(define (problem drawn-one) (:domain drawn)", "  (:objects %s)" % listed(self.objects),
                  "  (:init %s)" % " ".join(sorted(facts)), "  (:goal %s))" % goal]
        return "\n".join(lines) + "\n"


def listed(pairs):
    return " ".join("%s - %s" % p for p in pairs)


folder, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.makedirs(folder, exist_ok=True)
for seed in range(first, last):
    with open(os.path.join(folder, "%04d.pddl" % seed), "w") as f:
        f.write(Draw(seed).text())
