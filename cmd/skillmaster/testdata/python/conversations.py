"""Writes conversations of JSON lines as Parquet: python conversations.py conversations.jsonl conversations.parquet"""

import json, sys
import pyarrow as pa, pyarrow.parquet as pq
rows = [json.loads(l) for l in open(sys.argv[1])]
call = pa.struct([("id", pa.string()), ("type", pa.string()), ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())]))])
message = pa.struct([("role", pa.string()), ("content", pa.string()), ("tool_calls", pa.list_(call))])
schema = pa.schema([("messages", pa.list_(message)), ("source", pa.string())])
pq.write_table(pa.Table.from_pylist(rows, schema=schema), sys.argv[2])
