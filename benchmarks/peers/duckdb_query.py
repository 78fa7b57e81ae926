"""DuckDB doing a query of Nexmark in SQL, from Arrow tables: no watermarks, no order, an answer at the end."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from benchmarks.engine import Engine
from benchmarks.nexmark_log import Query
from flinkcore.examples.nexmark.side_input import side_input
from flinkcore.examples.nexmark.sql import DUCKDB_MACROS, SQL


def open_query(query: Query, threads: int) -> Engine:
    connection = duckdb.connect(config={"threads": threads, "preserve_insertion_order": False})
    connection.execute(DUCKDB_MACROS)
    for name, table in query.tables()._asdict().items():
        connection.register(name, table)
    connection.register("side_input", pa.Table.from_batches([side_input()]))
    return lambda: connection.sql(SQL[query.query]).to_arrow_table()
