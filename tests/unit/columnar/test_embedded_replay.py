"""Replays in one process, end to end."""

import threading
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from flinkcore.columnar.results.progress import ProgressMeter
from flinkcore.columnar.results.report import ReplayReport
from flinkcore.columnar.stages.window_stage import WindowStage
from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.common.split_origin import FILE
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count, first, last, max_by, mean, sum_
from flinkcore.errors import ConfigurationError, DataError, InternalError, LifecycleError, SchemaError

LATE = OutputTag("late")
BAD = OutputTag("bad")
STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(2))


def environment(parallelism: int = 1, interval: int = 1) -> StreamExecutionEnvironment:
    found = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    found.get_config().set_auto_watermark_interval(interval)
    return found


def table(*rows: tuple[Any, ...], names: str = "ts arrival key value") -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], names=names.split())


LOG = table(
    (1, 1, "a", 1), (5, 2, "a", 2), (12, 3, "b", 3), (3, 4, "a", 4), (25, 500, "a", 5), (2, 1000, "a", 6)
)


def windows(
    log: Any, env: StreamExecutionEnvironment | None = None, *, lateness: int = 0, **options: Any
) -> DataStream:
    settings = {"timestamp": "ts", "arrival": "arrival", "integer_times": True} | options
    return (
        (env or environment())
        .from_event_log(log, **settings)
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .allowed_lateness(lateness)
        .side_output_late_data(LATE)
        .aggregate(n=count(), total=sum_("value"))
    )


def rows(stream: DataStream) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stream.to_arrow().to_pylist()
    return sorted(found, key=str)


def test_windows_fire_when_the_watermark_passes_their_end() -> None:
    fired = [
        (row["key"], row["window_start"], row["n"], row["total"], row["watermark"])
        for row in rows(windows(LOG))
    ]
    assert sorted(fired) == [("a", 0, 2, 3, 9), ("a", 20, 1, 5, 2**63 - 1), ("b", 10, 1, 3, 22)]


def test_a_row_that_is_late_for_its_window_goes_to_the_side_output() -> None:
    result = windows(LOG).execute()
    assert result.get_side_output(LATE).to_arrow().column("value").to_pylist() == [4, 6]
    assert (result.report.windowed, result.report.late) == (4, 2)


def test_a_late_row_within_the_allowed_lateness_fires_its_window_again_at_once() -> None:
    fired = [
        (row["n"], row["late_firing"]) for row in rows(windows(LOG, lateness=5)) if row["window_start"] == 0
    ]
    assert fired == [(2, False), (3, True)]


def test_the_bounds_of_windows_have_the_type_of_the_event_time() -> None:
    zoned = LOG.set_column(0, "ts", LOG["ts"].cast(pa.timestamp("ms", "Europe/Berlin")))
    schema = windows(zoned, integer_times=False).to_arrow().schema
    assert schema.field("window_start").type == pa.timestamp("ms", "Europe/Berlin")
    assert windows(LOG).to_arrow().schema.field("window_end").type == pa.int64()
    bounds = windows(LOG, integer_times=False).to_arrow().column("window_end")
    assert bounds.type == pa.timestamp("ms", "UTC")
    assert bounds.cast(pa.int64()) == windows(LOG).to_arrow().column("window_end")
    dates = LOG.set_column(0, "ts", pa.array([1] * LOG.num_rows, pa.date32()))
    assert windows(dates, integer_times=False).to_arrow().schema.field("window_end").type == pa.timestamp(
        "ms"
    )


@pytest.mark.parametrize("ending", ["00Z", "00.000Z", "00.5+02:00", "00"])
def test_times_in_json_give_windows_of_one_type_however_they_are_written(tmp_path: Path, ending: str) -> None:
    (tmp_path / "log.jsonl").write_text(f'{{"ts": "2024-05-01T12:00:{ending}", "key": "a", "value": 1}}\n')
    found = windows(tmp_path / "log.jsonl", arrival=None, integer_times=False).to_arrow()
    assert found.schema.field("window_start").type == pa.timestamp("ms", "UTC")
    assert found.column("window_start").to_pylist()[0].year == 2024


