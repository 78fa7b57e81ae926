"""Slices that are made of open windows merge into the same windows."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore.columnar.operator_plans.aggregate_contents import AggregateContents
from flinkcore.columnar.relational.accumulator_columns import accumulator_columns, restore_accumulators
from flinkcore.errors import UnsupportedOperationError
from flinkcore.savepoints.sql.window_names import ends_of_windows
from flinkcore.savepoints.sql.window_slices import require_divisible, slices_of_windows
from flinkcore.sql.plan.flink_state import CUMULATE, HOP, PRESENT, AccumulatorField, FlinkState, StateWindows
from flinkcore.sql.types.logical_types import LogicalType, Root

_SLIDE = 10
_OFFSET = 3
_COLUMNS = pa.schema(
    [
        ("rows", pa.int8()),
        ("n", pa.int64()),
        ("m", pa.decimal128(38, 0)),
        ("u", pa.string()),
        ("x", pa.float64()),
    ]
)
_OF_COLUMNS = [
    *(("count", column) for column in ("rows", "n")),
    *(("sum", column) for column in ("n", "m")),
    *((function, column) for function in ("min", "max") for column in ("n", "m", "u")),
    *(("count_distinct", column) for column in ("n", "m", "u", "x")),
]
_CONTENTS = AggregateContents(
    tuple(
        (f"{number}", function, column, None, None) for number, (function, column) in enumerate(_OF_COLUMNS)
    ),
    _COLUMNS,
)

numbers = st.sampled_from([None, 0, 1, -1, 5, 2**63 - 1, -(2**63)])
decimals = st.sampled_from([None, 0, 1, -1, 7, 10**38 - 1, 1 - 10**38])
texts = st.sampled_from([None, "", "a", "b", "ä longer text"])
floats = st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")])
rows = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-9, 9), numbers, decimals, texts, floats), max_size=25
)


def accumulators_of(batch: pa.RecordBatch) -> Accumulators:
    """Return the accumulators of a table, in the order of its rows."""
    found = Accumulators(_COLUMNS, [each[1:] for each in _CONTENTS.aggregates])
    found.reserve(batch.num_rows)
    every = np.arange(batch.num_rows, dtype=np.uint32)
    restore_accumulators(found, every, batch.column("touched").to_numpy(), batch)
    return found


def table_of(places: Iterable[tuple[int, int]], windows: StateWindows, added: list[Any]) -> pa.RecordBatch:
    """Return a table of these keys and ends, each with the rows that belong to it: (place, row) pairs in `added`."""
    numbered = {place: number for number, place in enumerate(places)}
    accumulators = Accumulators(_COLUMNS, [each[1:] for each in _CONTENTS.aggregates])
    accumulators.reserve(len(numbered))
    if added:
        values = [[1, n, None if m is None else Decimal(m), u, x] for _, (_, _, n, m, u, x) in added]
        columns = [
            pa.array(column, type)
            for column, type in zip(zip(*values, strict=True), _COLUMNS.types, strict=True)
        ]
        entries = np.array([numbered[place] for place, _ in added], np.uint32)
        accumulators.update(
            RecordBatch(pa.RecordBatch.from_arrays(columns, schema=_COLUMNS), any_type=True), entries
        )
    keys, ends = ([place[part] for place in numbered] for part in (0, 1))
    every = np.arange(len(numbered), dtype=np.uint32)
    table = {
        "key.k": pa.array(keys, pa.int64()),
        "window_start": pa.array(ends, pa.int64()),
        "window_end": pa.array(ends, pa.int64()),
        **accumulator_columns(accumulators, every),
    }
    return pa.RecordBatch.from_arrays(list(table.values()), list(table))


def windows_of(
    slices: pa.RecordBatch, windows: StateWindows, watermark_ms: int
) -> dict[tuple[int, int], list[Any]]:
    """Return what each open window has that merges its slices, by key and end."""
    of_slices, ends = ends_of_windows(windows, slices.column("window_end").to_numpy())
    keys = slices.column("key.k").to_pylist()
    # An entry for each window and slice, of which the first one of a window takes the others.
    copies = slices.take(pa.array(of_slices))
    merged = accumulators_of(copies)
    firsts: dict[tuple[int, int], int] = {}
    for number, (row, end) in enumerate(zip(of_slices.tolist(), ends.tolist(), strict=True)):
        if end - 1 > watermark_ms:
            first = firsts.setdefault((keys[row], end), number)
            if first != number:
                merged.merge(first, number)
    entries = np.array(list(firsts.values()), np.uint32)
    values = [
        [sorted(map(repr, each)) for each in column.to_pylist()] if "set" in name else column.to_pylist()
        for name, column in accumulator_columns(merged, entries).items()
    ]
    return dict(zip(firsts, map(list, zip(*values, strict=True)), strict=True))


@settings(max_examples=200)
@given(
    st.sampled_from([HOP, CUMULATE]),
    st.integers(1, 5),
    st.sampled_from([-(2**63), -75, -31, -8, 11, 12, 13, 22, 60]),
    st.booleans(),
    rows,
)
@example(
    HOP, 3, -(2**63), True, [(0, 0, 1, 1, "a", 1.5), (0, 2, None, None, None, None), (0, 9, 1, 1, "a", 0.0)]
)
@example(HOP, 2, -31, True, [(0, place, 1, 1, "a", 1.5) for place in range(-2, 8)])
def test_slices_merge_into_the_windows_of_which_they_are_made(
    kind: str, n: int, watermark_ms: int, is_counted: bool, drawn: list[Any]
) -> None:
    windows = StateWindows(kind, n * _SLIDE, _SLIDE, _OFFSET)
    fields = (AccumulatorField(PRESENT, LogicalType(Root.BIGINT)),) if is_counted else ()
    state = FlinkState("1", "window-aggregate", "node 1", windows=windows, fields=fields)
    slice_ends = np.array([row[1] * _SLIDE + _OFFSET for row in drawn], np.int64)
    of_rows, ends = ends_of_windows(windows, slice_ends)
    added = [
        ((drawn[row][0], end), drawn[row])
        for row, end in zip(of_rows.tolist(), ends.tolist(), strict=True)
        if end - 1 > watermark_ms
    ]
    places = {place: None for place, _ in added}
    kept = table_of(places, windows, added)
    true = table_of(
        {(row[0], row[1] * _SLIDE + _OFFSET): None for row in drawn},
        windows,
        [((row[0], row[1] * _SLIDE + _OFFSET), row) for row in drawn],
    )
    if not added:
        return
    made = slices_of_windows(state, kept, _CONTENTS, watermark_ms)
    found = windows_of(made, windows, watermark_ms)
    assert repr(sorted(found.items())) == repr(sorted(windows_of(true, windows, watermark_ms).items()))
    true_ends = set(zip(true.column("key.k").to_pylist(), true.column("window_end").to_pylist(), strict=True))
    made_ends = list(
        zip(made.column("key.k").to_pylist(), made.column("window_end").to_pylist(), strict=True)
    )
    assert len(made_ends) == len(set(made_ends))
    if (
        kind == HOP and not is_counted
    ):  # COUNT(*) tells which slices have rows: others only help out with values
        n_values = sum(
            pc.list_value_length(made.column(name)).to_numpy() for name in made.schema.names if "set" in name
        )
        for place, n_rows, values in zip(
            made_ends, made.column("0.words").to_pylist(), n_values, strict=True
        ):
            assert (n_rows > 0) == (place in true_ends)
            assert n_rows or values
    for name in made.schema.names:
        if "set" in name:
            lengths = [pc.sum(pc.list_value_length(each.column(name))).as_py() or 0 for each in (made, true)]
            assert lengths[0] <= lengths[1]


@pytest.mark.parametrize("function", ["sum", "min", "max_by"])
def test_floats_that_windows_do_not_divide_are_refused_by_name(function: str) -> None:
    of_floats = AggregateContents((("SUM(x)#1_0", function, "x", None, None),), _COLUMNS)
    with pytest.raises(UnsupportedOperationError, match=r"SUM\(x\) of floats is kept by window.*DECIMAL"):
        require_divisible(of_floats)
