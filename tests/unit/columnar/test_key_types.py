"""Which columns can be keys, and keys of special values in jobs and harnesses."""

import functools
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from jobs.keyed_logs import (
    KEYS,
    WIDE_NANS,
    CountingBatches,
    batches_of_function,
    rows_of_function,
    table_of,
)

from flinkcore.columnar.plans.keys import require_key_type
from flinkcore.common import Duration, Row, Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    KeyedBatchProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.state import MapStateDescriptor, ValueStateDescriptor
from flinkcore.errors import DataError, SchemaError
from flinkcore.operators.keys.java_keys import JavaKeys
from flinkcore.testing import for_keyed_process_function

# ---- what can be a key


REFUSED = [
    (pa.list_(pa.int64()), r"list_element\(pyarrow.compute.field\('k'\), 0\)"),
    (pa.list_(pa.string()), r"binary_join\(pyarrow.compute.field\('k'\), ','\)"),
    (pa.large_list(pa.int64()), r"list_element"),
    (pa.map_(pa.string(), pa.int64()), r"map_lookup\(pyarrow.compute.field\('k'\)"),
    (
        pa.struct([("a", pa.list_(pa.int64())), ("b", pa.int64())]),
        r"struct_field\(pyarrow.compute.field\('k'\), 'b'\)",
    ),
    (pa.decimal256(50, 2), r"field\('k'\).cast\('string'\)"),
    (
        pa.null(),
        r"'k' has no type: it holds only nulls .* in a table by a cast, in files with schema=",
    ),
    (pa.month_day_nano_interval(), "give the log a column of text or numbers"),
    (pa.map_(pa.int64(), pa.int64()), "give the log a column of text or numbers"),
    (pa.list_(pa.map_(pa.int64(), pa.int64())), "give the log a column of text or numbers"),
]

VALUES = {
    pa.list_(pa.int64()): [[1, 2], [], None, [3]],
    pa.list_(pa.string()): [["a", "b"], [], ["c"]],
    pa.large_list(pa.int64()): [[1, 2], [], None, [3]],
    pa.map_(pa.string(), pa.int64()): [[("name", 1)], [("name", 2), ("other", 3)]],
    pa.struct([("a", pa.list_(pa.int64())), ("b", pa.int64())]): [{"a": [1], "b": 2}],
    pa.decimal256(50, 2): [Decimal("1.25")],
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_the_remedy_for_a_key_that_is_refused_works(kind: pa.DataType) -> None:
    table = pa.table({"k": pa.array(VALUES[kind], kind), "ts": range(len(VALUES[kind]))})
    log = StreamExecutionEnvironment().from_event_log(table, timestamp="ts", arrival="ts")
    with pytest.raises(SchemaError) as refused:
        require_key_type("k", table.schema)
    (remedy,) = re.findall(r"such as (\..*)$", str(refused.value))
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    keyed = eval(f"log{remedy}", {"log": log.assign_timestamps_and_watermarks(strategy), "pyarrow": pa})
    rows = keyed.window(TumblingEventTimeWindows(10)).aggregate(n=count()).to_arrow()
    assert sum(rows["n"].to_pylist()) == len(
        [value for value in VALUES[kind] if value or kind == pa.list_(pa.string())]
    )


@pytest.mark.parametrize(("kind", "remedy"), REFUSED, ids=str)
@pytest.mark.parametrize("job", [rows_of_function, batches_of_function])
def test_what_cannot_be_a_key_is_refused_when_the_job_is_planned(
    kind: pa.DataType, remedy: str, job: Any
) -> None:
    env = StreamExecutionEnvironment()
    table = pa.table(
        {"k": pa.nulls(1, kind), "ts": pa.array([1])}, schema=pa.schema([("k", kind), ("ts", pa.int64())])
    )
    log = env.from_event_log(table, timestamp="ts").assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps()
    )
    keyed = log.select("ts", k0=pc.field("k"))
    with pytest.raises(SchemaError, match=remedy.replace("'k'", "'k0'")):
        job(keyed, ["int"]).execute()


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.string_view(), pa.decimal256(50, 2)], ids=str)
def test_a_harness_refuses_a_key_type_at_once(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="not supported"):
        JavaKeys(128, kind)