def test_a_text_that_is_no_time_can_be_skipped() -> None:
    log = LOG.slice(0, 2).set_column(0, "ts", pa.array(["1970-01-01", "yesterday"]))
    result = windows(log, on_bad_row=BAD).execute()
    assert result.get_side_output(BAD).to_arrow().column("ts").to_pylist() == ["yesterday"]
    assert result.report.rejected == {"unreadable timestamp": 1}


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_results_do_not_depend_on_the_parallelism(parallelism: int) -> None:
    log = table(*[(i * 7 % 500, i // 2, f"k{i % 23}", i) for i in range(2000)])
    one, other = windows(log, lateness=9), windows(log, environment(parallelism), lateness=9)
    assert rows(other) == rows(one)
    assert str(other.execute().report) == str(one.execute().report)


def test_splits_out_of_order_with_each_other_are_merged_by_arrival() -> None:
    log = table(
        *[(i, i, "k", split * 100 + i, split) for split in (1, 0) for i in range(8)],
        names="ts arrival key value split",
    )
    stream = (
        environment()
        .from_event_log(log, timestamp="ts", integer_times=True, arrival="arrival", split="split")
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(values=collect("value"), first=first("value"), last=last("value"))
    )
    (row,) = rows(stream)
    assert row["values"] == [value for i in range(8) for value in (i, 100 + i)]
    assert (row["first"], row["last"]) == (0, 107)


def test_files_are_read_in_chunks_with_the_same_rows(tmp_path: Path) -> None:
    log = table(*[(i, i, f"k{i % 5}", i) for i in range(1000)])
    for part in range(3):
        pa.parquet.write_table(log.slice(part * 400, 400), tmp_path / f"{part}.parquet", row_group_size=64)
    assert rows(windows(str(tmp_path), environment(2))) == rows(windows(log))


def test_batches_stream_and_parquet_files_appear_whole(tmp_path: Path) -> None:
    stream = windows(LOG)
    batches = list(stream.to_batches())
    assert pa.Table.from_batches(batches).num_rows == 3
    report = stream.write_parquet(tmp_path / "out", {LATE: tmp_path / "late"})
    assert ds.dataset(tmp_path / "out").to_table().num_rows == 3
    assert ds.dataset(tmp_path / "late").to_table().column("value").to_pylist() == [4, 6]
    assert isinstance(report, ReplayReport)
    with pytest.raises(ConfigurationError, match="not empty"):
        stream.write_parquet(tmp_path / "out")


def test_a_failed_replay_leaves_no_files(tmp_path: Path) -> None:
    log = table((1, 1, "a", 1), (None, 2, "a", 2))
    with pytest.raises(DataError):
        windows(log).write_parquet(tmp_path / "out")
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_column_steps_run_before_the_key() -> None:
    env = environment()
    stream = (
        env.from_event_log(LOG, timestamp="ts", integer_times=True, arrival="arrival")
        .filter(pc.field("key") == "a")
        .assign_timestamps_and_watermarks(STRATEGY)
        .with_columns(double=pc.field("value") * 2)
        .filter(pc.field("value") != 5)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(total=sum_("double"))
    )
    result = stream.execute()
    # Without the row of key b, the watermark reaches the first window's end with the last but one event only.
    assert [(row["window_start"], row["total"]) for row in result.to_arrow().to_pylist()] == [(0, 14)]
    assert (result.report.filtered, result.report.late) == (2, 1)


def test_columns_cast_to_large_types_after_they_are_read_stay_large_in_the_results() -> None:
    large = LOG.append_column("text", pa.array(["x"] * len(LOG), pa.large_string()))
    stream = environment().from_event_log(large, timestamp="ts", arrival="arrival")
    casts = {name: pc.field(name).cast("large_string") for name in ("key", "text")}
    types = []
    for source in (stream, stream.with_columns(**casts)):
        windowed = source.assign_timestamps_and_watermarks(STRATEGY).key_by("key")
        results = windowed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(
            last=last("text"), all=collect("text")
        )
        schema = results.to_arrow().schema
        types.append([schema.field(name).type for name in ("key", "last", "all")])
    assert types == [[text, text, pa.list_(text)] for text in (pa.string(), pa.large_string())]


def test_composite_keys_may_have_nulls_inside() -> None:
    log = pa.table({"ts": [1, 2, 3], "x": ["a", None, None], "y": [1, 1, 1]})
    stream = (
        environment()
        .from_event_log(log, timestamp="ts")
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by("x", "y")
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
        .aggregate(n=count())
    )
    assert Counter((row["x"], row["n"]) for row in rows(stream)) == Counter([("a", 1), (None, 2)])


def test_sliding_windows_and_several_aggregates() -> None:
    stream = (
        environment()
        .from_event_log(LOG, timestamp="ts", integer_times=True, arrival="arrival")
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by("key")
        .window(SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5)))
        .aggregate(m=mean("value"), best=max_by("value", by="ts"))
    )
    assert [(r["window_start"], r["m"], r["best"]) for r in rows(stream) if r["key"] == "b"] == [
        (10, 3.0, 3),
        (5, 3.0, 3),
    ]


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("ts", r"^row 1 \(from 0\) of the table: null timestamp \(column 'ts'\)"),
        ("arrival", r"^row 1 \(from 0\) of the table: null arrival \(column 'arrival'\)"),
        ("key", r"^the table \(rows 0-1\): key column 'key' is null at position 1;"),
    ],
)
def test_a_null_fails_by_default_and_names_row_and_column(column: str, told: str) -> None:
    values = {"ts": [1, None], "arrival": [1, None], "key": ["a", None], "value": [1, 2]}
    good = {"ts": [1, 2], "arrival": [1, 2], "key": ["a", "a"], "value": [1, 2]}
    with pytest.raises(DataError, match=told):
        rows(windows(pa.table(good | {column: values[column]})))


