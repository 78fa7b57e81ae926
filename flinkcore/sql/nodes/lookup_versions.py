"""The version of a key that has arrived last before each row: what a table that is looked up had at that time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.datastream.aggregates import count, max_by
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.sql.nodes.over import Frame
from flinkcore.sql.nodes.rows import Rows, by_key
from flinkcore.sql.nodes.scans import ScannedColumn

_FROM_THE_START: Final = Frame(None, None, "rows", "arrival")
_KEY: Final = "lookup key#"
_VERSION: Final = "version#"
_NUMBER: Final = "number of the version#"
_LATEST: Final = "latest version#"
_IS_PRESENT: Final = "present"


@dataclass(frozen=True, eq=False)
class _Version(ColumnExpression):
    """The columns of a version as one, with whether it is there and not deleted; picklable."""

    columns: tuple[ColumnExpression, ...]
    kind: str | None

    @property
    def required_columns(self) -> frozenset[str]:
        read = frozenset() if self.kind is None else frozenset([self.kind])
        return read.union(*(column.required_columns for column in self.columns))

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        is_present = pa.repeat(pa.scalar(True), batch.num_rows)
        if self.kind is not None:
            is_present = pc.is_in(batch.column(self.kind), pa.array(["+I", "+U"]))
        arrays = [is_present, *(column.evaluate(batch) for column in self.columns)]
        return pa.StructArray.from_arrays(arrays, [_IS_PRESENT, *map(str, range(len(self.columns)))])

    def __str__(self) -> str:
        return f"version of {', '.join(map(str, self.columns))}"


@dataclass(frozen=True, eq=False)
class OfVersion(ColumnExpression):
    """An expression over the columns of rows and of the version that each has found; picklable.

    Attributes
    ----------
    inner : ColumnExpression
    names : tuple of str
        Columns of the version, the first of which is whether there is one.
    """

    inner: ColumnExpression
    names: tuple[str, ...]

    @property
    def required_columns(self) -> frozenset[str]:
        return (self.inner.required_columns - set(self.names)) | {_LATEST}

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        versions = batch.column(_LATEST)
        read = self.inner.required_columns
        columns = {name: batch.column(name) for name in read if name not in self.names}
        for number, name in enumerate(self.names):
            if name in read:
                found = pc.struct_field(versions, [number])
                columns[name] = found.fill_null(False) if number == 0 else found
        if not columns:
            return self.inner.evaluate(batch)
        return self.inner.evaluate(pa.RecordBatch.from_arrays(list(columns.values()), list(columns)))

    def __str__(self) -> str:
        return f"{self.inner}, of {_LATEST}"


IS_OF_ROWS: Final = pc.field(_NUMBER).is_null()
"""Condition on the results of `with_latest_versions`, which also have the versions themselves."""


def with_latest_versions(
    rows: Rows,
    keys: Mapping[str, str],
    versions: LogStream,
    columns: Mapping[str, ScannedColumn],
    kind: str | None,
) -> LogStream:
    """Return rows with the version of their key that has arrived last, of which `OfVersion` reads the columns.

    Parameters
    ----------
    rows : Rows
    keys : mapping of str to str
        Columns of the rows by the columns of the versions that they equal.
    versions : LogStream
        Rows of a log, each a version of its key, or its deletion.
    columns : mapping of str to ScannedColumn
        Columns of the versions by their names, which those of the rows do not have.
    kind : str or None
        Column of the versions for kinds of changes, or None if all are new versions.
    """
    names = {name: f"{_KEY}{number}" for number, name in enumerate(keys)}
    version = _Version(tuple(columns.values()), kind)
    own = versions.select(**{names[name]: columns[name] for name in keys}, **{_VERSION: version})
    numbered = _over(own, list(names.values()), **{_NUMBER: count()})
    kept = rows.own_columns
    types = [column.type.arrow for column in columns.values()]
    struct = pa.struct([(_IS_PRESENT, pa.bool_()), *((str(n), kind) for n, kind in enumerate(types))])
    none = {
        name: pc.scalar(pa.scalar(None, kind.arrow))
        for name, kind in zip(rows.columns, rows.types, strict=True)
    }
    numbered = numbered.select(_VERSION, _NUMBER, *names.values(), **none, **_kinds(rows, "+I"))
    before = rows.stream.select(
        *kept,
        *((ROW_KIND,) if rows.changes else ()),
        **{names[name]: pc.field(column) for name, column in keys.items()},
        **{
            _VERSION: pc.scalar(pa.scalar(None, struct)),
            _NUMBER: pc.scalar(pa.scalar(None, pa.int64())),
        },
    )
    order = [*kept, *_kinds(rows, ""), *names.values(), _VERSION, _NUMBER]
    together = before.select(*order).union(numbered.select(*order))
    return _over(together, list(names.values()), **{_LATEST: max_by(_VERSION, _NUMBER)})


def _kinds(rows: Rows, kind: str) -> dict[str, Any]:
    return {ROW_KIND: pc.scalar(kind)} if rows.changes else {}


def _over(stream: LogStream, keys: Sequence[str], **aggregates: Any) -> LogStream:
    keyed = by_key(stream, keys)
    return keyed._then(_FROM_THE_START.step(keyed._input(), aggregates))
