"""Plays games of the official layout in ALFWorld's own engine and writes down every word, one episode a line.

skillmaster replay plays the same episodes and compares. The same arguments give the same recording.
"""

import argparse
import gzip
import itertools
import json
import random
import sys
import time

import players
from original import STEP_LIMIT, Game, Original, splits, spread


def episode(original, player, most):
    """Plays until the player stops or has made the most steps; two steps more when the game ends before."""
    observation, admissible = original.reset()
    record = {"reset": {"obs": observation, "adm": admissible}, "steps": []}
    command, rest = advance(player, observation, admissible), most
    while command is not None and rest > 0:
        observation, admissible, score, done, won = original.step(command)
        record["steps"].append({"a": command, "obs": observation, "r": score, "done": done, "won": won, "adm": admissible})
        command = advance(player, observation, admissible)
        rest = rest - 1
        if done and rest > 2:
            rest, command = 2, "look"
    return record


def advance(player, observation, admissible):
    try:
        return player.send((observation, admissible))
    except StopIteration:
        return None


def episodes(options):
    turns = itertools.cycle(options.kinds)
    for split in splits(options.games):
        original = Original(split)
        for file in spread(original.files, options.each):
            name = file.relative_to(split.parent).as_posix()
            original.load(file)
            game = Game(file, original.names())
            wanted = options.kinds if options.episodes == 0 else [next(turns) for _ in range(options.episodes)]
            for kind in wanted:
                rng = random.Random(f"{options.seed} {kind} {name}")
                # One episode in eight goes to the limit.
                most = STEP_LIMIT + 2 if kind == "random" and rng.random() < 0.125 else options.steps
                player = players.KINDS[kind](game, rng)
                if next(player, "nothing") is None:  # there is something to do for it in this game
                    yield {"game": name, "kind": kind, "limit": STEP_LIMIT} | episode(original, player, most)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("games", help="folder with json_2.1.1/, as skillmaster data pack --form official writes it")
    p.add_argument("recording", help="file to write, .jsonl.gz")
    p.add_argument("--each", type=int, default=0, help="games of each split, evenly spread (default: all)")
    p.add_argument("--kinds", nargs="+", choices=players.KINDS, default=list(players.KINDS), help="players (default: all)")
    p.add_argument("--episodes", type=int, default=0, help="episodes of each game, players in turn (default: one of each)")
    p.add_argument("--steps", type=int, default=30, help="most steps of an episode (default: 30)")
    p.add_argument("--seed", type=int, default=1)
    options = p.parse_args()
    began, steps = time.process_time(), 0
    with open(options.recording, "wb") as f, gzip.GzipFile("", "wb", fileobj=f, mtime=0) as z:
        for n, record in enumerate(episodes(options), 1):
            z.write(json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
            steps += len(record["steps"])
            print(f"\r{n} episodes, {steps} steps, {time.process_time() - began:.0f} s", end="", file=sys.stderr)
    print(file=sys.stderr)


if __name__ == "__main__":
    main()