def test_bad_rows_can_be_dropped_and_counted() -> None:
    log = table((1, 1, "a", 1), (None, 2, "a", 2), (3, None, "a", 3), (4, 4, None, 4))
    report = windows(log, on_bad_row="drop").execute().report
    assert (report.windowed, report.rejected.total()) == (1, 3)


def test_bad_rows_can_go_to_a_side_output_with_the_reason() -> None:
    log = table((1, 1, "a", 1), (None, 2, "a", 2), (3, None, "a", 3), (4, 4, None, 4))
    result = windows(log, on_bad_row=BAD).execute()
    refused = {row["value"]: row["reason"] for row in result.get_side_output(BAD).to_arrow().to_pylist()}
    assert refused.keys() == {2, 3, 4}
    assert all("null" in reason for reason in refused.values())
    assert result.to_arrow().num_rows == 1


ABSURD = table(
    (1, 1, "a", 1), (2**63 - 2, 2, "a", 2), (5, 3, "b", 3), (-(2**63) + 1, 4, "b", 4), (30, 5, "a", 5)
)


@pytest.mark.parametrize(
    ("time_type", "arrival"),
    [
        (pa.int64(), 2**61 + 1),
        (pa.int64(), -(2**61) - 1),
        (pa.uint64(), 2**62),
        (pa.timestamp("ms"), 2**63 - 1),
    ],
)
def test_arrivals_beyond_all_clocks_follow_the_policy(time_type: pa.DataType, arrival: int) -> None:
    log = table((1, 1, "a", 1), (2, 2, "a", 2), (3, 3, "a", 3))
    good = log.filter(pc.field("value") != 2)
    log = log.set_column(1, "arrival", pa.array([1, arrival, 3]).cast(time_type))
    told = rf"^row 1 \(from 0\) of the table: arrival out of range \(column 'arrival'\): {arrival} .* the unit of the"
    with pytest.raises(DataError, match=told):
        rows(windows(log))
    assert dict(windows(log, on_bad_row="drop").execute().report.rejected) == {"arrival out of range": 1}
    result = windows(log, on_bad_row=BAD).execute()
    assert rows(windows(log, on_bad_row=BAD)) == rows(windows(good))
    refused = result.get_side_output(BAD).to_arrow().select(["value", "reason"])
    assert refused.to_pylist() == [{"value": 2, "reason": "arrival out of range"}]


