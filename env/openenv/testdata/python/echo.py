"""Ours plays the example environment of the stock package on its own server: echo.py SKILLMASTER URL

The example echoes a message and pays 0.1 for each of its letters, at most 1. Exit code 1: an answer is not what it should be.
"""

import json
import subprocess
import sys

program, url = sys.argv[1:3]
said = ["hello", "hi", "Grüße aus dem Wald", "x" * 5000]
for task in ("train/000003", "test/000000"):
    run = subprocess.run([program, "play", "--env", "openenv:" + url, "--split", task.split("/")[0], "--task", task, "--json"],
                         input="".join(s + "\n" for s in said), capture_output=True, text=True, check=True)
    steps = json.loads(run.stdout)["steps"]
    want = [(s, s, min(0.1 * len(s), 1)) for s in said]
    got = [(s["action"], s["observation"], s["reward"]) for s in steps]
    if len(got) != len(want) or any(g[:2] != w[:2] or abs(g[2] - w[2]) > 1e-9 for g, w in zip(got, want)):
        raise SystemExit(f"{task}: got {got}, want {want}")
    if "environment ready!" not in run.stderr:
        raise SystemExit(f"the first observation is missing: {run.stderr}")
print(f"2 episodes of the stock example, {2 * len(said)} steps: as its source says", file=sys.stderr)
