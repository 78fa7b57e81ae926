"""Deduplication and Top-N through the methods of streams: plans, results, late rows, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import KeyedLogStream, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError, SchemaError

TENS = TumblingEventTimeWindows.of(Time.milliseconds(10))


def keyed(
    rows: list[tuple[Any, ...]], *names: str, parallelism: int = 2, lag: int = 0, first: int = 0
) -> KeyedLogStream:
    """Rows with a time `ts`, a key `k`, and further columns, keyed; each is followed by its watermark."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(1)
    columns = list(zip(*rows, strict=True))
    table = pa.table({name: list(column) for name, column in zip(("ts", "k", *names), columns, strict=True)})
    table = table.append_column("at", pa.array([10 * (first + number) for number in range(len(rows))]))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(lag))
    log = env.from_event_log(table, timestamp="ts", arrival="at")
    return log.assign_timestamps_and_watermarks(strategy).key_by("k")


def values(stream: Any, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in names) for row in stream.to_arrow().to_pylist())


def test_the_first_row_by_time_waits_for_the_watermark_and_late_rows_are_dropped() -> None:
    rows = keyed([(10, "a", 1), (4, "a", 2), (30, "b", 3), (20, "c", 4), (50, "c", 5)], "n", lag=8)
    result = rows.deduplicate().execute()
    assert values(result, "k", "n") == [("a", 2), ("b", 3), ("c", 5)]
    assert (result.report.processed, result.report.late) == (4, 1)


def test_of_rows_with_one_time_the_first_to_arrive_is_first_and_the_last_is_last() -> None:
    rows = [(10, "a", 1), (10, "a", 2), (9, "a", 3)]
    assert values(keyed(rows, "n", lag=5).deduplicate(), "n") == [(3,)]
    assert values(keyed(rows[:2], "n").deduplicate(), "n") == [(1,)]
    assert values(keyed(rows, "n").deduplicate("last"), "n") == [(2,)]
    assert values(keyed(rows, "n").deduplicate("last", "arrival"), "n") == [(3,)]


def test_changes_withdraw_the_row_before() -> None:
    changes = keyed([(10, "a", 1), (5, "a", 2), (12, "a", 3)], "n").deduplicate("last", changes=True)
    assert [(row["row_kind"], row["n"]) for row in changes.to_arrow().to_pylist()] == [
        ("+I", 1),
        ("-U", 1),
        ("+U", 3),
    ]
    assert changes.execute().report.late == 0


def test_the_highest_rows_come_with_their_ranks_and_nulls_are_least() -> None:
    rows = [(1, "a", 5), (2, "a", None), (3, "a", 7), (4, "a", 5), (5, "b", None)]
    top = keyed(rows, "n").top(3, "n")
    assert values(top, "k", "rank", "ts") == [("a", 1, 3), ("a", 2, 1), ("a", 3, 4), ("b", 1, 5)]
    least = keyed(rows, "n").top(1, "n", descending=False, rank_column=None)
    assert values(least, "k", "ts") == [("a", 2), ("b", 5)]
    assert least.to_arrow().column_names == ["ts", "k", "n", "at"]


def test_all_rows_that_are_equally_high_come_with_one_rank() -> None:
    rows = [(number, "a", price) for number, price in enumerate([7, 3, 7, 5, 5, 1])]
    assert values(keyed(rows, "n").top(1, "n", rank="rank"), "rank", "ts") == [(1, 0), (1, 2)]
    assert values(keyed(rows, "n").top(2, "n", rank="rank"), "rank", "ts") == [(1, 0), (1, 2)]
    dense = keyed(rows, "n").top(2, "n", rank="dense_rank", rank_column="place")
    assert values(dense, "place", "ts") == [(1, 0), (1, 2), (2, 3), (2, 4)]


def test_a_rank_with_changes_moves_the_lower_rows() -> None:
    changes = keyed([(1, "a", 5), (2, "a", 3), (3, "a", 7)], "n").top(2, "n", changes=True)
    assert [(row["row_kind"], row["n"], row["rank"]) for row in changes.to_arrow().to_pylist()] == [
        ("+I", 5, 1),
        ("+I", 3, 2),
        ("-U", 5, 1),
        ("+U", 7, 1),
        ("-U", 3, 2),
        ("+U", 5, 2),
    ]


def test_the_highest_rows_of_a_window_come_when_it_fires() -> None:
    rows = [(1, "a", 5), (3, "a", 9), (2, "b", 4), (12, "a", 1), (4, "a", 100), (30, "b", 2)]
    result = keyed(rows, "n").window(TENS).top(1, "n").execute()
    assert values(result, "k", "n", "rank") == [("a", 1, 1), ("a", 9, 1), ("b", 2, 1), ("b", 4, 1)]
    assert result.report.late == 1
    assert result.to_arrow().column_names == ["ts", "k", "n", "at", "window_start", "window_end", "rank"]


