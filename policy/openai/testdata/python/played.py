#!/usr/bin/env python3
"""Checks that a run with a server's weights played: played.py RUN.DB ITERATIONS

Ends with 1 where iterations are missing, episodes were lost, or the policy has learnt, which it cannot.
"""
import sqlite3
import sys


def main(path, iterations):
    db = sqlite3.connect(path)
    seen = db.execute("SELECT count(*), min(policy_version), max(policy_version) FROM reports WHERE phase = 'learning'").fetchone()
    assert seen == (int(iterations), 0, 0), f"iterations and versions are {seen}"
    episodes, steps, stops = db.execute("SELECT count(*), sum(steps), count(DISTINCT stop) FROM trajectories").fetchone()
    outcomes = dict(db.execute("SELECT outcome, count(*) FROM trajectories GROUP BY outcome"))
    dropped = db.execute("SELECT sum(value) FROM metrics WHERE key = 'rollout/groups_dropped'").fetchone()[0]
    assert episodes > 0 and steps > 0 and not dropped, f"{episodes} episodes, {steps} steps, {dropped} groups left out"
    print(f"{episodes} episodes of {steps} steps; reviews: {outcomes}")


if __name__ == "__main__":
    main(*sys.argv[1:])
