"""PlacedMerge."""

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from flinkcore.columnar.stages.placed_events import FIXED_COLUMNS, PlacedEvents, PlacedMerge


def placed(arrivals: list[int], sequence: list[int]) -> PlacedEvents:
    zeros = np.zeros(len(arrivals), np.int64)
    order = (np.array(arrivals, np.int64), *(zeros for _ in range(FIXED_COLUMNS - 1)), np.array(sequence))
    return PlacedEvents.of(pa.record_batch({"n": sequence}), zeros, order)


def released(merge: PlacedMerge, arrival: int | None) -> list[int]:
    return [number for events, _ in merge.release(arrival) for number in events.batch["n"].to_pylist()]


def test_rows_come_in_total_order_once_nothing_that_is_still_to_come_can_precede_them() -> None:
    merge = PlacedMerge()
    merge.add(placed([3, 5], [30, 50]))
    merge.add(placed([4, 5, 6], [40, 49, 60]))
    assert released(merge, 3) == []
    assert released(merge, 5) == [30, 40]
    merge.add(placed([5], [48]))
    assert released(merge, 5) == []
    assert released(merge, 6) == [48, 49, 50]
    assert released(merge, None) == [60]
    assert released(merge, None) == []


def test_rows_of_one_arrival_are_not_sorted_again_for_each_block_of_them() -> None:
    merge = PlacedMerge()
    order = PlacedEvents.rows_in_order
    with patch.object(PlacedEvents, "rows_in_order", autospec=True, side_effect=order) as sort:
        for number in range(10, 0, -1):
            assert released(merge, 7) == []
            merge.add(placed([7], [number]))
        assert released(merge, None) == list(range(1, 11))
    assert sort.call_count == 1


@pytest.mark.parametrize("held_bytes", [0, 1 << 12, 1 << 14])
def test_rows_that_wait_in_a_file_come_in_the_order_of_those_in_memory(held_bytes: int) -> None:
    random = np.random.default_rng(held_bytes)
    here, spilled = PlacedMerge(), PlacedMerge(held_bytes, piece_bytes=1 << 10)
    released: list[list[tuple[int, int]]] = [[], []]
    for until_ms in (0, 3, 3, 4, 9, None):
        for _ in range(6):
            arrivals = np.sort(random.integers(until_ms or 9, 12, 50)).tolist()
            events = placed(arrivals, random.integers(0, 40, 50).tolist())
            for merge in (here, spilled):
                merge.add(events)
        for merge, rows in zip((here, spilled), released, strict=True):
            for events, _ in merge.release(until_ms):
                rows += zip(events.arrivals.tolist(), events.batch["n"].to_pylist(), strict=True)
        assert released[0] == released[1]
    assert len(released[0]) == 6 * 6 * 50
    assert released[0] == sorted(released[0])


def test_long_runs_of_rows_are_merged_without_a_copy() -> None:
    merge = PlacedMerge()
    arrivals = list(range(0, 20_000, 2))
    rows = placed(arrivals, arrivals)
    merge.add(rows)
    merge.add(placed([3001, 7001, 9001], [3001, 7001, 9001]))
    first, second = (events for until in (8000, None) for events, _ in merge.release(until))
    assert [batch.num_rows for batch in first.batches] == [1501, 1, 2000, 1, 499]
    assert [batch.num_rows for batch in second.batches] == [501, 1, 5499]
    assert first.batches[2]["n"].buffers()[1].address == rows.batch["n"].buffers()[1].address
    both = [*first.batch["n"].to_pylist(), *second.batch["n"].to_pylist()]
    assert both == sorted([*arrivals, 3001, 7001, 9001])
    assert [*first.arrivals, *second.arrivals] == both


def test_batches_of_few_rows_in_order_are_one_batch() -> None:
    merge = PlacedMerge()
    for number in range(5):
        merge.add(placed([number], [number]))
    ((events, _),) = merge.release(None)
    assert len(events.batches) == 1
    assert events.batch["n"].to_pylist() == list(range(5))


def test_short_runs_of_rows_are_copied_into_one_batch() -> None:
    merge = PlacedMerge()
    for begin in (0, 1):
        merge.add(placed(list(range(begin, 3000, 2)), list(range(begin, 3000, 2))))
    ((events, _),) = merge.release(None)
    assert len(events.batches) == 1
    assert events.batch["n"].to_pylist() == list(range(3000))
