"""Random logs whose events tell a scripted function what to do, and what it gives."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from jobs.early_ends import ends_early, ends_early_model
from jobs.even_timestamps import EvenTimestamps
from models.process_replay import SIDE, Emitted
from models.watermarks import Event, Generator, Punctuated, ReplayModel

from flinkcore._internal.values.row import rows_of_columns
from flinkcore.columnar.results.result import EmbeddedResult
from flinkcore.common import Duration, Row, WatermarkStrategy

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

EVENT_DELAYS = [0, 1, 3, 9, 10, 40, -30]
PROCESSING_DELAYS = [0, 0, 1, 2, 10, 10, 60, -5, 300]
STRIDES = [0, 0, 0, 1, 1, 2, 5, 30, 120]
LATENESSES = [0, 0, 1, 4, 20, -3]


def doings(event_delays: list[int], processing_delays: list[int]) -> st.SearchStrategy[str]:
    """What an element tells the function to do; without delays of processing time it registers no such timers."""
    actions = [
        st.builds("event:{}".format, st.sampled_from(event_delays)),
        st.builds("delete:{}".format, st.integers(0, 3)),
        st.builds("forget:{}".format, st.sampled_from([1, 2, 10, 60])),
        st.just("clear:0"),
    ]
    if processing_delays:
        actions.append(st.builds("processing:{}".format, st.sampled_from(processing_delays)))
    return st.lists(st.one_of(actions), max_size=3).map(" ".join)


ROWS = st.tuples(
    st.sampled_from(["a", "b", "c", "ä", "user-5"]),
    st.sampled_from(STRIDES),
    st.sampled_from(LATENESSES),
    st.integers(0, 2),
    doings(EVENT_DELAYS, PROCESSING_DELAYS),
)


Watermarks = int | str | None
"""How watermarks are made: ms behind, of even timestamps (None), or up to an early end at an event or a tick."""

WATERMARKS: list[Watermarks] = [0, 2, 15, None, "event", "tick"]


def strategy_of(bound: Watermarks, idleness: int | None = None) -> WatermarkStrategy:
    if bound is None:
        strategy = WatermarkStrategy.for_generator(EvenTimestamps)
    elif isinstance(bound, str):
        strategy = WatermarkStrategy.for_generator(ends_early(bound))
    else:
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    return strategy if idleness is None else strategy.with_idleness(Duration.of_millis(idleness))


def log_of(entries: list[tuple[Any, ...]]) -> pa.Table:
    names = ["user", "number", "ts", "at", "split", "actions"]
    types = [pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64(), pa.string()]
    columns = list(zip(*entries, strict=True)) or [[]] * len(names)
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, types, strict=True)], names)


def table_of(rows: list[tuple[Any, ...]], batch_rows: int) -> pa.Table:
    entries, clock = [], 3
    for number, (user, stride, delay, split, actions) in enumerate(rows):
        clock += stride
        entries.append((user, number, clock - delay, clock, split, actions))
    table = log_of(entries)
    return pa.Table.from_batches(table.to_batches(max_chunksize=batch_rows), table.schema)


def events_of(table: pa.Table) -> list[Event]:
    """A log as models of its time take it."""
    times = (table[name].to_pylist() for name in ("split", "at", "ts"))
    return [Event(split, at, ts) for split, at, ts in zip(*times, strict=True)]


def elements_of(table: pa.Table) -> list[Row]:
    """A log as functions take it."""
    return list(rows_of_columns(table.column_names, [column.to_pylist() for column in table.columns]))


def modelled_by(bound: Watermarks) -> tuple[int | None, Callable[[], Generator] | None]:
    """The model of `strategy_of(bound)`: its bound, or what makes its generator."""
    if isinstance(bound, int):
        return bound, None
    return None, Punctuated if bound is None else ends_early_model(bound)


def model_of(table: pa.Table, bound: Watermarks, interval: int) -> ReplayModel:
    """The model of a log with `strategy_of(bound)`."""
    out_of_orderness_ms, make_generator = modelled_by(bound)
    return ReplayModel(events_of(table), out_of_orderness_ms, None, interval, make_generator=make_generator)


def emitted_by(result: EmbeddedResult) -> list[Emitted]:
    """What `Scripted` gave, whose timestamps are in the last column."""
    return [
        (tag, tuple(row.values())[:-1], row["record_time"])
        for tag, output in ((None, result), ("side", result.get_side_output(SIDE)))
        for row in output.to_arrow().to_pylist()
    ]


def by_key(emitted: list[Emitted]) -> dict[Any, list[Emitted]]:
    """Every key's records in order, those of each output apart."""
    found = defaultdict(list)
    for tag, value, timestamp in emitted:
        found[tag, value[0]].append((tag, value, timestamp))
    return dict(found)
