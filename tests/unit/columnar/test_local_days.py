"""Whole jobs over windows of local days: their rows, their kin over elements, their checkpoints and analyses."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from flinkcore.cli import main
from flinkcore.common import Duration, OutputTag, Time, Types, WatermarkStrategy
from flinkcore.datastream import LogStream, StreamExecutionEnvironment
from flinkcore.datastream import TumblingEventTimeWindows as Tumbling
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.datastream.functions import CoGroupFunction, ProcessWindowFunction
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    LocalEventTimeWindows,
)
from flinkcore.errors import DataError, SchemaError

UTC = timezone.utc
ZONES = ["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Beirut", "UTC"]
NIGHTS = {"America/Sao_Paulo": datetime(2018, 11, 1, tzinfo=UTC)}
LATE = OutputTag("late")


def log_around(night: datetime, rows: int = 3000, days: int = 9) -> pa.Table:
    """Events of many keys over days around a change of clocks, up to six hours out of order."""
    random = np.random.default_rng(7)
    arrivals = np.sort(random.integers(0, days * 86_400_000, rows)) + int(night.timestamp() * 1000)
    delays = random.integers(0, 6 * 3_600_000, rows)
    return pa.table(
        {
            "ts": pa.array(arrivals - delays).cast(pa.timestamp("ms", "UTC")),
            "at": pa.array(arrivals).cast(pa.timestamp("ms", "UTC")),
            "user": pa.array(random.integers(0, 20, rows).astype(str)),
            "spent": pa.array(random.integers(0, 100, rows)),
        }
    )


LOG = log_around(datetime(2026, 10, 21, tzinfo=UTC))


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_config().set_auto_watermark_interval(60_000)
    return env


def events(log: Any = LOG, hours: int = 6) -> LogStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(hours))
    return (
        environment()
        .from_event_log(log, timestamp="ts", arrival="at")
        .assign_timestamps_and_watermarks(strategy)
    )


def sums(stream: LogStream, windows: LocalEventTimeWindows) -> LogStream:
    return stream.key_by("user").window(windows).aggregate(n=count(), spent=sum_("spent"))


def sorted_rows(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.select(list(names)).to_pylist())


COLUMNS = ("user", "window_start", "window_end", "n", "spent")


@pytest.mark.parametrize("zone", ZONES)
def test_days_are_those_of_a_group_by_local_date(zone: str) -> None:
    log = log_around(NIGHTS.get(zone, datetime(2023, 3, 22, tzinfo=UTC)))
    found = sums(events(log), Tumbling.of_local_days(zone)).execute().to_arrow()
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    grouped = connection.sql(
        f"SELECT user, (ts AT TIME ZONE '{zone}')::DATE AS day, count(*), sum(spent)::BIGINT FROM log GROUP BY ALL"
    ).fetchall()
    assert sorted(
        (user, start.astimezone(ZoneInfo(zone)).date(), n, spent)
        for user, start, _, n, spent in sorted_rows(found, *COLUMNS)
    ) == sorted(grouped)
    assert found.num_rows > 100


class Sums(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        rows = list(elements)
        window = context.window()
        yield key, window.start, window.end, len(rows), sum(row.spent for row in rows)


RESULT = pa.schema({"user": pa.string(), **dict.fromkeys(("start", "end", "n", "spent"), pa.int64())})


def as_integers(table: pa.Table) -> pa.Table:
    return pa.table(
        {name: pc.cast(table[name], pa.int64()) if name != "user" else table[name] for name in COLUMNS}
    )


@pytest.mark.parametrize(
    "windows", [Tumbling.of_local_days("Europe/Berlin"), Tumbling.of_local_weeks("Asia/Tokyo")]
)
def test_functions_and_elements_get_the_windows_of_aggregates(windows: LocalEventTimeWindows) -> None:
    columnar = sorted_rows(as_integers(sums(events(), windows).execute().to_arrow()), *COLUMNS)
    by_rows = events().key_by("user").window(windows).process(Sums(), RESULT).execute().to_arrow()
    assert sorted_rows(by_rows, *RESULT.names) == columnar
    elements = events().elements().key_by(lambda row: row.user, key_type=Types.STRING()).window(windows)
    with elements.process(Sums()).execute_and_collect() as results:
        assert sorted(results) == columnar


@pytest.mark.parametrize("trigger", [CountTrigger.of(3), ContinuousEventTimeTrigger.of(Time.hours(5))])
@pytest.mark.parametrize("lateness", [0, 20])
def test_triggers_fire_the_windows_of_functions_and_aggregates_alike(trigger: Any, lateness: int) -> None:
    def windowed() -> Any:
        windows = (
            events(hours=1).key_by("user").window(Tumbling.of_local_days("Europe/Berlin")).trigger(trigger)
        )
        return windows.allowed_lateness(Time.hours(lateness)).side_output_late_data(LATE)

    columnar = windowed().aggregate(n=count(), spent=sum_("spent")).execute()
    by_rows = windowed().process(Sums(), RESULT).execute()
    assert sorted_rows(by_rows.to_arrow(), *RESULT.names) == sorted_rows(
        as_integers(columnar.to_arrow()), *COLUMNS
    )
    late = [
        sorted_rows(each.get_side_output(LATE).to_arrow(), "user", "ts", "spent")
        for each in (columnar, by_rows)
    ]
    assert late[0] == late[1]
    assert bool(late[0]) == (lateness == 0)


def test_late_events_fire_their_day_again_while_lateness_lasts() -> None:
    windows = events(hours=0).key_by("user").window(Tumbling.of_local_days("Europe/Berlin"))
    result = windows.allowed_lateness(timedelta(days=1)).aggregate(n=count()).execute()
    last = {(row["user"], row["window_start"]): row["n"] for row in result.to_arrow().to_pylist()}
    complete = sums(events(), Tumbling.of_local_days("Europe/Berlin")).execute().to_arrow().to_pylist()
    assert last == {(row["user"], row["window_start"]): row["n"] for row in complete}
    assert pc.any(result.to_arrow()["late_firing"]).as_py()


class Both(CoGroupFunction[Any, Any]):
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterator[Any]:
        rows, others = list(first), list(second)
        users = {row.user for row in (*rows, *others)}
        yield users.pop(), len(rows), len(others)


def test_joined_logs_meet_in_local_days() -> None:
    stream = events()
    grouped = stream.co_group(stream.filter(pc.field("spent") < 50)).where("user").equal_to("user")
    schema = pa.schema({"user": pa.string(), "all": pa.int64(), "few": pa.int64()})
    found = grouped.window(Tumbling.of_local_days("Europe/Berlin")).apply(Both(), schema).execute().to_arrow()
    table = sums(events(), Tumbling.of_local_days("Europe/Berlin")).execute().to_arrow()
    assert sorted(found["all"].to_pylist()) == sorted(table["n"].to_pylist())
    assert pc.sum(found["few"]).as_py() == pc.sum(pc.less(LOG["spent"], 50)).as_py()


@pytest.mark.parametrize("cut", [1, 700, 1501, 2999])
@pytest.mark.parametrize(
    "job",
    [
        lambda stream: sums(stream, Tumbling.of_local_days("Europe/Berlin")),
        lambda stream: (
            stream.key_by("user").window(Tumbling.of_local_days("Europe/Berlin")).process(Sums(), RESULT)
        ),
        lambda stream: (
            stream.key_by("user")
            .window(Tumbling.of_local_months("Europe/Berlin"))
            .trigger(CountTrigger.of(5))
            .aggregate(n=count(), spent=sum_("spent"))
        ),
    ],
    ids=["aggregates", "functions", "counts"],
)
def test_a_job_that_stops_and_resumes_gives_the_rows_of_one_run(
    job: Callable[[LogStream], Any], cut: int, tmp_path: Path
) -> None:
    before = job(events(LOG.slice(0, cut))).execute(stop_with_checkpoint=tmp_path / "checkpoint").to_arrow()
    after = job(events(LOG.slice(cut))).execute(restore_from=tmp_path / "checkpoint").to_arrow()
    whole = job(events()).execute().to_arrow()
    assert sorted_rows(pa.concat_tables([before, after]), *whole.column_names) == sorted_rows(
        whole, *whole.column_names
    )


def test_windows_of_other_rules_are_refused_as_a_job_resumes(tmp_path: Path) -> None:
    berlin = Tumbling.of_local_days("Europe/Berlin")
    sums(events(LOG.slice(0, 1500)), berlin).execute(stop_with_checkpoint=tmp_path / "checkpoint").to_arrow()
    other = LocalEventTimeWindows(
        berlin.zone,
        berlin.period,
        berlin.start,
        berlin.first_weekday,
        Tumbling.of_local_days("Europe/London").rules,
    )
    with pytest.raises(Exception, match="time zone data on this machine have other rules for Europe/Berlin"):
        sums(events(LOG.slice(1500)), other).execute(restore_from=tmp_path / "checkpoint").to_arrow()


def test_timestamps_without_a_zone_are_refused_with_both_remedies(tmp_path: Path) -> None:
    naive = LOG.set_column(0, "ts", LOG["ts"].cast(pa.timestamp("ms")))
    pq.write_table(naive, tmp_path / "log.parquet")
    berlin = Tumbling.of_local_days("Europe/Berlin")
    with pytest.raises(
        SchemaError, match=r"no time zone.*schema=\{'ts': 'TIMESTAMP'\}.*of\(Time\.days\(1\)\)"
    ):
        sums(events(str(tmp_path / "log.parquet")), berlin).execute()
    with pytest.raises(SchemaError, match="no time zone"):
        events(naive).key_by("user").window(berlin).process(Sums(), RESULT).execute()
    integers = environment().from_event_log(naive, timestamp="ts", arrival="at", integer_times=True)
    with pytest.raises(SchemaError, match="no time zone"):
        sums(integers.assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks()), berlin).execute()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(6))
    log = environment().from_event_log(
        str(tmp_path / "log.parquet"), timestamp="ts", arrival="at", schema={"ts": "TIMESTAMP"}
    )
    mended = sums(log.assign_timestamps_and_watermarks(strategy), berlin).execute().to_arrow()
    assert sorted_rows(mended, *COLUMNS) == sorted_rows(sums(events(), berlin).execute().to_arrow(), *COLUMNS)


def test_timestamps_beyond_the_calendar_are_refused() -> None:
    log = pa.table({"ts": [2**55], "at": [0], "user": ["a"], "spent": [1]})
    with pytest.raises(DataError):
        sums(events(log), Tumbling.of_local_days("Europe/Berlin")).execute().to_arrow()
    with pytest.raises(DataError, match="years 2 to 9998"):
        Tumbling.of_local_days("Europe/Berlin").assign_windows(None, 2**55, None)  # type: ignore[arg-type]


def test_plans_say_how_the_days_lie() -> None:
    plan = sums(events(), Tumbling.of_local_days("Europe/Berlin")).explain()
    assert (
        "tumbling windows of a local day of Europe/Berlin, from 00:00 (23 to 25 h), allowed lateness" in plan
    )


def test_analyses_know_local_days() -> None:
    stream = sums(events(hours=1), Tumbling.of_local_days("Europe/Berlin"))
    result = stream.execute()
    lateness = stream.lateness()
    late = result.report.late
    assert f"{late:,}" in str(lateness) or late == lateness.late(Duration.of_hours(1))
    what_if = stream.what_if([WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(6))])
    assert what_if.late == (late, 0)
    assert "2026-10-24 22:00" in str(stream.why("3"))


@pytest.mark.parametrize(
    ("text", "windows"),
    [
        ("local-days:Europe/Berlin", Tumbling.of_local_days("Europe/Berlin")),
        ("local-months:Asia/Tokyo", Tumbling.of_local_months("Asia/Tokyo")),
    ],
)
def test_commands_take_local_windows(text: str, windows: LocalEventTimeWindows, tmp_path: Path) -> None:
    pq.write_table(LOG, tmp_path / "log.parquet")
    arguments = [
        "replay",
        str(tmp_path / "log.parquet"),
        "--timestamp",
        "ts",
        "--arrival",
        "at",
        "--key",
        "user",
    ]
    arguments += ["--window", text, "--out-of-orderness", "6h", "--aggregate", "n=count", "--aggregate"]
    arguments += [
        "spent=sum(spent)",
        "--output",
        str(tmp_path / "results"),
        "--engine",
        "embedded",
        "--quiet",
    ]
    assert main(arguments) in (0, None)
    found = pq.read_table(tmp_path / "results")
    assert sorted_rows(found, *COLUMNS) == sorted_rows(sums(events(), windows).execute().to_arrow(), *COLUMNS)
