"""live.py URI SECONDS: adds, flushes and updates rows of a rollout store until the
time is up, as a busy worker does. Prints {acknowledged: {id: rollout_id}, writes,
errors} when it ends.
"""

import json
import random
import sys
import time

from lance_context import RolloutStore

PAUSE = 0.03  # seconds between writes: the machine is not its alone

uri, seconds = sys.argv[1], float(sys.argv[2])
store = RolloutStore.open(uri)
acknowledged, errors, writes = {}, [], 0


def add(rows):
    global writes
    try:
        store.add([{"id": i, "rollout_id": r} for i, r in rows.items()])
        acknowledged.update(rows)
        writes += 1
    except Exception as error:
        errors.append(str(error)[:500])


end = time.monotonic() + seconds
while time.monotonic() < end:
    add({f"row-{writes}-{k}": f"written {writes}" for k in range(3)})
    if writes % 5 == 0:
        for name in random.sample(sorted(acknowledged), 2):
            add({name: f"updated {writes}"})
    if writes % 3 == 0:
        store.flush()
    time.sleep(PAUSE)
store.flush()
json.dump({"acknowledged": acknowledged, "writes": writes, "errors": errors}, sys.stdout)
