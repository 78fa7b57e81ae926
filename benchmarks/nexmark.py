"""Seeded bids after Nexmark: the event log that the replay benchmarks and their peers all read.

They are those of `flinkcore.examples.nexmark.generator`, whose values are hashes of (seed, event number): any slice
can be made on its own, in numpy and in `peers/WindowedBids.java` bit for bit the same. What differs from the stock
generator besides, and why:

- bidders come from the last 258,000 people (stock: 1,000) and 13 of 32 bids from the hot bidder of the
  moment (stock: 24 of 32), so that windows hold many keys: with 20 M bids keyed by bidder there are about
  673 k keys and 10.7 M (key, 10 s window) results;
- events are shuffled within groups of `disorder_seconds`, so that time stamps are
  out of order by up to that time, and never by more: a watermark that trails the maximum by 4 s drops nothing;
- only the four columns that the windowed queries read are made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from benchmarks.cached_log import cached_parquet
from benchmarks.engine import Checksum
from flinkcore.examples.nexmark.generator import (
    BIDS_PER_ROUND,
    EVENTS_PER_ROUND,
    FIRST_BID_OF_ROUND,
    Generator,
)

SCHEMA = pa.schema(
    [(name, pa.int64()) for name in ("auction", "bidder", "price", "date_time")],
)

WITH_ARRIVALS = SCHEMA.append(pa.field("arrival", pa.int64()))

HOT_BIDDERS_OF_1024 = 416  # 13/32


@dataclass(frozen=True)
class Bids:
    """A log of `events` bids in order of arrival; equal parameters give equal bits on every machine."""

    events: int = 20_000_000
    seed: int = 42
    events_per_second: int = 10_000  # of all three kinds; 46 of 50 are bids
    disorder_seconds: int = 4
    active_people: int = 258_000
    base_ms: int = 1_735_689_600_000  # 2025-01-01T00:00:00Z
    bidders: int | None = None  # number of all bidders, or None for no limit (not in Flink's generator)
    checksum_type: ClassVar[type[Checksum]] = Checksum
    summed: ClassVar[tuple[str, ...]] = ("n", "total", "top")

    def checksum(self, result: pa.Table) -> Checksum:
        return Checksum.of(result)

    @property
    def bids_per_second(self) -> float:
        return self.events_per_second * BIDS_PER_ROUND / EVENTS_PER_ROUND

    @cached_property
    def _generator(self) -> Generator:
        return Generator(
            seed=self.seed,
            events_per_second=self.events_per_second,
            disorder_ms=1_000 * self.disorder_seconds,
            active_people=self.active_people,
            people_before=self.active_people,
            hot_bidders_of_1024=HOT_BIDDERS_OF_1024,
            base_ms=self.base_ms,
        )

    @cached_property
    def _bid_offsets(self) -> np.ndarray:
        """Event numbers of a group's bids, relative to the group, in order of arrival."""
        order = self._generator.order
        return order[order % EVENTS_PER_ROUND >= FIRST_BID_OF_ROUND]

    def slice(self, start: int, stop: int) -> pa.RecordBatch:
        """Bids [start, stop) of the log, made without the ones before."""
        events, offsets = self._generator, self._bid_offsets
        group, index = np.divmod(np.arange(start, stop, dtype=np.int64), len(offsets))
        number = group * len(events.order) + offsets[index]
        bidder = events.bidders(number)
        if self.bidders is not None:
            bidder %= self.bidders
        columns = [events.bid_auctions(number), bidder, events.prices(number), events.event_time(number)]
        return pa.record_batch(columns, schema=SCHEMA)

    def slice_with_arrivals(self, start: int, stop: int) -> pa.RecordBatch:
        """The same with the time at which a bid has arrived: `bids_per_second` do."""
        arrivals = self.base_ms + (np.arange(start, stop) * 1_000 / self.bids_per_second).astype(np.int64)
        return pa.record_batch([*self.slice(start, stop).columns, pa.array(arrivals)], schema=WITH_ARRIVALS)

    def batches(self, rows: int = 1_000_000) -> Iterator[pa.RecordBatch]:
        for start in range(0, self.events, rows):
            yield self.slice(start, min(start + rows, self.events))

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches(), SCHEMA)

    def parquet(self, files: int = 1) -> Path:
        """A folder of Parquet files in order of arrival (row groups of 1 M), made once and cached."""
        return self._parquet(files, SCHEMA, self.slice, "")

    def parquet_with_arrivals(self, files: int = 4) -> Path:
        """The same with a column of arrivals."""
        return self._parquet(files, WITH_ARRIVALS, self.slice_with_arrivals, "-arrivals")

    def _parquet(
        self, files: int, schema: pa.Schema, slice_of: Callable[[int, int], pa.RecordBatch], kind: str
    ) -> Path:
        name = (
            f"bids-{self.events}-seed{self.seed}-rate{self.events_per_second}"
            f"-disorder{self.disorder_seconds}-people{self.active_people}-files{files}{kind}"
            f"{'' if self.bidders is None else f'-bidders{self.bidders}'}"
        )
        return cached_parquet(name, schema, slice_of, events=self.events, files=files, row_group=1_000_000)


if __name__ == "__main__":
    print(Bids(*map(int, sys.argv[1:])).parquet())
