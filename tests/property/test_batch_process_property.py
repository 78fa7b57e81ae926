"""Functions over batches against the same logic element by element: a plain model, and replays of rows."""

from typing import Any
from unittest.mock import patch

import pyarrow as pa
from equipment.example_counts import examples
from equipment.small_batches import read_in_batches_of
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs.scripted_logs import (
    EVENT_DELAYS,
    LATENESSES,
    PROCESSING_DELAYS,
    RESULTS,
    SIDES,
    STRIDES,
    WATERMARKS,
    Watermarks,
    by_key,
    doings,
    elements_of,
    emitted_by,
    model_of,
    strategy_of,
    table_of,
)
from models.batch_functions import CountBatchesUntilQuiet, CountUntilQuiet, scripted_batches
from models.process_replay import PlainWorld, Scripted

from flinkcore.columnar.stages import batch_process_stage
from flinkcore.common import OutputTag
from flinkcore.datastream import StreamExecutionEnvironment

RECORD_TIME = pa.field("record_time", pa.int64())
TIMED_RESULTS, TIMED_SIDES = RESULTS.append(RECORD_TIME), SIDES.append(RECORD_TIME)
COUNTS = pa.schema(
    {
        name: pa.string() if name == "user" else pa.int64()
        for name in ("user", "timer", "count", "watermark", "clock")
    }
)

ELEMENTS = st.tuples(
    st.sampled_from(["a", "a", "b", "ä", "user-5"]),
    st.sampled_from(STRIDES),
    st.sampled_from(LATENESSES),
    st.integers(0, 2),
)


@st.composite
def scripts(draw: st.DrawFn) -> tuple[list[tuple[Any, ...]], dict[str, Any]]:
    """Rows with actions, and what is declared of them."""
    mode = draw(st.sampled_from(["one element", "any time", "bounded", "bounded"]))
    event, processing = None, draw(st.sampled_from([None, *PROCESSING_DELAYS]))
    if mode == "bounded":
        event = draw(st.sampled_from(EVENT_DELAYS))
    declared = {"min_event_time_delay_ms": event, "min_processing_time_delay_ms": processing}
    if mode == "one element":
        declared = {"one_element_per_key": True}
    events = [delay for delay in EVENT_DELAYS if event is None or delay >= event]
    processings = [delay for delay in PROCESSING_DELAYS if processing is None or delay >= processing]
    if processing is None and mode != "one element":
        processings = []
    told = doings(events, processings)
    rows = draw(st.lists(st.tuples(ELEMENTS, told).map(lambda row: (*row[0], row[1])), max_size=40))
    return rows, declared


def keyed(table: pa.Table, bound: Watermarks, interval: int, parallelism: int, batch_rows: int) -> Any:
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    read_in_batches_of(batch_rows, env)
    log = env.from_event_log(table, timestamp="ts", arrival="at", split="split")
    return log.assign_timestamps_and_watermarks(strategy_of(bound)).key_by("user")


SHAPES = {
    "bound": st.sampled_from(WATERMARKS),
    "interval": st.sampled_from([0, 1, 5, 50]),
    "parallelism": st.sampled_from([1, 2, 7]),
    "batch_rows": st.sampled_from([1, 100, 100]),
    "slice_rows": st.sampled_from([3, 4096, 4096]),
}


@settings(deadline=None, max_examples=examples(125))
@given(script=scripts(), fired_rows=st.sampled_from([1, 2, 4096]), **SHAPES)
def test_random_logic_gives_the_same_over_batches_as_element_by_element(
    script: tuple[list[tuple[Any, ...]], dict[str, Any]],
    fired_rows: int,
    bound: Watermarks,
    interval: int,
    parallelism: int,
    batch_rows: int,
    slice_rows: int,
) -> None:
    rows, declared = script
    table = table_of(rows, batch_rows)
    function = scripted_batches(TIMED_RESULTS.names)
    for setting, value in declared.items():
        setattr(function, setting, value)
    stream = keyed(table, bound, interval, parallelism, batch_rows).process(
        function, TIMED_RESULTS, side_outputs=[OutputTag("side", TIMED_SIDES)]
    )
    with (
        patch.object(batch_process_stage, "SLICE_ROWS", slice_rows),
        patch.object(batch_process_stage, "FIRED_ROWS", fired_rows),
    ):
        result = stream.execute()
        replayed = emitted_by(result)
    model, elements = model_of(table, bound, interval), elements_of(table)
    modelled = PlainWorld(Scripted(), lambda row: row.user).run(model, elements)
    assert by_key(replayed) == by_key(modelled)
    assert result.report.processed == len(rows)
    timers = [value[1] for tag, value, _ in modelled if tag is None]
    assert result.report.event_time_timers == timers.count("EVENT_TIME")
    assert result.report.processing_time_timers == timers.count("PROCESSING_TIME")


@settings(deadline=None, max_examples=examples(50))
@given(
    rows=st.lists(ELEMENTS.map(lambda row: (*row, "")), max_size=80),
    gap_ms=st.sampled_from([-20, 0, 1, 5, 40, 200]),
    declared=st.sampled_from(["gap", "less", "none", "one element"]),
    **SHAPES,
)
def test_a_batch_of_which_only_the_last_timer_stays_gives_the_same_as_element_by_element(
    rows: list[tuple[Any, ...]],
    gap_ms: int,
    declared: str,
    bound: Watermarks,
    interval: int,
    parallelism: int,
    batch_rows: int,
    slice_rows: int,
) -> None:
    function = CountBatchesUntilQuiet(gap_ms)
    if declared == "one element":
        function.one_element_per_key = True
    elif declared != "gap":
        function.min_event_time_delay_ms = gap_ms - 7 if declared == "less" else None
    table = table_of(rows, batch_rows)
    stream = keyed(table, bound, interval, parallelism, batch_rows)
    with patch.object(batch_process_stage, "SLICE_ROWS", slice_rows):
        counted = stream.process(function, COUNTS).to_arrow().to_pylist()
    by_element = keyed(table, bound, interval, parallelism, 100).process(CountUntilQuiet(gap_ms), COUNTS)
    expected = by_element.to_arrow().to_pylist()

    def of_keys(found: list[dict[str, Any]]) -> dict[Any, list[Any]]:
        return {
            user: [row for row in found if row["user"] == user] for user in {row["user"] for row in found}
        }

    assert of_keys(counted) == of_keys(expected)
