"""pyarrow reads what the tests of parquet_test.go write, and finds in it what they put there.

    pip install pyarrow==26.0.1
    SKILLMASTER_PARQUET=FOLDER go test ./track -count=1 -run Parquet && python parquet.py FOLDER
"""
import os
import sys

import pyarrow
import pyarrow.compute as pc
import pyarrow.parquet as pq

folder = sys.argv[1]

hand = pq.read_table(os.path.join(folder, "hand.parquet"))
first, second, third = hand.to_pylist()
assert first["seed"] == 2**64 - 1 and first["shown_skills"] == ["s1", "s2"] and first["success"] is True
assert first["turns"][0] == {
    "kind": "action", "continues": False, "prompt": [1, 2], "completion": [3], "log_probs": [-0.25],
    "shown": "a room", "text": "go", "truncated": True, "noise": False,
}
assert first["turns"][1]["log_probs"] is None and first["turns"][1]["completion"] == [5, 6]
assert [s["action"] for s in first["steps"]] == ["go", "stay"] and first["steps"][0]["reward"] == 0.5
credit = ["action_return", "action_advantage", "review_return", "review_advantage"]
assert [first[c] for c in credit] == [10, 1.5, 1, -0.5]
assert [second[c] for c in credit] == [-1, -1.5, None, None] and second["turns"] == [] and second["outcome"] is None
assert [third[c] for c in credit] == [None] * 4 and third["stop"] == "unfinished" and third["report"] == 2

file = pq.ParquetFile(os.path.join(folder, "made.parquet"))
made = file.read()
assert made.num_rows == 12 * 6 * 4 and file.num_row_groups == 2
assert pc.count_distinct(made["seed"]).as_py() == made.num_rows
assert pc.sum(pc.list_value_length(made["turns"])).as_py() == pc.sum(pc.list_value_length(made["steps"])).as_py() + made.num_rows
assert made["turns"].type.value_type.field("prompt").type == pyarrow.list_(pyarrow.field("element", pyarrow.int32(), nullable=False))
print("pyarrow", pyarrow.__version__, "agrees")
