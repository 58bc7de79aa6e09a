#!/usr/bin/env python3
"""Measures skillmaster and PyTorch in turn, on the same shapes, and prints medians and ratios.

    beside_torch.py [--rounds N] SKILLMASTER PYTHON... -- OPTIONS

Each PYTHON has torch; those that have not are named and left out. OPTIONS go to `skillmaster bench engine` and to bench_torch.py alike, so that
there is one place to say what is measured. Of PyTorch's ways (one thread, all threads, as many processes as cores) the best counts.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

SCRIPT = str(Path(__file__).with_name("bench_torch.py"))
ROWS = [  # name; where it stands in each; whether more is better
    ("train, tokens a second", "train", "train_tokens_per_second", "tokens_per_second", True),
    ("memory of a training step, MB", "train", "step_bytes", "step_bytes", False),
    ("sample, tokens a second", "sample", "sampled_tokens_per_second", "tokens_per_second", True),
    ("the same after the first token", "sample", "sampled_tokens_per_second_after_the_first", "tokens_per_second_after_the_first", True),
    ("seconds to the first token", "sample", "seconds_to_first_token", "seconds_to_first_token", False),
]


def output(command):
    print(*command, file=sys.stderr)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=3, help="runs of each (default: 3)")
    p.add_argument("program", help="skillmaster")
    p.add_argument("pythons", nargs="+", metavar="python")
    split = sys.argv.index("--")
    a, options = p.parse_args(sys.argv[1:split]), sys.argv[split + 1:]
    pythons = [x for x in a.pythons if has_torch(x)]
    cores = os.cpu_count()
    machine, ours, theirs = None, {}, {}
    for _ in range(a.rounds):
        for workers in sorted({1, cores}):
            run = json.loads(output([a.program, "bench", "engine", "--json", "--rounds", "1", "--workers", str(workers), *options]))
            machine = machine or run["machine"]
            for precise in run["precisions"]:
                ours.setdefault((precise["precision"], workers), []).append(precise)
        for python in pythons:
            for line in output([python, SCRIPT, *options]).splitlines():
                row = json.loads(line)
                if "failed" in row:
                    print("failed:", line, file=sys.stderr)
                    continue
                theirs.setdefault((row["torch"], row["what"], row["precision"], row["threads"], row["processes"]), []).append(row)
    print(json.dumps(machine), f"{a.rounds} rounds in turn, medians;", *options)
    for precision in sorted({key[0] for key in ours}, reverse=True):
        show(precision, ours, theirs, cores)


def has_torch(python):
    found = subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0
    if not found:
        print(f"{python} has no torch: left out", file=sys.stderr)
    return found


def show(precision, ours, theirs, cores):
    one, every = ours[precision, 1], ours[precision, cores]
    shares = [r["peak_fraction"] for r in every if r["peak_fraction"] is not None]
    peak = f"takes {100 * statistics.median(shares):.0f} %" if shares else "was not compared with"
    print(f"\n{precision}, {every[0]['kernel']}: training {peak} of the peak of {cores} workers")
    print(f"{'':32}{'skillmaster':>12}{'1 worker':>10}{'PyTorch':>10}{'ours over it':>14}  which PyTorch")
    for name, what, mine, its, more in ROWS:
        scale = 1e-6 if its.endswith("bytes") else 1
        if any(r[mine] is None for r in every + one):
            print(f"{name:32}{'not measured':>12}")
            continue
        a, b = (statistics.median(r[mine] for r in runs) * scale for runs in (every, one))
        ways = {key: statistics.median(r[its] for r in rows) * scale for key, rows in theirs.items() if key[1:3] == (what, precision)}
        if not ways:
            print(f"{name:32}{a:12.4g}{b:10.4g}{'not run':>10}")
            continue
        way = (max if more else min)(ways, key=ways.get)
        print(f"{name:32}{a:12.4g}{b:10.4g}{ways[way]:10.4g}{a / ways[way]:14.2f}  {way[0]}, {way[4]} processes of {way[3]} threads")
    print("All ways of PyTorch:")
    for key, rows in sorted(theirs.items()):
        if key[2] == precision:
            values = ", ".join(f"{its} {statistics.median(r[its] for r in rows):.4g}" for _, what, _, its, _ in ROWS if what == key[1])
            print(f"  {key[0]}, {key[1]}, {key[4]} processes of {key[3]} threads: {values}")


main()
