#!/usr/bin/env python3
"""Play the foreign games in the original engine and record every step.

    pip install alfworld==0.4.2 textworld==1.7.0 fast-downward-textworld
    python record.py | gzip -9n > golden.jsonl.gz

Each game is played by TextWorld alone (names "id": entities are called by their ids) and, in the official layout of folders, by
ALFWorld's AlfredTWEnv (names "alfworld"). A line of JSON is an episode: game, names, kind (walkthrough, random, directed), limit,
reset {obs, adm}, steps [{a, obs, r, done, won, adm}].
"""
import contextlib
import io
import json
import os
import random
import shutil
import sys
import tempfile

import textworld
import textworld.gym
from alfworld.agents.environment.alfred_tw_env import AlfredTWEnv
from alfworld.agents.utils.misc import Demangler
from textworld.envs.pddl import PddlEnv

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 30
ODD = ["", "  ", "sing", "LOOK AROUND", "wait ", " wait", "wait  a bit", "go to", "survey  desk_bar_1", "take \u00e9"]


def plain(path):
    infos = textworld.EnvInfos(won=True, admissible_commands=True)
    env = textworld.gym.make(textworld.gym.register_games([path], infos, batch_size=1, max_episode_steps=LIMIT))
    return env


def official(path, folder):
    """The environment of ALFWorld on a data folder with this game alone."""
    name = os.path.basename(os.path.dirname(path))
    trial = os.path.join(folder, name, "json_2.1.1", "valid_seen", "pick_and_place_simple-Foreign-None-" + name + "-0", "trial_" + name)
    if not os.path.exists(trial):
        shutil.copytree(os.path.dirname(path), trial)
    data = os.path.join(folder, name, "json_2.1.1")
    config = {
        "env": {"goal_desc_human_anns_prob": 0, "task_types": [1, 2, 3, 4, 5, 6], "domain_randomization": False, "expert_type": "handcoded"},
        "dataset": {"data_path": data + "/train", "eval_id_data_path": data + "/valid_seen", "eval_ood_data_path": data + "/valid_unseen",
                    "num_train_games": 0, "num_eval_games": 0},
        "general": {"training_method": "dagger"},
        "dagger": {"training": {"max_nb_steps_per_episode": LIMIT}},
    }
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        world = AlfredTWEnv(config, train_eval="eval_in_distribution")
        assert len(world.game_files) == 1, world.game_files
        return world.init_env(batch_size=1)


def names_of(path):
    """What ALFWorld calls each id."""
    env = PddlEnv()
    env.load(path)
    demangler = Demangler(game_infos=env._entity_infos)
    return {i: demangler.demangle_alfred_name(i) for i in env._entity_infos}


def play(env, choose):
    obs, infos = env.reset()
    episode = {"limit": LIMIT, "reset": {"obs": obs[0], "adm": infos["admissible_commands"][0]}, "steps": []}
    for i in range(LIMIT + 2):
        command = choose(i, infos["admissible_commands"][0])
        if command is None:
            break
        obs, scores, dones, infos = env.step([command])
        episode["steps"].append({"a": command, "obs": obs[0], "r": scores[0], "done": bool(dones[0]), "won": bool(infos["won"][0]),
                                 "adm": infos["admissible_commands"][0]})
    return episode


def by_chance(seed):
    chance = random.Random(seed)
    said = set()

    def choose(_, possible):
        fresh = [c for c in possible if c not in said]
        command = chance.choice(fresh if fresh and chance.random() < 0.75 else possible)
        said.add(command)
        return command
    return choose


def along(commands):
    return lambda i, _: commands[i] if i < len(commands) else None


def directed(commands, seed):
    """The commands with odd ones and detours between, and some more behind the end."""
    chance = random.Random(seed)
    left = list(commands)

    def choose(i, possible):
        if i >= LIMIT + 1 or not possible:
            return None
        if chance.random() < 0.2:
            return chance.choice(ODD)
        if chance.random() < 0.15 and left:
            return chance.choice([c for c in possible if c.split()[0] in ("look", "wait", "examine", "survey", "read")] or ["sing"])
        if left:
            return left.pop(0)
        return chance.choice(possible)
    return choose


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(os.listdir(HERE)):
            path = os.path.join(HERE, name, "game.tw-pddl")
            if not os.path.exists(path):
                continue
            with open(path) as f:
                walkthrough = json.load(f)["walkthrough"]
            for names in ("id", "alfworld"):
                commands = walkthrough
                if names == "alfworld":
                    called = names_of(path)
                    commands = [" ".join(called.get(w, w) for w in c.split(" ")) for c in walkthrough]
                plays = [("walkthrough", along(commands))]
                plays += [("random", by_chance(seed)) for seed in range(8)]
                plays += [("directed", directed(commands, seed)) for seed in range(6)]
                for i, (kind, choose) in enumerate(plays):
                    env = plain(path) if names == "id" else official(path, folder)
                    with contextlib.redirect_stdout(io.StringIO()):
                        episode = play(env, choose)
                    env.close()
                    print(json.dumps({"game": name, "names": names, "kind": kind, **episode}), flush=True)
                    print(name, names, kind, i, len(episode["steps"]), "won" if episode["steps"][-1]["won"] else "-", file=sys.stderr)


if __name__ == "__main__":
    main()
