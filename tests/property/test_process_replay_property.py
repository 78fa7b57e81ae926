"""Replays of process functions against a plain model, and the runtime's operator, millisecond by millisecond."""

from typing import Any
from unittest.mock import patch

from equipment.example_counts import examples
from equipment.small_batches import read_in_batches_of
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs.scripted_logs import (
    RESULTS,
    ROWS,
    SIDES,
    WATERMARKS,
    Watermarks,
    by_key,
    elements_of,
    emitted_by,
    model_of,
    strategy_of,
    table_of,
)
from models.process_replay import PlainWorld, Scripted, operator_run

from flinkcore.columnar.local import partition_threads
from flinkcore.columnar.stages import function_stage, result_batches
from flinkcore.common import OutputTag
from flinkcore.datastream import StreamExecutionEnvironment


@settings(deadline=None, max_examples=examples(60))
@given(
    rows=st.lists(ROWS, max_size=40),
    bound=st.sampled_from(WATERMARKS),
    interval=st.sampled_from([0, 1, 5, 50]),
    parallelism=st.sampled_from([1, 2, 7]),
    batch_rows=st.sampled_from([1, 3, 100]),
    slice_rows=st.sampled_from([1, 4, 4096]),
    result_rows=st.sampled_from([1, 3, 1 << 15]),
)
def test_replays_are_those_of_a_plain_model_and_of_the_operator(
    rows: list[tuple[Any, ...]],
    bound: Watermarks,
    interval: int,
    parallelism: int,
    batch_rows: int,
    slice_rows: int,
    result_rows: int,
) -> None:
    table = table_of(rows, batch_rows)
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    read_in_batches_of(batch_rows, env)
    stream = (
        env.from_event_log(table, timestamp="ts", integer_times=True, arrival="at", split="split")
        .assign_timestamps_and_watermarks(strategy_of(bound))
        .key_by("user")
        .process(Scripted(), RESULTS, side_outputs=[OutputTag("side", SIDES)], timestamp_column="record_time")
    )
    with (
        patch.object(function_stage, "SLICE_ROWS", slice_rows),
        patch.object(result_batches, "BATCH_ROWS", result_rows),
        patch.object(partition_threads, "RESULTS_AHEAD", result_rows),
    ):
        result = stream.execute()
        replayed = emitted_by(result)
    model, elements = model_of(table, bound, interval), elements_of(table)
    modelled = PlainWorld(Scripted(), lambda row: row.user).run(model, elements)
    assert by_key(replayed) == by_key(modelled)
    assert by_key(operator_run(Scripted(), lambda row: row.user, model, elements)) == by_key(modelled)
    assert result.report.processed == len(rows)
    timers = [value[1] for tag, value, _ in modelled if tag is None]
    assert result.report.event_time_timers == timers.count("EVENT_TIME")
    assert result.report.processing_time_timers == timers.count("PROCESSING_TIME")