def test_a_sum_of_decimals_that_does_not_fit_names_its_column_and_its_window() -> None:
    most = pa.scalar(10**37 - 1, pa.decimal128(38, 0))
    log = pa.table({"ts": [1, 12, 13] * 6, "key": ["a", "b", "b"] * 6, "price": [most] * 18})
    stream = (
        environment()
        .from_event_log(log, timestamp="ts")
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(n=count(), spent=sum_("price"))
    )
    with pytest.raises(
        DataError,
        match=r"sum of column 'price' over the window \[10, 20\) ms does not fit .* decimal128\(38, 0\)",
    ):
        stream.to_arrow()


def test_a_timestamp_whose_window_would_overflow_fails_and_names_the_row() -> None:
    with pytest.raises(
        DataError, match=r"row 1 \(from 0\) .*timestamp out of range \(column 'ts'\).*on_bad_row"
    ):
        rows(windows(ABSURD))


@pytest.mark.parametrize("parallelism", [1, 2])
def test_timestamps_whose_windows_would_overflow_follow_the_policy(parallelism: int) -> None:
    good = ABSURD.filter(pc.field("value").isin([1, 3, 5]))
    report = windows(ABSURD, environment(parallelism), on_bad_row="drop").execute().report
    assert (report.windowed, dict(report.rejected)) == (3, {"timestamp out of range": 2})
    result = windows(ABSURD, environment(parallelism), on_bad_row=BAD).execute()
    assert rows(windows(ABSURD, on_bad_row=BAD)) == rows(windows(good))
    refused = result.get_side_output(BAD).to_arrow()
    assert refused.column("value").to_pylist() == [2, 4]
    assert set(refused.column("reason").to_pylist()) == {"timestamp out of range"}


def test_sessions_take_every_timestamp_that_the_gap_fits_after() -> None:
    log = table((-(2**63) + 1, 1, "a", 1), (2**63 - 11, 2, "a", 2), (2**63 - 10, 3, "a", 3))
    result = (
        environment()
        .from_event_log(log, timestamp="ts", integer_times=True, arrival="arrival", on_bad_row=BAD)
        .assign_timestamps_and_watermarks(STRATEGY)
        .key_by("key")
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
        .aggregate(n=count())
        .execute()
    )
    assert sorted(result.to_arrow().column("window_end").to_pylist()) == [-(2**63) + 11, 2**63 - 1]
    assert result.get_side_output(BAD).to_arrow().column("value").to_pylist() == [3]


SECONDS = table((1_700_000_000, 1_700_000_001, "a", 1), (1_700_000_005, 1_700_000_006, "a", 2))
SECOND_WINDOWS = TumblingEventTimeWindows.of(Time.seconds(1))


def test_no_message_names_a_column_that_the_user_does_not_know() -> None:
    stream = environment().from_event_log(SECONDS, timestamp=pc.field("ts") + 1)
    job = stream.assign_timestamps_and_watermarks(STRATEGY).key_by("key").window(SECOND_WINDOWS)
    with pytest.raises(
        ConfigurationError, match=r"expression 'add_checked\(ts, 1\)' was read as milliseconds"
    ):
        job.aggregate(n=count()).to_arrow()
    nulls = pa.table({"ts": [None, 1], "key": ["a", "b"]})
    stream = environment().from_event_log(nulls, timestamp=pc.field("ts") + 1, arrival=pc.field("ts"))
    job = stream.assign_timestamps_and_watermarks(STRATEGY).key_by("key").window(SECOND_WINDOWS)
    with pytest.raises(DataError, match=r"null timestamp \(column 'add_checked\(ts, 1\)'\)"):
        job.aggregate(n=count()).to_arrow()


