"""Rows without positions in one process: what a DataFrame is on Spark."""

from typing import Any

import pyarrow as pa

from flinkcore.datastream.transformations import LogData


class UnorderedRows(LogData):
    """A table of which it does not count where a row lies."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def takes(self, expression: object) -> bool:
        return False

    def filter(self, condition: Any) -> LogData:
        raise NotImplementedError

    def with_columns(self, expressions: Any) -> LogData:
        raise NotImplementedError
