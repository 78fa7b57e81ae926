"""Aggregates of all rows of a key: the result after each row."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.frames import Frames
from flinkcore.columnar.relational.frame_aggregates import FrameAggregates

MORE_ROWS_THAN_AT_ONCE = 2500


def results(
    spec: tuple[str, str, None], values: pa.Array, keys: list[int], **kwargs: Any
) -> tuple[FrameAggregates, list[Any]]:
    batch = pa.record_batch({"v": values})
    frames = FrameAggregates(batch.schema, [spec], retracts="retracts" in kwargs)
    frames.process(batch, np.array(keys, np.uint32), **kwargs)
    frames._check()
    (column,) = frames.take()
    return frames, column.to_pylist()


def test_texts_of_any_length_take_turns_as_the_greatest() -> None:
    texts = ["b", None, "a" * 100, "c", "c" * 1000, "", "d"]
    _, found = results(("max", "v", None), pa.array(texts), [0] * 7)
    assert found == ["b", "b", "b", "c", "c" * 1000, "c" * 1000, "d"]
    _, found = results(("min", "v", None), pa.array(texts), [0, 1, 0, 1, 0, 1, 1])
    assert found == ["b", None, "a" * 100, "c", "a" * 100, "", ""]


def test_a_text_is_not_the_one_of_a_row_some_blocks_before() -> None:
    n = MORE_ROWS_THAN_AT_ONCE
    texts = [None if row < n - 2 else "x" for row in range(n)]
    keys = [row % 2 for row in range(n)]
    keys[-1] = 7
    _, found = results(("max", "v", None), pa.array(texts, pa.string()), keys)
    assert found == [None] * (n - 2) + ["x", "x"]


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64()])
def test_distinct_values_are_counted_over_many_rows(kind: pa.DataType) -> None:
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 3, MORE_ROWS_THAN_AT_ONCE).tolist()
    values = pa.array(
        rng.integers(0, 900, MORE_ROWS_THAN_AT_ONCE), mask=rng.random(MORE_ROWS_THAN_AT_ONCE) < 0.3
    )
    seen: list[set[int]] = [set(), set(), set()]
    expected = []
    for key, value in zip(keys, values.to_pylist(), strict=True):
        seen[key] |= {value} - {None}
        expected.append(len(seen[key]))
    assert results(("count_distinct", "v", None), values.cast(kind), keys)[1] == expected


def test_a_row_that_is_taken_back_twice_changes_nothing_the_second_time() -> None:
    back = np.array([0, 1, 1, 0], np.uint8)
    for function, expected in (
        ("count", [1, 0, 0, 1]),
        ("count_distinct", [1, 0, 0, 1]),
        ("sum", [5, None, None, 5]),
    ):
        frames, found = results((function, "v", None), pa.array([5, 5, 5, 5]), [0] * 4, retracts=back)
        assert found == expected
        assert frames.rows_of(np.array([0], np.uint32)).tolist() == [1]


def test_a_row_knows_the_one_of_its_key_before_it() -> None:
    frames, _ = results(("count", "v", None), pa.array([1]), [3])
    for _ in range(2):  # nothing of the first call is left in the second
        assert frames.previous(np.array([4, 9, 4, 4, 9], np.uint32)).tolist() == [-1, -1, 0, 2, 1]
    assert frames.previous(np.empty(0, np.uint32)).tolist() == []
    frames._check()


def test_accumulators_are_made_for_their_frames() -> None:
    schema, specs = pa.schema({"v": pa.int64()}), [("sum", "v", None)]
    with pytest.raises(ValueError, match="runs=True"):
        Frames(Accumulators(schema, specs, slides=True))
    with pytest.raises(ValueError, match="slides=True"):
        Frames(Accumulators(schema, specs, runs=True), rows=2)
    for kwargs in ({"slides": True, "runs": True}, {"retracts": True}, {"slides": True, "retracts": True}):
        with pytest.raises(ValueError, match="frames slide or run"):
            Accumulators(schema, specs, **kwargs)


@pytest.mark.parametrize("before", [[0], None], ids=["too few", "none"])
def test_each_key_that_is_cleared_needs_its_row(before: list[int] | None) -> None:
    batch = pa.record_batch({"v": pa.array([1, 2])})
    frames = Frames(Accumulators(batch.schema, [("sum", "v", None)], runs=True))
    keys = np.zeros(2, np.uint32)
    with pytest.raises(ValueError, match="each cleared key needs"):
        frames.process(
            batch,
            keys,
            cleared_keys=keys,
            cleared_before=None if before is None else np.array(before, np.int64),
        )
