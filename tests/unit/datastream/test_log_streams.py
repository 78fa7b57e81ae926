"""Streams of logs, over columns, and the streams of single elements that they become."""

from typing import Any

import pyarrow as pa
import pytest

from flinkcore.common import OutputTag, Time, Types
from flinkcore.datastream import (
    AsyncDataStream,
    AsyncFunction,
    DataStream,
    FilterFunction,
    KeyedLogStream,
    KeyedStream,
    LogStream,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WindowedLogStream,
    WindowedStream,
)
from flinkcore.errors import ConfigurationError

TABLE = pa.table({"user": ["a", "b", "a"], "ts": [1, 2, 3]})
HOURS = TumblingEventTimeWindows.of(Time.hours(1))
BAD = OutputTag("bad")

ONLY_OF_ELEMENTS = ("rebalance", "project", "partition_custom", "shuffle", "cache")
ONLY_OF_COLUMNS = (
    "select",
    "with_columns",
    "execute",
    "to_arrow",
    "write_parquet",
    "lateness",
    "why",
    "join",
)


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.fixture
def log(env: StreamExecutionEnvironment) -> LogStream:
    return env.from_event_log(TABLE, timestamp="ts", on_bad_row=BAD)


class OfUser(FilterFunction):
    def filter(self, value: Any) -> bool:
        return bool(value.user == "a")


class Waiting(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [value]


def test_the_steps_of_a_log_lead_to_streams_of_logs(log: LogStream) -> None:
    assert type(log) is LogStream
    assert type(log.key_by("user")) is KeyedLogStream
    assert type(log.key_by("user").window(HOURS)) is WindowedLogStream
    assert type(log.key_by("user").select("user")) is LogStream


def test_functions_of_single_elements_lead_to_streams_of_elements(log: LogStream) -> None:
    assert type(log.map(lambda row: row.user)) is DataStream
    assert type(log.key_by(lambda row: row.user)) is KeyedStream
    assert type(log.key_by(lambda row: row.user).window(HOURS)) is WindowedStream
    assert type(log.key_by("user").elements()) is KeyedStream


def test_elements_are_the_rows_of_a_log(log: LogStream) -> None:
    kept = log.elements().filter(lambda row: row.user == "a").rebalance().map(lambda row: row.ts)
    assert list(kept.execute_and_collect()) == [1, 3]


def test_rows_of_a_log_are_collected_and_printed_as_elements(
    env: StreamExecutionEnvironment, log: LogStream, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [row.user for row in log.execute_and_collect()] == ["a", "b", "a"]
    assert [row.f0 for row in log.key_by("user").execute_and_collect()] == ["a", "b", "a"]
    log.select("user").print()
    env.execute()
    assert capsys.readouterr().out.count("\n") == 3


def test_a_side_output_of_a_log_has_elements(env: StreamExecutionEnvironment) -> None:
    table = pa.table({"user": ["a", "b"], "ts": pa.array([1, None])})
    rejected = env.from_event_log(table, timestamp="ts", on_bad_row=BAD).get_side_output(BAD)
    assert [row.user for row in rejected.elements().execute_and_collect()] == ["b"]
    assert list(rejected.map(lambda row: row.user).execute_and_collect()) == ["b"]


@pytest.mark.parametrize("name", ONLY_OF_ELEMENTS)
def test_a_log_names_the_stream_that_has_a_call_of_elements(log: LogStream, name: str) -> None:
    for stream in (log, log.key_by("user")):
        assert not hasattr(stream, name)
        with pytest.raises(ConfigurationError, match=r"has no \w+, which DataStream has: call elements\(\)"):
            getattr(stream, name)
    assert hasattr(log.elements(), name)


@pytest.mark.parametrize("name", ONLY_OF_COLUMNS)
def test_a_stream_of_elements_names_the_stream_that_has_a_call_of_columns(log: LogStream, name: str) -> None:
    for stream in (log.map(str), log.key_by(str)):
        assert not hasattr(stream, name)
        with pytest.raises(
            ConfigurationError, match=rf"{type(stream).__name__} has no {name}, which LogStream"
        ):
            getattr(stream, name)
    with pytest.raises(ConfigurationError, match=r"elements\(\) has made single elements of the rows"):
        getattr(log.elements(), name)
    assert hasattr(log, name)


def test_a_collection_names_the_source_that_has_columns(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(ConfigurationError, match=r"begin with env\.from_event_log"):
        env.from_collection([1]).select("user")  # type: ignore[attr-defined]


def test_windows_name_the_windows_that_have_a_call_of_columns(log: LogStream) -> None:
    windows = log.key_by(lambda row: row.user).window(HOURS)
    with pytest.raises(ConfigurationError, match="WindowedStream has no delta, which WindowedLogStream has"):
        windows.delta()  # type: ignore[attr-defined]


def test_streams_of_both_kinds_are_put_together_as_elements(log: LogStream) -> None:
    mapped = log.map(lambda row: row.ts)
    for call in (lambda: log.union(mapped), lambda: log.connect(mapped), lambda: log.join(mapped)):
        with pytest.raises(ConfigurationError, match=r"takes a LogStream, not DataStream\(.*elements\(\)"):
            call()
    for call in (lambda: mapped.union(log), lambda: mapped.connect(log)):
        with pytest.raises(ConfigurationError, match=r"takes a DataStream, not LogStream\(.*elements\(\)"):
            call()
    with pytest.raises(ConfigurationError, match=r"takes a DataStream, not LogStream\(.*elements\(\)"):
        AsyncDataStream.ordered_wait(log, Waiting(), Time.seconds(1))  # type: ignore[arg-type]
    united = mapped.union(log.elements().map(lambda row: -row.ts))
    assert sorted(united.execute_and_collect()) == [-3, -2, -1, 1, 2, 3]


def test_steps_of_a_log_refuse_what_is_for_elements(log: LogStream) -> None:
    with pytest.raises(ConfigurationError, match=r"or to filter of elements\(\)"):
        log.filter(lambda row: True)
    with pytest.raises(ConfigurationError, match=r"or to filter of elements\(\)"):
        log.filter(OfUser())
    with pytest.raises(ConfigurationError, match=r"elements\(\)\.broadcast\(\)"):
        log.broadcast()
    with pytest.raises(ConfigurationError, match=r"a type of Types .* call elements\(\) first"):
        log.key_by("user").window(HOURS).reduce(lambda a, b: a, output_type=Types.INT())
