"""Joins of two logs in replays against plain models, at any parallelism."""

from typing import Any
from unittest.mock import patch

import pyarrow as pa
from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs.scripted_logs import ROWS, WATERMARKS, Watermarks, by_key
from jobs.two_inputs import happenings
from jobs.two_logs import Rows, TwoLogs
from models.joined_logs import co_group, interval_join
from models.process_replay import Emitted

from flinkcore.columnar.stages import function_stage, result_batches
from flinkcore.common import OutputTag, Row, Time
from flinkcore.datastream.functions import CoGroupFunction, JoinFunction, ProcessJoinFunction
from flinkcore.datastream.window import SlidingEventTimeWindows

PAIRS = pa.schema({"user": pa.string(), "left": pa.int64(), "right": pa.int64()})
GROUPS = pa.schema({"user": pa.string(), "first": pa.list_(pa.int64()), "second": pa.list_(pa.int64())})
LEFT, RIGHT = OutputTag("left"), OutputTag("right")
logs = st.tuples(st.lists(ROWS, max_size=25), st.lists(ROWS, max_size=25))
bounds = st.tuples(*[st.sampled_from(WATERMARKS)] * 2)
idlenesses = st.tuples(*[st.sampled_from([None, 1, 10, 60])] * 2)
intervals = st.sampled_from([1, 5, 50])
parallelisms = st.sampled_from([1, 3])


class Pairs(ProcessJoinFunction[Row, Row]):
    def process_element(self, left: Row, right: Row, ctx: ProcessJoinFunction.Context) -> Any:
        yield left.user, left.number, right.number


class Pair(JoinFunction[Row, Row, Any]):
    def join(self, first: Row, second: Row) -> Any:
        return first.user, first.number, second.number


class Groups(CoGroupFunction[Row, Row]):
    def co_group(self, first: list[Row], second: list[Row]) -> Any:
        user = first[0].user if first else second[0].who
        return [(user, [row.number for row in first], [row.number for row in second])]


def results(table: pa.Table) -> list[Emitted]:
    return [(None, tuple(row.values())[:-1], row["time"]) for row in table.to_pylist()]


@settings(deadline=None, max_examples=examples(60))
@given(
    rows=logs,
    bounds=bounds,
    idlenesses=idlenesses,
    interval=intervals,
    parallelism=parallelisms,
    slice_rows=st.sampled_from([1, 4, 4096]),
    result_rows=st.sampled_from([1, 3, 1 << 15]),
    lower=st.integers(-12, 12),
    width=st.sampled_from([0, 1, 2, 8, 30]),
    is_exclusive=st.booleans(),
)
def test_an_interval_join_of_logs_gives_the_pairs_of_the_model(
    rows: Rows,
    bounds: tuple[Watermarks, Watermarks],
    idlenesses: tuple[int | None, int | None],
    interval: int,
    parallelism: int,
    slice_rows: int,
    result_rows: int,
    lower: int,
    width: int,
    is_exclusive: bool,
) -> None:
    given_logs = TwoLogs(rows, bounds, idlenesses, interval, parallelism)
    left, right = given_logs.streams
    join = left.key_by("user").interval_join(right.key_by("who")).between(lower, lower + width)
    if is_exclusive:
        join = join.lower_bound_exclusive().upper_bound_exclusive()
    join = join.side_output_left_late_data(LEFT).side_output_right_late_data(RIGHT)
    with (
        patch.object(function_stage, "SLICE_ROWS", slice_rows),
        patch.object(result_batches, "BATCH_ROWS", result_rows),
    ):
        result = join.process(Pairs(), PAIRS, timestamp_column="time").execute()
        replayed = results(result.to_arrow())
    for name, tag in (("user", LEFT), ("who", RIGHT)):
        late_rows = result.get_side_output(tag).to_arrow().to_pylist()
        replayed += [(tag.tag_id, (row[name], row["number"]), row["ts"]) for row in late_rows]
    happened = happenings(given_logs.models(), given_logs.rows())
    expected = interval_join(happened, lower + is_exclusive, lower + width - is_exclusive)
    assert by_key(replayed) == by_key(expected)
    late = sum(tag is not None for tag, _, _ in expected)
    assert (result.report.late, result.report.processed) == (late, len(rows[0]) + len(rows[1]) - late)


@settings(deadline=None, max_examples=examples(60))
@given(
    rows=logs,
    bounds=bounds,
    idlenesses=idlenesses,
    interval=intervals,
    parallelism=parallelisms,
    slice_rows=st.sampled_from([1, 4, 4096]),
    result_rows=st.sampled_from([1, 3, 1 << 15]),
    size=st.sampled_from([1, 5, 20]),
    slides=st.sampled_from([1, 2]),
    lateness=st.sampled_from([0, 0, 3, 40]),
)
def test_windows_of_two_logs_fire_with_the_groups_of_the_model(
    rows: Rows,
    bounds: tuple[Watermarks, Watermarks],
    idlenesses: tuple[int | None, int | None],
    interval: int,
    parallelism: int,
    slice_rows: int,
    result_rows: int,
    size: int,
    slides: int,
    lateness: int,
) -> None:
    given_logs = TwoLogs(rows, bounds, idlenesses, interval, parallelism)
    slide = -(-size // slides)
    first, second = given_logs.streams
    assigner = SlidingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(slide))
    groups = first.co_group(second).where("user").equal_to("who").window(assigner).allowed_lateness(lateness)
    pairs = first.join(second).where("user").equal_to("who").window(assigner).allowed_lateness(lateness)
    with (
        patch.object(function_stage, "SLICE_ROWS", slice_rows),
        patch.object(result_batches, "BATCH_ROWS", result_rows),
    ):
        grouped = groups.apply(Groups(), GROUPS, timestamp_column="time").execute()
        replayed = results(grouped.to_arrow())
        joined = results(pairs.apply(Pair(), PAIRS, timestamp_column="time").to_arrow())
    happened = happenings(given_logs.models(), given_logs.rows())
    expected, late = co_group(happened, size, slide, lateness)
    assert by_key(replayed) == by_key(expected)
    assert grouped.report.late == late
    expected_pairs = [
        (None, (user, left, right), time)
        for _, (user, lefts, rights), time in expected
        for left in lefts
        for right in rights
    ]
    assert by_key(joined) == by_key(expected_pairs)
