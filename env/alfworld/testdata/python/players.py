"""Players: generators that yield a command and are sent (observation, admissible commands).

A player that finds nothing to do in a game ends at once. Any other first yields None, for which it is sent the reset.
"""


def walkthrough(game, rng):
    """The commands of the game's file, which win."""
    yield from begin()
    for command in game.walkthrough:
        yield command


def random(game, rng):
    """Anything that is admissible, and now and then a command that is spoilt."""
    admissible = yield from begin()
    while True:
        command = rng.choice(admissible)
        if rng.random() < 0.15:
            command = spoilt(command, game, rng)
        _, admissible = yield command


def curious(game, rng):
    """Handles things rather than walk past them, and looks at what came of it."""
    weight = {"go": 1, "open": 4, "take": 2, "move": 1, "put": 1, "clean": 6, "heat": 6, "cool": 6, "use": 6, "slice": 20}
    admissible = yield from begin()
    while True:
        weights = [
            8 if c.startswith(("take knife", "take butterknife")) else weight.get(c.split(" ")[0], 1) for c in admissible
        ]
        command = rng.choices(admissible, weights)[0]
        _, admissible = yield command
        if rng.random() < 0.15:
            _, admissible = yield spoilt(command, game, rng)
        if command.split(" ")[0] in ("move", "put", "take") and rng.random() < 0.7:
            _, admissible = yield "look"
        held = [c for c in admissible if c.startswith("examine ") and c[8:] in game.takable]
        if held and rng.random() < 0.25:
            _, admissible = yield held[0]


def neighbours(game, rng):
    """Receptacles that stand together: none can be gone to from there, all can be used."""
    place = rng.choice([p for p in game.places() if len(p) > 1] or game.places())
    yield from begin()
    yield "go to " + rng.choice(place)
    yield "look"
    for r in place:
        yield "go to " + r
        yield "open " + r
        yield "examine " + r
    _, admissible = yield "look"
    takes = [c for c in admissible if c.startswith("take ")]
    if not takes:
        return
    thing, _, source = rng.choice(takes)[5:].partition(" from ")
    for r in place:
        yield f"take {thing} from {source}"
        yield "look"
        _, admissible = yield "examine " + thing
        yield put(thing, r, admissible)
        yield "look"
        yield "examine " + r
        source = r
    yield "close " + source
    yield f"take {thing} from {source}"
    yield "look"


def doubles(game, rng):
    """A thing that lies in two receptacles at once."""
    both = [o for o in dict.fromkeys(o for o, _ in game.inside) if len(game.holders(o)) > 1 and o in game.takable]
    if not both:
        return
    thing = rng.choice(both)
    holders = game.holders(thing)
    rng.shuffle(holders)
    yield from begin()
    for r in holders:
        yield "go to " + r
        yield "open " + r
        yield "look"
        yield f"take {thing} from {holders[0]}"
        yield "look"
        yield "examine " + thing
        yield "inventory"
    yield "examine " + holders[-1]
    _, admissible = yield f"take {thing} from {holders[-1]}"  # the hand is full
    yield put(thing, holders[-1], admissible)
    yield "look"
    yield f"take {thing} from {holders[-1]}"
    _, admissible = yield "go to " + holders[0]
    yield "examine " + holders[0]
    yield put(thing, holders[0], admissible)
    yield "examine " + holders[0]
    yield "look"


def treatments(game, rng):
    """A thing in every condition it can be brought to, one after the other."""
    can = {"clean": (game.cleanable, "sinkbasin"), "heat": (game.heatable, "microwave"), "cool": (game.coolable, "fridge")}
    can = {verb: (things, game.of(kind)) for verb, (things, kind) in can.items() if game.of(kind)}
    worth = {}
    for things in [*(things for things, _ in can.values()), game.sliceable, game.sliceable]:
        for o in things:
            if game.holders(o) and o in game.takable:
                worth[o] = worth.get(o, 0) + 1
    if not worth:
        return
    thing = rng.choice([o for o, n in worth.items() if n == max(worth.values())])
    knives = [o for o in game.takable if o.startswith(("knife ", "butterknife ")) and game.holders(o)]
    yield from begin()
    yield from fetch(thing, game)
    if knives and thing in game.sliceable and knives[0] != thing:
        yield from slice(thing, rng.choice(knives), game, rng)
    order = [verb for verb in can if thing in can[verb][0]]
    rng.shuffle(order)
    for verb in order + order[:2]:
        appliance = rng.choice(can[verb][1])
        yield "go to " + appliance
        yield f"{verb} {thing} with {appliance}"
        yield "examine " + thing
        yield "examine " + appliance


def slice(thing, knife, game, rng):
    """Slices what is held where it can be put down beside a knife."""
    side = rng.choice(game.of("countertop") or game.of("diningtable") or game.of("sidetable") or game.places()[0])
    yield "go to " + side
    yield f"slice {thing} with {knife}"  # it lies elsewhere
    _, admissible = yield "examine " + thing
    yield put(thing, side, admissible)
    yield from fetch(knife, game)
    yield f"slice {thing} with {knife}"  # too far, unless the knife lay here
    yield "go to " + side
    _, admissible = yield f"slice {thing} with {knife}"
    yield "examine " + thing
    yield put(knife, side, admissible)
    yield f"take {thing} from {side}"
    yield "examine " + thing


def fetch(thing, game):
    source = game.holders(thing)[0]
    yield "go to " + source
    yield "open " + source
    yield f"take {thing} from {source}"


def begin():
    """Receives the reset and returns its admissible commands."""
    _, admissible = yield None
    return admissible


def put(thing, receptacle, admissible):
    """The command in the wording that this game speaks."""
    old = f"put {thing} in/on {receptacle}"
    return old if old in admissible else f"move {thing} to {receptacle}"


def spoilt(command, game, rng):
    """A command that the engine should refuse, or take for all its white space."""
    words = command.split(" ")
    somewhere, something = rng.choice(game.receptacles)[0], rng.choice(game.inside)[0]
    return rng.choice([
        command.upper(), command.capitalize(), command.title(), command + ".", command + " 1", "  " + command, command + "\n",
        "\t" + command + " \r\n", "\u00a0" + command + "\u3000", "\x1f" + command, "\ufeff" + command, command + "\x00",
        command.replace(" ", "  ", 1), command.replace(" ", "\t", 1), command.replace(" ", "\u00a0", 1), " ".join(words[:-1]),
        " ".join(words[::-1]), command.replace(" ", " the ", 1), command + " and look", "", " ", "help", "Look", "nothing",
        "go to " + somewhere, "go to loc 1", "go  to " + somewhere, "open " + somewhere, "close " + somewhere,
        "examine " + something, "examine " + somewhere, f"take {something} from {somewhere}", "take " + something,
        f"put {something} in/on {somewhere}", f"move {something} to {somewhere}", f"put {something} on {somewhere}",
        f"clean {something} with {somewhere}", f"heat {something} with {somewhere}", f"cool {something} with {somewhere}",
        "use " + something, f"slice {something} with {something}", "examine agent1", "examine agent1 ", "inventory agent1",
    ])


KINDS = {p.__name__: p for p in (walkthrough, random, curious, neighbours, doubles, treatments)}
