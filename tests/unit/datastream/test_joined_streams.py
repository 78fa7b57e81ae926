"""Joins of logs: their graph, their plan, what they mean, and what is refused."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore.common import Duration, OutputTag, Row, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from flinkcore.datastream.functions.join_functions import TaggedUnion
from flinkcore.datastream.window import (
    CountEvictor,
    CountTrigger,
    DynamicEventTimeSessionWindows,
    TumblingProcessingTimeWindows,
)
from flinkcore.errors import ConfigurationError, SchemaError, UserCodeError

CLICKS = pa.table({"user": ["a", "b", "a"], "ts": [1, 5, 12], "at": [1, 5, 12]})
ORDERS = pa.table({"who": ["a", "b", "b"], "ts": [3, 5, 14], "at": [3, 5, 14], "item": ["p", "q", "r"]})
PAIRS = pa.schema({"user": pa.string(), "clicked": pa.int64(), "item": pa.string()})
SIZES = pa.schema({"clicks": pa.int64(), "items": pa.int64()})
TEN_MS = TumblingEventTimeWindows.of(Time.milliseconds(10))


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment()
    env.get_config().set_auto_watermark_interval(1)
    return env


def log(env: StreamExecutionEnvironment, table: pa.Table, idleness_ms: int | None = None) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    if idleness_ms is not None:
        strategy = strategy.with_idleness(Duration.of_millis(idleness_ms))
    return env.from_event_log(
        table, timestamp="ts", integer_times=True, arrival="at"
    ).assign_timestamps_and_watermarks(strategy)


class Pair(JoinFunction[Row, Row, Any]):
    def join(self, first: Row, second: Row) -> Any:
        return first.user, first.ts, second.item


class FlatPair(FlatJoinFunction[Row, Row]):
    def join(self, first: Row, second: Row) -> Any:
        for times in range(2):
            yield first.user, times, second.item


class Sizes(CoGroupFunction[Row, Row]):
    def co_group(self, first: list[Row], second: list[Row]) -> Any:
        yield len(first), len(second)


class Pairs(ProcessJoinFunction[Row, Row]):
    side = OutputTag("side", pa.schema({"item": pa.string()}))

    def process_element(self, left: Row, right: Row, ctx: ProcessJoinFunction.Context) -> Any:
        yield left.user, left.ts, right.item
        yield self.side, (right.item,)


def joined(env: StreamExecutionEnvironment, **settings: Any) -> DataStream:
    windows = log(env, CLICKS).join(log(env, ORDERS)).where("user").equal_to("who").window(TEN_MS)
    return windows.apply(Pair(), PAIRS, **settings)


def test_a_window_join_gives_every_pair_of_a_key_and_window(env: StreamExecutionEnvironment) -> None:
    stream = joined(env, timestamp_column="time")
    result = stream.execute()
    assert result.to_arrow().to_pylist() == [
        {"user": "a", "clicked": 1, "item": "p", "time": 9},
        {"user": "b", "clicked": 5, "item": "q", "time": 9},
    ]
    assert (result.report.events_read, result.report.windowed, result.report.results) == (6, 6, 2)
    shown = stream.explain()
    assert "[rows] two streams in windows, tumbling windows of 10 ms" in shown
    assert "user, clicked, item, time; row by row, as Pair in Python" in shown


def test_a_flat_join_gives_several_rows_for_a_pair(env: StreamExecutionEnvironment) -> None:
    windows = log(env, CLICKS).join(log(env, ORDERS)).where("user").equal_to("who").window(TEN_MS)
    assert windows.apply(FlatPair(), PAIRS).to_arrow()["clicked"].to_pylist() == [0, 1, 0, 1]


def test_a_co_group_sees_keys_that_only_one_stream_has(env: StreamExecutionEnvironment) -> None:
    windows = log(env, CLICKS).co_group(log(env, ORDERS)).where("user").equal_to("who").window(TEN_MS)
    rows = windows.apply(Sizes(), SIZES).to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [(0, 1), (1, 0), (1, 1), (1, 1)]


def test_windows_of_two_streams_take_a_trigger_and_an_evictor(env: StreamExecutionEnvironment) -> None:
    windows = log(env, CLICKS).co_group(log(env, ORDERS)).where("user").equal_to("who").window(TEN_MS)
    fired = windows.trigger(CountTrigger.of(2)).evictor(CountEvictor.of(1)).apply(Sizes(), SIZES)
    assert fired.to_arrow().to_pylist() == [{"clicks": 0, "items": 1}, {"clicks": 0, "items": 1}]


def test_gap_extractors_get_tagged_rows(env: StreamExecutionEnvironment) -> None:
    def gap(element: TaggedUnion[Row, Row]) -> int:
        return 3 if element.is_one() else 1

    sessions = DynamicEventTimeSessionWindows(gap)
    windows = log(env, CLICKS).join(log(env, ORDERS)).where("user").equal_to("who").window(sessions)
    assert windows.apply(Pair(), PAIRS).to_arrow()["item"].to_pylist() == ["p", "q"]


def test_windows_of_processing_time_follow_the_arrivals(env: StreamExecutionEnvironment) -> None:
    windows = TumblingProcessingTimeWindows.of(Time.milliseconds(2))
    first, second = (
        env.from_event_log(table, timestamp="ts", integer_times=True, arrival="at").filter(
            pc.field("at") < 12
        )
        for table in (CLICKS, ORDERS)
    )
    groups = first.co_group(second).where("user").equal_to("who").window(windows)
    rows = groups.apply(Sizes(), SIZES).to_arrow().to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 0), (0, 1), (1, 1)]


def test_a_row_behind_the_watermark_of_the_union_is_late(env: StreamExecutionEnvironment) -> None:
    """A stream that was idle and is behind does not hold a union back, as it would an operator with two inputs."""
    clicks = pa.table({"user": ["a", "a"], "ts": [1, 20], "at": [1, 100]})
    orders = pa.table({"who": ["a"] * 3, "ts": [50, 80, 65], "at": [50, 101, 103], "item": ["p", "q", "r"]})
    first, second = log(env, clicks, idleness_ms=10), log(env, orders)
    windows = first.co_group(second).where("user").equal_to("who").window(TEN_MS)
    assert windows.apply(Sizes(), SIZES).execute().report.late == 2
    keyed = first.key_by("user").interval_join(second.key_by("who")).between(0, 0).process(Pairs(), PAIRS)
    assert keyed.execute().report.late == 1


def test_an_interval_join_gives_pairs_and_late_rows_as_they_came(env: StreamExecutionEnvironment) -> None:
    left_late, right_late = OutputTag("left late"), OutputTag("right late")
    clicks = pa.table({"user": ["a", "a", "a"], "ts": [1, 12, 2], "at": [1, 12, 40]})
    orders = pa.table({"who": ["a", "a"], "ts": [3, 30], "at": [3, 30], "item": ["p", "r"]})
    between = log(env, clicks).key_by("user").interval_join(log(env, orders).key_by("who")).in_event_time()
    join = between.between(Time.milliseconds(-9), Duration.of_millis(5))
    late = join.side_output_left_late_data(left_late).side_output_right_late_data(right_late)
    stream = late.process(Pairs(), PAIRS, side_outputs=[Pairs.side], timestamp_column="time")
    result = stream.execute()
    assert result.to_arrow().to_pylist() == [
        {"user": "a", "clicked": 1, "item": "p", "time": 3},
        {"user": "a", "clicked": 12, "item": "p", "time": 12},
    ]
    assert result.get_side_output(left_late).to_arrow().to_pylist() == [{"user": "a", "ts": 2, "at": 40}]
    assert result.get_side_output(right_late).to_arrow().schema.names == ["who", "ts", "at", "item"]
    assert result.get_side_output(Pairs.side).to_arrow()["item"].to_pylist() == ["p", "p"]
    assert (result.report.processed, result.report.late, result.report.results) == (4, 1, 2)
    assert "1 late: behind the watermark" in str(result.report)
    shown = stream.explain()
    assert "interval join, right - left in [-9 ms, 5 ms], late left rows to side output left late" in shown


def test_a_join_function_cannot_give_rows_of_its_own_to_the_side_output_of_late_rows(
    env: StreamExecutionEnvironment,
) -> None:
    clicks, orders = log(env, CLICKS).key_by("user"), log(env, ORDERS).key_by("who")
    join = clicks.interval_join(orders).between(Time.milliseconds(-9), Duration.of_millis(5))
    stream = join.side_output_left_late_data(Pairs.side).process(Pairs(), PAIRS)
    with pytest.raises(UserCodeError, match=r"Pairs gave .* to the side output 'side', .* of late rows"):
        stream.to_arrow()


def test_bounds_can_be_left_out(env: StreamExecutionEnvironment) -> None:
    join = log(env, CLICKS).key_by("user").interval_join(log(env, ORDERS).key_by("who")).between(0, 2)
    assert join.process(Pairs(), PAIRS).to_arrow()["item"].to_pylist() == ["p", "q"]
    assert join.lower_bound_exclusive().process(Pairs(), PAIRS).to_arrow()["item"].to_pylist() == ["p"]
    assert join.upper_bound_exclusive().process(Pairs(), PAIRS).to_arrow()["item"].to_pylist() == ["q"]


def test_a_stream_can_be_joined_with_itself(env: StreamExecutionEnvironment) -> None:
    orders = log(env, ORDERS)
    join = orders.select("ts", user=pc.field("who")).key_by("user").interval_join(orders.key_by("who"))
    rows = join.between(-20, 20).process(Pairs(), PAIRS).to_arrow().to_pylist()
    assert sorted((row["user"], row["clicked"], row["item"]) for row in rows) == [
        ("a", 3, "p"),
        ("b", 5, "q"),
        ("b", 5, "r"),
        ("b", 14, "q"),
        ("b", 14, "r"),
    ]


def test_what_a_join_gives_goes_on_to_another_operator(env: StreamExecutionEnvironment) -> None:
    counted = joined(env).key_by("user").window(TEN_MS).aggregate(n=count())
    rows = counted.to_arrow().select(["user", "window_start", "n"]).sort_by("user").to_pylist()
    assert rows == [{"user": "a", "window_start": 0, "n": 1}, {"user": "b", "window_start": 0, "n": 1}]


class Failing(JoinFunction[Row, Row, Any]):
    def join(self, first: Row, second: Row) -> Any:
        raise ValueError(second.item)


def test_errors_of_functions_name_function_key_and_window(env: StreamExecutionEnvironment) -> None:
    windows = log(env, CLICKS).join(log(env, ORDERS)).where("user").equal_to("who").window(TEN_MS)
    with pytest.raises(
        UserCodeError, match=r"Failing.join failed at the window .*of the key 'a'.*ValueError: p"
    ):
        windows.apply(Failing(), PAIRS).to_arrow()
    with pytest.raises(UserCodeError, match=r"the output of Pair"):
        windows.apply(Pair(), PAIRS.set(1, pa.field("clicked", pa.list_(pa.int8())))).to_arrow()


Job = Callable[[DataStream, DataStream], Any]
REFUSED: dict[str, tuple[Job, type[Exception], str]] = {
    "no stream": (lambda a, b: a.join("b"), ConfigurationError, "join takes a LogStream, not 'b'"),  # type: ignore[arg-type]
    "no key": (
        lambda a, b: a.join(b).where(),
        ConfigurationError,
        r"where needs at least one column: where\('user'\)",
    ),
    "no second key": (
        lambda a, b: a.join(b).where("user").equal_to(),
        ConfigurationError,
        "equal_to needs at least one column",
    ),
    "a function as the key": (
        lambda a, b: a.co_group(b).where(lambda row: row.user),  # type: ignore[arg-type]
        ConfigurationError,
        r"where takes names of columns, not <function.*with_columns\(key=expression\), then where\('key'\)",
    ),
    "a function as the second key": (
        lambda a, b: a.join(b).where("user").equal_to(len),  # type: ignore[arg-type]
        ConfigurationError,
        "equal_to takes names of columns, not <built-in",
    ),
    "a column twice": (
        lambda a, b: a.join(b).where("user", "user"),
        ConfigurationError,
        "where names columns twice: user",
    ),
    "keys of other lengths": (
        lambda a, b: a.join(b).where("user", "ts").equal_to("who"),
        ConfigurationError,
        r"where\(user, ts\) and equal_to\(who\) name keys of 2 and 1 columns",
    ),
    "keys of other types": (
        lambda a, b: a.join(b).where("user").equal_to("ts").window(TEN_MS).apply(Pair(), PAIRS).execute(),
        SchemaError,
        "'user', which is string, and 'ts', which is int64",
    ),
    "no such column": (
        lambda a, b: a.join(b).where("nobody").equal_to("who").window(TEN_MS).apply(Pair(), PAIRS).execute(),
        SchemaError,
        "^the key: there is no column 'nobody'",
    ),
    "no assigner": (
        lambda a, b: a.join(b).where("user").equal_to("who").window(7),  # type: ignore[arg-type]
        ConfigurationError,
        "window takes an assigner",
    ),
    "a co-group function in a join": (
        lambda a, b: a.join(b).where("user").equal_to("who").window(TEN_MS).apply(Sizes(), SIZES),  # type: ignore[arg-type]
        ConfigurationError,
        "join takes a JoinFunction or a FlatJoinFunction, not <.*Sizes",
    ),
    "a join function in a co-group": (
        lambda a, b: a.co_group(b).where("user").equal_to("who").window(TEN_MS).apply(Pair(), PAIRS),  # type: ignore[arg-type]
        ConfigurationError,
        "co_group takes a CoGroupFunction, not",
    ),
    "no type": (
        lambda a, b: a.join(b).where("user").equal_to("who").window(TEN_MS).apply(Pair()),
        ConfigurationError,
        "^the output_type of apply is a pyarrow.Schema, such as .*, not None",
    ),
    "no type of a co-group": (
        lambda a, b: a.co_group(b).where("user").equal_to("who").window(TEN_MS).apply(Sizes()),
        ConfigurationError,
        "^the output_type of apply is a pyarrow.Schema, such as .*, not None",
    ),
    "a side output twice": (
        lambda a, b: (
            a.join(b)
            .where("user")
            .equal_to("who")
            .window(TEN_MS)
            .apply(Pair(), PAIRS, side_outputs=[Pairs.side] * 2)
        ),
        ConfigurationError,
        "^apply names the side output 'side' twice",
    ),
    "negative lateness": (
        lambda a, b: (
            a.join(b).where("user").equal_to("who").window(TEN_MS).allowed_lateness(-1).apply(Pair(), PAIRS)
        ),
        ConfigurationError,
        "allowed_lateness cannot be negative",
    ),
    "a stream without a key": (
        lambda a, b: a.key_by("user").interval_join(b),  # type: ignore[arg-type]
        ConfigurationError,
        "interval_join takes a keyed stream",
    ),
    "processing time": (
        lambda a, b: a.key_by("user").interval_join(b.key_by("who")).in_processing_time(),
        ConfigurationError,
        "of event time only",
    ),
    "bounds the wrong way round": (
        lambda a, b: a.key_by("user").interval_join(b.key_by("who")).between(2, 1).process(Pairs(), PAIRS),
        ConfigurationError,
        r"exchange them, between\(lower, upper\)",
    ),
    "no bound": (
        lambda a, b: a.key_by("user").interval_join(b.key_by("who")).between("soon", 1),  # type: ignore[arg-type]
        ConfigurationError,
        "between",
    ),
    "no tag": (
        lambda a, b: (
            a.key_by("user").interval_join(b.key_by("who")).between(0, 1).side_output_left_late_data("x")  # type: ignore[arg-type]
        ),
        ConfigurationError,
        "side_output_left_late_data takes an OutputTag",
    ),
    "one tag for two": (
        lambda a, b: (
            a.key_by("user")
            .interval_join(b.key_by("who"))
            .between(0, 1)
            .side_output_left_late_data(OutputTag("late"))
            .side_output_right_late_data(OutputTag("late"))
            .process(Pairs(), PAIRS)
        ),
        ConfigurationError,
        "side output 'late' is named for two of",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused_when_the_job_is_written(
    name: str, env: StreamExecutionEnvironment
) -> None:
    job, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        job(log(env, CLICKS), log(env, ORDERS))


def test_joins_need_watermarks(env: StreamExecutionEnvironment) -> None:
    first, second = (
        env.from_event_log(table, timestamp="ts", integer_times=True, arrival="at")
        for table in (CLICKS, ORDERS)
    )
    windows = first.join(second).where("user").equal_to("who").window(TEN_MS).apply(Pair(), PAIRS)
    with pytest.raises(ConfigurationError, match="needs event time: call assign_timestamps_and_watermarks"):
        windows.execute()
    between = first.key_by("user").interval_join(second.key_by("who")).between(0, 1)
    with pytest.raises(ConfigurationError, match="needs event time: call assign_timestamps_and_watermarks"):
        between.process(Pairs(), PAIRS).execute()


def test_a_stream_of_another_environment_is_refused(env: StreamExecutionEnvironment) -> None:
    other = log(StreamExecutionEnvironment(), ORDERS)
    with pytest.raises(ConfigurationError, match="co_group takes a stream of the same environment"):
        log(env, CLICKS).co_group(other)
