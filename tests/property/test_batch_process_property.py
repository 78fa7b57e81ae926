"""Functions over batches against the same logic element by element: a plain model, and replays of rows."""

from collections import defaultdict
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from models.batch_functions import CountBatchesUntilQuiet, CountUntilQuiet, scripted_batches
from models.process_replay import SIDE, Emitted, PlainWorld, Scripted
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
from flinkcore.replay.batch_functions import batch_process_stage

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
        "record_time": pa.int64(),
    }
)
SIDES = pa.schema({"user": pa.string(), "number": pa.int64(), "record_time": pa.int64()})
COUNTS = pa.schema(
    {
        name: pa.string() if name == "user" else pa.int64()
        for name in ("user", "timer", "count", "watermark", "clock")
    }
)

EVENT_DELAYS = [-30, 0, 1, 3, 9, 10, 40]
PROCESSING_DELAYS = [-5, 0, 0, 1, 2, 10, 10, 60, 300]
USERS = st.sampled_from(["a", "a", "b", "ä", "user-5"])
STRIDES = st.sampled_from([0, 0, 0, 1, 1, 2, 5, 30, 120])
DELAYS = st.sampled_from([0, 0, 1, 4, 20, -3])
ELEMENTS = st.tuples(USERS, STRIDES, DELAYS, st.integers(0, 2))


class EvenTimestamps(WatermarkGenerator[Any]):
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp % 2 == 0:
            output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


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
    actions = [
        st.builds(
            "event:{}".format, st.sampled_from([n for n in EVENT_DELAYS if event is None or n >= event])
        ),
        st.builds("delete:{}".format, st.integers(0, 3)),
        st.builds("forget:{}".format, st.sampled_from([1, 2, 10, 60])),
        st.just("clear:0"),
    ]
    if processing is not None or mode == "one element":
        least = -5 if processing is None else processing
        delays = st.sampled_from([n for n in PROCESSING_DELAYS if n >= least])
        actions.append(st.builds("processing:{}".format, delays))
    doings = st.lists(st.one_of(actions), max_size=3).map(" ".join)
    rows = draw(st.lists(st.tuples(ELEMENTS, doings).map(lambda row: (*row[0], row[1])), max_size=40))
    return rows, declared


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


def keyed(table: pa.Table, bound: int | None, interval: int, parallelism: int) -> Any:
    if bound is None:
        strategy = WatermarkStrategy.for_generator(EvenTimestamps)
    else:
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    log = env.from_event_log(table, timestamp="ts", arrival="at", split="split")
    return log.assign_timestamps_and_watermarks(strategy).key_by("user")


def by_key(emitted: list[Emitted]) -> dict[Any, list[Emitted]]:
    """Every key's records in order, those of each output apart."""
    found = defaultdict(list)
    for tag, value, timestamp in emitted:
        found[tag, value[0]].append((tag, value, timestamp))
    return dict(found)


SHAPES = {
    "bound": st.sampled_from([0, 2, 15, None]),
    "interval": st.sampled_from([0, 1, 5, 50]),
    "parallelism": st.sampled_from([1, 2, 7]),
    "batch_rows": st.sampled_from([1, 100, 100]),
    "slice_rows": st.sampled_from([3, 4096, 4096]),
}


@settings(deadline=None, max_examples=250)
@given(script=scripts(), fired_rows=st.sampled_from([1, 2, 4096]), **SHAPES)
def test_random_logic_gives_the_same_over_batches_as_element_by_element(
    script: tuple[list[tuple[Any, ...]], dict[str, Any]],
    fired_rows: int,
    bound: int | None,
    interval: int,
    parallelism: int,
    batch_rows: int,
    slice_rows: int,
) -> None:
    rows, declared = script
    table = table_of(rows, batch_rows)
    function = scripted_batches(RESULTS.names)
    for setting, value in declared.items():
        setattr(function, setting, value)
    stream = keyed(table, bound, interval, parallelism).process(
        function, RESULTS, side_outputs=[OutputTag("side", SIDES)]
    )
    with (
        patch.object(batch_process_stage, "SLICE_ROWS", slice_rows),
        patch.object(batch_process_stage, "FIRED_ROWS", fired_rows),
    ):
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
    assert result.report.processed == len(rows)
    timers = [value[1] for tag, value, _ in modelled if tag is None]
    assert result.report.event_time_timers == timers.count("EVENT_TIME")
    assert result.report.processing_time_timers == timers.count("PROCESSING_TIME")


@settings(deadline=None, max_examples=100)
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
    bound: int | None,
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
    stream = keyed(table_of(rows, batch_rows), bound, interval, parallelism)
    with patch.object(batch_process_stage, "SLICE_ROWS", slice_rows):
        counted = stream.process(function, COUNTS).to_arrow().to_pylist()
    expected = stream.process(CountUntilQuiet(gap_ms), COUNTS).to_arrow().to_pylist()

    def of_keys(found: list[dict[str, Any]]) -> dict[Any, list[Any]]:
        return {
            user: [row for row in found if row["user"] == user] for user in {row["user"] for row in found}
        }

    assert of_keys(counted) == of_keys(expected)
