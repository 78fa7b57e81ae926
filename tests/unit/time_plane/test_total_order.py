from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from equipment.timelines import timeline_of
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS
from flinkcore.time_plane.total_order import Events, LogEvents, TotalOrderMerge


def events(rows: Sequence[tuple[int, int, int]]) -> LogEvents:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    batch = pa.record_batch(
        {"label": [f"{a}/{s}/{p}" for a, s, p in rows]}, schema=pa.schema([("label", pa.string())])
    )
    return LogEvents(
        batch, columns[0] * 10, columns[0].copy(), columns[1].astype(np.int32), columns[2].copy()
    )


STEPS = [2, 2, 5, 7], [10, 20, 20, 40], [1, AFTER_ALL_SPLITS, 0, AFTER_ALL_SPLITS], [1, 0, 3, 0]
TIMELINE = timeline_of(*STEPS)
"""Made by event (2, 1, 1), a tick, event (5, 0, 3) and a tick."""


def steps_before(key: tuple[int, int, int]) -> int:
    clocks, _, splits, positions = STEPS
    return sum(place < key for place in zip(clocks, splits, positions, strict=True))


def labels(released: list[tuple[Events, np.ndarray | None]]) -> list[str]:
    found: list[str] = []
    for part, rows in released:
        assert part.timestamps.tolist() == (part.arrivals * 10).tolist()
        chosen = range(len(part.steps)) if rows is None else rows.tolist()
        assert [int(part.steps[row]) for row in chosen] == [steps_before(part.key(row)) for row in chosen]
        batch = part.batch if rows is None else part.batch.take(pa.array(rows))
        found += batch.column("label").to_pylist()
    return found


def test_rows_that_nothing_can_precede_are_given_at_once() -> None:
    merge = TotalOrderMerge(TIMELINE)
    merge.add(events([(1, 0, 0), (2, 0, 1), (5, 0, 2)]))
    assert labels(list(merge.release(5))) == ["1/0/0", "2/0/1"]
    assert labels(list(merge.release(None))) == ["5/0/2"]


def test_rows_of_equal_arrival_wait_for_those_still_to_come() -> None:
    merge = TotalOrderMerge(TIMELINE)
    merge.add(events([(1, 1, 0)]))
    assert labels(list(merge.release(1))) == []
    merge.add(events([(1, 0, 0)]))
    assert labels(list(merge.release(None))) == ["1/0/0", "1/1/0"]


@pytest.mark.parametrize(("before", "parts"), [(3, 1), (1 << 14, 2)], ids=["few rows", "many rows"])
def test_only_many_rows_before_the_next_run_pass_alone(before: int, parts: int) -> None:
    merge = TotalOrderMerge(TIMELINE)
    merge.add(events([(number, 0, number) for number in range(before + 2)]))
    merge.add(events([(before, 1, 0), (before + 1, 1, 1)]))
    released = list(merge.release(None))
    assert len(released) == parts
    assert len(labels(released)) == before + 4


def test_a_run_that_overlaps_no_other_passes_without_a_copy() -> None:
    merge = TotalOrderMerge(TIMELINE)
    run = events([(1, 0, 0), (2, 0, 1)])
    merge.add(run)
    ((released, rows),) = merge.release(3)
    assert rows is None
    assert released.batch is run.batch
    assert list(merge.release(None)) == []


