"""Compares a run on an MLflow server with its JSON lines: every point once, and no other.

    pip install mlflow==3.17.2
    python mlflow_run.py URL EXPERIMENT FILE.jsonl
"""
import json
import sys

import mlflow

url, experiment, lines = sys.argv[1:]
client = mlflow.MlflowClient(url)
(run,) = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
want = {}
for line in open(lines, encoding="utf-8"):
    r = json.loads(line)
    want.update({(k, r["step"]): v for k, v in r.items() if "/" in k and v is not None})
points = [(k, p.step, p.value) for k in run.data.metrics for p in client.get_metric_history(run.info.run_id, k)]
assert len(points) == len(want) > 0, (len(points), len(want))
for k, step, value in points:
    assert value == want[k, step], (k, step, value, want[k, step])
assert run.info.status == "FINISHED" and run.data.params["train.iterations"] == "1", (run.info.status, run.data.params)
print(f"{len(points)} points and {len(run.data.params)} params of {run.info.run_name} agree")
