"""Logs of the benchmarks as Parquet, made once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CACHE = Path(__file__).parent / ".cache"


def cached_parquet(
    name: str,
    schema: pa.Schema,
    slice_of: Callable[[int, int], pa.RecordBatch],
    *,
    events: int,
    files: int,
    row_group: int,
) -> Path:
    """A folder of Parquet files with the events in order, `slice_of(start, stop)` making them."""
    folder = CACHE / name
    if folder.exists():
        return folder
    # Written beside and renamed, so that an interrupted run leaves no short log in the cache.
    partial = CACHE / f"{name}.partial-{os.getpid()}"
    partial.mkdir(parents=True)
    bounds = [events * i // files for i in range(files + 1)]
    for index in range(files):
        with pq.ParquetWriter(partial / f"part-{index:04}.parquet", schema) as writer:
            for start in range(bounds[index], bounds[index + 1], row_group):
                batch = slice_of(start, min(start + row_group, bounds[index + 1]))
                writer.write_batch(batch, row_group_size=row_group)
    partial.rename(folder)
    return folder
