"""Jobs on Spark stop with the savepoint of Flink with which they stop embedded, and begin with one alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

import flinkcore as fc
from flinkcore import savepoints
from flinkcore.common import Types
from flinkcore.datastream import KeyedProcessFunction
from flinkcore.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from flinkcore.savepoints import FlinkOperator, FlinkWindow, SavepointSource, SavepointTarget
from flinkcore.savepoints.differences import differences
from flinkcore.spark import SparkExecutionEnvironment

OUT = pa.schema({"key": pa.string()})
COUNTS = FlinkWindow(Types.TUPLE([Types.LONG(), Types.LONG()]), ["n", "total"])


class Prices(KeyedProcessFunction):
    """Counts the values of a key, remembers the last ones, and sets timers of both kinds."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen"))
        self.sums = runtime_context.get_map_state(MapStateDescriptor("sums"))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield (f"{value.key} {self.count.value()} {list(self.seen.get() or ())} {sorted(self.sums.items())}",)
        self.count.update((self.count.value() or 0) + 1)
        self.seen.add((value.value, f"v{value.value}"))
        self.sums.put(value.value % 3, float(value.value))
        ctx.timer_service().register_event_time_timer(value.ts + 100_000)
        ctx.timer_service().register_processing_time_timer(2 * 10**12 + value.value)


def functions(stream: Any) -> tuple[Any, FlinkOperator]:
    return stream.process(Prices(), OUT), FlinkOperator("op", key=Types.STRING())


def windows(stream: Any) -> tuple[Any, FlinkOperator]:
    hours = stream.window(fc.SlidingEventTimeWindows.of(fc.Time.seconds(20), fc.Time.seconds(5)))
    counted = hours.allowed_lateness(3000).aggregate(n=fc.count(), total=fc.sum_("value"))
    return counted, FlinkOperator("op", window=COUNTS)


@pytest.mark.parametrize("job", [functions, windows])
def test_spark_writes_the_savepoint_that_the_embedded_job_writes(
    job: Callable[[Any], tuple[Any, FlinkOperator]], spark: Any, tmp_path: Path
) -> None:
    for part in range(3):
        rows = [(f"k{i % 17}", i * 7 % 50, 10**12 + i * 90 + part * 31) for i in range(part, 400, 3)]
        columns = dict(zip(("key", "value", "ts"), map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(columns), tmp_path / f"{part}.parquet")
    found = []
    for name, env in (
        ("spark", SparkExecutionEnvironment(spark)),
        ("embedded", fc.StreamExecutionEnvironment.get_execution_environment()),
    ):
        env.set_parallelism(3 if name == "spark" else 2)
        env.set_max_parallelism(128)
        log = env.from_event_log(str(tmp_path / "*.parquet"), timestamp="ts", arrival="ts")
        bound = fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_seconds(2))
        result, operator = job(log.assign_timestamps_and_watermarks(bound).key_by("key"))
        target = SavepointTarget(tmp_path / name, [operator])
        result.execute(stop_with_savepoint=target).write_parquet(tmp_path / f"{name} results")
        found.append(savepoints.open(tmp_path / name))
    assert [each.operators[0].parallelism for each in found] == [3, 2]
    states = list(differences(*found))
    assert states
    assert not [state for state in states if state.differ]
    assert sum(state.n_equal for state in states) > 50
    operator_found = found[0].operators[0]
    of_tasks = operator_found.for_tasks()

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for begin in batch.column("id").to_pylist():
                for name, state in of_tasks.states.items():
                    for rows in state.batches(range(begin, begin + 32)):
                        yield pa.record_batch({"state": [name], "n": [rows.num_rows]})

    ranges = spark.range(0, 128, 32, 4).mapInArrow(read, "state string, n long").groupBy("state").sum("n")
    in_parallel = {state: n for state, n in ranges.collect()}  # noqa: C416
    counts = {name: state.count() for name, state in operator_found.states.items()}
    assert in_parallel == {name: n for name, n in counts.items() if n}


@pytest.mark.parametrize("job", [functions, windows])
def test_spark_begins_with_a_savepoint_as_the_embedded_job_does(
    job: Callable[[Any], tuple[Any, FlinkOperator]], spark: Any, tmp_path: Path
) -> None:
    def env_of(name: str) -> Any:
        env = SparkExecutionEnvironment(spark) if name == "spark" else fc.StreamExecutionEnvironment()
        env.set_parallelism(3)
        env.set_max_parallelism(128)
        return env

    def stream(env: Any, part: Any) -> Any:
        bound = fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_seconds(2))
        log = env.from_event_log(part, timestamp="ts", arrival="ts")
        return log.assign_timestamps_and_watermarks(bound).key_by("key")

    for part in range(2):
        rows = [(f"k{i % 17}", i * 7 % 50, 10**12 + i * 90) for i in range(200 * part, 200 * part + 200)]
        columns = dict(zip(("key", "value", "ts"), map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(columns), tmp_path / f"{part}.parquet")
    result, operator = job(stream(env_of("embedded"), str(tmp_path / "0.parquet")))
    result.execute(stop_with_savepoint=SavepointTarget(tmp_path / "s", [operator])).to_arrow()
    found = []
    for name, part in (
        ("embedded", str(tmp_path / "1.parquet")),
        ("spark", str(tmp_path / "1.parquet")),
        ("spark", spark.read.parquet(str(tmp_path / "1.parquet"))),
    ):
        result, operator = job(stream(env_of(name), part))
        rest = result.execute(restore_from=SavepointSource(tmp_path / "s", [operator])).to_arrow()
        found.append(sorted(map(repr, rest.to_pylist())))
    assert found[0]
    assert found[1] == found[0]
    assert found[2] == found[0]
