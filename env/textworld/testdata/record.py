"""Records games of the original engine: TextWorld 1.7.0 alone (names: id) and as ALFWorld 0.4.2 runs it (names: alfworld).

    python record.py | gzip -9n > recorded.jsonl.gz

Each game is NAME.twl2 here with NAME.pddl, a domain and a problem, here or in ../pddl/testdata. A line of JSON is one
episode: what is shown first, then every command with all that came of it.
"""

import io
import json
import os
import random
import sys
import tempfile
from contextlib import redirect_stdout

import textworld
import textworld.gym
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

HERE = os.path.dirname(os.path.abspath(__file__))
EPISODES, STEPS = 4, 40


def game_file(folder, name):
    path = next(p for p in (os.path.join(HERE, d, name + ".pddl") for d in (".", "../pddl/testdata")) if os.path.exists(p))
    with open(path) as f:
        domain, problem = f.read().split("(define (problem")
    with open(os.path.join(HERE, name + ".twl2")) as f:
        grammar = f.read()
    path = os.path.join(folder, name + ".tw-pddl")
    with open(path, "w") as f:
        json.dump({"pddl_domain": domain, "grammar": grammar, "pddl_problem": "(define (problem" + problem, "solvable": True}, f)
    return path


def record(path, names, seed):
    wrappers = [AlfredDemangler(shuffle=False), AlfredInfos] if names == "alfworld" else []
    infos = textworld.EnvInfos(won=True, admissible_commands=True)
    env = textworld.gym.make(textworld.gym.register_games([path], infos, batch_size=1, max_episode_steps=STEPS, wrappers=wrappers))
    obs, info = env.reset()
    name = os.path.basename(path)[:-len(".tw-pddl")]
    episode = {"game": name, "names": names, "limit": STEPS, "reset": {"obs": obs[0], "adm": info["admissible_commands"][0]}, "steps": []}
    chance = random.Random(seed)
    said = set()
    for _ in range(STEPS + 2):
        possible = info["admissible_commands"][0]
        new = [c for c in possible if c not in said]
        command = chance.choice(new if new and chance.random() < 0.7 else possible) if possible else "wait"
        if chance.random() < 0.08:
            command = chance.choice(["", "look  ", " look", "Look", command + " ", "sing", "\x1flook\x1c", "look around"])
        said.add(command)
        obs, score, done, info = env.step([command])
        episode["steps"].append({"a": command, "obs": obs[0], "r": score[0], "done": done[0], "won": info["won"][0],
                                 "adm": info["admissible_commands"][0]})
    env.close()
    return episode


with tempfile.TemporaryDirectory() as folder:
    games = sorted(f[:-len(".twl2")] for f in os.listdir(HERE) if f.endswith(".twl2"))
    for game in games:
        path = game_file(folder, game)
        for names in ("id", "alfworld"):
            for seed in range(EPISODES):
                with redirect_stdout(io.StringIO()):
                    episode = record(path, names, seed)
                print(json.dumps(episode))
                print(game, names, seed, "won" if episode["steps"][-1]["won"] else "not won", file=sys.stderr)
