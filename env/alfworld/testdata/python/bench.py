"""Times ALFWorld's own engine with random admissible actions and prints JSON under the names of skillmaster bench env.

One process, as the engine is not safe for threads. Times are of the processor, which is what an idle machine's clock would
say, so that other programs do not count against it.
"""

import argparse
import json
import os
import random
import time

from original import Original, splits, spread


def resident():
    """Bytes of memory this process holds."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def timed(f, *args):
    began = time.process_time()
    result = f(*args)
    return time.process_time() - began, result


def measure(split, games, steps, seed):
    """Each game is loaded, reset, reset again and played; the last is reset once more, in environments beside each other."""
    original, rng = Original(split), random.Random(seed)
    files = spread(original.files, games)
    load = first = reset = step = 0.0
    taken = won = 0
    for file in files:
        load += timed(original.load, file)[0]
        first += timed(original.reset)[0]
        seconds, (_, admissible) = timed(original.reset)
        reset += seconds
        done = False
        for _ in range(steps):
            if done:
                break
            seconds, (_, admissible, _, done, success) = timed(original.step, rng.choice(admissible))
            step, taken, won = step + seconds, taken + 1, won + success
    process = resident()
    beside = [Original(split) for _ in range(4)]
    for o in beside:
        o.load(files[-1])
        o.reset()
    n = len(files)
    return {
        "env": "alfworld (Python)", "split": split.name, "tasks": n, "steps": taken, "successes": won,
        "load_us_per_task": load / n * 1e6,
        "first_open_us": first / n * 1e6,
        "reset_us": reset / n * 1e6,
        "one_worker": {"workers": 1, "steps_per_second": taken / step, "resets_per_second": n / reset},
        "bytes_per_open_episode": (resident() - process) / len(beside),
        "bytes_per_process": process,
    }


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("games", help="folder with json_2.1.1/")
    p.add_argument("--split", help="default: the first")
    p.add_argument("--each", type=int, default=12, help="games, evenly spread (default: 12)")
    p.add_argument("--steps", type=int, default=15, help="most steps of an episode (default: 15)")
    p.add_argument("--seed", type=int, default=1)
    options = p.parse_args()
    split = next(s for s in splits(options.games) if options.split in (None, s.name))
    print(json.dumps(measure(split, options.each, options.steps, options.seed), indent=2))


if __name__ == "__main__":
    main()
