"""Jobs of two operators against the runtime's operators, one behind the other, millisecond by millisecond."""

from typing import Any
from unittest.mock import patch

import pyarrow.compute as pc
from equipment.example_counts import examples
from equipment.small_batches import read_in_batches_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jobs.scripted_logs import (
    RESULTS,
    ROWS,
    SIDES,
    WATERMARKS,
    Watermarks,
    by_key,
    elements_of,
    model_of,
    strategy_of,
    table_of,
)
from models.chained_operators import TOLD, Counts, Follower, chained_run
from models.process_replay import SIDE, Emitted, Scripted

from flinkcore.columnar.stages import function_stage, result_batches
from flinkcore.common import OutputTag, Row, Time
from flinkcore.datastream import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.window import CountSlidingWindowAssigner, CountTrigger, WindowOperation

WINDOWS = [
    TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(3)),
    SlidingEventTimeWindows.of(Time.milliseconds(12), Time.milliseconds(5)),
    EventTimeSessionWindows.with_gap(Time.milliseconds(6)),
    CountSlidingWindowAssigner(4, 2),
]


@settings(deadline=None, max_examples=examples(35))
@given(
    rows=st.lists(ROWS, max_size=40),
    bound=st.sampled_from(WATERMARKS),
    interval=st.sampled_from([0, 1, 5, 50]),
    parallelism=st.sampled_from([1, 3]),
    batch_rows=st.sampled_from([1, 3, 100]),
    slice_rows=st.sampled_from([1, 4, 4096]),
)
@example(  # the generator emits the maximum at the last event, when a timer is due
    rows=[("a", stride, 0, 0, "") for stride in (1, 2, 0, 0, 1)],
    bound="event",
    interval=0,
    parallelism=1,
    batch_rows=1,
    slice_rows=1,
)
def test_a_function_sees_the_results_of_another_as_operators_in_a_row_would(
    rows: list[tuple[Any, ...]],
    bound: Watermarks,
    interval: int,
    parallelism: int,
    batch_rows: int,
    slice_rows: int,
) -> None:
    table = table_of(rows, batch_rows)
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    read_in_batches_of(batch_rows, env, 40 * batch_rows)
    stream = (
        env.from_event_log(table, timestamp="ts", integer_times=True, arrival="at", split="split")
        .assign_timestamps_and_watermarks(strategy_of(bound))
        .key_by("user")
        .process(Scripted(), RESULTS, side_outputs=[OutputTag("side", SIDES)])
        .filter(pc.field("number") != 4)
        .select("number", kind=pc.field("what"))
        .key_by("kind")
        .process(Follower(), TOLD, timestamp_column="record_time")
    )
    with (
        patch.object(function_stage, "SLICE_ROWS", slice_rows),
        patch.object(result_batches, "BATCH_ROWS", max(2, batch_rows)),
    ):
        result = stream.execute()
        replayed: list[Emitted] = [
            (None, tuple(row.values())[:-1], row["record_time"]) for row in result.to_arrow().to_pylist()
        ]
    model, elements = model_of(table, bound, interval), elements_of(table)

    def row_of(value: tuple[Any, ...]) -> Row | None:
        return None if value[2] == 4 else Row(number=value[2], kind=value[1])

    expected, sides = chained_run(
        Scripted(), Follower(), (lambda row: row.user, lambda row: row.kind), row_of, model, elements
    )
    assert by_key(replayed) == by_key(expected)
    found = sorted(tuple(row.values()) for row in result.get_side_output(SIDE).to_arrow().to_pylist())
    assert found == sorted(value for _, value, _ in sides)
    (later,) = result.report.later_operators
    assert later.events_read == result.report.results
    assert later.processed == later.events_read - later.filtered


@settings(deadline=None, max_examples=examples(35))
@given(
    rows=st.lists(ROWS, max_size=40),
    assigner=st.sampled_from(WINDOWS),
    counts_to=st.sampled_from([None, None, 2]),
    lateness=st.sampled_from([0, 8, 100]),
    bound=st.sampled_from(WATERMARKS),
    interval=st.sampled_from([0, 1, 5, 50]),
    parallelism=st.sampled_from([1, 3]),
    batch_rows=st.sampled_from([1, 3, 100]),
    by_window=st.booleans(),
)
def test_a_function_sees_the_results_of_windows_as_operators_in_a_row_would(
    rows: list[tuple[Any, ...]],
    assigner: WindowAssigner[Any, Any],
    counts_to: int | None,
    lateness: int,
    bound: Watermarks,
    interval: int,
    parallelism: int,
    batch_rows: int,
    by_window: bool,
) -> None:
    table = table_of(rows, batch_rows)
    if not assigner.is_event_time():
        counts_to, by_window = None, False
    trigger = assigner.get_default_trigger() if counts_to is None else CountTrigger.of(counts_to)
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    read_in_batches_of(batch_rows, env, 40 * batch_rows)
    windows = (
        env.from_event_log(table, timestamp="ts", integer_times=True, arrival="at", split="split")
        .assign_timestamps_and_watermarks(strategy_of(bound))
        .key_by("user")
        .window(assigner)
        .allowed_lateness(lateness)
    )
    windows = windows.trigger(trigger) if assigner.is_event_time() else windows
    kind = pc.field("window_start").cast("string") if by_window else pc.field("user")
    result = (
        windows.aggregate(number=count())
        .select("number", kind=kind)
        .key_by("kind")
        .process(Follower(), TOLD, timestamp_column="record_time")
        .execute()
    )
    replayed: list[Emitted] = [
        (None, tuple(row.values())[:-1], row["record_time"]) for row in result.to_arrow().to_pylist()
    ]

    def row_of(value: tuple[Any, ...]) -> Row:
        return Row(number=value[3], kind=str(value[1]) if by_window else value[0])

    operation = WindowOperation(assigner, trigger, allowed_lateness_ms=lateness, window_function=Counts())
    expected, _ = chained_run(
        operation,
        Follower(),
        (lambda row: row.user, lambda row: row.kind),
        row_of,
        model_of(table, bound, interval),
        elements_of(table),
    )
    assert by_key(replayed) == by_key(expected)
    (later,) = result.report.later_operators
    assert later.processed == later.events_read == result.report.on_time_firings + result.report.late_firings
