"""The live windows of a native operator as a table of a checkpoint: a row for each key and window.

Columns: `key_group`, the keys as `key.NAME`, `window_start` and `window_end` (ms), `trigger_state` and `flags` as of
`WindowOperator.windows`, `touched`, and what each aggregate holds, as NUMBER.PART: see
`flinkcore._native.accumulator_state`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.window_operator import WindowOperator
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.columnar.relational.accumulator_columns import accumulator_columns, restore_accumulators
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.errors import SchemaError
from flinkcore.operators.keys.element_rows import event_key_groups

_WINDOW: Final = {
    "window_start": pa.int64(),
    "window_end": pa.int64(),
    "trigger_state": pa.int64(),
    "flags": pa.uint8(),
}
_COUNTED: Final = ("count_windows", "sliced_count_windows")
"""Their keys may have no entry of their own, and the kernels themselves count what a key has."""

TABLE_ROWS: Final = 1 << 16
"""Rows of a table of state that spills."""


def windows_to_table(
    operator: WindowOperator, accumulators: Accumulators, keys: list[str], max_parallelism: int
) -> CheckpointTable:
    """Return the live windows of an operator, of which no results wait.

    Parameters
    ----------
    operator : WindowOperator
    accumulators : Accumulators
        Its own.
    keys : list of str
        Names of the key columns.
    max_parallelism : int
        Number of key groups.
    """
    windows, entries = operator.windows()
    batch = _columns(pa.record_batch(windows), entries, accumulators, keys, max_parallelism)
    ends = batch.column("window_end")
    attributes = {
        "kind": operator.kind,
        "earliest_end_ms": pc.min(ends).as_py(),
        "latest_end_ms": pc.max(ends).as_py(),
    }
    return CheckpointTable(batch, {}, attributes)


def windows_to_tables(
    operator: WindowOperator,
    accumulators: Accumulators,
    keys: list[str],
    max_parallelism: int,
    most_rows: int = TABLE_ROWS,
) -> Iterator[CheckpointTable]:
    """Yield the live windows of an operator, of which no results wait, in tables of so many rows at most.

    The tables have no attributes, as those of a checkpoint have; parameters as of `windows_to_table`.
    """
    windows, entries = operator.windows()
    rows = pa.record_batch(windows)
    for start in range(0, len(entries), most_rows):
        part = rows.slice(start, most_rows), entries[start : start + most_rows]
        yield CheckpointTable(_columns(*part, accumulators, keys, max_parallelism), {}, {})


def _columns(
    rows: pa.RecordBatch,
    entries: npt.NDArray[np.uint32],
    accumulators: Accumulators,
    keys: list[str],
    max_parallelism: int,
) -> pa.RecordBatch:
    key_columns = rows.select(range(len(keys)))
    columns: dict[str, pa.Array] = {
        "key_group": pa.array(event_key_groups(key_columns, keys, max_parallelism), pa.int32()),
        **{f"key.{name}": column for name, column in zip(keys, key_columns.columns, strict=True)},
        **{name: rows.column(len(keys) + place) for place, name in enumerate(_WINDOW)},
        **accumulator_columns(accumulators, entries),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def restore_windows(
    operator: WindowOperator,
    accumulators: Accumulators,
    key: KeyColumns,
    table: CheckpointTable,
) -> None:
    """Open the windows of a table in an operator, before its first row.

    Parameters
    ----------
    operator : WindowOperator
    accumulators : Accumulators
        Its own.
    key : KeyColumns
    table : CheckpointTable
        Table of windows of this kind, with these columns, as `ExpectedWindows` checks them.

    Raises
    ------
    SchemaError
        If a window is none that the operator can have, or is there twice.
    """
    batch = table.batch
    key_columns = key_columns_of(batch, key.names)
    encoder = KeyEncoder(key_columns.schema, list(key.names), key.nulls)
    encoder.encode_batch(key_columns)
    entries = operator.restore(encoder, *window_columns(table))
    if operator.kind not in _COUNTED and len(entries):
        is_there = np.zeros(int(entries.max()) + 1, np.bool_)
        is_there[entries] = True
        if np.count_nonzero(is_there) != len(entries):
            raise SchemaError("the windows of a checkpoint have one twice")
    restore_accumulators(accumulators, entries, table.numbers("touched", pa.uint8()), batch)


def key_columns_of(batch: pa.RecordBatch, keys: Sequence[str]) -> pa.RecordBatch:
    """Return the keys of rows of a table; where events have none, a batch without columns of as many rows."""
    return batch.select([f"key.{name}" for name in keys]).rename_columns(list(keys))


def window_columns(table: CheckpointTable) -> list[npt.NDArray[Any]]:
    """Starts, ends, states of triggers and flags.

    Raises
    ------
    SchemaError
        If a column is missing, of another type, or has nulls.
    """
    return [table.numbers(name, type) for name, type in _WINDOW.items()]
