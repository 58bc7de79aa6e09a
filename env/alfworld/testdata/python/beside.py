"""Measures ALFWorld's own engine and skillmaster in turn, on the same folder of games, and prints medians and ratios."""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROWS = {  # what is measured: where it stands in the JSON of each, and whether more is better
    "steps a second, one worker": ("one_worker.steps_per_second", "one_worker.steps_per_second", True),
    "steps a second, all cores": ("one_worker.steps_per_second", "all_workers.steps_per_second", True),
    "resets a second, one worker": ("one_worker.resets_per_second", "one_worker.resets_per_second", True),
    "µs to load a game": ("load_us_per_task", "load_us_per_task", False),
    "µs to open it first": ("first_open_us", "first_open_us", False),
    "µs to reset it": ("reset_us", "reset_us", False),
    "bytes an open episode": ("bytes_per_open_episode", "bytes_per_open_episode", False),
}


def output(command):
    print(*command, file=sys.stderr)
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def median(runs, path):
    def value(run):
        for key in path.split("."):
            run = run[key]
        return run

    return statistics.median(map(value, runs))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("program", help="skillmaster")
    p.add_argument("games", help="folder with json_2.1.1/")
    p.add_argument("split")
    p.add_argument("--rounds", type=int, default=5, help="runs of each (default: 5)")
    options = p.parse_args()
    theirs = [sys.executable, str(Path(__file__).with_name("bench.py")), options.games, "--split", options.split]
    ours = [options.program, "bench", "env", "--env", "alfworld", "--data", options.games, "--split", options.split, "--rounds", "1"]
    python, go = [], []
    for _ in range(options.rounds):
        python.append(output(theirs))
        go.append(output(ours))
    print(json.dumps(go[0]["machine"]), f"{len(python)} rounds in turn, medians; split {options.split}, {go[0]['tasks']} games")
    print(f"{'':30}{'Python':>14}{'skillmaster':>14}{'times better':>14}")
    for name, (a, b, more) in ROWS.items():
        a, b = median(python, a), median(go, b)
        print(f"{name:30}{a:14.5g}{b:14.5g}{b / a if more else a / b:14.0f}")
    print(f"{'bytes of a Python process':30}{median(python, 'bytes_per_process'):14.5g}")


if __name__ == "__main__":
    main()
