"""A query of Nexmark and its log, in the forms in which the engines read it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.cached_log import CACHE, cached_parquet
from benchmarks.engine import Sums
from flinkcore.examples.nexmark.generator import AUCTION, BID, PERSON, Generator, Log

_BID = ("auction", "bidder", "price")
_STATISTICS = tuple(
    f"{rank}{name}" for name in ("bids", "bidders", "auctions") for rank in ("", "rank1_", "rank2_", "rank3_")
)

SUMMED = {
    **dict.fromkeys(("q0", "q7", "q9", "q10", "q13", "q18", "q19", "q20", "q21", "q22"), _BID),
    "q1": ("auction", "bidder"),
    "q2": ("auction", "price"),
    "q3": ("auction",),
    "q4": (),
    "q5": ("n",),
    "q6": (),
    "q8": ("id",),
    "q11": ("bidder", "bids"),
    "q12": ("bidder", "bids"),
    "q14": ("auction", "bidder", "c_counts"),
    "q15": _STATISTICS,
    "q16": _STATISTICS,
    "q17": ("bids", "least", "greatest", "total"),
}
"""Columns of the results that are added up, by query: all engines must have the same sum, and as many rows."""


@dataclass(frozen=True)
class Query:
    """A query over a log of so many events; equal parameters give equal logs."""

    query: str
    events: int = 5_000_000
    seed: int = 42
    checksum_type: ClassVar[type[Sums]] = Sums

    @property
    def summed(self) -> tuple[str, ...]:
        return SUMMED[self.query]

    def checksum(self, result: pa.Table) -> Sums:
        total = sum(pc.sum(result[name]).as_py() or 0 for name in self.summed)
        return Sums(result.num_rows, (total + (1 << 63)) % (1 << 64) - (1 << 63))

    def parquet(self) -> Log:
        """A folder of Parquet files for each kind of events, with their positions in the log, made once."""
        events = Generator(self.events, seed=self.seed)
        kinds = {"persons": PERSON, "auctions": AUCTION, "bids": BID}

        def with_positions(kind: str, start: int, stop: int) -> pa.RecordBatch:
            batch = getattr(events, kind)(start, stop)
            positions = pa.array(range(start, start + batch.num_rows), pa.int64())
            return pa.record_batch([*batch.columns, positions], [*batch.schema.names, "position"])

        return Log(
            **{
                kind: cached_parquet(
                    f"nexmark-{self.events}-seed{self.seed}-positions-{kind}",
                    schema.append(pa.field("position", pa.int64())),
                    partial(with_positions, kind),
                    events=self.events,
                    files=2,
                    row_group=500_000,
                )
                for kind, schema in kinds.items()
            }
        )

    def tables(self) -> Log:
        return Log(*map(pq.read_table, self.parquet()))

    def columns(self) -> tuple[Path, list[int]]:
        """A folder with a file of each column, which Flink's source maps into memory, and the events of each kind."""
        folder = CACHE / f"nexmark-{self.events}-seed{self.seed}-positions-columns"
        tables = self.tables()
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            partial.mkdir(parents=True, exist_ok=True)
            for kind, table in tables._asdict().items():
                for name in table.column_names:
                    _write(table[name].combine_chunks(), partial / f"{kind}.{name}")
            partial.rename(folder)
        return folder, [table.num_rows for table in tables]


def _write(column: pa.Array, path: Path) -> None:
    """Numbers and times as 64 bits, texts as their bytes and 64-bit offsets."""
    if pa.types.is_string(column.type):
        column = column.cast(pa.large_string())
        _, offsets, texts = column.buffers()
        path.with_name(f"{path.name}.offsets").write_bytes(offsets[: 8 * (len(column) + 1)])
        path.write_bytes(texts)
    else:
        path.write_bytes(column.buffers()[1][: 8 * len(column)])
