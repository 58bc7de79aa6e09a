"""The episodes that play.py printed, against the same ones in-process: compare.py SKILLMASTER ENV DATA < EPISODES

Each episode's actions are typed into `skillmaster play`, and every word, reward and verdict is compared. Exit code 1: they differ.
"""

import json
import subprocess
import sys

program, world, data = sys.argv[1:4]


def episodes():
    rows = []
    for line in sys.stdin:
        row = json.loads(line)
        if "task" in row and rows:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def played(task, seed, actions):
    typed = "".join(a + "\n" for a in actions)
    run = subprocess.run(
        [program, "play", "--env", world, "--data", data, "--split", task["split"], "--task", task["task"], "--seed", str(seed), "--json"],
        input=typed, capture_output=True, text=True, check=True,
    )
    return json.loads(run.stdout), run.stderr


n = steps = 0
for first, *rest in episodes():
    here, dialogue = played(first, first["seed"], [r["action"] for r in rest])
    if first["text"] not in dialogue:
        raise SystemExit(f"{first['task']}: the first observation is not that of the episode in-process")
    if len(here["steps"]) != len(rest):
        raise SystemExit(f"{first['task']}: {len(rest)} steps over the wire, {len(here['steps'])} in-process")
    for i, (there, local) in enumerate(zip(rest, here["steps"])):
        for name, a, b in (("action", there["action"], local["action"]), ("text", there["text"], local["observation"]),
                           ("reward", there["reward"], local["reward"]), ("possible", there["possible"], local["admissible"])):
            if a != b:
                raise SystemExit(f"{first['task']}, step {i + 1}: {name} is {a!r} over the wire, {b!r} in-process")
    if rest[-1]["won"] != here["success"]:
        raise SystemExit(f"{first['task']}: the verdicts differ")
    n, steps = n + 1, steps + len(rest)
print(f"{n} episodes, {steps} steps: over the wire and in-process the same", file=sys.stderr)
