"""Event logs in jobs that run element by element give what their columnar replays give."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore.common import (
    MAX_TIMESTAMP,
    Duration,
    OutputTag,
    Time,
    TimestampAssigner,
    Types,
    WatermarkStrategy,
)
from flinkcore.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.errors import ConfigurationError, DataError, UserCodeError

BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
TEN = TumblingEventTimeWindows.of(Time.seconds(10))
LATE = OutputTag("late")


def log_of(seed: int, rows: int = 1500) -> pa.Table:
    chosen = random.Random(seed)
    arrivals = [1_000_000 + row * 53 for row in range(rows)]
    return pa.table(
        {
            "split": [row % 3 if row < rows // 2 else row % 2 for row in range(rows)],
            "arrival": arrivals,
            "ts": [arrival - chosen.randrange(9000) for arrival in arrivals],
            "user": [f"u{chosen.randrange(5)}" for _ in range(rows)],
            "price": [chosen.randrange(100) for _ in range(rows)],
        }
    )


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def events(env: StreamExecutionEnvironment, table: pa.Table, **settings: Any) -> DataStream:
    return env.from_event_log(
        table, timestamp="ts", integer_times=True, arrival="arrival", split="split", **settings
    )


def prepared(env: StreamExecutionEnvironment, table: pa.Table, strategy: WatermarkStrategy) -> DataStream:
    dear = events(env, table).filter(pc.field("price") < 95).with_columns(cost=pc.field("price") * 2)
    return dear.assign_timestamps_and_watermarks(strategy).filter(pc.field("user") != "u4")


class CountAndSum(AggregateFunction[Any, Any, Any]):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + 1, accumulator[1] + value.cost

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithWindow(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        ((n, total),) = elements
        window = context.window()
        yield key, window.start, window.end, n, total, context.current_watermark()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "strategy",
    [
        BOUNDED,
        BOUNDED.with_idleness(Duration.of_millis(300)),
        WatermarkStrategy.for_monotonous_timestamps(),
        WatermarkStrategy.no_watermarks(),
    ],
    ids=["bounded", "idle", "monotonous", "none"],
)
def test_both_ways_give_the_same_windows_and_late_rows(
    env: StreamExecutionEnvironment, seed: int, strategy: WatermarkStrategy
) -> None:
    table = log_of(seed)
    stream = prepared(env, table, strategy)
    columnar = (
        stream.key_by("user").window(TEN).allowed_lateness(1500).side_output_late_data(LATE)
        .aggregate(n=count(), total=sum_("cost")).execute()
    )  # fmt: skip
    by_element = (
        stream.key_by(lambda row: row.user).window(TEN).allowed_lateness(1500).side_output_late_data(LATE)
        .aggregate(CountAndSum(), WithWindow())
    )  # fmt: skip
    wanted = [
        (row["user"], row["window_start"], row["window_end"], row["n"], row["total"], row["watermark"])
        for row in columnar.to_arrow().to_pylist()
    ]
    assert sorted(by_element.execute_and_collect()) == sorted(wanted)
    late = [row.as_dict() for row in by_element.get_side_output(LATE).execute_and_collect()]
    assert sorted(late, key=str) == sorted(columnar.get_side_output(LATE).to_arrow().to_pylist(), key=str)


class Seen(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        ctx.timer_service().register_processing_time_timer(value.arrival + 120)
        yield value.arrival, value.user, ctx.timestamp(), ctx.timer_service().current_watermark()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield timestamp, ctx.get_current_key(), None, ctx.timer_service().current_watermark()


@pytest.mark.parametrize("rate", [None, 700.0])
def test_a_function_sees_the_same_times_both_ways(
    env: StreamExecutionEnvironment, rate: float | None
) -> None:
    table = log_of(7, 400)
    schema = pa.schema({"at": pa.int64(), "user": pa.string(), "ts": pa.int64(), "watermark": pa.int64()})
    stream = events(env, table).assign_timestamps_and_watermarks(BOUNDED)
    if rate is not None:
        stream = env.from_event_log(
            table, timestamp="ts", integer_times=True, rate=rate
        ).assign_timestamps_and_watermarks(BOUNDED)
    columnar = stream.key_by("user").process(Seen(), schema)
    wanted = [tuple(row.values()) for row in columnar.to_arrow().to_pylist()]
    assert [tuple(row) for row in stream.key_by("user").process(Seen()).execute_and_collect()] == wanted
    # Also where only a step behind the function makes the job run element by element.
    behind = columnar.map(lambda row: (row.at, row.user, row.ts, row.watermark))
    assert list(behind.execute_and_collect()) == wanted


@pytest.mark.parametrize("start", [-50, 0, 10, 50])
def test_idleness_begins_at_the_first_tick_both_ways_also_where_the_clock_shows_0(
    env: StreamExecutionEnvironment, start: int
) -> None:
    arrivals = [start, start + 40, start + 70, start + 440]
    table = pa.table({"arrival": arrivals, "ts": [0, 40, 41, 44], "split": [0, 0, 0, 1], "user": ["a"] * 4})
    env.get_config().set_auto_watermark_interval(50)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(10))
    keyed = events(env, table).assign_timestamps_and_watermarks(strategy).key_by("user")
    schema = pa.schema({"at": pa.int64(), "user": pa.string(), "ts": pa.int64(), "watermark": pa.int64()})
    wanted = [tuple(row.values()) for row in keyed.process(Seen(), schema).to_arrow().to_pylist()]
    assert [tuple(row) for row in keyed.process(Seen()).execute_and_collect()] == wanted
    assert (start + 70, "a", 41, 39) in wanted or start == 10


def test_rows_have_the_columns_of_the_log_and_its_timestamps(env: StreamExecutionEnvironment) -> None:
    table = pa.table({"ts": [5, 3], "user": ["a", "b"]})

    class Timestamp(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield value.as_dict(), ctx.timestamp()

    stream = env.from_event_log(table, timestamp="ts", integer_times=True).select(
        "user", double=pc.field("ts") * 2
    )
    assert list(stream.process(Timestamp()).execute_and_collect()) == [
        ({"user": "a", "double": 10}, 5),
        ({"user": "b", "double": 6}, 3),
    ]


def test_an_assigner_in_python_gives_the_time_of_rows(env: StreamExecutionEnvironment) -> None:
    class Later(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return record_timestamp + value.price

    stream = events(env, log_of(1, 3)).assign_timestamps_and_watermarks(
        BOUNDED.with_timestamp_assigner(Later())
    )

    class Timestamp(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield ctx.timestamp() - value.ts == value.price

    assert list(stream.process(Timestamp()).execute_and_collect()) == [True, True, True]
    with pytest.raises(
        ConfigurationError, match="put select, with_columns and filters of expressions before"
    ):
        stream.select("user").map(lambda row: row).execute_and_collect()


def test_a_second_strategy_behind_a_function_replaces_the_first(env: StreamExecutionEnvironment) -> None:
    class Price(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return value

    class Timestamp(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield ctx.timestamp() == value

    stream = (
        events(env, log_of(1, 3)).assign_timestamps_and_watermarks(BOUNDED).map(lambda row: row.price)
        .assign_timestamps_and_watermarks(BOUNDED.with_timestamp_assigner(Price())).process(Timestamp())
    )  # fmt: skip
    assert list(stream.execute_and_collect()) == [True, True, True]


def test_rejected_rows_go_to_their_side_output(env: StreamExecutionEnvironment) -> None:
    bad = OutputTag("bad")
    table = pa.table({"ts": pa.array([1, None, 3]), "user": ["a", "b", "c"]})
    stream = env.from_event_log(table, timestamp="ts", integer_times=True, on_bad_row=bad).map(
        lambda row: row.user, Types.STRING()
    )
    assert list(stream.execute_and_collect()) == ["a", "c"]
    assert [row.user for row in stream.get_side_output(bad).execute_and_collect()] == ["b"]
    with pytest.raises(DataError, match="null"):
        list(
            env.from_event_log(table, timestamp="ts", integer_times=True)
            .map(lambda row: row)
            .execute_and_collect()
        )


def test_a_null_in_the_one_key_column_is_an_error(env: StreamExecutionEnvironment) -> None:
    table = pa.table({"ts": [1, 2], "user": ["a", None]})
    rows = env.from_event_log(table, timestamp="ts", integer_times=True)
    with pytest.raises(UserCodeError, match="the key 'user' is null; filter such elements out"):
        list(rows.key_by("user").reduce(lambda a, b: a).execute_and_collect())
    assert len(list(rows.key_by("user", "ts").reduce(lambda a, b: a).execute_and_collect())) == 2


def test_a_log_and_a_collection_share_a_clock(env: StreamExecutionEnvironment) -> None:
    table = pa.table({"ts": [0, 1, 2], "at": [1_600_000_000_000, 1_600_000_000_001, 1_600_000_000_900]})
    log = env.from_event_log(table, timestamp="ts", integer_times=True, arrival="at").map(lambda row: row.ts)
    letters = env.from_collection(["a", "b"])
    # The clock starts before the first tick that sees an event: so do the letters' arrivals.
    assert list(log.union(letters).execute_and_collect()) == ["a", "b", 0, 1, 2]


def test_rows_of_a_columnar_job_go_on_as_elements(env: StreamExecutionEnvironment) -> None:
    windows = prepared(env, log_of(2), BOUNDED).key_by("user").window(TEN).aggregate(n=count())
    wanted = sorted(row["n"] for row in windows.to_arrow().to_pylist())
    assert sorted(windows.map(lambda row: row.n).execute_and_collect()) == wanted
    assert sorted(row.n for row in windows.execute_and_collect()) == wanted
    assert "[rows, as other steps of the job call functions] tumbling windows" in windows.map(str).explain()


def test_side_outputs_of_a_columnar_job_go_on_as_elements(env: StreamExecutionEnvironment) -> None:
    windows = (
        prepared(env, log_of(2), BOUNDED).key_by("user").window(TEN).side_output_late_data(LATE)
        .aggregate(n=count())
    )  # fmt: skip
    late = windows.get_side_output(LATE)
    wanted = sorted(late.to_arrow().column("ts").to_pylist())
    assert wanted
    assert sorted(late.map(lambda row: row.ts).execute_and_collect()) == wanted
    assert "element by element" in late.map(str).explain()
    assert late.explain().startswith("embedded replay")


def test_a_columnar_job_stays_columnar(env: StreamExecutionEnvironment) -> None:
    windows = prepared(env, log_of(2), BOUNDED).key_by("user").window(TEN).aggregate(n=count())
    assert "[rows" not in windows.explain()
    assert windows.explain().startswith("embedded replay")


def test_steps_over_columns_behind_functions_are_refused(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(
        ConfigurationError, match=r"DataStream has no select, which LogStream has: .* 'map by"
    ):
        events(env, log_of(1, 3)).map(lambda row: row).select("user")  # type: ignore[attr-defined]
    schema = pa.schema({"at": pa.int64(), "user": pa.string(), "ts": pa.int64(), "watermark": pa.int64()})
    behind = events(env, log_of(1, 3)).key_by("user").process(Seen(), schema).select("user")
    with pytest.raises(ConfigurationError, match="the step 'select user' works on whole columns"):
        behind.map(lambda row: row).execute_and_collect()


@pytest.mark.parametrize("idle_ms", [None, 700])
@pytest.mark.parametrize("seed", range(4))
def test_splits_are_aligned_as_in_a_replay_over_columns(
    env: StreamExecutionEnvironment, seed: int, idle_ms: int | None
) -> None:
    chosen = random.Random(seed)
    rows = []
    arrival = 1_000_000
    for number in range(2500):
        arrival += chosen.choice([0, 0, 1, 3, 9]) + (900 if number % 600 == 500 else 0)
        split = chosen.randrange(4)
        pace = 1 if split < 2 else split + chosen.randrange(2)  # two splits run ahead
        rows.append((split, arrival, (arrival - 1_000_000) * pace - chosen.randrange(300), number % 5))
    log = pa.table(dict(zip(("split", "arrival", "ts", "user"), zip(*rows, strict=True), strict=True)))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(200))
    if idle_ms is not None:
        strategy = strategy.with_idleness(Duration.of_millis(idle_ms))

    def counts(strategy: WatermarkStrategy, by_element: bool) -> list[Any]:
        stream = events(env, log).assign_timestamps_and_watermarks(strategy)
        size = TumblingEventTimeWindows.of(Time.milliseconds(500))
        if by_element:
            windows = stream.elements().key_by(lambda row: row.user).window(size).side_output_late_data(LATE)
            return sorted(windows.process(Numbered()).execute_and_collect())
        columnar = stream.key_by("user").window(size).side_output_late_data(LATE).aggregate(n=count())
        found = columnar.execute().to_arrow().select(["window_start", "user", "n"])
        return sorted(zip(*found.to_pydict().values(), strict=True))

    aligned = strategy.with_watermark_alignment("group", Duration.of_millis(300), Duration.of_millis(150))
    assert counts(aligned, by_element=True) == counts(aligned, by_element=False)
    assert counts(aligned, by_element=True) != counts(strategy, by_element=True)


class Numbered(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield context.window().start, key, len(list(elements))


def test_there_are_no_checkpoints_of_aligned_elements(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    aligned = BOUNDED.with_watermark_alignment("group", Duration.of_seconds(1), Duration.of_seconds(1))
    stream = events(env, log_of(1, 3)).assign_timestamps_and_watermarks(aligned).map(str)
    with pytest.raises(ConfigurationError, match=r"a log whose splits are aligned .*: rows that wait"):
        stream.execute_and_collect(stop_with_checkpoint=tmp_path / "checkpoint")


def test_no_log_is_read_before_the_settings_of_all_are_looked_at(env: StreamExecutionEnvironment) -> None:
    without_time = pa.table({"user": ["a"], "ts": pa.array([None], pa.int64())})
    damaged = env.from_event_log(
        without_time, timestamp="ts", integer_times=True
    ).assign_timestamps_and_watermarks(BOUNDED)

    class Price(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value.price)

    assigned = BOUNDED.with_timestamp_assigner(Price())
    refused = (
        events(env, log_of(1, 3)).assign_timestamps_and_watermarks(assigned).filter(pc.field("price") > 0)
    )
    with pytest.raises(ConfigurationError, match="steps over columns come after"):
        damaged.map(str).union(refused.map(str)).execute_and_collect()


def test_at_the_end_generators_emit_what_they_have_left_in_a_columnar_job_only(
    env: StreamExecutionEnvironment,
) -> None:
    class AtTimers(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(value.ts)

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield timestamp, ctx.timer_service().current_watermark()

    log = env.from_event_log(
        pa.table({"user": ["a", "a"], "ts": [1, 50]}), timestamp="ts", integer_times=True, arrival="ts"
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))
    users = log.assign_timestamps_and_watermarks(strategy).key_by("user")
    columns = pa.schema({"timer": pa.int64(), "watermark": pa.int64()})
    rows = users.process(AtTimers(), columns).to_arrow().to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 50 - 10 - 1), (50, MAX_TIMESTAMP)]
    assert list(users.process(AtTimers()).execute_and_collect()) == [(1, MAX_TIMESTAMP), (50, MAX_TIMESTAMP)]
