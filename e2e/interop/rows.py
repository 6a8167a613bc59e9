"""Rows of a lance-context rollout store, as JSON: id -> rollout_id.

rows.py strand URI: writes, flushes, updates, and is killed after writes were
acknowledged that it never flushed. Prints what it was promised to keep.
rows.py add URI ID: writes one more row and flushes.
rows.py restore URI VERSION: makes an old version of the base table the newest one.
rows.py read URI: what lance-context lists, and what stands in the base table alone.
"""

import glob
import json
import os
import signal
import subprocess
import sys
import time

import lance
import pyarrow.ipc

FLUSHES = 10


def strand(uri):
    writer = subprocess.run([sys.executable, __file__, "write", uri], stdout=subprocess.PIPE)
    assert writer.returncode == -signal.SIGKILL, writer.returncode
    return json.loads(writer.stdout)


def write(uri):
    from lance_context import RolloutStore

    store, promised = RolloutStore.open(uri), {}

    def add(rows):
        store.add([{"id": i, "rollout_id": r} for i, r in rows.items()])
        promised.update(rows)

    for n in range(FLUSHES):
        add({f"row-{n}-{k}": f"run-{n}" for k in range(4)})
        if n > 0:
            add({f"row-{n - 1}-0": f"updated-{n}"})  # over a row of the generation before
            add({f"row-{n}-3": f"written twice in generation {n}"})
        store.flush()
    late = {f"late-{k}": "never flushed" for k in range(4)}
    updated = {"row-3-1": "updated late", f"row-{FLUSHES - 1}-2": "updated late"}
    add(late)
    add(updated)
    # In this version add may return while its entry is still being stored.
    deadline = time.monotonic() + 60
    while not stored(uri) >= (late | updated).items():
        assert time.monotonic() < deadline, "what was written last is not stored"
        time.sleep(0.01)
    json.dump(promised, sys.stdout)
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def stored(uri):
    """Pairs of id and rollout id that stand in entries of the WAL."""
    pairs = set()
    for entry in glob.glob(f"{uri}/_mem_wal/*/wal/*.arrow"):
        with pyarrow.ipc.open_stream(entry) as stream:
            rows = stream.read_all()
            pairs.update(zip(rows["id"].to_pylist(), rows["rollout_id"].to_pylist()))
    return pairs


def add(uri, name):
    from lance_context import RolloutStore

    store = RolloutStore.open(uri)
    store.add([{"id": name, "rollout_id": "again"}])
    store.flush()
    return {}


def restore(uri, version):
    lance.dataset(uri, version=int(version)).restore()
    return {}


def read(uri):
    from lance_context import RolloutStore

    base = lance.dataset(uri).to_table(columns=["id", "rollout_id"]).to_pylist()
    listed = RolloutStore.open(uri).list()
    return {"listed": pairs(listed), "base": pairs(base)}


def pairs(rows):
    """A list, so that a row that is there twice is seen."""
    return sorted([row["id"], row["rollout_id"]] for row in rows)


json.dump({"strand": strand, "write": write, "add": add, "restore": restore, "read": read}[sys.argv[1]](*sys.argv[2:]), sys.stdout)
