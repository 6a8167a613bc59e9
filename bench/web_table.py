"""What a page of experiments costs without a server: read the statistics table for each question.

usage: web_table.py URI TIMES

Prints one JSON document: for each question the seconds that each of TIMES answers took.
The process, its imports and the page cache are warm; the table is opened for each answer, since
another version may be there.
"""

import json
import sys
import time

import lance
import pyarrow.compute as pc

SHOWN = ["name", "uri", "row_count", "fragment_count", "last_updated", "pending_wal_generations", "bytes", "last_maintenance", "error_class"]


def newest(uri: str) -> list[dict]:
    table = lance.dataset(uri).to_table(columns=SHOWN)
    return table.take(pc.sort_indices(table, [("last_updated", "descending")])[:50]).to_pylist()


def filtered(uri: str) -> list[dict]:
    table = lance.dataset(uri).to_table(columns=SHOWN, filter="pending_wal_generations >= 3 AND fragment_count < 12 AND name LIKE '%gsm8k%'")
    return table.take(pc.sort_indices(table, [("pending_wal_generations", "descending")])[:50]).to_pylist()


def main() -> None:
    uri, times = sys.argv[1], int(sys.argv[2])
    out = {}
    for what, question in (("list", newest), ("filtered by terms, words in names", filtered)):
        question(uri)
        out[what] = []
        for _ in range(times):
            started = time.monotonic()
            json.dumps(question(uri))
            out[what].append(time.monotonic() - started)
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
