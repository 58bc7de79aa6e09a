"""The stock OpenEnv client plays a server, without anything of ours: play.py URL SPLIT EPISODES [TOKEN]

Plays each episode twice with the same seed and random admissible actions and compares every word; checks that seeds,
families and admissible actions are told; calls the tool; asks for what cannot be. Prints one JSON object a step of the
first time to stdout, for a comparison with the world played in-process, and what it saw to stderr. Exit code 1: a check failed.
"""

import asyncio
import json
import random
import sys
from importlib.metadata import version

from openenv.core.generic_client import GenericEnvClient


def name():
    for p in ("openenv", "openenv-core"):
        try:
            return f"{p} {version(p)}"
        except Exception:
            pass


def check(ok, what):
    if not ok:
        raise SystemExit(f"check failed: {what}")


def metadata(result):
    """Newer clients hand on the metadata beside the observation, older ones know of it inside alone."""
    inside = result.observation["metadata"]
    beside = getattr(result, "metadata", None)
    check(beside is None or beside == inside, "metadata inside and beside the observation differ")
    return inside


async def episode(client, split, seed):
    rng = random.Random(seed)
    seen = []
    r = await client.reset(seed=seed, split=split, episode_id=f"e{seed}", what_other_worlds_want=1)
    m = metadata(r)
    check(m["seed"] == seed and m["split"] == split and m["task_id"] and m["family"] and m["category"], f"metadata {m}")
    check(r.reward is None and r.done is False, "a reset has a reward or is done")
    seen.append({"task": m["task_id"], "split": m["split"], "seed": seed, "text": r.observation["text"], "admissible": m["admissible_actions"]})
    while not r.done:
        actions = metadata(r)["admissible_actions"]
        check(actions and actions == r.observation["admissible_commands"], "no admissible actions")
        action = rng.choice(actions) if rng.random() < 0.9 else "whistle a tune"
        r = await client.step({"message": action})
        m = metadata(r)
        check(isinstance(r.reward, (int, float)), f"reward {r.reward!r}")
        seen.append({"action": action, "text": r.observation["text"], "admissible": m["admissible_actions"], "reward": r.reward,
                     "done": r.done, "won": r.observation["won"], "possible": m["action_was_possible"]})
    state = await client.state()
    check(state["episode_id"] == f"e{seed}" and state["step_count"] == len(seen) - 1, f"state {state}")
    return seen


async def refuses(client, call, code):
    try:
        await call
    except RuntimeError as e:
        check(code in str(e), f"error {e}, want {code}")
        return
    check(False, f"no error, want {code}")


async def main():
    url, split, episodes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    families, steps, won = set(), 0, 0
    async with GenericEnvClient(base_url=url) as client:
        await refuses(client, client.step({"message": "look"}), "EXECUTION_ERROR")
        for seed in range(episodes):
            first, second = await episode(client, split, seed), await episode(client, split, seed)
            check(first == second, f"seed {seed}: two episodes differ")
            for row in first:
                print(json.dumps(row))
            families.add(first[0]["task"])
            steps += len(first) - 1
            won += first[-1]["won"]
        await refuses(client, client.step({"massage": "look"}), "VALIDATION_ERROR")
        await refuses(client, client.reset(split="no such split"), "VALIDATION_ERROR")
        await refuses(client, client.reset(task_id="../../etc/passwd"), "VALIDATION_ERROR")
        r = await client.reset(seed=0, split=split)
        tools = await client.step({"type": "list_tools"})
        check([t["name"] for t in tools.observation["tools"]] == ["act"], f"tools {tools.observation}")
        action = metadata(r)["admissible_actions"][0]
        called = await client.step({"type": "call_tool", "tool_name": "act", "arguments": {"action": action}})
        check(called.observation["error"] is None and called.observation["result"], f"tool {called.observation}")
    # Many at once, each with a connection of its own.
    async def alone(seed):
        async with GenericEnvClient(base_url=url) as c:
            return await episode(c, split, seed)

    many = await asyncio.gather(*(alone(s % episodes) for s in range(4 * episodes)))
    for i, seen in enumerate(many):
        check(seen == many[i % episodes], f"concurrent episodes of seed {i % episodes} differ")
    print(f"{name()}: {episodes} episodes twice and {4 * episodes} at once, {steps} steps, {won} won, {len(families)} tasks", file=sys.stderr)


asyncio.run(main())
