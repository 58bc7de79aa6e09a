"""ALFWorld's own text engine on folders of the official layout, and what its files say of a game."""

import contextlib
import json
import re
import sys
from pathlib import Path

STEP_LIMIT = 50  # of the stock configuration


class Original:
    """One split in the environment that ALFWorld gives its users, one episode at a time."""

    def __init__(self, split):
        from alfworld.agents.environment import get_environment

        config = {
            "general": {"training_method": "dagger"},
            "dagger": {"training": {"max_nb_steps_per_episode": STEP_LIMIT}},
            "dataset": {"eval_ood_data_path": str(split), "num_eval_games": -1},
            "env": {
                "task_types": [1, 2, 3, 4, 5, 6],
                "goal_desc_human_anns_prob": 0,
                "domain_randomization": False,
                "expert_type": "handcoded",
            },
        }
        with contextlib.redirect_stdout(sys.stderr):
            # An evaluation split: the environment has no expert there, which would only slow it down.
            split = get_environment("AlfredTWEnv")(config, train_eval="eval_out_of_distribution")
            self.env = split.init_env(batch_size=1).batch_env  # what reset() of the environment loads and resets
        self.files = sorted(map(Path, split.game_files))

    def load(self, file):
        self.env.load([str(file)])

    def reset(self):
        """Returns the observation and the admissible commands."""
        observations, infos = self.env.reset()
        return observations[0], infos["admissible_commands"][0]

    def step(self, command):
        """Returns observation, admissible commands, score, done and won."""
        observations, scores, dones, infos = self.env.step([command])
        return observations[0], infos["admissible_commands"][0], scores[0], dones[0], infos["won"][0]

    def names(self):
        """What the player reads for each id of the loaded game."""
        return {id: info.name for id, info in self.env.envs[0]._entity_infos.items()}


class Game:
    """What a game's file says, in the names the player reads. Every list has the order of the ids."""

    def __init__(self, file, names):
        data = json.loads(file.read_text())
        facts = sorted(set(re.findall(r"\((\w+) (\S+?)(?: (\S+?))?\)", data["pddl_problem"].lower().split("(:goal")[0])))
        named = [(f, names.get(a, a), names.get(b, b)) for f, a, b in facts]

        def having(fact):
            return [a for f, a, _ in named if f == fact]

        def pairs(fact):
            return [(a, b) for f, a, b in named if f == fact]

        self.walkthrough = [
            " ".join(names.get(w, w) for w in command.split(" ")) for command in data.get("walkthrough") or []
        ]
        self.receptacles = pairs("receptacleatlocation")  # and where they stand
        self.inside = pairs("inreceptacle")
        self.cleanable, self.heatable, self.coolable = having("cleanable"), having("heatable"), having("coolable")
        self.sliceable, self.takable = having("sliceable"), having("pickupable")

    def of(self, kind):
        """The receptacles of a kind."""
        return [r for r, _ in self.receptacles if r.startswith(kind + " ")]

    def holders(self, thing):
        """The receptacles a thing lies in."""
        return [r for o, r in self.inside if o == thing]

    def places(self):
        """The receptacles that stand together, place by place."""
        together = {}
        for r, place in self.receptacles:
            together.setdefault(place, []).append(r)
        return list(together.values())


def splits(games):
    """The splits of a folder of the official layout."""
    root = Path(games) / "json_2.1.1"
    found = sorted(p for p in root.iterdir() if p.is_dir())
    if not found:
        sys.exit(f"no games in {root}: write some with skillmaster data pack --form official --to {games}")
    return found


def spread(items, n):
    """n of the items, evenly spread; all for 0."""
    return items if n == 0 or n >= len(items) else [items[i * len(items) // n] for i in range(n)]
