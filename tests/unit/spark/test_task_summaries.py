"""Records of the first pass that tasks cut by ranges of time."""

import numpy as np
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import Row

from flinkcore.spark.columnar.task_summaries import CollectedRows, TaskSummaries, range_bounds
from flinkcore.spark.exchange.summary_rows import TIMES


def bounds(blocks: list[tuple[int, int, int]], window_ms: int, range_bytes: int) -> list[int]:
    """Of blocks with these first and last ticks and bytes."""
    firsts, lasts, sizes = np.array(blocks, np.int64).reshape(-1, 3).T
    return range_bounds(firsts, lasts, sizes, window_ms, range_bytes).tolist()


def test_ranges_have_about_the_same_bytes_and_end_with_windows() -> None:
    assert bounds([(0, 1_000, 100)], 10, 25) == [250, 500, 750, 1_000]
    assert bounds([(0, 500, 100), (0, 1_000, 100)], 100, 60) == [200, 400, 800]
    assert bounds([(-1_000, -500, 100)], 100, 50) == [-800, -500]


def test_a_window_is_not_divided() -> None:
    assert bounds([(0, 900, 1 << 20)], 1_000, 1) == []


def test_blocks_of_one_tick_and_gaps_between_blocks_are_ranges_too() -> None:
    assert bounds([(0, 0, 100), (5_000, 5_000, 100)], 1_000, 100) == [5_000]
    assert bounds([], 1_000, 100) == []


def test_without_windows_all_is_one_range() -> None:
    assert bounds([(0, 1_000, 100)], 0, 1) == []


def test_times_of_each_way_come_before_its_records() -> None:
    rows = [
        Row(way=way, first_ms=first_ms, chunk=chunk, number=0, last_ms=first_ms, payload=b"%d" % chunk)
        for way, first_ms, chunk in [(1, TIMES, 8), (0, 5, 1), (1, TIMES, 7), (0, TIMES, 1), (1, -3, 7)]
    ]
    summaries = TaskSummaries(CollectedRows(rows))
    assert list(summaries.times(0)) == [b"1"]
    assert list(summaries.times(1)) == [b"7", b"8"]
