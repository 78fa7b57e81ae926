"""DuckDB doing the windowed bids job as a plain hash aggregation: no watermarks, no late rows, no order."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.engine import KEY, WINDOW_MS, Engine
from benchmarks.nexmark import Bids


def _query(source: str) -> str:
    # The sum of BIGINT is a 128-bit number; the cast makes the result as narrow as every other engine's.
    return (
        f"SELECT {KEY}, date_time // {WINDOW_MS} * {WINDOW_MS} AS window_start, count(*) AS n, "
        f"sum(price)::BIGINT AS total, max(price) AS top FROM {source} GROUP BY ALL"
    )


def _connect(threads: int) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": threads, "preserve_insertion_order": False})


def open_arrow(bids: Bids, threads: int) -> Engine:
    table = pq.read_table(bids.parquet(), columns=[KEY, "price", "date_time"])
    connection = _connect(threads)
    connection.register("bids", table)

    def run() -> pa.Table:
        return connection.sql(_query("bids")).to_arrow_table()

    return run


def open_parquet(bids: Bids, threads: int) -> Engine:
    source = f"read_parquet('{bids.parquet()}/*.parquet')"
    connection = _connect(threads)

    def run() -> pa.Table:
        return connection.sql(_query(source)).to_arrow_table()

    return run
