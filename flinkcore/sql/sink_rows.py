"""The rows that go into a sink, with what its table says about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.nodes.rows import Rows
from flinkcore.sql.nodes.scans import names_of
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.types.external_texts import external_texts
from flinkcore.sql.types.logical_types import LogicalType

if TYPE_CHECKING:
    from flinkcore import JobResult

_KIND: Final = "change#kind"
"""Column of the kinds of changes in which operators do not see changes."""


@dataclass(frozen=True, eq=False)
class SinkRows:
    """Rows of a sink.

    Attributes
    ----------
    identifier : str
        Name of the table as the plan has it, or name of a query.
    stream : LogStream
    columns : tuple of str
        Columns of the stream, without those beside the table's.
    has_changes : bool
        Whether the stream has a column ``row_kind``.
    options : mapping of str to str
        Options of the table.
    partition_by : tuple of str
        Columns by which the table is partitioned.
    key : tuple of str
        Primary key of the table, or else the columns by which the planner knows that rows are changed; empty if there
        are neither.
    beside : tuple of str
        Further columns of the stream, except ``row_kind``.
    types : tuple of LogicalType
        Types of `columns`.
    """

    identifier: str
    stream: LogStream
    columns: tuple[str, ...]
    has_changes: bool
    options: Mapping[str, str]
    partition_by: tuple[str, ...]
    key: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    types: tuple[LogicalType, ...] = ()

    @classmethod
    def of(cls, node: PlanNode, rows: Rows, emitted_at: str | None = None) -> SinkRows:
        """Return the rows of the sink that a node is, perhaps with a column for when they were emitted."""
        table: Mapping[str, Any] = node.json.get("dynamicTableSink", {}).get("table", {})
        resolved = table.get("resolvedTable", {})
        return cls(
            str(table.get("identifier", f"sink {node.id}")),
            rows.stream,
            rows.columns,
            bool(rows.changes),
            dict(resolved.get("options") or {}),
            tuple(resolved.get("partitionKeys") or ()),
            tuple((resolved.get("schema", {}).get("primaryKey") or {}).get("columns") or ())
            or tuple(rows.columns[number] for number in node.json.get("inputUpsertKey") or ()),
            () if emitted_at is None else (emitted_at,),
            rows.types,
        )

    @property
    def name(self) -> str:
        """The short name of the table."""
        return names_of(self.identifier)[0]

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

    def deliver(self, result: JobResult, path: str | PathLike[str] | None, mode: str) -> None:
        """Write the rows of a result into a directory, or print or count them if the connector of the table does."""
        if path is not None:
            result.write_parquet(path, mode=mode, partition_by=self.partition_by)
        elif self.connector == "print":
            self.print(result)
        elif self.connector == "blackhole":
            result.report  # noqa: B018 - runs the job

    def print(self, result: JobResult) -> None:
        """Print the rows of a result as Flink's connector ``print`` does."""
        prefix = self.options.get("print-identifier", "")
        prefix += "> " if prefix else ""
        for batch in result.to_batches():
            kinds = batch.column(ROW_KIND).to_pylist() if self.has_changes else ["+I"] * batch.num_rows
            columns = [
                external_texts(batch.column(name), kind)
                for name, kind in zip(self.columns, self.types, strict=True)
            ]
            for kind, *values in zip(kinds, *columns, strict=True):
                print(f"{prefix}{kind}[{', '.join(values)}]")

    def of_query(self, name: str) -> SinkRows:
        """Return the rows as those of a query: results, whatever sink its plan has."""
        return replace(self, identifier=name, options={})

    def final(self) -> SinkRows:
        """Return the rows that are left when the log ends: the last one of each key, without those that are deleted.

        Raises
        ------
        UnsupportedOperationError
            If rows are changed, and have no key.
        """
        if not self.has_changes:
            return self
        if not self.key:
            raise UnsupportedOperationError(
                f"the rows of {self.name} are changed, and have no key of which the last row could be taken. Declare a "
                "PRIMARY KEY for its table, or take the changes (final=False)"
            )
        kept = (*self.columns, *self.beside)
        changes = self.stream.select(*kept, **{_KIND: pc.field(ROW_KIND)})
        last = changes.key_by(*self.key, null_keys=True).deduplicate("last", "arrival")
        left = last.filter(pc.field(_KIND).isin(["+I", "+U"])).select(*kept)
        return replace(self, stream=left, has_changes=False)

    def union(self, other: SinkRows) -> SinkRows:
        """Return the rows of two insertions into the sink."""
        first, second = self.stream, other.stream
        if self.has_changes != other.has_changes:
            kinds = {ROW_KIND: pc.scalar("+I")}
            first = first if self.has_changes else first.with_columns(**kinds)
            second = second if other.has_changes else second.with_columns(**kinds)
        return replace(self, stream=first.union(second), has_changes=self.has_changes or other.has_changes)
