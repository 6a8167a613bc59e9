"""What a fleet owner does without lancefleet: open every dataset with pylance and look.

usage: poll.py CONCURRENCY ROUNDS < uris.txt

Reads one uri a line from standard input; storage options as JSON in POLL_STORAGE_OPTIONS.
Prints one JSON document: the seconds of each round, and the process's peak memory in bytes.
A round opens each dataset and reads its version and its fragment count. It does not look into
MemWAL shards, so it does less than a round of lancefleet does.
"""

import concurrent.futures
import json
import os
import resource
import sys
import time

import lance

OPTIONS = json.loads(os.environ.get("POLL_STORAGE_OPTIONS", "null"))


def look(uri: str) -> tuple[int, int]:
    dataset = lance.dataset(uri, storage_options=OPTIONS)
    return dataset.version, len(dataset.get_fragments())


def main() -> None:
    concurrency, rounds = int(sys.argv[1]), int(sys.argv[2])
    uris = [line.strip() for line in sys.stdin if line.strip()]
    seconds = []
    with concurrent.futures.ThreadPoolExecutor(concurrency) as pool:
        for _ in range(rounds):
            started = time.monotonic()
            looked = sum(1 for _ in pool.map(look, uris))
            if looked != len(uris):
                raise SystemExit(f"looked at {looked} of {len(uris)} datasets")
            seconds.append(time.monotonic() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    json.dump({"experiments": len(uris), "concurrency": concurrency, "seconds": seconds, "peak_bytes": peak}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
