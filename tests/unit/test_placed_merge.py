"""PlacedMerge."""

from unittest.mock import patch

import numpy as np
import pyarrow as pa

from flinkcore.replay.stages.placed_events import FIXED_COLUMNS, PlacedEvents, PlacedMerge


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
    with patch.object(PlacedEvents, "sorted", autospec=True, side_effect=PlacedEvents.sorted) as sort:
        for number in range(10, 0, -1):
            assert released(merge, 7) == []
            merge.add(placed([7], [number]))
        assert released(merge, None) == list(range(1, 11))
    assert sort.call_count == 1