def test_the_highest_results_of_windows_are_found_by_the_end_of_the_window() -> None:
    rows = [(number, key, 0) for number, key in enumerate("aabbbacc" * 3)]
    counts = keyed(rows, "n", lag=5).window(TENS).aggregate(n=count())
    hottest = counts.key_by("window_end").top(1, by="n", rank="rank", window_end="window_end")
    table = hottest.select("k", "n").to_arrow().to_pylist()
    by_window: dict[Any, dict[str, int]] = {}
    for row in counts.to_arrow().to_pylist():
        by_window.setdefault(row["window_end"], {})[row["k"]] = row["n"]
    expected = [
        (key, n) for of_keys in by_window.values() for key, n in of_keys.items() if n == max(of_keys.values())
    ]
    assert sorted((row["k"], row["n"]) for row in table) == sorted(expected)


@pytest.mark.parametrize("call", ["windows", "changes", "last", "first"])
def test_results_are_the_same_across_a_checkpoint_with_other_partitions(tmp_path: Path, call: str) -> None:
    rows = [(number - number % 3 * 4, "abcd"[number % 4], number * 7 % 11) for number in range(40)]

    def asked(part: list[Any], parallelism: int, first: int = 0) -> Any:
        stream = keyed(part, "n", parallelism=parallelism, lag=9, first=first)
        if call == "windows":
            return stream.window(TENS).top(2, "n")
        if call == "changes":
            return stream.top(2, "n", changes=True)
        return stream.deduplicate(call)  # type: ignore[arg-type]

    def shown(result: Any) -> list[str]:
        return sorted(map(str, result.to_arrow().to_pylist()))

    whole = shown(asked(rows, 1))
    early = shown(asked(rows[:17], 2).execute(stop_with_checkpoint=tmp_path))
    later = shown(asked(rows[17:], 3, first=17).execute(restore_from=tmp_path))
    assert sorted(early + later) == whole


def test_explain_shows_what_is_kept() -> None:
    rows = keyed([(1, "a", 5)], "n")
    assert (
        "the last row of each key by event time, as changes"
        in rows.deduplicate("last", changes=True).explain()
    )
    assert "the highest 3 of each key by n descending" in rows.top(3, "n").explain()
    assert "the rows from 2 to 4 by rank of each key by n" in rows.top(3, "n", skip=1, rank="rank").explain()
    assert "the first row of each key in tumbling" in rows.window(TENS).deduplicate().explain()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda rows: rows.deduplicate("latest"), ConfigurationError, "keep=...) is 'first' or 'last'"),
        (
            lambda rows: rows.deduplicate(by="time"),
            ConfigurationError,
            "by=...) is 'event_time' or 'arrival'",
        ),
        (lambda rows: rows.top(0, "n"), ConfigurationError, "n is at least 1"),
        (lambda rows: rows.top(True, "n"), ArgumentTypeError, "numbers of rows"),
        (lambda rows: rows.top(1, ["n", "n"]), ConfigurationError, "names column 'n' twice"),
        (lambda rows: rows.top(1, []), ArgumentTypeError, "a column or a list of columns"),
        (
            lambda rows: rows.top(1, "n", rank="first"),
            ConfigurationError,
            "'row_number', 'rank', 'dense_rank'",
        ),
        (
            lambda rows: rows.top(1, "n", descending=[True, False]),
            ConfigurationError,
            "for each of the 1 columns",
        ),
        (lambda rows: rows.top(1, "n", changes=True, window_end="n"), ConfigurationError, "without windows"),
        (lambda rows: rows.top(1, "x").execute(), SchemaError, "there is no column 'x'"),
        (lambda rows: rows.top(1, "l").execute(), SchemaError, "numbers, text, binaries, booleans and times"),
        (lambda rows: rows.top(1, "n", rank_column="n").execute(), ConfigurationError, "take another name"),
        (lambda rows: rows.top(1, "n", window_end="l").execute(), SchemaError, "is a timestamp, or int64"),
        (
            lambda rows: rows.top(1, "n", window_end="n").to_arrow(),
            DataError,
            "has nulls: filter such rows out",
        ),
        (
            lambda rows: (
                rows.window(EventTimeSessionWindows.with_gap(Time.milliseconds(5))).top(1, "n").execute()
            ),
            ConfigurationError,
            "bounds follow from the time of a row alone",
        ),
        (
            lambda rows: rows.window(TENS).trigger(CountTrigger.of(2)).top(1, "n"),
            ConfigurationError,
            "these have a trigger: leave it out",
        ),
        (
            lambda rows: rows.window(TENS).allowed_lateness(5).deduplicate(),
            ConfigurationError,
            "these have allowed lateness",
        ),
        (
            lambda rows: (
                rows.deduplicate("last", changes=True)
                .key_by("k")
                .top(1, "n", rank="rank", changes=True)
                .execute()
            ),
            ConfigurationError,
            "takes rows that are only added",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message.replace("(", r"\(").replace(")", r"\)")):
        call(keyed([(1, "a", None, [1]), (2, "a", 2, [2])], "n", "l"))


def test_rows_between_sliding_windows_are_counted() -> None:
    windows = SlidingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(10))
    result = (
        keyed([(1, "a", 5), (7, "a", 3), (12, "a", 9)], "n", lag=20).window(windows).top(1, "n").execute()
    )
    assert values(result, "n") == [(5,), (9,)]
    assert (result.report.processed, result.report.in_no_window) == (2, 1)