def test_an_arrival_that_goes_back_is_counted_and_raised_to_the_running_maximum() -> None:
    log = table((1, 10, "a", 1), (20, 5, "a", 2), (2, 11, "a", 3))
    report = windows(log).execute().report
    assert (report.arrival_regressions, report.late) == (1, 1)
    assert "arrivals went back 1 time from one event to the next of its split" in str(report)


IN_ORDER = [(arrival, arrival, "a", 1) for arrival in range(0, 1_990, 10)]


@pytest.mark.parametrize("split", [None, "split"])
@pytest.mark.parametrize("gone_back", [2, 3])
def test_arrivals_that_go_back_are_warned_of_if_they_are_more_than_one_in_a_hundred(
    gone_back: int, split: str | None
) -> None:
    back = {50 * n: (500 * n, 500 * n - 15, "a", 1) for n in range(1, gone_back + 1)}
    events = table(
        *[back.get(number, event) for number, event in enumerate(IN_ORDER)], (2_000, 2_000, "a", 1)
    )
    events = events.append_column("split", pa.array(["x"] * len(events)))
    job = windows(events, split=split)
    if gone_back == 2:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert job.execute().report.warnings == []
        return
    advice = "or name split= .*--split-per-file" if split is None else "within each 'split'"
    with pytest.warns(UserWarning, match=f"arrivals go back: more than 1 % of the 200 events .*{advice}"):
        report = job.execute().report
    assert report.arrival_regressions == gone_back
    assert len(report.warnings) == 1
    assert "warning: arrivals go back" in str(report)


def test_files_one_behind_the_other_that_were_written_at_once_are_warned_of_unless_they_are_splits(
    tmp_path: Path,
) -> None:
    pq.write_table(table(*IN_ORDER), tmp_path / "1.parquet")
    pq.write_table(table(*IN_ORDER[:-1]), tmp_path / "2.parquet")
    with pytest.warns(UserWarning, match="arrivals go back"):
        report = windows(tmp_path).execute().report
    assert report.arrival_regressions == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert windows(tmp_path, split=FILE).execute().report.warnings == []


@pytest.mark.parametrize("setting", ["timestamp", "arrival", "split"])
def test_a_missing_column_is_named_with_those_there_are(setting: str) -> None:
    with pytest.raises(SchemaError, match=r"nowhere.*ts"):
        windows(LOG, **{setting: "nowhere"}).execute()


def test_a_key_of_an_unsupported_type_is_named() -> None:
    log = pa.table({"ts": [1], "arrival": [1], "key": [[1, 2]], "value": [1]})
    with pytest.raises(SchemaError, match="key"):
        rows(windows(log))


def test_an_empty_log_gives_an_empty_result_with_its_columns() -> None:
    result = windows(LOG.slice(0, 0)).to_arrow()
    assert result.num_rows == 0
    assert result.schema.names == [
        "key",
        "window_start",
        "window_end",
        "n",
        "total",
        "late_firing",
        "watermark",
    ]


def test_an_unknown_side_output_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="late"):
        windows(LOG).execute().get_side_output(OutputTag("other"))


def test_the_report_accounts_for_every_event() -> None:
    report = ReplayReport(events_read=3, windowed=1, late=1)
    with pytest.raises(InternalError, match="3 events were read, but 2"):
        report.check()


def test_progress_tells_events_event_time_and_what_is_left() -> None:
    seen: list[Any] = []
    windows(table(*[(i, i, "a", i) for i in range(10)])).execute(progress=seen.append).to_arrow()
    assert (seen[-1].events_done, seen[-1].events_total, seen[-1].seconds_left) == (10, 10, 0)
    assert "event time" in str(seen[-1])


