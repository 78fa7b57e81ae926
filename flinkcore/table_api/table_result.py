"""The result of a statement: a query's rows, or that a statement is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.sql.expressions.evaluation import nulls
from flinkcore.sql.expressions.functions import refusal_of
from flinkcore.sql.expressions.python_values import python_values
from flinkcore.sql.expressions.sql_expression import SqlExpression
from flinkcore.sql.plan.rex import InputRef, RexCall
from flinkcore.sql.types.external_texts import external_texts
from flinkcore.sql.types.logical_types import BINARIES, MAX_LENGTH, LogicalType, Root

if TYPE_CHECKING:
    from flinkcore import JobResult
    from flinkcore.sql.planner.planned_script import SessionAnswer
    from flinkcore.sql.sink_rows import SinkRows

_STRING: Final = LogicalType(Root.VARCHAR, precision=MAX_LENGTH)
_KINDS: Final = {
    "+I": RowKind.INSERT,
    "-U": RowKind.UPDATE_BEFORE,
    "+U": RowKind.UPDATE_AFTER,
    "-D": RowKind.DELETE,
}


class ResultKind(Enum):
    """Kinds of results of statements: with rows, or without."""

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1


class CloseableIterator:
    """Rows, one after the other; also a context manager."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def __next__(self) -> Row:
        return next(self._rows)

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take no more rows."""
        self._rows = iter(())


class TableResult:
    """The result of a statement.

    Attributes
    ----------
    results : mapping of str to JobResult
        Results of the statement's sinks by name; that of a query is ``select``.

    Notes
    -----
    Follows ``pyflink.table.TableResult``. Statements are done when they return, so that `wait` has no work.
    """

    def __init__(
        self,
        results: Mapping[str, JobResult] | None = None,
        rows: SinkRows | None = None,
        zone: str = "UTC",
        answer: SessionAnswer | None = None,
    ) -> None:
        self.results: Mapping[str, JobResult] = results or {}
        self._rows, self._zone, self._answer = rows, zone, answer

    def collect(self) -> CloseableIterator:
        """Return the rows of a query, with their kinds; a statement without rows has the row ``OK``."""
        return CloseableIterator(self._all())

    def _all(self) -> Iterator[Row]:
        if self._answer is not None:
            for answer in self._answer.rows:
                row = Row(*answer)
                row.set_field_names(list(self._answer.columns))
                yield row
            return
        if self._rows is None:
            yield Row("OK")
            return
        names = self._rows.columns
        for batch in self.results[self._rows.name].to_batches():
            kinds = batch.column(ROW_KIND).to_pylist() if self._rows.has_changes else ["+I"] * batch.num_rows
            columns = [
                python_values(batch.column(name), kind)
                for name, kind in zip(names, self._rows.types, strict=True)
            ]
            for kind, *values in zip(kinds, *columns, strict=True):
                row = Row(*values)
                row.set_field_names(names)
                row.set_row_kind(_KINDS[kind])
                yield row

    def print(self) -> None:
        """Print the rows as Flink's SQL client does: with their kinds in a column ``op``."""
        if self._answer is not None:
            print(self._answer.printed, end="")
            return
        if self._rows is None:
            print("OK")
            return
        table = self.results[self._rows.name].to_arrow()
        kinds = table.column(ROW_KIND).to_pylist() if self._rows.has_changes else ["+I"] * table.num_rows
        columns = [["op", *kinds]] + [
            [name, *_shown(table.column(name).combine_chunks(), kind, self._zone)]
            for name, kind in zip(self._rows.columns, self._rows.types, strict=True)
        ]
        if not table.num_rows:
            print("Empty set")
            return
        widths = [max(map(len, column)) for column in columns]
        line = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
        print(line)
        for number, cells in enumerate(zip(*columns, strict=True)):
            print(
                "|"
                + "|".join(f" {cell.rjust(width)} " for cell, width in zip(cells, widths, strict=True))
                + "|"
            )
            if number == 0:
                print(line)
        print(line)
        print(f"{table.num_rows} row{'' if table.num_rows == 1 else 's'} in set")

    def wait(self, timeout_ms: int | None = None) -> None:
        """Return: the statement is done."""

    def get_result_kind(self) -> ResultKind:
        """Return whether the statement was a query, an insertion or a question, which have content, or another one."""
        has_content = bool(self.results) or self._answer is not None
        return ResultKind.SUCCESS_WITH_CONTENT if has_content else ResultKind.SUCCESS

    def get_job_client(self) -> None:
        """Return None, for the statement is done."""


def _shown(column: pa.Array, kind: LogicalType, zone: str) -> list[str]:
    """Return values as Flink displays them: as CAST AS STRING has them, and binaries by their digits."""
    cast = RexCall("CAST", (InputRef(0, kind),), _STRING)
    texts: list[str | None]
    if kind.root in BINARIES:
        texts = [None if value is None else f"x'{value.hex()}'" for value in column.to_pylist()]
    elif refusal_of(cast) is not None:  # of a multiset
        texts = list(external_texts(column, kind))
    else:
        batch = pa.RecordBatch.from_arrays([column], ["value"])
        texts = SqlExpression(cast, ("value",), zone).evaluate(batch).to_pylist()
    return [
        "<NULL>" if text is None or is_null else text
        for text, is_null in zip(texts, nulls(column), strict=True)
    ]