def test_a_struct_whose_fields_are_never_null_is_a_key_of_windows(tmp_path: Path) -> None:
    inner = pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string(), nullable=False)])
    required = pa.struct([pa.field("inner", inner, nullable=False)])

    def results(keys: pa.DataType, first: int, last: int, **checkpoints: Path) -> pa.Table:
        given = [{"inner": {"a": i % 3, "b": "x"}} for i in range(first, last)]
        log = pa.table({"ts": pa.array(range(first, last)), "k": pa.array(given, keys)})
        stream = StreamExecutionEnvironment().set_parallelism(2).from_event_log(log, timestamp="ts")
        assigned = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        windows = assigned.key_by("k").window(TumblingEventTimeWindows.of(Time.milliseconds(8)))
        return windows.aggregate(n=count()).execute(**checkpoints).to_arrow()

    nullable = pa.struct([("inner", pa.struct([("a", pa.int64()), ("b", pa.string())]))])
    expected = results(nullable, 0, 30)
    assert results(required, 0, 30).equals(expected)
    assert expected.schema.field("k").type == nullable
    before = results(required, 0, 20, stop_with_checkpoint=tmp_path / "cut")
    after = results(required, 20, 30, restore_from=tmp_path / "cut")
    assert sorted(map(repr, before.to_pylist() + after.to_pylist())) == sorted(
        map(repr, expected.to_pylist())
    )


class HowOften(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.counts = runtime_context.get_state(ValueStateDescriptor("n"))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.counts.update((self.counts.value() or 0) + 1)
        yield (self.counts.value(),)


class HowOftenInBatches(KeyedBatchProcessFunction):
    one_element_per_key = True

    def open(self, runtime_context: Any) -> None:
        self.counts = runtime_context.get_column_state("n", np.int64)

    def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
        self.counts[elements.key_ids] += 1
        yield {"n": self.counts[elements.key_ids]}


JOBS_OF_KEYS: list[Callable[[Any], DataStream]] = [
    lambda keyed: keyed.window(TumblingEventTimeWindows(100)).aggregate(n=count()),
    lambda keyed: keyed.process(HowOften(), pa.schema({"n": pa.int64()})),
    lambda keyed: keyed.process(HowOftenInBatches(), pa.schema({"n": pa.int64()})),
]


def nested(depth: int, innermost: pa.DataType) -> pa.DataType:
    for _ in range(depth):
        innermost = pa.struct([("also", pa.int64()), ("in", innermost)])
    return innermost


def test_keys_as_deep_as_they_may_be_are_in_checkpoints_and_deeper_ones_are_refused_in_all_jobs(
    tmp_path: Path,
) -> None:
    def log(depth: int, columns: int, first: int, last: int) -> DataStream:
        key = functools.reduce(lambda value, _: {"also": 1, "in": value}, range(depth), 5)
        keys = pa.array([key, key], nested(depth, pa.int64()))
        times = pa.array([first, last])
        table = pa.table({**{f"k{i}": keys for i in range(columns)}, "ts": times, "at": times})
        env = StreamExecutionEnvironment().set_parallelism(2)
        events = env.from_event_log(table, timestamp="ts", arrival="at")
        return events.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())

    for columns, deepest in ((1, 16), (2, 15)):
        names = [f"k{i}" for i in range(columns)]
        for number, job in enumerate(JOBS_OF_KEYS):
            cut = tmp_path / f"{columns} {number}"
            job(log(deepest, columns, 0, 1).key_by(*names)).execute(stop_with_checkpoint=cut).to_arrow()
            resumed = job(log(deepest, columns, 2, 3).key_by(*names)).execute(restore_from=cut).to_arrow()
            assert resumed["n"].to_pylist()[-1] == 4
            with pytest.raises(
                SchemaError, match=rf"{deepest + 1} deep .* such as (\..*\)\.key_by)"
            ) as refused:
                job(log(deepest + 1, columns, 0, 1).key_by(*names)).execute()
            (remedy,) = re.findall(r"such as (\..*)$", str(refused.value))
            keyed = eval(f"log{remedy}", {"log": log(deepest + 1, columns, 0, 1), "pyarrow": pa})
            assert job(keyed).to_arrow()["n"].to_pylist()[-1] == 2


