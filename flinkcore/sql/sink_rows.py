"""The rows that go into a sink, with what its table says about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from flinkcore._internal.show.tables import shown_value
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.nodes.rows import Rows
from flinkcore.sql.nodes.scans import names_of
from flinkcore.sql.plan.compiled_plan import PlanNode

if TYPE_CHECKING:
    from flinkcore import JobResult


@dataclass(frozen=True, eq=False)
class SinkRows:
    """Rows of a sink.

    Attributes
    ----------
    name : str
        Name of the table.
    stream : LogStream
    columns : tuple of str
        Columns of the stream, without those beside the table's.
    has_changes : bool
        Whether the stream has a column ``row_kind``.
    options : mapping of str to str
        Options of the table.
    partition_by : tuple of str
        Columns by which the table is partitioned.
    """

    name: str
    stream: LogStream
    columns: tuple[str, ...]
    has_changes: bool
    options: Mapping[str, str]
    partition_by: tuple[str, ...]

    @classmethod
    def of(cls, node: PlanNode, rows: Rows) -> SinkRows:
        """Return the rows of the sink that a node is."""
        table: Mapping[str, Any] = node.json.get("dynamicTableSink", {}).get("table", {})
        resolved = table.get("resolvedTable", {})
        return cls(
            names_of(str(table.get("identifier", f"sink {node.id}")))[0],
            rows.stream,
            rows.columns,
            bool(rows.changes),
            dict(resolved.get("options") or {}),
            tuple(resolved.get("partitionKeys") or ()),
        )

    @property
    def connector(self) -> str:
        """The connector of the table, or an empty text if the plan does not have it."""
        return self.options.get("connector", "")

    @property
    def path(self) -> str | None:
        """The directory of a table of files, or None for another connector.

        Raises
        ------
        UnsupportedOperationError
            If the files have another format than Parquet.
        """
        if self.connector != "filesystem":
            return None
        form = self.options.get("format")
        if form != "parquet":
            raise UnsupportedOperationError(
                f"the table {self.name} has the format {form!r}, and rows are written as Parquet. Declare "
                f"'format' = 'parquet', or name a directory in sinks={{'{self.name}': ...}}"
            )
        return self.options.get("path")

    def print(self, result: JobResult) -> None:
        """Print the rows of a result as Flink's connector ``print`` does."""
        prefix = self.options.get("print-identifier", "")
        prefix += "> " if prefix else ""
        for batch in result.to_batches():
            kinds = batch.column(ROW_KIND).to_pylist() if self.has_changes else ["+I"] * batch.num_rows
            columns = [map(shown_value, batch.column(name)) for name in self.columns]
            for kind, *values in zip(kinds, *columns, strict=True):
                print(f"{prefix}{kind}[{', '.join(values)}]")

    def of_query(self, name: str) -> SinkRows:
        """Return the rows as those of a query: results, whatever sink its plan has."""
        return replace(self, name=name, options={})

    def union(self, other: SinkRows) -> SinkRows:
        """Return the rows of two insertions into the sink."""
        first, second = self.stream, other.stream
        if self.has_changes != other.has_changes:
            kinds = {ROW_KIND: pc.scalar("+I")}
            first = first if self.has_changes else first.with_columns(**kinds)
            second = second if other.has_changes else second.with_columns(**kinds)
        return replace(self, stream=first.union(second), has_changes=self.has_changes or other.has_changes)
