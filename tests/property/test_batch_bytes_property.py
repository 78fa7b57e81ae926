"""Any limit of the bytes of batches gives the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from equipment.small_batches import read_in_batches_of
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count, first, last

LATE = OutputTag("late")
TYPE = pa.schema({"key": pa.string(), "text": pa.string()})


class Twice(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value.key, value.text
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 3)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), f"timer {timestamp}" * 5


class Echo(KeyedBatchProcessFunction):
    def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
        yield elements.results(elements.batch.select(TYPE.names))


def windows(events: Any) -> Any:
    return events.key_by("key").window(TumblingEventTimeWindows.of(Time.milliseconds(7)))


JOBS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda one, other: one,
    "union": lambda one, other: one.union(other),
    "function": lambda one, other: one.key_by("key").process(Twice(), output_type=TYPE),
    "batches": lambda one, other: one.key_by("key").process(Echo(), output_type=TYPE),
    "two functions": lambda one, other: (
        one.key_by("key").process(Twice(), output_type=TYPE).key_by("key").process(Twice(), output_type=TYPE)
    ),
    "batches and rows": lambda one, other: (
        one.key_by("key").process(Echo(), output_type=TYPE).key_by("key").process(Twice(), output_type=TYPE)
    ),
    "windows": lambda one, other: (
        windows(one)
        .side_output_late_data(LATE)
        .aggregate(n=count(), all=collect("text"), first=first("text"), last=last("text"))
    ),
    "wider": lambda one, other: windows(one).aggregate(all=collect("text")),
}


def rows_of(
    job: str, path: Path, batch_bytes: int | None, parallelism: int, by_arrival: bool
) -> dict[str, list[dict[str, Any]]]:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(3)
    if batch_bytes is not None:
        read_in_batches_of(1000, env, batch_bytes)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(2))
    how = {"arrival": "at", "split": "split"} if by_arrival else {}
    one, other = (
        env.from_event_log(path, timestamp="ts", **how).assign_timestamps_and_watermarks(strategy)
        for _ in range(2)
    )
    result = JOBS[job](one, other).execute()
    outputs = {"results": result.to_arrow()}
    if job == "windows":
        outputs["late"] = result.get_side_output(LATE).to_arrow()
    return {name: table.to_pylist() for name, table in outputs.items()}


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 80)), min_size=1, max_size=40
    ),
    job=st.sampled_from(sorted(JOBS)),
    batch_bytes=st.sampled_from([1, 30, 200, 1000]),
    group_rows=st.sampled_from([1, 7, 100]),
    encoded=st.booleans(),
    parallelism=st.sampled_from([1, 2]),
    by_arrival=st.booleans(),
)
def test_any_limit_of_bytes_gives_the_same_rows(
    sizes: list[tuple[int, int, int]],
    job: str,
    batch_bytes: int,
    group_rows: int,
    encoded: bool,
    parallelism: int,
    by_arrival: bool,
) -> None:
    table = pa.table(
        {
            "ts": [2 * number + late for number, (late, _, _) in enumerate(sizes)],
            "at": [3 * (number // 2) for number in range(len(sizes))],
            "split": [f"s{key}" for _, key, _ in sizes],
            "key": [f"k{key}" for _, key, _ in sizes],
            "text": [f"{number}".ljust(size, "x") for number, (_, _, size) in enumerate(sizes)],
        }
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "log.parquet")
        pq.write_table(table, path, row_group_size=group_rows, use_dictionary=encoded)
        expected = rows_of(job, path, None, 1, by_arrival)
        found = rows_of(job, path, batch_bytes, parallelism, by_arrival)
    if (
        parallelism > 1 or job == "batches"
    ):  # a function over batches has its results batch by batch, key by key
        found, expected = (
            {name: sorted(rows, key=repr) for name, rows in each.items()} for each in (found, expected)
        )
    assert found == expected
