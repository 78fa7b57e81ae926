"""The native frames against a model with a list of rows for each key: all aggregates and frames, also restored."""

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from models.aggregates import SPREADS, Spec, is_spread
from models.over import FramesModel
from property.test_aggregates_property import DECIMALS, SCHEMA, SPECS, VALUES, comparable, is_near

from flinkcore._native.aggregates import Accumulators
from flinkcore.columnar.relational.frame_aggregates import FrameAggregates

Drawn = list[tuple[int, int, dict[str, Any]]]

RETRACTABLE = [spec for spec in SPECS if spec[0] in ("count", "sum", "mean", "min", "max", "count_distinct")]


@st.composite
def frames(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["all", "peers", "rows", "range", "both"]))
    if kind == "rows":
        return {"rows": draw(st.integers(1, 5))}
    if kind in ("range", "both"):
        return {"range_ms": draw(st.integers(0, 6)), "peers": kind == "both"}
    return {"peers": kind == "peers"}


def row_of(specs: list[Spec]) -> st.SearchStrategy[dict[str, Any]]:
    """Rows with values in the columns that aggregates read."""
    read = {name for spec in specs for name in spec[1:3] if name is not None}
    return st.fixed_dictionaries(
        {name: st.none() | values if name in read else st.none() for name, (_, values) in VALUES.items()}
    )


def check_columns(specs: list[Spec], columns: list[pa.Array], expected: list[list[Any]]) -> None:
    for at, (spec, column) in enumerate(zip(specs, columns, strict=True)):
        column.validate(full=True)
        found, wanted = column.to_pylist(), [results[at] for results in expected]
        if spec[0] in SPREADS:
            assert all(map(partial(is_spread, spec[0]), found, wanted)), (spec, found, wanted)
        elif spec[0] == "approx_percentile" and spec[1] in DECIMALS:
            assert all(map(is_near, found, wanted)), spec
        else:
            assert comparable(found) == comparable(wanted), (spec, found, wanted)


def restored(native: FrameAggregates, specs: list[Spec], kwargs: dict[str, Any]) -> FrameAggregates:
    """Other frames, with the state of these: as a checkpoint gives it, in two pieces."""
    table = dict(native.snapshot())
    keys = table.pop("key")
    batch = pa.record_batch({name: pa.array(values) for name, values in table.items()})
    other = FrameAggregates(SCHEMA, specs, **kwargs)
    half = len(keys) // 2
    for part in (slice(0, half), slice(half, len(keys))):
        other.restore(keys[part], batch.slice(part.start, part.stop - part.start))
    other._check()
    return other


@settings(deadline=None, max_examples=examples(40))
@given(
    kwargs=frames(),
    specs=st.lists(st.sampled_from(SPECS), min_size=1, max_size=6),
    batches=st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=12), max_size=5),
    data=st.data(),
)
def test_frames_are_those_of_the_model(
    kwargs: dict[str, Any], specs: list[Spec], batches: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    native = FrameAggregates(SCHEMA, specs, **kwargs)
    model = FramesModel(specs, SCHEMA, kwargs.get("rows"), kwargs.get("range_ms"))
    time = 0
    for drawn in batches:
        batch = [(key, step, data.draw(row_of(specs))) for key, step in drawn]
        batch_times, expected = [], []
        forgotten = data.draw(
            st.lists(st.tuples(st.integers(0, len(batch)), st.integers(0, 2)), max_size=2).map(sorted)
        )
        for place, (key, step, row) in enumerate(batch):
            for _, old in [each for each in forgotten if each[0] == place]:
                model.clear(old)
            time += step
            model.add(key, time, row)
            batch_times.append(time)
            expected.append(model.results(key))
        for _, old in [each for each in forgotten if each[0] == len(batch)]:
            model.clear(old)
        numbers = native.process(
            pa.RecordBatch.from_pylist([row for _, _, row in batch], schema=SCHEMA),
            np.array([key for key, _, _ in batch], np.uint32),
            np.array(batch_times, np.int64),
            cleared=(
                np.array([place for place, _ in forgotten], np.int64),
                np.array([key for _, key in forgotten], np.uint32),
            ),
        )
        native._check()
        last_of = list(range(len(batch)))
        for place in reversed(range(len(batch) - 1)):
            if kwargs.get("peers") and same(batch, batch_times, place, place + 1):
                last_of[place] = last_of[place + 1]
        columns = native.take()
        assert numbers.tolist() == sorted(numbers.tolist())
        found = [column.take(pa.array(numbers)) for column in columns]
        check_columns(specs, found, [expected[place] for place in last_of])
        if data.draw(st.booleans()):
            native = restored(native, specs, kwargs)


def same(batch: Drawn, times: list[int], place: int, other: int) -> bool:
    """Whether two rows have one key and time."""
    return (batch[place][0], times[place]) == (batch[other][0], times[other])


@settings(deadline=None, max_examples=examples(40))
@given(
    specs=st.lists(st.sampled_from(RETRACTABLE), min_size=1, max_size=5),
    batches=st.lists(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=12), max_size=4),
    data=st.data(),
)
def test_rows_that_are_taken_back_leave_no_trace(
    specs: list[Spec], batches: list[list[tuple[int, bool]]], data: st.DataObject
) -> None:
    native = FrameAggregates(SCHEMA, specs, retracts=True)
    assert native.can_retract
    model = FramesModel(specs, SCHEMA)
    for batch in batches:
        taken, expected = [], []
        for key, retracts in batch:
            known = [each for _, each in model.keys[key].rows] if key in model.keys else []
            old = data.draw(st.sampled_from(known) if retracts and known else row_of(specs))
            if retracts:
                model.retract(key, old)
            else:
                model.add(key, 0, old)
            taken.append(old)
            expected.append(model.results(key))
        keys = np.array([key for key, _ in batch], np.uint32)
        native.process(
            pa.RecordBatch.from_pylist(taken, schema=SCHEMA),
            keys,
            retracts=np.array([retracts for _, retracts in batch], np.uint8),
        )
        native._check()
        check_columns(specs, native.take(), expected)
        assert native.rows_of(np.arange(3, dtype=np.uint32)).tolist() == [
            len(model.keys[key].rows) if key in model.keys else 0 for key in range(3)
        ]
        if data.draw(st.booleans()):
            native = restored(native, specs, {"retracts": True})


def test_accumulators_that_run_have_the_results_of_others() -> None:
    batch = pa.RecordBatch.from_pylist([{"i64": 3, "f64": 1.5, "text": "a"}, {"f64": 0.5}], schema=SCHEMA)
    found = []
    for runs in (False, True):
        accumulators = Accumulators(SCHEMA, SPECS, runs=runs)
        accumulators.reserve(2)
        accumulators.update(batch, np.zeros(2, np.uint32))
        accumulators.emit_range(0, 2)
        found.append([pa.array(column).to_pylist() for column in accumulators.take()])
    assert found[0] == found[1]
