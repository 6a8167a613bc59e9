"""What a fleet owner does without lancefleet: open every dataset with pylance and look.

usage: poll.py CONCURRENCY ROUNDS open|wal < uris.txt

Reads one uri a line from standard input; storage options as JSON in POLL_STORAGE_OPTIONS.
Prints one JSON document: the seconds of each round, and the process's peak memory in bytes.

open: opens each dataset and reads its version, rows and number of fragments. Writes to the
      write-ahead log are not seen.
wal:  also lists what lies in the write-ahead log, which is as near as a script comes to a round:
      pylance reads no shard manifests, so which generations are pending stays unknown.
"""

import concurrent.futures
import json
import os
import resource
import sys
import time

import lance
from pyarrow import fs

OPTIONS = json.loads(os.environ.get("POLL_STORAGE_OPTIONS", "null"))


def storage() -> fs.FileSystem:
    if not OPTIONS:
        return fs.LocalFileSystem()
    return fs.S3FileSystem(
        access_key=OPTIONS["aws_access_key_id"],
        secret_key=OPTIONS["aws_secret_access_key"],
        region=OPTIONS["aws_region"],
        endpoint_override=OPTIONS["aws_endpoint"].removeprefix("http://"),
        scheme="http",
    )


def open_(uri: str) -> tuple[int, int, int]:
    dataset = lance.dataset(uri, storage_options=OPTIONS)
    return dataset.version, dataset.count_rows(), len(dataset.get_fragments())


def wal(uri: str) -> tuple[int, int, int, int]:
    log = uri.removeprefix("s3://") + "/_mem_wal"
    return *open_(uri), len(STORAGE.get_file_info(fs.FileSelector(log, allow_not_found=True, recursive=True)))


STORAGE = storage()
LOOKS = {"open": open_, "wal": wal}


def main() -> None:
    concurrency, rounds, look = int(sys.argv[1]), int(sys.argv[2]), LOOKS[(sys.argv + ["open"])[3]]
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
    json.dump({"experiments": len(uris), "concurrency": concurrency, "look": (sys.argv + ["open"])[3], "seconds": seconds, "peak_bytes": peak}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