def interleaved(n_rows: int, n_runs: int) -> list[LogEvents]:
    rows = [(at // 2, at % n_runs, at) for at in range(n_rows)]
    return [events(rows[first::n_runs]) for first in range(n_runs)]


@pytest.mark.parametrize(("rows", "size"), [(7, 1 << 30), (1 << 30, 400)], ids=["rows", "bytes"])
def test_runs_that_overlap_are_given_in_pieces(rows: int, size: int) -> None:
    merge = TotalOrderMerge(TIMELINE, rows, size)
    for run in interleaved(100, 3):
        merge.add(run)
    released = list(merge.release(None))
    assert labels(released) == [
        f"{a}/{s}/{p}" for a, s, p in sorted((at // 2, at % 3, at) for at in range(100))
    ]
    assert max(len(part.arrivals) for part, _ in released) <= rows
    assert max(part.nbytes for part, _ in released) <= size


def test_a_piece_may_be_as_small_as_a_row() -> None:
    merge = TotalOrderMerge(TIMELINE, most_bytes=1)
    for run in interleaved(10, 4):
        merge.add(run)
    assert [len(part.arrivals) for part, _ in merge.release(None)] == [1] * 10


@pytest.mark.parametrize("held_bytes", [0, 100, 1_000, 5_000])
def test_events_that_wait_take_no_more_memory_than_they_may(held_bytes: int) -> None:
    merge = TotalOrderMerge(TIMELINE, held_bytes=held_bytes)
    row_bytes = events([(100, 0, 100)]).nbytes
    rows = [(at // 3, at % 7, at) for at in range(600)]
    found, most = [], 0
    for first in range(20):  # each part overlaps all others
        merge.add(events(rows[first::20]))
        found += labels(list(merge.release(0)))
        most = max(most, merge.rows_in_memory)
    assert found == []
    assert most * row_bytes <= held_bytes
    for until in (10, 60, 61, 150, None):
        found += labels(list(merge.release(until)))
        # A piece of each part may be in memory, of a row at least.
        assert merge.rows_in_memory <= 20 + held_bytes // row_bytes
    assert found == [f"{a}/{s}/{p}" for a, s, p in sorted(rows)]
    merge.close()


def test_rows_of_one_place_may_be_more_than_memory_holds() -> None:
    merge = TotalOrderMerge(TIMELINE, held_bytes=200)
    for _ in range(10):
        merge.add(events([(1, 0, 7)] * 10))
        assert labels(list(merge.release(1))) == []
    merge.add(events([(1, 0, 6), (2, 0, 0)]))
    assert labels(list(merge.release(None))) == ["1/0/6", *["1/0/7"] * 100, "2/0/0"]
    merge.close()


def test_rows_without_columns_wait_in_a_file() -> None:
    merge = TotalOrderMerge(TIMELINE, held_bytes=0)
    waiting = events([(1, 0, 0), (2, 0, 1)])
    merge.add(waiting.with_batch(waiting.batch.select([])))
    assert list(merge.release(1)) == []
    assert merge.rows_in_memory == 0
    found = [(part.arrivals.tolist(), len(part.batch)) for part, _ in merge.release(None)]
    assert found == [([1], 1), ([2], 1)]


def test_a_closed_merge_has_no_events() -> None:
    merge = TotalOrderMerge(TIMELINE, held_bytes=0)
    merge.add(events([(5, 0, 0)]))
    list(merge.release(1))
    merge.add(events([(5, 0, 1)]))
    merge.close()
    assert list(merge.release(None)) == []


many_alike = st.lists(
    st.lists(st.tuples(st.integers(0, 1), st.just(0), st.integers(0, 2)), min_size=1, max_size=9), max_size=6
)


@settings(deadline=None)
@given(many_alike, st.integers(1, 3))
def test_runs_may_have_more_rows_of_one_place_than_are_merged_at_once(
    runs: list[list[tuple[int, int, int]]], most: int
) -> None:
    merge = TotalOrderMerge(TIMELINE, most)
    for run in runs:
        merge.add(events(run))
    assert labels(list(merge.release(None))) == [
        f"{a}/{s}/{p}" for a, s, p in sorted(row for run in runs for row in run)
    ]


def test_rows_before_a_place_are_counted() -> None:
    places = [(1, 0, 0), (1, 0, 5), (1, 2, 3), (4, 0, 6)]
    run = events(places)
    for place in [*places, (0, 9, 9), (1, 0, 4), (1, 1, 0), (1, 2, 9), (2, 0, 0), (9, 0, 0)]:
        assert run.rows_before(place) == sum(other < place for other in places)


runs = st.lists(st.lists(st.integers(0, 12), max_size=8), max_size=6)


@settings(deadline=None)
@given(runs, st.sampled_from([0, 60, 200, 1 << 20]), st.data())
def test_any_runs_come_out_in_the_total_order(
    arrivals: list[list[int]], held_bytes: int, data: st.DataObject
) -> None:
    with closing(TotalOrderMerge(TIMELINE, held_bytes=held_bytes)) as merge:
        rows = [
            [(arrival, split, position) for position, arrival in enumerate(run)]
            for split, run in enumerate(arrivals)
        ]
        released: list[tuple[Events, np.ndarray | None]] = []
        for at, run in enumerate(rows):
            merge.add(events(run))
            later = [row[0] for other in rows[at + 1 :] for row in other]
            if later and data.draw(st.booleans()):
                released += merge.release(min(later))
        released += merge.release(None)
        assert labels(released) == [f"{a}/{s}/{p}" for a, s, p in sorted(row for run in rows for row in run)]
        assert list(merge.release(None)) == []
