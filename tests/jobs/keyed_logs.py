"""Jobs over logs whose keys are of any type that keys can have, with values that are hard to tell apart."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.column_values import key_values
from flinkcore._native.keys import canonical_key
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    KeyedStream,
    StreamExecutionEnvironment,
)
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.functions import ProcessWindowFunction
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.window import TumblingEventTimeWindows

WIDE_NANS = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001], np.uint64).view(np.float64)
NARROW_NANS = np.array([0x7FC00000, 0xFFC00000, 0x7F800001], np.uint32).view(np.float32)
NUMBERS = [0.0, -0.0, 1.5, float("inf"), -float("inf")]
MOMENTS = [datetime(2026, 10, 25, 0, 30), datetime(2026, 10, 25, 1, 30), datetime(1969, 12, 31, 23, 59, 59)]
HALF_MOMENTS = [*MOMENTS, datetime(2026, 1, 1, 0, 0, 0, 500)]
NESTED = pa.struct(
    [("number", pa.float64()), ("inner", pa.struct([("at", pa.timestamp("ns")), ("text", pa.string())]))]
)

KEYS: dict[str, pa.Array] = {
    "int": pa.array([0, 1, -1, 2**63 - 1], pa.int64()),
    "uint64": pa.array([0, 1, 2**63, 2**64 - 1], pa.uint64()),
    "bool": pa.array([True, False]),
    "text": pa.array(["", "a", "\N{GRINNING FACE}"]),
    "large_text": pa.array(["", "a", "b" * 40], pa.large_string()),
    "binary": pa.array([b"", b"\0", b"a"]),
    "double": pa.array(np.concatenate([NUMBERS, WIDE_NANS])),
    "float": pa.array(np.concatenate([np.array(NUMBERS, np.float32), NARROW_NANS])),
    "decimal": pa.array([Decimal("0.00"), Decimal("-1.50"), Decimal("1.50")], pa.decimal128(10, 2)),
    "date32": pa.array([date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
    "date64": pa.array([0, 1, 86_399_999, -1, 86_400_000], pa.int64()).view(pa.date64()),
    "time32": pa.array([time(0), time(23, 59, 59)], pa.time32("ms")),
    "time64": pa.array([time(0), time(1, 2, 3, 4)], pa.time64("ns")),
    **{
        f"timestamp_{unit}_{zone}": pa.array(MOMENTS if unit == "s" else HALF_MOMENTS, pa.timestamp("us"))
        .cast(pa.timestamp(unit), safe=False)
        .cast(pa.timestamp(unit, zone))
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "Europe/Berlin", "+05:30")
    },
    **{
        f"duration_{unit}": pa.array(
            [timedelta(0), timedelta(seconds=-3), timedelta(days=4)], pa.duration(unit)
        )
        for unit in ("s", "ms", "us", "ns")
    },
    "struct": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "x"}, {"a": 1, "b": None}]),
    "nested": pa.StructArray.from_arrays(
        [
            pa.array([*NUMBERS[:2], *WIDE_NANS[:2]], mask=np.array([False, False, False, False])),
            pa.array(
                [
                    {"at": MOMENTS[0], "text": "x"},
                    None,
                    {"at": None, "text": None},
                    {"at": None, "text": None},
                ],
                NESTED.field("inner").type,
            ),
        ],
        fields=list(NESTED),
    ),
}

Row = tuple[tuple[int, ...], int]
"""Which values of the key columns an event has, and how much its time is behind."""


def table_of(kinds: Sequence[str], rows: Sequence[Row], start: int) -> pa.Table:
    """The log of some rows; composite keys may be null in part, where the index of a value is that of none."""
    columns: dict[str, pa.Array] = {}
    for place, kind in enumerate(kinds):
        pool = KEYS[kind]
        if len(kinds) > 1:
            pool = pa.concat_arrays([pool, pa.nulls(1, pool.type)])
        columns[f"k{place}"] = pool.take(pa.array([key[place] % len(pool) for key, _ in rows], pa.int64()))
    arrivals = [(start + row) * 7 for row in range(len(rows))]
    columns["at"] = pa.array(arrivals, pa.int64())
    columns["ts"] = pa.array(
        [at - behind for at, (_, behind) in zip(arrivals, rows, strict=True)], pa.int64()
    )
    return pa.table(columns)


class Counting(KeyedProcessFunction):
    """Gives how often a key has come, at each element and when none has come for a while."""

    def __init__(self, columns: int) -> None:
        self.columns = columns

    def open(self, runtime_context: Any) -> None:
        self.counts = runtime_context.get_state(ValueStateDescriptor("counts"))

    def given(self, key: Any, *values: Any) -> tuple[Any, ...]:
        return (*(key if self.columns > 1 else (key,)), *values)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.counts.update((self.counts.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() // 40 * 40 + 60)
        yield self.given(ctx.get_current_key(), self.counts.value(), ctx.timestamp())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield self.given(ctx.get_current_key(), -self.counts.value(), timestamp)


class CountingBatches(KeyedBatchProcessFunction):
    """The same over batches."""

    one_element_per_key = True

    def __init__(self, columns: int) -> None:
        self.columns = columns

    def open(self, runtime_context: Any) -> None:
        self.counts = runtime_context.get_column_state("counts", np.int64)

    def given(self, keys: pa.RecordBatch, **columns: Any) -> dict[str, Any]:
        return {**dict(zip(keys.schema.names, keys.columns, strict=True)), **columns}

    def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
        self.counts[elements.key_ids] += 1
        ctx.timer_service().register_event_time_timers(elements.key_ids, elements.timestamps // 40 * 40 + 60)
        keys = ctx.keys(elements.key_ids)
        yield self.given(keys, n=self.counts[elements.key_ids], time=elements.timestamps)

    def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
        yield self.given(ctx.keys(timers.key_ids), n=-self.counts[timers.key_ids], time=timers.timestamps)


class Sizes(ProcessWindowFunction[Any, Any, Any, Any]):
    """How many elements a window has."""

    def __init__(self, columns: int) -> None:
        self.columns = columns

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield (*(key if self.columns > 1 else (key,)), len(list(elements)), context.window().end)


def _keyed(log: DataStream, kinds: Sequence[str]) -> KeyedStream:
    return log.key_by(*(f"k{place}" for place in range(len(kinds))))


def _columns(kinds: Sequence[str]) -> pa.Schema:
    keys = [(f"k{place}", KEYS[kind].type) for place, kind in enumerate(kinds)]
    return pa.schema([*keys, ("n", pa.int64()), ("time", pa.int64())])


def rows_of_function(log: DataStream, kinds: Sequence[str]) -> DataStream:
    return _keyed(log, kinds).process(Counting(len(kinds)), _columns(kinds))


def batches_of_function(log: DataStream, kinds: Sequence[str]) -> DataStream:
    return _keyed(log, kinds).process(CountingBatches(len(kinds)), _columns(kinds))


def windows_of_function(log: DataStream, kinds: Sequence[str]) -> DataStream:
    windows = _keyed(log, kinds).window(TumblingEventTimeWindows.of(Time.milliseconds(40)))
    return windows.process(Sizes(len(kinds)), _columns(kinds))


def windows_over_columns(log: DataStream, kinds: Sequence[str]) -> DataStream:
    windows = _keyed(log, kinds).window(TumblingEventTimeWindows.of(Time.milliseconds(40)))
    return windows.aggregate(n=count())


def function_behind_windows(log: DataStream, kinds: Sequence[str]) -> DataStream:
    return rows_of_function(windows_over_columns(log, kinds), kinds)


def windows_behind_function(log: DataStream, kinds: Sequence[str]) -> DataStream:
    return windows_over_columns(rows_of_function(log, kinds), kinds)


JOBS = [
    rows_of_function,
    batches_of_function,
    windows_of_function,
    windows_over_columns,
    function_behind_windows,
    windows_behind_function,
]


def results_of(
    job: Any,
    kinds: Sequence[str],
    log: Any,
    parallelism: int,
    env: StreamExecutionEnvironment | None = None,
    **checkpoints: Any,
) -> Counter[Any]:
    """The results of a job, each with the canonical form of its key."""
    env = (env or StreamExecutionEnvironment()).set_parallelism(parallelism)
    log = env.from_event_log(
        log, timestamp="ts", integer_times=True, arrival="at"
    ).assign_timestamps_and_watermarks(WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20)))
    found = job(log, kinds).execute(**checkpoints).to_arrow()
    return results_of_table(found, kinds)


def results_of_table(found: pa.Table, kinds: Sequence[str]) -> Counter[Any]:
    batch = found.combine_chunks().to_batches()
    if not batch:
        return Counter()
    names = [f"k{place}" for place in range(len(kinds))]
    keys = zip(*(key_values(batch[0].column(name), name) for name in names), strict=True)
    time = "time" if "time" in found.column_names else "window_end"
    values = zip(
        found["n"].to_pylist(),
        (pa.chunked_array(found[time].chunks).cast(pa.int64())).to_pylist(),
        strict=True,
    )
    return Counter((canonical_key(key), value) for key, value in zip(keys, values, strict=True))