def test_a_struct_with_two_fields_of_one_name_is_a_key_and_no_value_of_a_function() -> None:
    twice = pa.StructArray.from_arrays([pa.array([1, 1, 2]), pa.array([1, 1, 2])], ["x", "x"])
    env = StreamExecutionEnvironment()
    log = env.from_event_log(pa.table({"k": twice, "ts": [1, 2, 3]}), timestamp="ts")
    log = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    counted, by_function, _ = JOBS_OF_KEYS
    assert counted(log.key_by("k")).to_arrow()["n"].to_pylist() == [2, 1]
    with pytest.raises(DataError, match="two fields of one name") as refused:
        by_function(log.key_by("k")).to_arrow()
    (remedy,) = re.findall(r"such as (with_columns\(.*\)\));", str(refused.value))
    keyed = eval(f"log.{remedy}", {"log": log, "pyarrow": pa}).key_by("k")
    assert by_function(keyed).to_arrow()["n"].to_pylist() == [1, 2, 1]


def test_a_row_has_the_key_group_of_its_struct_column() -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.string())])
    groups = {
        *(JavaKeys(1000)(key) for key in (Row(1, "x"), Row(a=1, b="x"), (1, "x"))),
        *(JavaKeys(1000, kind)(key) for key in (Row(1, "x"), Row(a=1, b="x"), {"a": 1, "b": "x"})),
    }
    assert len(groups) == 1


# ---- times that Python cannot hold


def nanoseconds(*numbers: int) -> pa.Array:
    return pa.array(numbers, pa.int64()).view(pa.timestamp("ns"))


def batch_counts(
    keys: pa.Array, parallelism: int, start: int = 0, **checkpoints: Any
) -> list[tuple[Any, ...]]:
    """What a batch function gives, with the numbers of the key's times."""
    times = pa.array(range(start, start + len(keys)), pa.int64())
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    log = env.from_event_log(pa.table({"k0": keys, "ts": times, "at": times}), timestamp="ts", arrival="at")
    log = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    columns = pa.schema([("k0", keys.type), ("n", pa.int64()), ("time", pa.int64())])
    found = log.key_by("k0").process(CountingBatches(1), columns).execute(**checkpoints).to_arrow()
    given = found["k0"].combine_chunks()
    numbers = given.flatten() if pa.types.is_struct(given.type) else [given]
    rows = zip(
        *(column.cast(pa.int64()).to_pylist() for column in numbers), found["n"].to_pylist(), strict=True
    )
    return sorted(rows)


@pytest.mark.parametrize(
    "keys",
    [
        nanoseconds(1, 2, 1_000, 1, 2),
        nanoseconds(1_000, 2_000, 1_000, 2_001, 1_000),
        pa.array([2**62, -(2**62), 2**62, 0, 0], pa.int64()).view(pa.timestamp("us")),
        pa.array([999, 1, 999, 999, 1], pa.int64()).view(pa.time64("ns")),
        pa.StructArray.from_arrays([nanoseconds(1, 2, 1_000, 1, 2), pa.array([0, 1, 2, 0, 1])], ["at", "n"]),
    ],
    ids=lambda keys: str(keys.type),
)
@pytest.mark.parametrize("cut", [1, 3, 4])
def test_batch_functions_hold_times_that_python_cannot_hold(keys: pa.Array, cut: int, tmp_path: Path) -> None:
    parts = batch_counts(keys[:cut], 3, stop_with_checkpoint=tmp_path / "a")
    parts += batch_counts(
        keys[cut:cut], 2, cut, restore_from=tmp_path / "a", stop_with_checkpoint=tmp_path / "b"
    )
    parts += batch_counts(keys[cut:], 1, cut, restore_from=tmp_path / "b")
    assert sorted(parts) == batch_counts(keys, 2)


def test_a_function_over_rows_says_which_key_it_cannot_hold() -> None:
    rows = pa.table({"k0": nanoseconds(1_000, 1_001), "ts": pa.array([0, 1])})
    env = StreamExecutionEnvironment()
    log = env.from_event_log(rows, timestamp="ts").assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps()
    )
    with pytest.raises(DataError, match=r"column 'k0' \(timestamp\[ns\]\) holds 1001 .*cast\('int64'\)"):
        rows_of_function(log, ["timestamp_ns_None"]).execute().to_arrow()  # type: ignore[attr-defined]
    as_numbers = log.with_columns(k0=pc.field("k0").cast("int64"))
    assert rows_of_function(as_numbers, ["int"]).execute().to_arrow().num_rows == 4  # type: ignore[attr-defined]


