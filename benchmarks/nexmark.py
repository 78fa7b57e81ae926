"""Seeded bids after Nexmark: the event log that the replay benchmarks and their peers all read.

Every value is a hash of (seed, event number), so any slice can be made on its own, in numpy here and
in `peers/WindowedBids.java` bit for bit the same. What differs from the stock generator, and why:

- it is seeded and starts at a fixed time (stock: unseeded, wall clock), so that runs can be compared;
- bidders come from the last 258,000 people (stock: 1,000) and 13 of 32 bids from the hot bidder of the
  moment (stock: 24 of 32), so that windows hold many keys: with 20 M bids keyed by bidder there are about
  673 k keys and 10.7 M (key, 10 s window) results;
- events are shuffled within groups of `disorder_seconds` (stock: a stride of 953), so that time stamps are
  out of order by up to that time, and never by more: a watermark 4 s behind the maximum drops nothing;
- only the four columns that the windowed queries read are made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.cached_log import cached_parquet

SCHEMA = pa.schema(
    [(name, pa.int64()) for name in ("auction", "bidder", "price", "date_time")],
)

WITH_ARRIVALS = SCHEMA.append(pa.field("arrival", pa.int64()))

FIRST_ID = 1_000
EVENTS_PER_ROUND = 50  # 1 person, 3 auctions, 46 bids
FIRST_BID_OF_ROUND = 4
BIDS_PER_ROUND = EVENTS_PER_ROUND - FIRST_BID_OF_ROUND
HOT_BIDDERS_OF_1024 = 416  # 13/32
HOT_STRIDE = 100
ID_LEAD = 10
AUCTIONS_IN_FLIGHT = 100
PRICES = 1 << 16

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_OFFSET_MASK = np.uint64((1 << 20) - 1)


def splitmix64(seed: int, stream: int, number: np.ndarray) -> np.ndarray:
    """The splitmix64 output of each number, as uint64 ``(n,)``; streams are independent sequences."""
    with np.errstate(over="ignore"):
        z = (number.astype(np.uint64) * np.uint64(8) + np.uint64(stream + 1)) * _GAMMA + np.uint64(seed)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _below(random: np.ndarray, bound: int) -> np.ndarray:
    """Uniform int64 in [0, bound) from the upper 31 bits of each hash."""
    return ((random >> np.uint64(33)) * np.uint64(bound) >> np.uint64(31)).astype(np.int64)


@dataclass(frozen=True)
class Bids:
    """A log of `events` bids in order of arrival; equal parameters give equal bits on every machine."""

    events: int = 20_000_000
    seed: int = 42
    events_per_second: int = 10_000  # of all three kinds; 46 of 50 are bids
    disorder_seconds: int = 4
    active_people: int = 258_000
    base_ms: int = 1_735_689_600_000  # 2025-01-01T00:00:00Z
    bidders: int | None = (
        None  # all bidders are so many; None: as many as they are (not in Flink's generator)
    )

    @property
    def bids_per_second(self) -> float:
        return self.events_per_second * BIDS_PER_ROUND / EVENTS_PER_ROUND

    @property
    def _group(self) -> int:
        group = self.events_per_second * self.disorder_seconds
        if group % EVENTS_PER_ROUND or not 0 < group <= int(_OFFSET_MASK):
            raise ValueError(f"a group of {group} events is not a multiple of {EVENTS_PER_ROUND} below 2**20")
        return group

    @cached_property
    def _bid_offsets(self) -> np.ndarray:
        """Event numbers of a group's bids, relative to the group, in order of arrival."""
        offset = np.arange(self._group, dtype=np.uint64)
        shuffled = np.sort((splitmix64(self.seed, 0, offset) & ~_OFFSET_MASK) | offset) & _OFFSET_MASK
        return shuffled[shuffled % EVENTS_PER_ROUND >= FIRST_BID_OF_ROUND].astype(np.int64)

    @cached_property
    def _price_of(self) -> np.ndarray:
        return np.rint(100 * 10.0 ** (6 * np.arange(PRICES) / PRICES)).astype(np.int64)

    def slice(self, start: int, stop: int) -> pa.RecordBatch:
        """Bids [start, stop) of the log, made without the ones before."""
        bid = np.arange(start, stop, dtype=np.int64)
        offsets = self._bid_offsets
        group, index = np.divmod(bid, len(offsets))
        number = group * self._group + offsets[index]
        auctions = number // EVENTS_PER_ROUND * 3 + 2
        people = self.active_people + number // EVENTS_PER_ROUND

        random = splitmix64(self.seed, 1, number)
        auction = np.where(
            random & np.uint64(1),
            auctions // HOT_STRIDE * HOT_STRIDE,
            np.maximum(auctions - AUCTIONS_IN_FLIGHT, 0) + _below(random, AUCTIONS_IN_FLIGHT + 1 + ID_LEAD),
        )
        random = splitmix64(self.seed, 2, number)
        bidder = np.where(
            random & np.uint64(1023) < HOT_BIDDERS_OF_1024,
            people // HOT_STRIDE * HOT_STRIDE + 1,
            people + 1 - self.active_people + _below(random, self.active_people + ID_LEAD),
        )
        price = self._price_of[splitmix64(self.seed, 3, number) >> np.uint64(48)]
        date_time = self.base_ms + number * 1_000 // self.events_per_second
        bidder = FIRST_ID + bidder if self.bidders is None else (FIRST_ID + bidder) % self.bidders
        return pa.record_batch([FIRST_ID + auction, bidder, price, date_time], schema=SCHEMA)

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
