"""What stands in a table of wide rows: how many, and the ids of those whose payload is
not the one that its checksum was made from. Reads a few rows at a time.

wide.py URI
"""

import json
import sys
import zlib

import lance

rows, ids, wrong = 0, set(), []
for batch in lance.dataset(sys.argv[1]).to_batches(batch_size=16):
    for row in batch.to_pylist():
        rows += 1
        ids.add(row["id"])
        if zlib.crc32(row["payload"]) != row["checksum"]:
            wrong.append(row["id"])
json.dump({"rows": rows, "distinct": len(ids), "wrong": wrong}, sys.stdout)
