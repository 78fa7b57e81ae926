"""Random logs whose events tell a scripted function what to do, and what it gives."""

from collections import defaultdict
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from models.process_replay import Emitted

from flinkcore.common import Watermark, WatermarkGenerator, WatermarkOutput

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
