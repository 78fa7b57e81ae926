"""Units of times in jobs: given for numbers, demanded where integers cannot be milliseconds; times of results."""

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from flinkcore.common import Duration, Time, TimestampAssigner, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.testing import find_races

BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4))
HOUR = TumblingEventTimeWindows.of(Time.hours(1))
INSTANTS = pa.timestamp("ms", "UTC")
SECONDS = [1_001_894_400, 1_001_898_000, 1_001_898_001]
HOURS_MS = [1_001_894_400_000, 1_001_898_000_000]


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def log(times: Any = SECONDS, **columns: Any) -> pa.Table:
    return pa.table({"ts": times, "k": ["a", "a", "a"]} | columns)


def hourly(events: DataStream, strategy: WatermarkStrategy = BOUNDED) -> DataStream:
    windows = events.assign_timestamps_and_watermarks(strategy).key_by("k").window(HOUR)
    return windows.aggregate(n=count())


PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
KINDS: dict[str, Callable[[list[int]], pa.Array]] = {
    "integers": pa.array,
    "floats": lambda numbers: pa.array([number + 0.25 for number in numbers]),
    "decimals": lambda numbers: pa.array([Decimal(number) for number in numbers], pa.decimal128(38, 9)),
    "text": lambda numbers: pa.array(list(map(str, numbers))),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", PER_SECOND)
def test_numbers_in_a_unit_are_times(env: StreamExecutionEnvironment, unit: Any, kind: str) -> None:
    numbers = KINDS[kind]([second * PER_SECOND[unit] for second in SECONDS])
    events = env.from_event_log(log(numbers), timestamp="ts", timestamp_unit=unit)
    results = hourly(events).to_arrow()
    assert results.schema.field("window_start").type == INSTANTS
    assert results["window_start"].cast("int64").to_pylist() == HOURS_MS
    assert results["n"].to_pylist() == [1, 2]


def test_an_expression_has_the_unit_too_and_arrivals_their_own(env: StreamExecutionEnvironment) -> None:
    table = log(at=[second + 0.5 for second in SECONDS])
    times = {"timestamp": pc.field("ts") + 3600, "arrival": pc.field("at") + 3600}
    result = hourly(env.from_event_log(table, **times, timestamp_unit="s", arrival_unit="s")).execute()
    assert result.to_arrow()["window_start"].cast("int64").to_pylist() == [ms + 3_600_000 for ms in HOURS_MS]
    assert result.report.warnings == []


def test_new_values_of_the_column_have_its_unit(env: StreamExecutionEnvironment) -> None:
    events = env.from_event_log(log(), timestamp="ts", timestamp_unit="s").with_columns(
        ts=pc.field("ts") + 3600
    )
    assert hourly(events).to_arrow()["window_start"].cast("int64").to_pylist()[0] == HOURS_MS[0] + 3_600_000


def test_the_unit_is_not_that_of_a_column_which_the_strategy_names(env: StreamExecutionEnvironment) -> None:
    table = log(ms=[1000 * second for second in SECONDS])
    events = env.from_event_log(table, timestamp="ts", timestamp_unit="s")
    for column in ("ms", pc.field("ms")):
        results = hourly(events, BOUNDED.with_timestamp_assigner(column)).to_arrow()
        assert results["window_start"].cast("int64").to_pylist() == HOURS_MS
    results = hourly(events, BOUNDED.with_timestamp_assigner("ts")).to_arrow()
    assert results["window_start"].cast("int64").to_pylist() == HOURS_MS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"timestamp_unit": "m"}, "timestamp_unit is one of 's', 'ms', 'us', 'ns', not 'm'"),
        ({"timestamp_unit": 1}, "timestamp_unit is one of"),
        ({"arrival": "at", "arrival_unit": "h"}, "arrival_unit is one of"),
        ({"arrival_unit": "s"}, "arrival_unit='s' needs arrival="),
        ({"integer_times": 1}, "integer_times must be True or False"),
    ],
)
def test_an_invalid_setting_is_refused(
    env: StreamExecutionEnvironment, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        env.from_event_log(log(), timestamp="ts", **settings)


def test_floats_without_a_unit_are_refused_with_the_line_to_write(env: StreamExecutionEnvironment) -> None:
    events = env.from_event_log(log([1.5, 2.5, 3.5]), timestamp="ts")
    with pytest.raises(SchemaError, match=r"'ts' is double.*timestamp_unit='s' if its numbers are seconds"):
        hourly(events).to_arrow()


# ---- times that cannot be milliseconds

LOOK_LIKE = {
    "s": (SECONDS, "seconds"),
    "us": ([second * 10**6 for second in SECONDS], "microseconds"),
    "ns": ([second * 10**9 for second in SECONDS], "nanoseconds"),
}
AHEAD = [1_700_000_000_000, 1_700_000_000_001, 1_700_000_000_002]
"""Arrivals that are milliseconds."""


class Extracted(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return 1000 * int(value.ts)


def element_job(events: DataStream) -> list[Any]:
    stream = events.assign_timestamps_and_watermarks(BOUNDED).map(lambda row: row.k)
    with stream.execute_and_collect() as rows:
        return list(rows)


WAYS: dict[str, Callable[[DataStream], object]] = {
    "columns": lambda events: hourly(events).to_arrow(),
    "batches": lambda events: list(hourly(events).execute().to_batches()),
    "elements": element_job,
    "lateness": lambda events: events.assign_timestamps_and_watermarks(BOUNDED).lateness(HOUR),
    "why": lambda events: hourly(events).why("a"),
    "what if": lambda events: hourly(events).what_if([BOUNDED]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("unit", LOOK_LIKE)
def test_integers_that_cannot_be_milliseconds_are_an_error(
    env: StreamExecutionEnvironment, unit: Any, way: str
) -> None:
    numbers, words = LOOK_LIKE[unit]
    message = re.escape(
        f"column 'ts' was read as milliseconds since the epoch, but its values {numbers[0]} to {numbers[2]} look like "
        f"{words}. Give timestamp_unit={unit!r}, or timestamp_unit='ms' if they are milliseconds"
    )
    with pytest.raises(ConfigurationError, match=message):
        WAYS[way](env.from_event_log(log(numbers), timestamp="ts"))
    for given in (unit, "ms"):
        WAYS[way](env.from_event_log(log(numbers), timestamp="ts", timestamp_unit=given))


@pytest.mark.parametrize("way", WAYS)
def test_arrivals_that_cannot_be_milliseconds_are_an_error(env: StreamExecutionEnvironment, way: str) -> None:
    table = log(AHEAD, at=SECONDS)
    with pytest.raises(
        ConfigurationError, match=r"column 'at' .* look like seconds\. Give .*arrival_unit='s'"
    ):
        WAYS[way](env.from_event_log(table, timestamp="ts", arrival="at"))
    for given in ("s", "ms"):
        WAYS[way](env.from_event_log(table, timestamp="ts", arrival="at", arrival_unit=given))


@pytest.mark.parametrize("column", ["ts", "at"])
def test_races_are_not_looked_for_in_times_that_cannot_be_milliseconds(column: str) -> None:
    table = log(**{"ts": AHEAD, "at": AHEAD, column: SECONDS}) if column == "at" else log(at=AHEAD)
    setting = {"ts": "timestamp_unit", "at": "arrival_unit"}[column]
    with pytest.raises(ConfigurationError, match=rf"column '{column}' .* {setting}='s'"):
        find_races(hourly, table, timestamp="ts", arrival="at")
    settings: dict[str, Any] = {setting: "s"}
    assert find_races(hourly, table, timestamp="ts", arrival="at", **settings) is not None


def test_part_of_a_log_may_look_like_seconds_where_races_are_looked_for() -> None:
    table = log([0, 200_000_000, 200_000_001], at=[0, 200_000_000, 200_000_000])
    assert len(find_races(hourly, table, timestamp="ts", arrival="at").tried) > 2


def test_nothing_is_written_before(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="timestamp_unit='s'"):
        hourly(env.from_event_log(log(), timestamp="ts")).write_parquet(str(tmp_path / "sink"))
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_column_that_the_strategy_names_is_to_be_named_with_the_log(
    env: StreamExecutionEnvironment,
) -> None:
    events = env.from_event_log(log(ms=AHEAD), timestamp="ms")
    with pytest.raises(
        ConfigurationError, match=r"'ts' .* seconds\. Name it in from_event_log\(timestamp=\.\.\., "
    ):
        hourly(events, BOUNDED.with_timestamp_assigner("ts")).to_arrow()


def test_an_expression_that_gives_seconds_is_an_error(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(ConfigurationError, match=r"expression 'add_checked\(ts, 1\)' .* look like seconds"):
        hourly(env.from_event_log(log(), timestamp=pc.field("ts") + 1)).to_arrow()


def test_an_assigner_of_elements_decides_what_their_times_are(env: StreamExecutionEnvironment) -> None:
    strategy = BOUNDED.with_timestamp_assigner(Extracted())

    def run(**settings: Any) -> list[Any]:
        events = env.from_event_log(log(at=SECONDS), timestamp="ts", **settings)
        stream = events.assign_timestamps_and_watermarks(strategy).map(lambda row: row.k)
        with stream.execute_and_collect() as rows:
            return list(rows)

    assert run() == ["a", "a", "a"]
    with pytest.raises(ConfigurationError, match="arrival_unit='s'"):
        run(arrival="at")


@pytest.mark.parametrize(
    "times",
    [
        [0, 10**9, 2 * 10**9],
        [-5, 10, 20],
        [10**8 - 1, 10**10, 10**10],
        [10**11, 10**13, 10**14 - 1],
        [8 * 10**9, 10**10, 10**11 - 1],
        [2**63 - 10**8, 2**63 - 10**8, 2**63 - 10**8],
        [5, 10**12, 10**15],
    ],
)
def test_integers_that_can_be_milliseconds_are_taken_for_them(
    env: StreamExecutionEnvironment, times: list[int]
) -> None:
    result = hourly(env.from_event_log(log(times), timestamp="ts")).execute()
    assert result.report.max_timestamp_ms == times[-1]


def test_a_unit_that_gives_times_of_no_log_is_warned_of(env: StreamExecutionEnvironment) -> None:
    with pytest.warns(
        UserWarning, match=r"'ts', read in seconds, gives times from 55840-.* another timestamp_unit"
    ):
        hourly(env.from_event_log(log(AHEAD), timestamp="ts", timestamp_unit="s")).to_arrow()


# ---- times of results

STARTS = {
    "integers": (pa.array([1000 * second for second in SECONDS]), INSTANTS),
    "text": (
        pa.array(["2001-10-01T00:00:00Z", "2001-10-01T03:00:00+02:00", "2001-10-01 01:00:01"]),
        INSTANTS,
    ),
    "naive": (pa.array(SECONDS, pa.timestamp("s")), pa.timestamp("ms")),
    "zone": (pa.array(SECONDS, pa.timestamp("s", "Asia/Kolkata")), pa.timestamp("ms", "Asia/Kolkata")),
    "date": (pa.array([11596, 11597, 11597], pa.date32()), pa.timestamp("ms")),
}


@pytest.mark.parametrize("integer_times", [False, True])
@pytest.mark.parametrize("kind", STARTS)
def test_the_times_of_results_have_the_type_of_the_logs(
    env: StreamExecutionEnvironment, kind: str, integer_times: bool
) -> None:
    times, expected = STARTS[kind]
    events = env.from_event_log(log(times), timestamp="ts", integer_times=integer_times)
    results = hourly(events).with_emitted_at().to_arrow()
    for column in ("window_start", "window_end", "emitted_at"):
        assert results.schema.field(column).type == (pa.int64() if integer_times else expected)
    day = 86_400_000
    starts = [11596 * day, 11597 * day] if kind == "date" else HOURS_MS
    assert results["window_start"].cast("int64").to_pylist() == starts
    assert results.schema.field("watermark").type == pa.int64()


ISO = ["2001-10-01T00:00:00", "2001-10-01T01:00:00", "2001-10-01T01:00:01"]


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("offset", ["", "Z", "+00:00", "date"])
@pytest.mark.parametrize("bad", [False, True])
def test_times_in_text_files_are_instants_whatever_their_rows_look_like(
    env: StreamExecutionEnvironment, tmp_path: Path, form: str, offset: str, bad: bool
) -> None:
    days = ["2001-10-01", "2001-10-02", "2001-10-02"]
    times = (days if offset == "date" else [text + offset for text in ISO]) + ["?"] * bad
    starts = [HOURS_MS[0], HOURS_MS[0] + 86_400_000] if offset == "date" else HOURS_MS
    if form == "csv":
        lines = ["ts,k", *(f"{text},a" for text in times)]
    else:
        lines = [f'{{"ts": "{text}", "k": "a"}}' for text in times]
    (tmp_path / f"log.{form}").write_text("\n".join(lines) + "\n")
    events = env.from_event_log(str(tmp_path / f"log.{form}"), timestamp="ts", on_bad_row="drop")
    for stream in (events, events.select("k"), events.with_columns(ts=pc.field("ts"))):
        results = hourly(stream).to_arrow()
        assert results.schema.field("window_start").type == INSTANTS
        assert results["window_start"].cast("int64").to_pylist() == starts


def test_a_type_that_is_declared_for_a_text_file_is_that_of_the_results(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text("\n".join(["ts,k", *(f"{text},a" for text in ISO)]) + "\n")
    events = env.from_event_log(str(tmp_path / "log.csv"), timestamp="ts", schema={"ts": "timestamp[us]"})
    assert hourly(events).to_arrow().schema.field("window_start").type == pa.timestamp("ms")


@pytest.mark.parametrize("int96", [False, True])
def test_timestamps_in_96_bits_are_instants(
    env: StreamExecutionEnvironment, tmp_path: Path, int96: bool
) -> None:
    table = log(pa.array(SECONDS, pa.timestamp("s")))
    pq.write_table(table, tmp_path / "log.parquet", use_deprecated_int96_timestamps=int96)
    results = hourly(env.from_event_log(str(tmp_path / "log.parquet"), timestamp="ts")).to_arrow()
    assert results.schema.field("window_start").type == (INSTANTS if int96 else pa.timestamp("ms"))
    assert results["window_start"].cast("int64").to_pylist() == HOURS_MS
