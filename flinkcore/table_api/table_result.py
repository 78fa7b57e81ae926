"""The result of a statement: a query's rows, or that a statement is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from flinkcore._internal.show.tables import shown_value
from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore.datastream.graph.columnar_windows import ROW_KIND

if TYPE_CHECKING:
    from flinkcore import JobResult
    from flinkcore.sql.sink_rows import SinkRows

_KINDS = {
    "+I": RowKind.INSERT,
    "-U": RowKind.UPDATE_BEFORE,
    "+U": RowKind.UPDATE_AFTER,
    "-D": RowKind.DELETE,
}


class ResultKind(Enum):
    """Whether a statement has rows as its result."""

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

    def __init__(self, results: Mapping[str, JobResult] | None = None, rows: SinkRows | None = None) -> None:
        self.results: Mapping[str, JobResult] = results or {}
        self._rows = rows

    def collect(self) -> CloseableIterator:
        """Return the rows of a query, with their kinds; a statement without rows has the row ``OK``."""
        return CloseableIterator(self._all())

    def _all(self) -> Iterator[Row]:
        if self._rows is None:
            yield Row("OK")
            return
        names = self._rows.columns
        for batch in self.results[self._rows.name].to_batches():
            kinds = batch.column(ROW_KIND).to_pylist() if self._rows.has_changes else ["+I"] * batch.num_rows
            columns = [batch.column(name).to_pylist() for name in names]
            for kind, *values in zip(kinds, *columns, strict=True):
                row = Row(*values)
                row.set_field_names(names)
                row.set_row_kind(_KINDS[kind])
                yield row

    def print(self) -> None:
        """Print the rows as Flink's SQL client does: with their kinds in a column ``op``."""
        if self._rows is None:
            print("OK")
            return
        table = self.results[self._rows.name].to_arrow()
        kinds = table.column(ROW_KIND).to_pylist() if self._rows.has_changes else ["+I"] * table.num_rows
        columns = [["op", *kinds]] + [
            [name, *(_shown(value) for value in table.column(name))] for name in self._rows.columns
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
        """Return whether the statement was a query or an insertion, which have content, or another one."""
        return ResultKind.SUCCESS_WITH_CONTENT if self.results else ResultKind.SUCCESS

    def get_job_client(self) -> None:
        """Return None, for the statement is done."""


def _shown(value: Any) -> str:
    return shown_value(value) if value.is_valid else "<NULL>"
