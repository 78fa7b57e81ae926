"""Polars doing the windowed bids job as a plain hash aggregation, on its faster (streaming) engine."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.engine import KEY, WINDOW_MS, Engine
from benchmarks.nexmark import Bids


def _polars(threads: int) -> Any:
    # Polars reads the size of its pool when it is imported.
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars

    assert polars.thread_pool_size() == threads
    return polars


def _aggregate(pl: Any, bids: Any) -> pa.Table:
    window_start = pl.col("date_time") // WINDOW_MS * WINDOW_MS
    return (
        bids.group_by(KEY, window_start.alias("window_start"))
        .agg(pl.len().alias("n"), pl.col("price").sum().alias("total"), pl.col("price").max().alias("top"))
        .collect(engine="streaming")
        .to_arrow()
    )


def open_arrow(bids: Bids, threads: int) -> Engine:
    pl = _polars(threads)
    table = pq.read_table(bids.parquet(), columns=[KEY, "price", "date_time"])
    return lambda: _aggregate(pl, pl.from_arrow(table).lazy())


def open_parquet(bids: Bids, threads: int) -> Engine:
    pl = _polars(threads)
    path = bids.parquet()
    return lambda: _aggregate(pl, pl.scan_parquet(path / "*.parquet"))
