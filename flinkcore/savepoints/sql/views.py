"""Views of Flink SQL's aggregates: the values of an argument, in a state beside the accumulators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore.columnar.relational.accumulator_columns import accumulator_columns
from flinkcore.errors import DataError
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers.row_data import view_data
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.sql.names import OF_NULL
from flinkcore.savepoints.sql.row_layout import place_ids
from flinkcore.sql.plan.flink_state import ValuesView
from flinkcore.sql.types.logical_types import FLOATS, TEXTS, LogicalType, Root

_COUNT = LogicalType(Root.BIGINT, False)
_DECIMAL_BYTES: Final = 16
"""Bytes of a decimal of Arrow. Native aggregates keep 24 of those among which they choose, as of sums."""
_SIGNS: Final = bytes(0xFF if each >> 7 else 0 for each in range(256))
"""Bytes that extend integers, by their most significant byte."""


def view_states(
    views: Sequence[ValuesView], key: StateSerializer, namespace: StateSerializer
) -> Iterator[tuple[str, KeyedTypes]]:
    """Yield the names and types of the states of views.

    Notes
    -----
    Flink's ``StateMapViewWithKeysNotNull`` of ``MinWithRetractAggFunction`` and ``MaxWithRetractAggFunction``, and
    ``StateMapViewWithKeysNullable`` of distinct values, which has a state of its own for the key null. It has no
    entries here: no aggregate takes null.

    Raises
    ------
    UnsupportedOperationError
        If values are of a type that cannot be written or restored.
    """
    for view in views:
        value = view_data(_COUNT.with_nullable(bool(view.extreme)))
        yield view.state, KeyedTypes("MAP", key, namespace, view_data(view.type), value, False)
        if not view.extreme:
            yield f"{view.state}{OF_NULL}", KeyedTypes("VALUE", key, namespace, None, value, False)


@dataclass(frozen=True)
class ViewRows:
    """Values of a view.

    Attributes
    ----------
    rows : int64 array (n,)
        For each value, the number of its accumulator.
    values : pyarrow.Array, n values
    counts : int64 array (n,)
        Number of times that each value came, if values are taken back, or a bit for each aggregate that has it.
    """

    rows: Int64s
    values: pa.Array
    counts: Int64s


def view_rows(view: ValuesView, held: Mapping[str, pa.Array], numbers: Mapping[str, int]) -> ViewRows:
    """Return the values of a view that native aggregates hold.

    Parameters
    ----------
    view : ValuesView
    held : mapping of str to pyarrow.Array
        Contents of accumulators, as `accumulator_columns` returns them.
    numbers : mapping of str to int
        Numbers of the aggregates by name.
    """
    parts = [_values_of(view, held, numbers[name], 1 << bit) for bit, name in enumerate(view.aggregates)]
    rows = np.concatenate([part.rows for part in parts])
    values = pa.concat_arrays([part.values for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    if len(parts) == 1:
        return ViewRows(rows, values, counts)
    ids, firsts = place_ids(pa.array(rows), values)
    bits = np.zeros(len(firsts), np.int64)
    np.bitwise_or.at(bits, ids, counts)
    return ViewRows(rows[firsts], values.take(pa.array(firsts)), bits)


def _values_of(view: ValuesView, held: Mapping[str, pa.Array], number: int, bit: int) -> ViewRows:
    lists = held[f"{number}.{_part(view)}"]
    rows = np.repeat(np.arange(len(lists)), np.diff(lists.offsets.to_numpy()))
    elements = lists.flatten()
    type = _value_type(view.type)
    if view.type.root in TEXTS:
        values = elements.cast(pa.binary()).cast(type)
    elif view.type.root is Root.DECIMAL:
        content = b"".join(each[:_DECIMAL_BYTES] for each in elements.cast(pa.binary()).to_pylist())
        values = pa.Array.from_buffers(type, len(elements), [None, pa.py_buffer(content)])
    else:
        words = _in_order(view, elements.to_numpy()).view(np.int64)
        if view.type.root in FLOATS:
            # Words of floats are in the order of integers: of those below 0 all bits but the sign are turned.
            values = pa.array((words ^ (words >> 63 & 2**63 - 1)).view(np.float64)).cast(type)
        else:
            values = pa.array(words).cast(type)
    counts = np.full(len(rows), bit)
    if view.is_counted:
        # Windows do not count their values, of which none is taken back.
        known = held.get(f"{number}.set_counts")
        counts = np.ones(len(rows), np.int64) if known is None else known.flatten().to_numpy()
    return ViewRows(rows, values, counts)


def held_values(
    view: ValuesView, found: ViewRows, n: int, bit: int, *, runs: bool, retracts: bool
) -> dict[str, pa.Array]:
    """Return what a native aggregate of a view holds for `n` accumulators, by the name of the part.

    Parameters
    ----------
    view : ValuesView
    found : ViewRows
    n : int
    bit : int
        Number of the aggregate among those of the view.
    runs, retracts : bool
        As of `Accumulators`.

    Raises
    ------
    DataError
        If a value came less than once.
    """
    own = (
        np.ones(len(found.rows), np.bool_) if view.is_counted else (found.counts >> bit & 1).astype(np.bool_)
    )
    own_rows, values = found.rows[own], found.values.filter(pa.array(own))
    counts = found.counts[own] if view.is_counted else np.ones(len(own_rows), np.int64)
    if len(counts) and counts.min() < 1:
        raise DataError(f"a distinct value came {counts.min()} times")
    order = np.argsort(own_rows, kind="stable")
    sizes = np.bincount(own_rows, minlength=n)
    offsets = pa.array(np.concatenate(([0], np.cumsum(sizes))), pa.int64())
    parts = {
        _part(view): pa.LargeListArray.from_arrays(offsets, _elements(view, values).take(pa.array(order)))
    }
    if retracts:
        parts["set_counts"] = pa.LargeListArray.from_arrays(offsets, pa.array(counts[order]))
    if runs and not view.extreme:
        parts["words"] = pa.array(sizes.astype(np.uint64))
    return parts


def _elements(view: ValuesView, values: pa.Array) -> pa.Array:
    """Return values as sets of native aggregates have them."""
    n, type = len(values), view.type.arrow
    accumulators = Accumulators(pa.schema([("value", type)]), [("count_distinct", "value", None, None)])
    accumulators.reserve(n)
    each = np.arange(n, dtype=np.uint32)
    batch = pa.RecordBatch.from_arrays([values.cast(type)], ["value"])
    accumulators.update(RecordBatch(batch, any_type=True), each)
    elements = accumulator_columns(accumulators, each)[f"0.{_part(view)}"].flatten()
    if view.type.root is Root.DECIMAL and view.extreme:
        wide = [each + each[-1:].translate(_SIGNS) * 8 for each in elements.cast(pa.binary()).to_pylist()]
        return pa.array(wide, elements.type)
    return elements if _part(view) == "byte_set" else pa.array(_in_order(view, elements.to_numpy()))


def _in_order(view: ValuesView, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return words as an aggregate compares them, or back: the greatest value is the least word."""
    return ~words if view.extreme == "max" else words


def _part(view: ValuesView) -> str:
    return "byte_set" if view.type.root in (*TEXTS, Root.DECIMAL) else "word_set"


def _value_type(type: LogicalType) -> pa.DataType:
    """Return the type of values in a savepoint: days are numbers there."""
    if type.root is Root.TIMESTAMP_LTZ:  # the serializer knows no time zones
        return pa.timestamp(type.arrow.unit)
    return pa.int32() if type.root is Root.DATE else type.arrow
