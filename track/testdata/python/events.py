"""What stock TensorBoard makes of an event file, and the bytes it would write: the outside values of tensorboard_test.go.

    pip install tensorboard==2.21.0
    python events.py write | fold -w 120 > ../events.hex    # the stored values
    python events.py read FOLDER                            # curves in a folder, as TensorBoard shows them
    python events.py compare FOLDER FILE.jsonl              # with the JSON lines of the same run: every point, and no other
"""
import json
import math
import os
import sys
import tempfile

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter


def write():
    """The file of the test's run: two rounds, the second taken back and done again."""

    def round_of(wall, step, **values):
        value = [summary_pb2.Summary.Value(tag=k.replace("__", "/"), simple_value=v) for k, v in sorted(values.items())]
        return event_pb2.Event(wall_time=wall, step=step, summary=summary_pb2.Summary(value=value))

    events = [
        event_pb2.Event(wall_time=1767323045.25, file_version="brain.Event:2"),
        round_of(1767323105.5, 1, learn__loss=4.0, time__update_seconds=10.0),
        round_of(1767323165.5, 2, action__success=0.1, learn__loss=1e39),
        event_pb2.Event(wall_time=1767323225.5, step=2, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START)),
        round_of(1767323225.5, 2, action__success=0.75),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "events")
        with open(path, "wb") as f:
            w = RecordWriter(f)
            for e in events:
                w.write(e.SerializeToString(deterministic=True))
            w.flush()
        print(open(path, "rb").read().hex())


def curves(folder):
    a = event_accumulator.EventAccumulator(folder, size_guidance={event_accumulator.SCALARS: 0})
    a.Reload()
    return {tag: a.Scalars(tag) for tag in sorted(a.Tags()["scalars"])}


def read(folder):
    for tag, points in curves(folder).items():
        print(tag, *(f"{p.step}:{p.value:.6g}" for p in points))


def compare(folder, lines):
    want = {}
    for line in open(lines, encoding="utf-8"):
        r = json.loads(line)
        want.update({(k, r["step"]): v for k, v in r.items() if "/" in k and v is not None})
    points = [((tag, p.step), p.value) for tag, ps in curves(folder).items() for p in ps]
    assert len(points) == len(want) > 0, (len(points), len(want))
    for place, value in points:
        assert math.isclose(value, want[place], rel_tol=1e-6, abs_tol=1e-37), (place, value, want[place])
    print(f"{len(points)} points agree")


if __name__ == "__main__":
    {"write": write, "read": read, "compare": compare}[sys.argv[1]](*sys.argv[2:])
