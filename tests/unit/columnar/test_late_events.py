"""A replay that loses many events as late warns of it, with the likely cause and the line that mends it."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import FILE, OutputTag, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.errors import LateEventsWarning

DAY_MS = 1_704_067_200_000  # 2024-01-01
BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4))


def _log(seconds: list[float], **columns: Any) -> pa.Table:
    times = pa.array([int(DAY_MS + 1000 * each) for each in seconds], pa.timestamp("ms", "UTC"))
    return pa.table({"ts": times, "user": ["u"] * len(seconds), **columns})


def _stream(log: Any, strategy: Any = BOUNDED, late: OutputTag | None = None, **settings: Any) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_event_log(log, timestamp="ts", **settings).assign_timestamps_and_watermarks(strategy)
    windows = events.key_by("user").window(TumblingEventTimeWindows.of(Time.seconds(10)))
    return (windows if late is None else windows.side_output_late_data(late)).aggregate(n=count())


def _warnings(run: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(each.message) for each in caught if each.category is LateEventsWarning]


def _warning(log: Any, *args: Any, **settings: Any) -> str:
    result = _stream(log, *args, **settings).execute()
    (warning,) = _warnings(result.to_arrow)
    assert warning in result.report.warnings
    return warning


def _in_order(n: int = 1000) -> list[float]:
    return [float(second) for second in range(n)]


def test_a_log_in_order_warns_of_nothing() -> None:
    assert _warnings(_stream(_log(_in_order())).execute().to_arrow) == []


def test_a_warning_begins_at_more_than_the_share_that_is_set() -> None:
    seconds = [*_in_order(198), 0.0, 1.0]  # 2 of 200 are late
    stream = _stream(_log(seconds), rate=1.0)
    assert _warnings(stream.execute().to_arrow) == []
    config = stream._environment.get_config()
    config.set_late_share_warning(0.0099)
    (warning,) = _warnings(stream.execute().to_arrow)
    assert warning.startswith("1 % of the events are late and are dropped: 2 of 200. ")
    config.set_late_share_warning(1)
    assert _warnings(stream.execute().to_arrow) == []


def test_the_share_is_a_setting_with_a_key() -> None:
    stream = _stream(_log(list(reversed(_in_order()))))
    stream._environment.configure({"flinkcore.late-share-warning": "1"})
    assert _warnings(stream.execute().to_arrow) == []


def test_every_way_to_take_the_results_warns(tmp_path: Path) -> None:
    stream = _stream(_log(list(reversed(_in_order()))))
    assert len(_warnings(lambda: list(stream.execute().to_batches()))) == 1
    assert len(_warnings(lambda: stream.execute().write_parquet(tmp_path / "results"))) == 1
    assert len(_warnings(lambda: stream.execute().report)) == 1
    assert len(_warnings(stream.to_arrow)) == 1


def test_actions_on_one_result_warn_once(tmp_path: Path) -> None:
    result = _stream(_log(list(reversed(_in_order())))).execute()

    def all_actions() -> None:
        list(result.to_batches())
        result.write_parquet(tmp_path / "results")
        result.show()

    assert len(_warnings(all_actions)) == 1
    assert len(result.report.warnings) == 1
    assert "late and are dropped" in str(result.report)
    assert "late and are dropped" not in result.report.without_warnings


def test_the_warning_points_at_the_line_of_the_user() -> None:
    stream = _stream(_log(list(reversed(_in_order()))))
    with pytest.warns(LateEventsWarning) as caught:
        stream.to_arrow()
    assert caught[0].filename == __file__


def test_late_events_of_a_side_output_are_warned_of_too() -> None:
    warning = _warning(_log(list(reversed(_in_order()))), late=OutputTag("too late"))
    assert "are late and go to the side output 'too late': 9" in warning


def test_rows_out_of_order_without_arrival_are_the_cause() -> None:
    warning = _warning(pd.DataFrame(_log(list(reversed(_in_order()))).to_pandas()))
    assert "The log has no arrival=" in warning
    assert (
        "position='ts' (--position ts), which takes the events in the order of their event times, so"
        in warning
    )
    assert "so that none is late" in warning
    result = _stream(_log(list(reversed(_in_order()))), position="ts").execute()
    assert _warnings(result.to_arrow) == []
    assert result.report.late == 0


def test_the_column_of_a_partition_is_named() -> None:
    seconds = [*_in_order(500), *_in_order(500)]
    log = _log(seconds, Kafka_Partition=[0] * 500 + [1] * 500)
    warning = _warning(log)
    assert "give split='Kafka_Partition' (--split Kafka_Partition)" in warning
    assert _warnings(_stream(log, split="Kafka_Partition").execute().to_arrow) == []


def test_sources_in_one_split_are_told_apart_by_some_column() -> None:
    arrivals = [float(second) for second in range(1000)]
    seconds = [second - 300 * (at % 2) for at, second in enumerate(arrivals)]
    log = _log(seconds, at=_log(arrivals)["ts"], source=[at % 2 for at in range(1000)])
    warning = _warning(log, arrival="at")
    assert "name the column that tells sources apart (split=, --split)" in warning
    assert _warnings(_stream(log, arrival="at", split="source").execute().to_arrow) == []


def test_files_that_are_each_in_order_are_named(tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(_log(_in_order(300)), tmp_path / f"{number}.parquet")
    assert "split=FILE (--split-per-file)" in _warning(tmp_path)
    assert _warnings(_stream(tmp_path, split=FILE).execute().to_arrow) == []


def test_arrivals_that_go_back_are_the_cause() -> None:
    arrivals = [*_in_order()[500:], *_in_order(500)]
    warning = _warning(_log(arrivals, at=_log(arrivals)["ts"]), arrival="at")
    assert "Arrivals go back: sort the log by arrival" in warning


def test_a_split_that_is_idle_for_long_is_named() -> None:
    fast = [(float(at), float(at), "fast") for at in range(2000)]
    slow = [(float(at), float(at) if at < 10 else at + 900.0, "slow") for at in [*range(10), *range(10, 600)]]
    rows = sorted(fast + slow, key=lambda row: row[1])
    log = _log(
        [row[0] for row in rows], at=_log([row[1] for row in rows])["ts"], device=[row[2] for row in rows]
    )
    strategy = BOUNDED.with_idleness(Duration.of_seconds(60))
    warning = _warning(log, strategy, arrival="at", split="device")
    assert "Split 'slow' was idle for" in warning
    assert _warnings(_stream(log, arrival="at", split="device").execute().to_arrow) == []


def test_disorder_above_the_bound_is_the_cause_where_nothing_else_is() -> None:
    arrivals = _in_order()
    seconds = [second - 30 * (at % 2) for at, second in enumerate(arrivals)]
    log = _log(seconds, at=_log(arrivals)["ts"], device=["d"] * 1000)
    assert "more than the bound of 4 s" in _warning(log, arrival="at", split="device")


@pytest.mark.parametrize("with_arrival", [False, True])
def test_one_event_far_ahead_is_named_with_its_row(tmp_path: Path, with_arrival: bool) -> None:
    ahead = 76 * 366 * 86_400.0
    seconds = [*_in_order(500), ahead, *(second + 500 for second in _in_order(500))]
    log = _log(seconds, at=_log([float(at) for at in range(1001)])["ts"])
    settings = {"arrival": "at"} if with_arrival else {"rate": 1.0, "arrival_start_ms": DAY_MS}
    warning = _warning(log, **settings)
    assert (
        "A clock was ahead: row 500 (from 0) of the table has the event time 2100-02-27 00:00:00.000Z"
        in warning
    )
    assert "pc.field('ts') < ..." in warning
    pq.write_table(log.slice(0, 400), tmp_path / "a.parquet")
    pq.write_table(log.slice(400), tmp_path / "b.parquet")
    assert f"row 100 (from 0) of {tmp_path}/b.parquet" in _warning(tmp_path, **settings)
    env = StreamExecutionEnvironment.get_execution_environment()
    repaired = env.from_event_log(tmp_path, timestamp="ts", **settings).filter(
        pc.field("ts") < pa.scalar(DAY_MS + 86_400_000, pa.timestamp("ms", "UTC"))
    )
    windows = (
        repaired.assign_timestamps_and_watermarks(BOUNDED)
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
    )
    assert _warnings(windows.aggregate(n=count()).to_arrow) == []


def test_a_clock_that_is_hours_ahead_is_found_among_nights_without_events() -> None:
    seconds = [
        day * 86_400 + hour * 3600.0 + minute * 60
        for day in range(5)
        for hour in range(8, 20)
        for minute in range(60)
    ]
    arrivals = list(seconds)
    seconds[1000] += 5 * 3600
    log = _log(seconds, at=_log(arrivals)["ts"])
    warning = _warning(log, arrival="at")
    assert "A clock was ahead: row 1000 (from 0) of the table" in warning


def test_the_first_event_of_a_log_may_be_ahead() -> None:
    seconds = [1e8, *_in_order(999)]
    assert "A clock was ahead: row 0 (from 0) of the table" in _warning(_log(seconds))


def test_shuffled_rows_are_no_clock_ahead() -> None:
    seconds = [float(at * 7919 % 1000) for at in range(1000)]
    warning = _warning(_log(seconds))
    assert "A clock was ahead" not in warning
    assert "The log has no arrival=" in warning


def test_an_event_ahead_in_a_split_is_named_with_split_and_file(tmp_path: Path) -> None:
    seconds = [float(at // 2) for at in range(1000)]
    seconds[300] = seconds[301] = 1e8
    pq.write_table(_log(seconds, device=[at % 2 for at in range(1000)]), tmp_path / "a.parquet")
    warning = _warning(tmp_path, split="device")
    assert f"an event of split 0 in {tmp_path}/a.parquet has the event time" in warning


def test_the_report_shows_shares() -> None:
    report = _stream(_log(list(reversed(_in_order(100))))).execute().report
    assert f"{report.late:>16,} late for all their windows ({report.late} %)" in str(report).splitlines()
    assert f">{report.late} %<" in report._repr_html_()


def test_a_later_operator_that_loses_rows_is_named() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    log = _log(list(reversed(_in_order())))
    first = (
        env.from_event_log(log, timestamp="ts")
        .assign_timestamps_and_watermarks(BOUNDED)
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .aggregate(n=count())
    )
    second = first.key_by("user").window(TumblingEventTimeWindows.of(Time.seconds(60))).aggregate(n=count())
    (warning,) = _warnings(second.execute().to_arrow)
    assert "of the events of operator 1" in warning
    assert "Log 0: " in warning


def test_a_stream_that_is_resumed_warns_of_its_own_late_events(tmp_path: Path) -> None:
    first = _stream(_log(_in_order(100)), rate=1.0, arrival_start_ms=DAY_MS)
    first.execute(stop_with_checkpoint=tmp_path / "cut").to_arrow()
    second = _stream(_log([0.0] * 50 + [200.0] * 50), rate=1.0, arrival_start_ms=DAY_MS)
    (warning,) = _warnings(second.execute(restore_from=tmp_path / "cut").to_arrow)
    assert warning.startswith("50 % of the events are late and are dropped: 50 of 100. ")
