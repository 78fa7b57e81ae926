"""Replays of process functions against a plain model, and the runtime's operator, millisecond by millisecond."""

from collections import defaultdict
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from models.process_replay import SIDE, Emitted, PlainWorld, Scripted, operator_run
from models.watermarks import Event, Punctuated, ReplayModel

from flinkcore.common import (
    Duration,
    OutputTag,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkcore.common.row import rows_of_columns
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.replay import process_stage

RESULTS = pa.schema(
    {
        "user": pa.string(),
        "what": pa.string(),
        "number": pa.int64(),
        "watermark": pa.int64(),
        "clock": pa.int64(),
        "timestamp": pa.int64(),
        "fuel": pa.int64(),
        "registered": pa.int64(),
    }
)
SIDES = pa.schema({"user": pa.string(), "number": pa.int64()})

ACTIONS = st.one_of(
    st.builds("event:{}".format, st.sampled_from([0, 1, 3, 9, 10, 40, -30])),
    st.builds("processing:{}".format, st.sampled_from([0, 0, 1, 2, 10, 10, 60, -5, 300])),
    st.builds("delete:{}".format, st.integers(0, 3)),
    st.builds("forget:{}".format, st.sampled_from([1, 2, 10, 60])),
    st.just("clear:0"),
)
ROWS = st.tuples(
    st.sampled_from(["a", "b", "c", "ä", "user-5"]),
    st.sampled_from([0, 0, 0, 1, 1, 2, 5, 30, 120]),
    st.sampled_from([0, 0, 1, 4, 20, -3]),
    st.integers(0, 2),
    st.lists(ACTIONS, max_size=3).map(" ".join),
)


class EvenTimestamps(WatermarkGenerator[Any]):
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp % 2 == 0:
            output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def table_of(rows: list[tuple[Any, ...]], batch_rows: int) -> pa.Table:
    entries, clock = [], 3
    for number, (user, stride, delay, split, actions) in enumerate(rows):
        clock += stride
        entries.append((user, number, clock - delay, clock, split, actions))
    names = ["user", "number", "ts", "at", "split", "actions"]
    types = [pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64(), pa.string()]
    columns = list(zip(*entries, strict=True)) or [[]] * len(names)
    table = pa.table([pa.array(column, kind) for column, kind in zip(columns, types, strict=True)], names)
    return pa.Table.from_batches(table.to_batches(max_chunksize=batch_rows), table.schema)


def by_key(emitted: list[Emitted]) -> dict[Any, list[Emitted]]:
    """Every key's records in order, those of each output apart."""
    found = defaultdict(list)
    for tag, value, timestamp in emitted:
        found[tag, value[0]].append((tag, value, timestamp))
    return dict(found)


@settings(deadline=None, max_examples=120)
@given(
    rows=st.lists(ROWS, max_size=40),
    bound=st.sampled_from([0, 2, 15, None]),
    interval=st.sampled_from([0, 1, 5, 50]),
    parallelism=st.sampled_from([1, 2, 7]),
    batch_rows=st.sampled_from([1, 3, 100]),
    slice_rows=st.sampled_from([1, 4, 4096]),
)
def test_replays_are_those_of_a_plain_model_and_of_the_operator(
    rows: list[tuple[Any, ...]],
    bound: int | None,
    interval: int,
    parallelism: int,
    batch_rows: int,
    slice_rows: int,
) -> None:
    table = table_of(rows, batch_rows)
    if bound is None:
        strategy = WatermarkStrategy.for_generator(EvenTimestamps)
    else:
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    stream = (
        env.from_event_log(table, timestamp="ts", arrival="at", split="split")
        .assign_timestamps_and_watermarks(strategy)
        .key_by("user")
        .process(Scripted(), RESULTS, side_outputs=[OutputTag("side", SIDES)], timestamp_column="record_time")
    )
    with patch.object(process_stage, "SLICE_ROWS", slice_rows):
        result = stream.execute()
        replayed: list[Emitted] = [
            (tag, tuple(row.values())[:-1], row["record_time"])
            for tag, output in ((None, result), ("side", result.get_side_output(SIDE)))
            for row in output.to_arrow().to_pylist()
        ]
    model = ReplayModel(
        [
            Event(split, at, ts)
            for split, at, ts in zip(
                *(table[name].to_pylist() for name in ("split", "at", "ts")), strict=True
            )
        ],
        bound,
        None,
        interval,
        make_generator=Punctuated if bound is None else None,
    )
    elements = list(rows_of_columns(table.column_names, [column.to_pylist() for column in table.columns]))
    modelled = PlainWorld(Scripted(), lambda row: row.user).run(model, elements)
    assert by_key(replayed) == by_key(modelled)
    assert by_key(operator_run(Scripted(), lambda row: row.user, model, elements)) == by_key(modelled)
    assert result.report.processed == len(rows)
    timers = [value[1] for tag, value, _ in modelled if tag is None]
    assert result.report.event_time_timers == timers.count("EVENT_TIME")
    assert result.report.processing_time_timers == timers.count("PROCESSING_TIME")
