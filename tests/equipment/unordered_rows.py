"""Rows without positions in one process: what a DataFrame is on Spark."""

from typing import Any

import pyarrow as pa

from flinkcore.datastream.graph.transformations import LogData


class UnorderedRows(LogData):
    """A table of which it does not count where a row lies."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    @property
    def order(self) -> str:
        return "no order"

    def filter(self, condition: Any) -> None:
        return None

    def with_columns(self, expressions: Any) -> None:
        return None
