#!/usr/bin/env python3
"""Checks that a run learnt on a server: trained.py RUN.DB ITERATIONS

Ends with 1 where iterations or updates are missing, groups were lost, or the log-probabilities that were sampled with are
not those that are trained with: each iteration has one update, so they are of the same weights.
"""
import sqlite3
import sys


def main(path, iterations):
    db = sqlite3.connect(path)
    seen, version = db.execute("SELECT count(*), max(policy_version) FROM reports WHERE phase = 'learning'").fetchone()
    episodes, steps = db.execute("SELECT count(*), sum(steps) FROM trajectories").fetchone()

    def values(key):
        return [v for v, in db.execute("SELECT value FROM metrics WHERE key = ? ORDER BY report", (key,)) if v is not None]

    updates, drift, norms = sum(values("learn/updates")), values("learn/drift"), values("learn/grad_norm")
    assert seen == int(iterations), f"{seen} iterations"
    assert updates >= 1 and version >= 1 and len(drift) >= 1, f"{updates} updates, version {version}"
    assert max(drift) < 1e-3, f"sampler and trainer are {max(drift)} apart"
    assert all(n > 0 for n in norms) and len(norms) == len(drift), f"norms of gradients are {norms}"
    assert not sum(values("rollout/groups_dropped")), "groups were left out"
    print(f"{seen} iterations, {updates:.0f} updates, {episodes} episodes of {steps} steps; sampler and trainer at most {max(drift):.2g} apart; "
          f"norms {', '.join(f'{n:.3g}' for n in norms)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
