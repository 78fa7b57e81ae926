"""Merges the records of a dense log as a driver does, in a process of its own, whose peak memory is then the merge's.

    python -m benchmarks.merge_process SPLITS TICKS CHUNKS RECORD_BYTES

Chunks are made one at a time, as tasks would send them; what executors would keep on their disks is in a temporary
file.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import found_by


class Merge(NamedTuple):
    """Time without making and packing the records; peak memory of the process, and before; bytes of packed records."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    bytes_before: int
    packed_bytes: int
    timeline_steps: int


def merge_in_process(splits: int, ticks: int, chunks: int, record_bytes: int) -> Merge:
    """Merge `chunks` chunks of `splits` splits, of which `record_bytes` packed bytes may be held in memory."""
    return Merge(*found_by("benchmarks.merge_process", splits, ticks, chunks, record_bytes))


def peak_bytes() -> int:
    """Peak memory of this program; `getrusage` would count that of the process from which it was started."""
    found = re.search(r"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def main() -> None:
    from benchmarks.dense_log import INTERVAL_MS, DenseLog
    from flinkcore.time_plane.chunk_times import ChunkTimes
    from flinkcore.time_plane.combine_times import combine
    from flinkcore.time_plane.generator_spec import GeneratorSpec
    from flinkcore.time_plane.log_records import LogRecords
    from flinkcore.time_plane.record_blocks import RecordLimits

    splits, ticks, chunks, record_bytes = map(int, sys.argv[1:])
    log, limits = DenseLog(splits, ticks, chunks), RecordLimits(record_bytes=record_bytes)
    records = LogRecords(INTERVAL_MS, limits)
    made = [0.0, 0.0]  # wall and CPU seconds
    packed_bytes = 0

    def summaries() -> Iterator[ChunkTimes]:
        nonlocal packed_bytes
        found = log.summaries()
        for index in range(chunks):
            begin = time.perf_counter(), time.process_time()
            for number, of_ticks in enumerate(log.ticks_of_blocks(index, limits)):
                block = log.block(index, number, of_ticks)
                packed = block.packed(INTERVAL_MS)
                packed_bytes += packed.nbytes
                records.add_packed(index, number, packed, block.span_ms)
            chunk = next(found)
            made[0] += time.perf_counter() - begin[0]
            made[1] += time.process_time() - begin[1]
            yield chunk

    before = peak_bytes()
    wall, cpu = time.perf_counter(), time.process_time()
    with closing(records):
        plane = combine(summaries(), records, GeneratorSpec(0), INTERVAL_MS, limits=limits)
    wall, cpu = time.perf_counter() - wall - made[0], time.process_time() - cpu - made[1]
    print(json.dumps([wall, cpu, peak_bytes(), before, packed_bytes, len(plane.timeline)]))


if __name__ == "__main__":
    main()
