"""Logs that are cut at a time of arrival, by until= and by the checkpoint of the run before."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.sampling import in_turn

import flinkcore as fc
from flinkcore._internal.arrow.instants import instant_ms
from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import PARTITION, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import collect
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError
from flinkcore.log import event_log
from flinkcore.log.event_log import EventLog
from flinkcore.log.sources.file_chunks import FileChunk

REJECTED = OutputTag("rejected")
DAY_MS = 978_480_000_000
"""3 January 2001."""


def job(log: Any, until: Any = None, **settings: Any) -> Any:
    settings = {"timestamp": "ts", "arrival": "at", "split": "split"} | settings
    env = StreamExecutionEnvironment.get_execution_environment()
    events = env.from_event_log(log, until=until, **settings)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3))
    keyed = events.assign_timestamps_and_watermarks(strategy).key_by("split")
    return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(ids=collect("id"))


def table(*splits: list[int]) -> pa.Table:
    """A log of splits with these arrivals."""
    rows = [(at, at, number) for number, split in enumerate(splits) for at in split]
    at, ts, split = zip(*rows, strict=True)
    return pa.table({"ts": ts, "at": at, "split": split, "id": range(len(rows))})


def ids(result: Any) -> list[int]:
    return sorted(number for row in result.to_arrow().to_pylist() for number in row["ids"])


@pytest.mark.parametrize(
    ("instant", "unit", "expected"),
    [
        (datetime(2001, 1, 3), None, DAY_MS),
        (datetime(2001, 1, 3, 1, tzinfo=timezone(timedelta(hours=1))), None, DAY_MS),
        (datetime(2001, 1, 3, 0, 0, 0, 1_999), None, DAY_MS + 1),
        (date(2001, 1, 3), None, DAY_MS),
        ("2001-01-03", None, DAY_MS),
        ("2001-01-03T00:00:00Z", "s", DAY_MS),
        ("2001-01-03T01:00:00+01:00", None, DAY_MS),
        (DAY_MS, None, DAY_MS),
        (DAY_MS // 1000, "s", DAY_MS),
        (str(DAY_MS * 1000 + 1), "us", DAY_MS),
        (-1, "ns", -1),
    ],
)
def test_a_time_is_a_datetime_text_or_a_number_and_utc_without_a_zone(
    instant: Any, unit: Any, expected: int
) -> None:
    assert instant_ms(instant, "until=", unit) == expected


@pytest.mark.parametrize(
    ("until", "settings", "error", "message"),
    [
        ("noon", {}, ConfigurationError, "until= 'noon' is not a time: write ISO 8601"),
        (True, {}, ArgumentTypeError, "until= is a point in time"),
        (1.5, {}, ArgumentTypeError, "not 1.5"),
        (2**62, {}, ConfigurationError, "further than 2\\*\\*61 ms"),
        (5, {"arrival": None}, ConfigurationError, "no arrival column: name it with arrival="),
        (5, {"arrival_unit": "hours"}, ConfigurationError, "arrival_unit is one of"),
    ],
)
def test_what_is_no_time_of_arrival_is_refused(
    until: Any, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        job(table([1]), until, **settings)


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_a_naive_datetime_cuts_a_column_of_timestamps_at_that_time_in_utc(zone: str | None) -> None:
    log = table([0, 1, 2], [0, 5])
    for column in ("ts", "at"):
        moments = pa.array([DAY_MS + ms for ms in log[column].to_pylist()], pa.timestamp("ms", zone))
        log = log.set_column(log.schema.get_field_index(column), column, moments)
    result = job(log, datetime(2001, 1, 3, 0, 0, 0, 2_000)).execute()
    assert ids(result) == [0, 1, 3]
    assert (result.report.events_read, result.report.after_cut) == (3, 2)


def test_what_arrives_later_waits_and_the_report_and_the_plan_tell_the_cut(tmp_path: Path) -> None:
    log = table([1, 2, 30], [3, 40, 50])
    stream = job(log, 30)
    assert "what arrives before 1970-01-01 00:00:00.030Z" in stream.explain()
    first = stream.execute(stop_with_checkpoint=tmp_path / "cut")
    assert ids(first) == []
    assert "cut at the arrival 1970-01-01 00:00:00.030Z: 3 rows left for the next run" in str(first.report)
    second = job(log).execute(restore_from=tmp_path / "cut")
    assert ids(second) == [0, 1, 2, 3, 4, 5]
    assert "resumed at the arrival 1970-01-01 00:00:00.030Z: 3 rows before it not taken again" in str(
        second.report
    )
    assert first.report.events_read + second.report.events_read == 6


def test_a_log_in_files_goes_on_with_the_rest_of_files_that_end_at_different_times(tmp_path: Path) -> None:
    for name, log in {
        "1/a": table([1, 2, 45]),
        "1/b": table([], [3, 20]),
        "2/b": table([], [38, 41]),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(log, f"{tmp_path / name}.parquet", row_group_size=1)
    job(str(tmp_path / "1"), 35).execute(stop_with_checkpoint=tmp_path / "cut").to_arrow()
    second = job([tmp_path / "1", tmp_path / "2"]).execute(restore_from=tmp_path / "cut")
    assert len(ids(second)) + second.report.late == 3 + 4
    assert second.report.before_cut == 4


def test_without_a_cut_the_error_leads_to_until(tmp_path: Path) -> None:
    job(table([1, 9], [3])).execute(stop_with_checkpoint=tmp_path / "end").to_arrow()
    with pytest.raises(
        DataError, match="give the run before until=, a time of arrival that all of them reach"
    ):
        job(table([], [5])).execute(restore_from=tmp_path / "end").to_arrow()


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ([[1, 2, 3], [3, 30]], "that the run before did not take: 3 rows, .* that run took 2"),
        (
            [[1, 9], [3, 30]],
            "the last of which arrived at 9 ms, where that run took 2, the last of which arrived at 2",
        ),
        ([[], [3, 30], [4]], "split 2 has rows that arrived before the cut .* that run took none"),
    ],
)
def test_rows_that_came_to_the_log_after_the_run_that_should_have_taken_them_are_an_error(
    tmp_path: Path, second: list[list[int]], message: str
) -> None:
    job(table([1, 2], [3, 30]), 20).execute(stop_with_checkpoint=tmp_path / "cut").to_arrow()
    with pytest.raises(DataError, match=message):
        job(table(*second)).execute(restore_from=tmp_path / "cut").to_arrow()


@pytest.mark.parametrize("chunks", [1, 4])
def test_arrivals_of_a_split_that_go_back_over_the_cut_are_an_error(tmp_path: Path, chunks: int) -> None:
    arrivals = [1, 25, 5, 30]
    for number in range(chunks):
        part = arrivals[number * 4 // chunks : (number + 1) * 4 // chunks]
        pq.write_table(table(part), tmp_path / f"{number}.parquet")
    with pytest.raises(
        DataError, match=r"arrived at 5 ms, before the cut at 20 ms, but lies after .* at 25 ms"
    ):
        job(str(tmp_path), 20).execute().to_arrow()
    by_arrival = job(str(tmp_path), 20, position="id").execute()
    assert by_arrival.report.events_read == 2


def test_a_row_whose_arrival_cannot_be_read_goes_with_the_row_before_it(tmp_path: Path) -> None:
    arrivals = [None, "1", "x", "25", None]
    lines = [{"ts": 5, "at": at, "split": 0, "id": number} for number, at in enumerate(arrivals)]
    (tmp_path / "log.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    settings: dict[str, Any] = {"on_bad_row": REJECTED, "schema": {"at": "string"}, "arrival_unit": "ms"}
    first = job(str(tmp_path / "log.json"), 20, **settings).execute(stop_with_checkpoint=tmp_path / "cut")
    rejected = first.get_side_output(REJECTED).to_arrow().to_pylist()
    assert [(row["id"], row["record"]["row"]) for row in rejected] == [(0, 0), (2, 2)]
    second = job(str(tmp_path / "log.json"), **settings).execute(restore_from=tmp_path / "cut")
    rejected = second.get_side_output(REJECTED).to_arrow().to_pylist()
    assert [(row["id"], row["record"]["row"]) for row in rejected] == [(4, 4)]
    assert (first.report.events_read, second.report.events_read) == (3, 2)


def test_a_run_is_not_cut_before_the_one_before_it(tmp_path: Path) -> None:
    job(table([1, 30]), 20).execute(stop_with_checkpoint=tmp_path / "cut").to_arrow()
    with pytest.raises(ConfigurationError, match="the checkpoint has all that arrived before 20 ms"):
        job(table([1, 30]), 19).execute(restore_from=tmp_path / "cut").to_arrow()
    again = job(table([1, 30]), 20).execute(restore_from=tmp_path / "cut")
    assert again.report.events_read == 0


def test_the_logs_of_a_job_with_a_checkpoint_are_cut_together(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    settings: dict[str, Any] = {"timestamp": "ts", "arrival": "at", "split": "split"}
    logs = [env.from_event_log(table([1, 2]), until=until, **settings) for until in (2, None)]
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    first, second = (log.assign_timestamps_and_watermarks(strategy) for log in logs)
    union = first.union(second).key_by("split").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    with pytest.raises(ConfigurationError, match="until= is 2 ms, none: give all of them the same"):
        union.aggregate(ids=collect("id")).execute(stop_with_checkpoint=tmp_path / "cut")
    elements = first.elements().union(second.elements())
    with pytest.raises(ConfigurationError, match="until= is 2 ms, none: give all of them the same"):
        list(elements.execute_and_collect(stop_with_checkpoint=tmp_path / "cut"))


@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.string()])
def test_row_groups_outside_the_cut_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: pa.DataType
) -> None:
    monkeypatch.setattr(event_log, "_CUT_CHUNK_BYTES", 1)

    def write(name: str, log: pa.Table) -> None:
        at = log["at"] if kind == pa.int64() else log["at"].cast(pa.timestamp("ms")).cast(kind)
        (tmp_path / "log" / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(log.set_column(1, "at", at), tmp_path / "log" / name, row_group_size=10)

    for split in range(2):
        write(f"partition={split}/0.parquet", table([DAY_MS + ms for ms in range(split, 200, 2)]))
    read: list[int] = []
    whole = FileChunk._read

    def reading(self: FileChunk, *given: Any) -> Any:
        read.append(self.index)
        return whole(self, *given)

    monkeypatch.setattr(FileChunk, "_read", reading)
    settings: dict[str, Any] = {"split": PARTITION}
    first = job(str(tmp_path / "log"), DAY_MS + 65, **settings).execute(stop_with_checkpoint=tmp_path / "cut")
    first.to_arrow()
    assert (first.report.events_read, first.report.after_cut) == (65, 135)
    has_statistics = kind != pa.string()
    assert len(read) == (2 * 2 * 4 if has_statistics else 2 * 10 + 2 * 4)
    read.clear()
    second = job(str(tmp_path / "log"), **settings).execute(restore_from=tmp_path / "cut")
    second.to_arrow()
    assert (second.report.events_read, second.report.before_cut) == (135, 65)
    assert len(read) == (2 * 2 * 7 if has_statistics else 2 * 10 + 2 * 7)
    write("partition=1/1.parquet", table([DAY_MS + 64]))
    with pytest.raises(DataError, match="before the cut"):
        job(str(tmp_path / "log"), **settings).execute(restore_from=tmp_path / "cut").to_arrow()


def test_the_arrival_at_a_cut_may_be_a_nested_field(tmp_path: Path) -> None:
    flat = table([DAY_MS + ms for ms in range(0, 100, 2)], [DAY_MS + ms for ms in range(1, 100, 2)])
    kafka = pa.StructArray.from_arrays([flat["at"].combine_chunks()], ["at"])
    pq.write_table(
        flat.drop(["at"]).append_column("kafka", kafka), tmp_path / "log.parquet", row_group_size=10
    )
    cut = job(str(tmp_path / "log.parquet"), DAY_MS + 30, arrival="kafka.at").execute()
    assert sorted(ids(cut)) == ids(job(flat, DAY_MS + 30))
    assert (cut.report.events_read, cut.report.after_cut) == (30, 70)


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize(
    ("stored", "given"),
    [
        (pa.int64(), pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), pa.int64()),
        (pa.timestamp("ms"), pa.timestamp("ns", "Europe/Berlin")),
        (pa.timestamp("us"), pa.timestamp("ms")),
        (pa.timestamp("us"), pa.string()),
        (pa.int64(), pa.timestamp("s")),
    ],
)
def test_row_groups_are_cut_by_arrivals_of_the_given_type_and_not_of_that_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: pa.DataType, given: pa.DataType, is_nested: bool
) -> None:
    log = table([DAY_MS + 1_000 * number for number in range(40)])
    is_relabelled = pa.types.is_integer(stored) or pa.types.is_integer(given)
    unit = given.unit if pa.types.is_timestamp(given) else stored.unit
    arrivals = log["at"].cast(pa.timestamp("ms")).cast(pa.timestamp(unit) if is_relabelled else stored)
    arrivals = arrivals.cast(stored).combine_chunks()
    column, name = (
        (pa.StructArray.from_arrays([arrivals], ["at"]), "kafka") if is_nested else (arrivals, "at")
    )
    arrival = "kafka.at" if is_nested else "at"
    pq.write_table(log.drop(["at"]).append_column(name, column), tmp_path / "log.parquet", row_group_size=5)
    settings: dict[str, Any] = {"arrival": arrival, "schema": {arrival: given}, "split": None}
    if pa.types.is_integer(given):
        settings["arrival_unit"] = unit
    counts = []
    for chunk_bytes in (1 << 20, 1):
        monkeypatch.setattr(event_log, "_CUT_CHUNK_BYTES", chunk_bytes)
        cut = job(str(tmp_path / "log.parquet"), datetime(2001, 1, 3, 0, 0, 12), **settings).execute()
        counts.append((len(ids(cut)), cut.report.after_cut))
    assert counts == [(12, 28)] * 2


def test_statistics_of_a_field_do_not_cut_a_file_that_lacks_the_column_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "_CUT_CHUNK_BYTES", 1)
    log = table([DAY_MS + number for number in range(10)])
    flat = log.rename_columns(["ts", "kafka.at", "split", "id"])
    kafka = pa.StructArray.from_arrays([log["at"].combine_chunks()], ["at"])
    pq.write_table(flat, tmp_path / "0.parquet")
    pq.write_table(log.drop(["at"]).append_column("kafka", kafka), tmp_path / "1.parquet")
    settings: dict[str, Any] = {"arrival": "kafka.at", "split": None, "on_bad_row": "drop"}
    cut = job(str(tmp_path), DAY_MS, **settings).execute()
    cut.to_arrow()
    assert (cut.report.after_cut, cut.report.rejected) == (10, {"null arrival": 10})


UNREAD = [(), (0,), (0, 1, 2, 3, 4, 5), (4, 5), (9, 10, 11, 12, 19), (15, 16, 17, 18, 19, 20), range(20)]
"""Rows of a log whose arrivals cannot be read: at its start, that of row groups of 5, or all of one or of the log."""


@pytest.mark.parametrize(
    ("unread", "kind"),
    in_turn(UNREAD, ["int64", "string", "nested", "decoded", "table", "shipped table"]),
    ids=str,
)
def test_a_row_without_an_arrival_goes_to_the_same_run_however_the_log_is_cut_into_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, unread: Iterable[int]
) -> None:
    cut_ms, rows = 10, 24
    log = table(list(range(rows)))
    settings: dict[str, Any] = {"split": None, "on_bad_row": REJECTED}
    at: list[Any] = [None if number in unread else number for number in range(rows)]
    if kind == "string":
        column = pa.array(["x" if ms is None else str(ms) for ms in at])
        settings["arrival_unit"] = "ms"
    elif kind == "nested":
        column, settings["arrival"] = pa.array([{"at": ms} for ms in at]), "at.at"
    elif kind == "decoded":
        column, settings["arrival"] = pa.array([json.dumps({"at": ms}) for ms in at]), "at.at"
        settings["decode"] = {"at": fc.json_values("at BIGINT")}
    else:
        column = pa.array(at, pa.int64())
    log = log.set_column(1, "at", column)
    data: Any = log
    if "table" not in kind:
        data = str(tmp_path / "log.parquet")
        pq.write_table(log, data, row_group_size=5)
    if kind == "shipped table":
        whole = EventLog.chunks
        monkeypatch.setattr(
            EventLog,
            "chunks",
            lambda self, target, packing=None: pickle.loads(pickle.dumps(whole(self, target))),
        )
    known = [number for number in range(rows) if number not in unread]
    expected = set()
    for number in unread:
        before = [each for each in known if each < number] or known[:1]
        if before and before[-1] < cut_ms:
            expected.add(number)

    def rejected(chunk_bytes: int, *given: Any, **checkpoint: Any) -> list[int]:
        monkeypatch.setattr(event_log, "_CUT_CHUNK_BYTES", chunk_bytes)
        result = job(data, *given, **settings).execute(**checkpoint)
        return [row["id"] for row in result.get_side_output(REJECTED).to_arrow().to_pylist()]

    for number, first in enumerate((1 << 20, 200, 1)):
        stop = tmp_path / f"cut {number}"
        by_first = rejected(first, cut_ms, stop_with_checkpoint=stop)
        by_second = [rejected(second, restore_from=stop) for second in (1, 1 << 20)]
        if known:
            assert (set(by_first), len(by_first)) == (expected, len(expected))
            assert by_second == [[each for each in unread if each not in expected]] * 2
        else:
            assert [by_first, *by_second] == [list(unread)] * 3
