"""produce.py DIR: a data directory as lance-context workers and users of pylance leave it.

Prints what those tools say about each experiment, as JSON: kind:name ->
{uri, rows, fragments, version, pending, last_write: [earliest, latest]}, times in
unix ms: rows arrive in the write-ahead log, and a flush writes them once more.
"""

import datetime
import glob
import json
import os
import shutil
import sys

import lance
import pyarrow as pa
from lance_context import DatagenStore, GenericStore, RolloutStore

base = sys.argv[1]
facts = {}


def facts_of(uri, rows, pending, last_write):
    dataset = lance.dataset(uri)
    return {
        "uri": uri,
        "rows": rows,
        "fragments": len(dataset.get_fragments()),
        "version": dataset.version,
        "pending": pending,
        "last_write": last_write,
    }


def written(uri):
    """From when the newest write-ahead log entry was stored (every write is one) to
    when the newest generation was complete."""
    newest = lambda pattern: int(max(os.path.getmtime(f) for f in glob.glob(f"{uri}/_mem_wal/*/{pattern}")) * 1000)
    return [newest("wal/*.arrow"), newest("*_gen_*/**")]


def generations(uri):
    """Nobody has merged in this directory yet, so every generation that was flushed is pending."""
    return len(glob.glob(f"{uri}/_mem_wal/*/*_gen_*"))


def rollout(name, flushes, rows):
    uri = f"{base}/{name}.rollout.lance"
    store = RolloutStore.open(uri)
    for g in range(flushes):
        store.add([{"id": f"{name}-{g}-{r}", "rollout_id": f"ro{r}"} for r in range(rows)])
        store.flush()
    facts[f"rollout:{name}"] = facts_of(uri, len(store.list()), generations(uri), written(uri))


SCHEMA = {"id": {"type": "string", "nullable": False}, "score": "float32"}


def generic(name, flushes, merged):
    uri = f"{base}/{name}.generic.lance"
    store = GenericStore.open(uri, SCHEMA)
    for g in range(flushes):
        store.add([{"id": f"{name}-{g}-{r}", "score": float(r)} for r in range(4)])
        store.flush()
    when = written(uri)
    rows = len(store.list())
    copy = f"{base}/../copy-{name}.generic.lance"
    shutil.copytree(uri, copy)
    pending = GenericStore.open_existing(copy).cleanup_wal()  # the tool's own count
    shutil.rmtree(copy)
    if merged:
        assert store.cleanup_wal() == pending
        assert len(store.list()) == rows
        pending, when = 0, None  # a merge by lance-context looks like an append
    facts[f"generic:{name}"] = facts_of(uri, rows, pending, when)


def datagen(name):
    uri = f"{base}/{name}.datagen.lance"
    store = DatagenStore.open(uri)
    for n in range(3):
        store.open_stream(f"item-{n}", run_id="run", writer_epoch=f"w{n}")
    events = sum(len(store.item_events(f"item-{n}")) for n in range(3))
    facts[f"datagen:{name}"] = facts_of(uri, events, generations(uri), written(uri))


def table(name):
    uri = f"{base}/{name}.lance"
    for n in range(3):
        data = pa.table({"id": pa.array(range(n * 10, n * 10 + 10), pa.int64()), "text": [f"row {r}" for r in range(10)]})
        lance.write_dataset(data, uri, mode="append" if n else "create")
    lance.dataset(uri).delete("id % 5 = 0")
    dataset = lance.dataset(uri)
    last = millis(dataset.versions()[-1]["timestamp"])
    dataset.optimize.compact_files()  # maintenance: moves the version and not the last write
    dataset = lance.dataset(uri)
    facts[f"table:{name}"] = facts_of(uri, dataset.count_rows(), 0, [last, last])


def millis(when):
    if when.tzinfo is None:
        when = when.astimezone()
    return int(when.timestamp() * 1000)


def registry(kind):
    """As lance-context's workers write it: absolute uris, not null."""
    mine = {key: f for key, f in facts.items() if key.startswith(kind + ":")}
    fields = [pa.field("name", pa.utf8(), False), pa.field("uri", pa.utf8(), False), pa.field("created_at", pa.int64(), False)]
    now = millis(datetime.datetime.now(datetime.timezone.utc))
    rows = [[key.split(":", 1)[1] for key in mine], [f["uri"] for f in mine.values()], [now for _ in mine]]
    lance.write_dataset(pa.table(rows, schema=pa.schema(fields)), f"{base}/_registry.{kind}.lance")


rollout("one-flush", 1, 5)
rollout("many-flushes", 7, 3)
generic("pending", 3, merged=False)
generic("merged", 3, merged=True)
datagen("log")
table("plain")
for kind in ("rollout", "generic", "datagen"):
    registry(kind)
json.dump(facts, sys.stdout)