# ---- two streams


RULES = MapStateDescriptor("rules")


class CountingBoth(KeyedCoProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.counts = runtime_context.get_state(ValueStateDescriptor("counts"))

    def given(self, ctx: Any) -> Iterator[Any]:
        self.counts.update((self.counts.value() or 0) + 1)
        yield ctx.get_current_key(), self.counts.value()

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        return self.given(ctx)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        return self.given(ctx)


class CountingWithRules(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.counts = runtime_context.get_state(ValueStateDescriptor("counts"))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.counts.update((self.counts.value() or 0) + 1)
        yield ctx.get_current_key(), self.counts.value()

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        pass


class Pairs(ProcessJoinFunction[Any, Any]):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield None, 1


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        # How many of all values, each of which comes twice, are one key.
        ("double", [2, 2, 2, 2, 2, 6]),
        ("float", [2, 2, 2, 2, 2, 6]),
        ("struct", [2, 2, 2]),
        ("nested", [2, 2, 4]),
        ("date64", [2, 2, 6]),
        ("timestamp_ns_Europe/Berlin", [2, 2, 2, 2]),
        ("uint64", [2, 2, 2, 2]),
    ],
)
def test_two_streams_have_the_same_keys(kind: str, sizes: list[int]) -> None:
    rows = table_of([kind], 2 * [((value, 0, 0), 0) for value in range(len(KEYS[kind]))], 0)

    env = StreamExecutionEnvironment().set_parallelism(2)

    def log() -> DataStream:
        return env.from_event_log(rows, timestamp="ts", arrival="at").assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20))
        )

    def counts(stream: Any) -> list[int]:
        found: list[int] = stream.execute().to_arrow()["n"].to_pylist()
        return sorted(found)

    left, right = log(), log().select("ts", other=pc.field("k0"))
    columns = pa.schema([("k0", KEYS[kind].type), ("n", pa.int64())])
    both = left.connect(right).key_by("k0", "other").process(CountingBoth(), columns)
    assert counts(both) == sorted(n + 1 for size in sizes for n in range(2 * size))
    one = left.key_by("k0").connect(right.broadcast(RULES)).process(CountingWithRules(), columns)
    assert counts(one) == sorted(n + 1 for size in sizes for n in range(size))
    pairs = (
        left.key_by("k0")
        .interval_join(right.key_by("other"))
        .between(-1_000, 1_000)
        .process(Pairs(), columns)
    )
    assert len(counts(pairs)) == sum(size * size for size in sizes)


# ---- harnesses


class Remembering(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        before = self.last.value()
        self.last.update(value[1])
        ctx.timer_service().register_event_time_timer(value[1])
        yield before

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield timestamp, self.last.value()


@pytest.mark.parametrize(
    "key_of",
    [lambda number: number, lambda number: (number, "a"), lambda number: Row(a=(number,))],
    ids=["alone", "in a tuple", "in a row"],
)
def test_a_harness_restores_keys_of_nan_and_of_both_zeros(key_of: Any) -> None:
    def harness(state: Any = None) -> Any:
        return for_keyed_process_function(Remembering(), lambda value: key_of(value[0]), restore_from=state)

    nans = WIDE_NANS.tolist()
    with harness() as before:
        for number, time in ((nans[0], 1), (0.0, 2), (-0.0, 3), (nans[1], 4)):
            before.process_element((number, time))
        assert before.extract_output_values() == [None, None, None, 1]
        state = before.snapshot()
    with harness(state) as after:
        assert after.num_keyed_state_entries() == 3
        assert after.get_keyed_state("last", key_of(nans[2])) == 4
        for number, time in ((-0.0, 13), (nans[2], 14), (0.0, 12)):
            after.process_element((number, time))
        after.process_watermark(20)
        fired = [(1, 14), (2, 12), (3, 13), (4, 14), (12, 12), (13, 13), (14, 14)]
        assert after.extract_output_values() == [3, 4, 2, *fired]