@pytest.mark.parametrize("parallelism", [1, 3])
def test_progress_is_told_in_the_thread_that_takes_the_rows(
    parallelism: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProgressMeter, "INTERVAL_SECONDS", 0)
    threads = set()
    stream = windows(table(*[(i, i, f"k{i}", i) for i in range(5000)]), environment(parallelism))
    stream.execute(progress=lambda state: threads.add(threading.current_thread())).to_arrow()
    assert threads == {threading.current_thread()}


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise DataError(f"in {threading.current_thread().name}")

    monkeypatch.setattr(WindowStage, "process", fails)
    with pytest.raises(DataError, match="in flinkcore-"):
        rows(windows(LOG, environment(2)))


def test_a_result_that_is_not_read_to_its_end_stops_its_threads() -> None:
    batches = windows(table(*[(i, i, f"k{i}", i) for i in range(5000)]), environment(2)).to_batches()
    next(batches)
    batches.close()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("flinkcore-")]


def test_a_refused_side_output_directory_leaves_the_results_directory_usable(tmp_path: Path) -> None:
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "old").write_text("")
    stream = windows(LOG)
    with pytest.raises(ConfigurationError, match="not empty"):
        stream.write_parquet(tmp_path / "out", {LATE: tmp_path / "late"})
    stream.write_parquet(tmp_path / "out")


def test_a_rejected_row_tells_its_reason_where_the_log_has_a_column_of_that_name() -> None:
    log = table((1, "a", "x"), (None, "a", "y"), (3, None, "z"), names="ts key reason")
    result = (
        environment()
        .from_event_log(log, timestamp="ts", on_bad_row=BAD)
        .assign_timestamps_and_watermarks(STRATEGY)
        .select("key")
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(n=count())
        .execute()
    )
    reasons = result.get_side_output(BAD).to_arrow().column("reason").to_pylist()
    assert reasons == ["null timestamp", "null key 'key'"]


def test_files_that_may_be_cut_are_in_the_report_and_warned_of(tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"{number:02}.csv").write_text(f"ts,arrival,key,value\n{number},{number},a,1")
    (tmp_path / "99.csv").touch()
    with pytest.warns(UserWarning, match=r"ends without a line break|more files") as warned:
        report = windows(tmp_path).execute().report
    assert [str(warning.message) for warning in warned] == report.warnings
    assert report.events_read == 25
    assert [text.split(" ")[0] for text in report.warnings] == [
        *(f"{tmp_path}/{number:02}.csv" for number in range(20)),
        "6",
    ]
    assert "00.csv ends without a line break" in str(report)


def one_row() -> Any:
    log = StreamExecutionEnvironment().from_event_log(
        pa.table({"key": [1], "ts": [1]}), timestamp="ts", arrival="ts"
    )
    stream = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    return stream.key_by("key").window(TumblingEventTimeWindows(10)).aggregate(n=count()).execute()


def test_two_threads_that_take_batches_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    result = one_row()
    is_amid, go_on = threading.Event(), threading.Event()

    def slow_batches(tag_id: str | None) -> Any:
        is_amid.set()
        go_on.wait(10)
        yield pa.RecordBatch.from_pydict({"n": [1]})

    monkeypatch.setattr(result, "_stream", slow_batches)
    batches = result.to_batches()
    taken: list[Any] = []
    other = threading.Thread(target=lambda: taken.extend(batches))
    other.start()
    assert is_amid.wait(10)
    for call in (lambda: next(batches), batches.close):
        with pytest.raises(LifecycleError, match="another thread is taking a batch"):
            call()
    go_on.set()
    other.join()
    assert len(taken) == 1


@pytest.mark.parametrize("path", ["", None, 3])
def test_what_is_no_path_for_results_is_refused(path: object) -> None:
    with pytest.raises(
        ConfigurationError, match="results are written to a directory, given by its path, not to"
    ):
        one_row().write_parquet(path)


def test_a_report_of_one_of_each_is_in_the_singular() -> None:
    result = one_row()
    assert str(result.report).startswith("1 event from 1 split,")
    assert "1 result: 1 on time" in str(result.report)
