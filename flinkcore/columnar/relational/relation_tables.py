"""The state of a relational operator as tables, whose rows say all by values: keys, rows and timers.

Columns: `key_group`, the keys as `key.NAME`, the columns of a row as `row.NAME` and `right_row.NAME` after `has_row`
and `has_right_row`, values of Python as `python.NAME`, and what else the kernel has. A table of timers has
`timestamp_ms` and `namespace` in order of registration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.show.tables import shown_fields
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.timers import TimerHeap
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.value_encoding import encode
from flinkcore.columnar.relational.kernel import RelationalKernel
from flinkcore.columnar.relational.numbered_rows import NumberedRows
from flinkcore.errors import SchemaError

TIMERS: Final = "timers"

TABLE_ROWS: Final = 1 << 16
"""Rows of a table of state that spills."""

_ROWS: Final = ("row", "right_row")

_OF_PYTHON: Final = "python."
"""Beginning of the name of a column of values of Python, whose type is that of the values."""


class RelationTables:
    """Writes the state of an operator to tables, and restores it from them.

    Parameters
    ----------
    kernel : RelationalKernel
    keys : KeyDictionary
    timers : mapping of str to TimerHeap
        By the name of their table.
    kept : sequence of NumberedRows
        The rows of each input.
    restored_columns : callable
        Returns, for restored rows of the first input and the other columns of their table, what the kernel takes
        besides, such as sort keys.
    table_rows : int
        Most rows of a table of `parts`.
    """

    def __init__(
        self,
        kernel: RelationalKernel,
        keys: KeyDictionary,
        timers: Mapping[str, TimerHeap],
        kept: Sequence[NumberedRows],
        restored_columns: Callable[[pa.RecordBatch, pa.RecordBatch], Mapping[str, npt.NDArray[Any] | None]],
        table_rows: int = TABLE_ROWS,
    ) -> None:
        self._kernel, self._keys, self._timers, self._kept = kernel, keys, timers, kept
        self._restored_columns = restored_columns
        self._table_rows = table_rows
        self._kinds = {name: self._table(table).batch.schema for name, table in kernel.snapshot().items()}
        self._kinds |= {name: self._timer_columns(name).schema for name in timers}

    def whole(self) -> Iterator[tuple[str, CheckpointTable]]:
        """Yield the state by name of the table; no results wait.

        Raises
        ------
        DataError
            If a column cannot hold the text, or the elements of lists, of all rows.
        """
        for name, table in self._kernel.snapshot().items():
            yield name, self._table(table)
        for name in self._timers:
            yield name, CheckpointTable(self._timer_columns(name), {}, {})

    def parts(self) -> Iterator[tuple[str, CheckpointTable]]:
        """Yield the state as `whole` does, in tables of a limited number of rows, of which a name may have several."""
        for name, table in self._kernel.snapshot().items():
            n = len(table["key"])
            for begin in range(0, n, self._table_rows):
                part = {column: values[begin : begin + self._table_rows] for column, values in table.items()}
                yield name, self._table(part)
        for name in self._timers:
            timers = self._timer_columns(name)
            for begin in range(0, timers.num_rows, self._table_rows):
                yield name, CheckpointTable(timers.slice(begin, self._table_rows), {}, {})

    def _table(self, table: Mapping[str, Any]) -> CheckpointTable:
        columns, shapes = self._key_columns(table["key"]), {}
        for number, name in enumerate(_ROWS):
            if name in table:
                rows = self._kept[number].take(table[name])
                columns[f"has_{name}"] = pa.array(table[name] >= 0)
                columns |= {f"{name}.{each}": rows.column(each) for each in rows.schema.names}
        for name, values in table.items():
            if isinstance(values, list):
                encoded = f"{_OF_PYTHON}{name}"
                columns[encoded], shapes[encoded] = encode(values, f"the {name} of a key")
            elif name != "key" and name not in _ROWS:
                columns[name] = values if isinstance(values, pa.Array) else pa.array(values)
        return CheckpointTable(pa.RecordBatch.from_arrays(list(columns.values()), list(columns)), shapes, {})

    def _key_columns(self, ids: Int64s) -> dict[str, pa.Array]:
        keys = pa.record_batch(self._keys.keys())
        columns = {"key_group": pa.array(self._keys.key_group(ids.astype(np.uint32)), pa.int32())}
        for name, column in zip(keys.schema.names, keys.columns, strict=True):
            columns[f"key.{name}"] = column.take(pa.array(ids))
        return columns

    def _timer_columns(self, name: str) -> pa.RecordBatch:
        timers = pa.record_batch(self._timers[name].snapshot())
        columns = self._key_columns(timers.column("key").to_numpy())
        columns |= {name: timers.column(name) for name in ("timestamp_ms", "namespace")}
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    def restore(self, tables: Iterable[tuple[str, CheckpointTable]]) -> None:
        """Take tables of `whole` or `parts`, in their order; before the first event.

        Raises
        ------
        SchemaError
            If they are not a state of this operator.
        """
        for name, table in tables:
            self._check(name, table)
            batch = table.batch
            ids = self._key_ids(table)
            if name in self._timers:
                self._restore_timers(self._timers[name], batch, ids)
                continue
            others = [each for each in batch.schema.names if each != "key_group" and "." not in each]
            columns = batch.select(others)
            rows: dict[str, Int64s] = {}
            more: dict[str, Any] = {
                each.removeprefix(_OF_PYTHON): table.values(each)
                for each in batch.schema.names
                if each.startswith(_OF_PYTHON)
            }
            for number, prefix in enumerate(_ROWS):
                if f"has_{prefix}" in batch.schema.names:
                    of_input = self._kept[number]
                    names = [f"{prefix}.{each}" for each in of_input.schema.names]
                    restored = pa.RecordBatch.from_arrays(
                        [batch.column(each) for each in names], schema=of_input.schema
                    )
                    has_row = table.numbers(f"has_{prefix}", pa.bool_())
                    first = of_input.add(restored)
                    rows[prefix] = np.where(has_row, first + np.arange(len(has_row)), -1)
                    if number == 0:
                        more |= self._restored_columns(restored, columns)
            self._kernel.restore(name, ids, {**rows, **more}, columns)

    def _check(self, name: str, table: CheckpointTable) -> None:
        expected = self._kinds.get(name)
        if expected is None:
            raise SchemaError(
                f"the state has the table {name!r}, and this operator has {', '.join(self._kinds)}"
            )
        if not _typed(table.batch.schema).equals(_typed(expected)):
            found, own = shown_fields(table.batch.schema), shown_fields(expected)
            raise SchemaError(f"the rows {name!r} have the columns {found}, and those of this job are {own}")
        for field in expected:
            if "." not in field.name and table.batch.column(field.name).null_count:
                raise SchemaError(f"the column {field.name!r} of the rows {name!r} has nulls")

    def _key_ids(self, table: CheckpointTable) -> Int64s:
        names = [name for name in table.batch.schema.names if name.startswith("key.")]
        keys = table.batch.select(names).rename_columns([name.removeprefix("key.") for name in names])
        ids = self._keys.ids(keys)
        groups = table.numbers("key_group", pa.int32())
        wrong = np.flatnonzero(self._keys.key_group(ids) != groups)
        if len(wrong):
            row = int(wrong[0])
            raise SchemaError(
                f"row {row} of the state, of the key {keys.slice(row, 1).to_pylist()[0]}, is in the key group "
                f"{groups[row]}, which is not that of the key"
            )
        return ids.astype(np.int64)

    def _restore_timers(self, heap: TimerHeap, batch: pa.RecordBatch, ids: Int64s) -> None:
        timers = pa.record_batch(
            {
                "timestamp_ms": batch.column("timestamp_ms"),
                "key": ids,
                "key_group": batch.column("key_group"),
                "namespace": batch.column("namespace"),
            }
        )
        if heap.restore(timers) < timers.num_rows:
            raise SchemaError("a timer of the state is there twice")


def _typed(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose columns of values of Python have names alone."""
    return pa.schema(
        [pa.field(field.name, pa.null()) if field.name.startswith(_OF_PYTHON) else field for field in schema]
    )
