"""A seeded log of which only the times matter: interleaved splits, out of order by up to four seconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.cached_log import cached_parquet
from flinkcore.examples.nexmark.generator import splitmix64

SCHEMA = pa.schema([("timestamp", pa.int64()), ("arrival", pa.int64()), ("split", pa.int32())])

ROW_GROUP = 1_000_000


@dataclass(frozen=True)
class TimedLog:
    """A log of `events` events in order of arrival; equal parameters give equal bits on every machine.

    Every file holds a stretch of the clock and all splits, as consumers of a topic write them.
    """

    events: int = 100_000_000
    splits: int = 64
    events_per_second: int = 10_000
    disorder_ms: int = 4_000
    seed: int = 17
    base_ms: int = 1_735_689_600_000  # 2025-01-01T00:00:00Z

    def slice(self, start: int, stop: int) -> pa.RecordBatch:
        """Events [start, stop) of the log, made without the ones before."""
        number = np.arange(start, stop, dtype=np.int64)
        arrival = self.base_ms + number * 1_000 // self.events_per_second
        split = (splitmix64(self.seed, 0, number) >> np.uint64(33)) % np.uint64(self.splits)
        delay = (splitmix64(self.seed, 1, number) >> np.uint64(33)) % np.uint64(self.disorder_ms)
        columns = [arrival - delay.astype(np.int64), arrival, split.astype(np.int32)]
        return pa.record_batch(columns, schema=SCHEMA)

    def parquet(self, files: int = 8) -> Path:
        """A folder of Parquet files in order of arrival, made once and cached."""
        name = (
            f"times-{self.events}-splits{self.splits}-rate{self.events_per_second}"
            f"-disorder{self.disorder_ms}-seed{self.seed}-files{files}"
        )
        return cached_parquet(name, SCHEMA, self.slice, events=self.events, files=files, row_group=ROW_GROUP)
