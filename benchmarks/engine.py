"""Common part of the engines that run the windowed bids job.

The job: count, sum and maximum of price per bidder and 10 s of event time, every result row made. Engines
are functions `open_engine(bids, threads)`: they load what is not measured and return a function that runs the
job once. That function returns the result as a table with columns n, total and top, or only its `Checksum`
where the engine consumes its rows itself, or a `Timed` checksum where the engine measures its own run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

KEY = "bidder"
WINDOW_MS = 10_000


class Checksum(NamedTuple):
    """Count of result rows and the sums of their columns: equal for every engine that did the job."""

    rows: int
    n: int
    total: int
    top: int

    @classmethod
    def of(cls, result: pa.Table | pa.RecordBatch) -> Checksum:
        return cls(result.num_rows, *(pc.sum(result[name]).as_py() or 0 for name in ("n", "total", "top")))

    def plus(self, other: Checksum) -> Checksum:
        return Checksum(*(a + b for a, b in zip(self, other, strict=True)))


class Sums(NamedTuple):
    """Count of result rows of a query of Nexmark, and the sum of some of their columns: 64 bits, which wrap around."""

    rows: int
    total: int


class Timed(NamedTuple):
    seconds: float
    checksum: Checksum | Sums


Answer: TypeAlias = pa.Table | Checksum | Sums | Timed
Engine: TypeAlias = Callable[[], Answer]
