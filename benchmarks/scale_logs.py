"""Logs that are large in one dimension: files, time, windows, splits or keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.cached_log import cached_parquet
from flinkcore.examples.nexmark.generator import splitmix64

SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("value", pa.int64()),
        ("amount", pa.float64()),
        ("timestamp", pa.int64()),
        ("arrival", pa.int64()),
        ("split", pa.int32()),
    ]
)

DAY_MS = 86_400_000
BASE_MS = 1_735_689_600_000  # 2025-01-01T00:00:00Z
DISORDER_MS = 4_000
ROW_GROUP = 1_000_000


@dataclass(frozen=True)
class ScaleLog:
    """A log of events at equal distances of arrival; equal parameters give equal bits on every machine.

    Attributes
    ----------
    events
        Number of events.
    span_ms
        Time from the first arrival to the last.
    keys
        Number of keys; as many as events: each event has its own.
    files
        Number of files.
    splits
        Number of splits; event `i` is in split `i % splits`.
    file_per_split
        Whether each split has a file of its own, over the whole time, instead of each file a part of the time.
    """

    events: int
    span_ms: int
    keys: int = 1_000
    files: int = 4
    splits: int = 1
    file_per_split: bool = False

    def slice(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows [start, stop) of all files, one after the other, made without the ones before."""
        number = np.arange(start, stop, dtype=np.int64)
        if self.file_per_split:
            per_split = self.events // self.splits
            number = number % per_split * self.splits + number // per_split
        arrival = BASE_MS + number * self.span_ms // self.events
        delay = (splitmix64(1, 0, number) >> np.uint64(33)) % np.uint64(DISORDER_MS)
        if self.keys == self.events:
            key = number
        else:
            key = ((splitmix64(1, 1, number) >> np.uint64(33)) % np.uint64(self.keys)).astype(np.int64)
        value = (splitmix64(1, 2, number) >> np.uint64(44)).astype(np.int64)
        columns = [
            key,
            value,
            value.astype(np.float64),
            arrival - delay.astype(np.int64),
            arrival,
            (number % self.splits).astype(np.int32),
        ]
        return pa.record_batch(columns, schema=SCHEMA)

    def parquet(self) -> Path:
        """A folder of Parquet files, made once and cached."""
        layout = "-by-split" if self.file_per_split else ""
        name = (
            f"scale-{self.events}-span{self.span_ms}-keys{self.keys}-files{self.files}"
            f"-splits{self.splits}{layout}"
        )
        return cached_parquet(
            name, SCHEMA, self.slice, events=self.events, files=self.files, row_group=ROW_GROUP
        )
