"""Streams that are connected, broadcast or united: their graph, their plan, and what is refused."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from models.two_inputs import RULES, ScriptedCo, ScriptedRules, Telling, TellingRules

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    BroadcastProcessFunction,
    DataStream,
    KeyedCoProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.errors import ConfigurationError, SchemaError, UserCodeError

OUTPUT = pa.schema({"text": pa.string()})
IN_ORDER = WatermarkStrategy.for_monotonous_timestamps()
CLICKS = pa.table({"user": ["a", "b", "a"], "ts": [1, 5, 9], "at": [1, 5, 9]})
NAMES = pa.table({"who": ["a", "b"], "since": [2, 6], "arrival": [2, 6], "name": ["Ann", "Bob"]})


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment()


def clicks(env: StreamExecutionEnvironment, table: pa.Table = CLICKS) -> DataStream:
    log = env.from_event_log(table, timestamp="ts", integer_times=True, arrival="at")
    return log.assign_timestamps_and_watermarks(IN_ORDER)


def names(env: StreamExecutionEnvironment, **settings: Any) -> DataStream:
    log = env.from_event_log(NAMES, timestamp="since", integer_times=True, arrival="arrival", **settings)
    return log.assign_timestamps_and_watermarks(IN_ORDER)


class Greets(KeyedCoProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.name = runtime_context.get_state(ValueStateDescriptor("name"))

    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield f"{value.ts} {self.name.value() or ctx.get_current_key()}"

    def process_element2(self, value: Any, ctx: Any) -> Any:
        if value.name == "Bob":
            yield 7
        self.name.update(value.name)


def test_elements_of_both_streams_meet_at_their_key_in_the_order_of_arrival(
    env: StreamExecutionEnvironment,
) -> None:
    stream = clicks(env).key_by("user").connect(names(env).filter(pc.field("name") != "Bob").key_by("who"))
    result = stream.process(Greets(), OUTPUT).execute()
    assert result.to_arrow()["text"].to_pylist() == ["1 a", "5 b", "9 Ann"]
    assert (result.report.events_read, result.report.filtered, result.report.processed) == (5, 1, 4)
    assert set(result.report.split_watermarks) == {(0, None), (1, None)}
    assert result.report.idle_spans((1, None)) == []
    assert "process two streams by Greets" in stream.process(Greets(), OUTPUT).explain()


def test_a_log_without_events_does_not_end_before_the_others(env: StreamExecutionEnvironment) -> None:
    nobody = names(env).filter(pc.field("name") == "Zoe")
    result = clicks(env).connect(nobody).key_by("user", "who").process(Greets(), OUTPUT)
    assert result.to_arrow()["text"].to_pylist() == ["1 a", "5 b", "9 a"]


def test_a_result_of_the_wrong_type_names_stream_key_and_element(env: StreamExecutionEnvironment) -> None:
    stream = clicks(env).connect(names(env)).key_by(["user"], ["who"]).process(Greets(), OUTPUT)
    with pytest.raises(
        UserCodeError,
        match=r"7 from the element Row.*'Bob'.* of the second stream of the key 'b' with the timestamp 6",
    ):
        stream.to_arrow()


def test_a_union_has_the_rows_of_all_streams_and_the_least_watermark(env: StreamExecutionEnvironment) -> None:
    renamed = names(env).select(at=pc.field("arrival"), ts=pc.field("since"), user=pc.field("who"))
    ahead = clicks(env, pa.table({"user": ["z"], "ts": [5000], "at": [400]}))
    united = clicks(env).union(renamed, ahead).filter(pc.field("user") != "b")
    windows = united.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    result = windows.aggregate(n=count(), last=sum_("ts")).execute()
    assert [tuple(row.values())[:-2] for row in result.to_arrow().sort_by("window_start").to_pylist()] == [
        ("a", 0, 10, 3, 12),
        ("z", 5000, 5010, 1, 5000),
    ]
    assert set(result.to_arrow()["watermark"].to_pylist()) == {2**63 - 1}
    assert (result.report.filtered, result.report.windowed) == (2, 4)


def test_what_follows_a_union_is_done_to_each_of_its_streams(env: StreamExecutionEnvironment) -> None:
    logs = [
        env.from_event_log(CLICKS, timestamp="ts", integer_times=True, arrival="at"),
        env.from_event_log(CLICKS, timestamp="ts", integer_times=True, arrival="at"),
    ]
    united = logs[0].union(logs[1], logs[0]).assign_timestamps_and_watermarks(IN_ORDER).key_by("user")
    table = united.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).aggregate(n=count()).to_arrow()
    assert dict(zip(table["user"].to_pylist(), table["n"].to_pylist(), strict=True)) == {"a": 6, "b": 3}


def test_rejected_rows_of_two_logs_share_a_side_output_if_their_columns_agree(
    env: StreamExecutionEnvironment,
) -> None:
    bad = OutputTag("bad")
    table = pa.table({"user": ["a", None], "ts": [1, None], "at": [1, 2]})

    def log() -> DataStream:
        return env.from_event_log(table, timestamp="ts", integer_times=True, arrival="at", on_bad_row=bad)

    united = log().union(log()).assign_timestamps_and_watermarks(IN_ORDER).key_by("user")
    result = united.window(TumblingEventTimeWindows.of(Time.milliseconds(9))).aggregate(n=count()).execute()
    assert result.to_arrow()["n"].to_pylist() == [2]
    assert result.get_side_output(bad).to_arrow()["reason"].to_pylist() == ["null timestamp"] * 2
    other = names(env, on_bad_row=bad)
    with pytest.raises(
        ConfigurationError, match="'bad' is named for the rejected rows of logs with different"
    ):
        log().connect(other).process(Telling(), OUTPUT).execute()


def test_results_for_broadcast_elements_come_once_whatever_the_parallelism(
    env: StreamExecutionEnvironment,
) -> None:
    class Rules(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            return [f"{value.user} {ctx.get_broadcast_state(RULES).get(value.user)}"]

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(RULES).put(value.who, value.since)
            return [f"rule for {value.who}"]

    env.set_parallelism(3)
    stream = clicks(env).connect(names(env).broadcast(RULES)).process(Rules(), OUTPUT)
    assert stream.to_arrow()["text"].to_pylist() == ["a None", "rule for a", "b None", "rule for b", "a 2"]


Refused = Callable[[StreamExecutionEnvironment], Any]
REFUSED: dict[str, tuple[Refused, type[Exception], str]] = {
    "one keyed stream": (
        lambda env: clicks(env).key_by("user").connect(names(env)).process(ScriptedCo(), OUTPUT),
        ConfigurationError,
        "stream 1 of the connected streams is keyed and the other is not: key both",
    ),
    "a key for a keyed stream": (
        lambda env: clicks(env).connect(names(env).key_by("who")).key_by("user", "who"),
        ConfigurationError,
        "stream 2 of the connected streams has a key already",
    ),
    "a function without keys on streams keyed by columns": (
        lambda env: clicks(env).connect(names(env)).key_by("user", "who").process(Telling(), OUTPUT),
        ConfigurationError,
        "process on connected streams keyed by columns takes a KeyedCoProcessFunction",
    ),
    "a function of one stream on two": (
        lambda env: clicks(env).connect(names(env)).key_by(str, str).process("f"),  # type: ignore[arg-type]
        ConfigurationError,
        "process on connected keyed streams takes a KeyedCoProcessFunction or a CoProcessFunction",
    ),
    "a keyed function on streams without keys": (
        lambda env: clicks(env).connect(names(env)).process(ScriptedCo(), OUTPUT),
        ConfigurationError,
        "process on connected streams without keys takes a CoProcessFunction",
    ),
    "a function of another kind for a broadcast": (
        lambda env: clicks(env).connect(names(env).broadcast(RULES)).process(ScriptedRules(), OUTPUT),
        ConfigurationError,
        "a stream without keys connected with a broadcast one takes a BroadcastProcessFunction",
    ),
    "a function without keys for a keyed stream and a broadcast": (
        lambda env: (
            clicks(env).key_by("user").connect(names(env).broadcast(RULES)).process(TellingRules(), OUTPUT)
        ),
        ConfigurationError,
        "a keyed stream connected with a broadcast one takes a KeyedBroadcastProcessFunction",
    ),
    "a broadcast of another state": (
        lambda env: names(env).broadcast(ValueStateDescriptor("rules")),  # type: ignore[arg-type]
        ConfigurationError,
        "broadcast takes MapStateDescriptors, not",
    ),
    "a state twice": (
        lambda env: names(env).broadcast(RULES, RULES),
        ConfigurationError,
        "broadcast names states twice: rules",
    ),
    "something to connect": (
        lambda env: clicks(env).connect("names"),  # type: ignore[arg-type]
        ConfigurationError,
        "connect takes a LogStream, not 'names'",
    ),
    "another environment": (
        lambda env: clicks(env).union(clicks(StreamExecutionEnvironment())),
        ConfigurationError,
        "union takes a stream of the same environment",
    ),
    "a type of key": (
        lambda env: (
            clicks(env).connect(names(env)).key_by("user", "since").process(ScriptedCo(), OUTPUT).execute()
        ),
        SchemaError,
        "keyed by 'user', which is string, and 'since', which is int64: no keys would be equal; convert one",
    ),
    "keys of two lengths": (
        lambda env: (
            clicks(env)
            .connect(names(env))
            .key_by(["user", "ts"], "who")
            .process(ScriptedCo(), OUTPUT)
            .execute()
        ),
        ConfigurationError,
        "keys of 2 and 1 columns",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_job_that_makes_no_sense_is_refused(what: str, env: StreamExecutionEnvironment) -> None:
    call, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        call(env)


def test_streams_of_a_union_need_the_same_columns(env: StreamExecutionEnvironment) -> None:
    windows = (
        clicks(env)
        .union(names(env).with_columns(user=pc.field("who")))
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
    )
    with pytest.raises(SchemaError, match=r"stream 1 has \(user: string, .* and stream 2 has \(who: string"):
        windows.aggregate(n=count()).execute()


def test_logs_of_one_watermark_group_are_refused(env: StreamExecutionEnvironment) -> None:
    aligned = IN_ORDER.with_watermark_alignment("group", Duration.of_millis(5), Duration.of_millis(5))
    log = env.from_event_log(CLICKS, timestamp="ts", integer_times=True, arrival="at")
    stream = log.union(log).assign_timestamps_and_watermarks(aligned).key_by("user")
    with pytest.raises(ConfigurationError, match="2 logs are in the watermark group 'group'"):
        stream.window(TumblingEventTimeWindows.of(Time.seconds(1))).aggregate(n=count()).execute()
