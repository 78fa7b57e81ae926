"""Joins over columns: what they refuse, what is in a result, and DuckDB as an arbiter where time plays no role."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import flinkcore as fc
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import (
    EventTimeSessionWindows,
    KeyedLogStream,
    LogStream,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError, SchemaError

BOUND = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))


def environment(parallelism: int = 2, **limits: Any) -> StreamExecutionEnvironment:
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    config = environment.get_config()
    config._memory_limits = dataclasses.replace(config._memory_limits, **limits)
    return environment


def stream(of: StreamExecutionEnvironment, table: pa.Table, *keys: str) -> KeyedLogStream:
    log = of.from_event_log(table, timestamp="ts", arrival="at")
    return (
        log.assign_timestamps_and_watermarks(BOUND)
        .select(*(name for name in table.column_names if name != "at"))
        .key_by(*keys or ("k",))
    )


def table(seconds: list[float], keys: list[Any] | None = None, **columns: Any) -> pa.Table:
    times = pa.array([int(1000 * second) for second in seconds], pa.int64())
    given = {"k": keys or ["a"] * len(seconds), **columns}
    return pa.table({**given, "ts": times.cast(pa.timestamp("ms")), "at": times.cast(pa.timestamp("ms"))})


def rows(joined: LogStream, *names: str) -> list[Any]:
    given = joined.execute().to_arrow().select(list(names))
    return sorted(zip(*(column.to_pylist() for column in given.columns), strict=True), key=repr)


def both(**settings: Any) -> tuple[KeyedLogStream, KeyedLogStream]:
    of = environment(**settings)
    left = table([0, 1, 20, 40], ["a", "b", "a", "c"], v=[1, 2, 3, 4])
    right = table([2, 3, 19, 60], ["a", "a", "a", "d"], v=[10, 20, 30, 40])
    return stream(of, left), stream(of, right)


def test_columns_of_both_rows_come_with_a_suffix_where_names_are_equal() -> None:
    left, right = both()
    joined = left.join_interval(right, Time.seconds(0), Time.seconds(5), suffix="2")
    assert joined.columns == ["k", "v", "ts", "k2", "v2", "ts2"]
    assert rows(joined, "k", "v", "v2") == [("a", 1, 10), ("a", 1, 20)]


@pytest.mark.parametrize(
    ("how", "alone"),
    [
        ("inner", []),
        ("left", [(2, None), (3, None), (4, None)]),
        ("right", [(None, 30), (None, 40)]),
        ("full", [(2, None), (3, None), (4, None), (None, 30), (None, 40)]),
    ],
)
def test_rows_without_a_match_come_with_nulls(how: Any, alone: list[Any]) -> None:
    left, right = both()
    joined = left.join_interval(right, 0, 5000, how=how)
    assert rows(joined, "v", "v_right") == sorted([(1, 10), (1, 20), *alone], key=repr)


def test_a_condition_decides_about_pairs_and_about_rows_without_one() -> None:
    left, right = both()
    joined = left.join_interval(right, 0, 5000, how="left", where=pc.field("v_right") > 10)
    assert rows(joined, "v", "v_right") == [(1, 20), (2, None), (3, None), (4, None)]


def test_a_condition_that_is_null_is_not_met() -> None:
    left, right = both()
    null = pc.scalar(pa.scalar(None, pa.int64()))
    assert rows(left.join_regular(right, where=pc.field("v") > null), "v") == []


def test_a_condition_may_read_no_column() -> None:
    left, right = both()
    assert rows(left.join_regular(right, how="left", where=pc.scalar(False)), "v_right") == [(None,)] * 4
    assert len(rows(left.join_regular(right, where=pc.scalar(True)), "v")) == 6


def test_semi_and_anti_joins_give_left_rows_alone() -> None:
    left, right = both()
    window = TumblingEventTimeWindows.of(Time.seconds(10))
    semi = left.join_window(right, window, how="semi", where=pc.field("v_right") < 30)
    assert semi.columns == ["k", "v", "ts", "window_start", "window_end"]
    assert rows(semi, "v") == [(1,)]
    assert rows(left.join_window(right, window, how="anti"), "v") == [(2,), (3,), (4,)]
    assert rows(left.join_regular(right, how="semi"), "v") == [(1,), (3,)]


def test_a_row_joins_in_each_of_its_sliding_windows() -> None:
    of = environment()
    joined = stream(of, table([4], v=[1])).join_window(
        stream(of, table([8], v=[2])),
        SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5)),
        how="left",
    )
    starts = [int(start.timestamp()) for _, _, start in rows(joined, "v", "v_right", "window_start")]
    pairs = [pair[:2] for pair in rows(joined, "v", "v_right", "window_start")]
    assert pairs == [(1, 2), (1, None)]
    assert len(starts) == 2


def test_a_row_whose_windows_have_fired_is_late() -> None:
    of = environment()
    right = table([30, 1], v=[1, 2])
    right = right.set_column(right.schema.get_field_index("at"), "at", [table([30, 31])["at"].chunk(0)])
    left = table([30, 31], v=[1, 2])
    window = TumblingEventTimeWindows.of(Time.seconds(10))
    result = stream(of, left).join_window(stream(of, right), window, how="full").execute()
    assert result.to_arrow()["v_right"].to_pylist() == [1, 1]
    assert result.report.late == 1


def test_a_version_is_valid_until_the_next_one() -> None:
    of = environment()
    rates = table([0, 10, 10, 20], v=[1, 2, 3, 4])  # of two with one time, the last to arrive
    orders = table([9, 10, 19.999, 25], v=[1, 2, 3, 4])
    early = table([0.5], ["z"], v=[9])
    joined = stream(of, pa.concat_tables([early, orders])).join_temporal(stream(of, rates), how="left")
    assert rows(joined, "v", "v_right") == [(1, 1), (2, 3), (3, 3), (4, 4), (9, None)]


def test_changes_withdraw_the_row_with_nulls_at_its_first_match() -> None:
    left, right = both()
    changes = left.join_regular(right, how="left", changes=True).execute().to_arrow()
    of_first = [
        (kind, right)
        for kind, v, right in zip(
            *(changes[c].to_pylist() for c in ("row_kind", "v", "v_right")), strict=True
        )
        if v == 1
    ]
    assert of_first == [("+I", None), ("-D", None), ("+I", 10), ("+I", 20), ("+I", 30)]


def test_keys_with_nulls_match_only_on_request() -> None:
    of = environment()
    pairs = [stream(of, table([0, 1], [None, "a"], one=[0, 0], v=[v, v + 1]), "k", "one") for v in (1, 10)]
    left, right = pairs
    assert rows(left.join_regular(right, how="left"), "v", "v_right") == [(1, None), (2, 11)]
    assert rows(left.join_regular(right, nulls_equal=True), "v", "v_right") == [(1, 10), (2, 11)]


def test_results_of_an_interval_join_are_not_late_for_the_next_operator() -> None:
    of = environment()
    seconds = list(range(100))
    left, right = (stream(of, table([float(s) for s in seconds], v=seconds)) for _ in range(2))
    never = left.join_interval(right, 0, 30_000, how="left", where=pc.field("v_right") < 0)
    result = (
        never.key_by("k")
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .aggregate(n=fc.count())
        .execute()
    )
    assert result.to_arrow()["n"].to_pylist() == [10] * 10
    assert result.report.late == 0


def test_explain_shows_the_join() -> None:
    left, right = both()
    joined = left.join_interval(right, -1000, 2000, how="full", where=pc.field("v") > 1)
    assert (
        "[columnar] full IntervalJoin, right - left in [-1000 ms, 2000 ms], where (v > 1)" in joined.explain()
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda a, b: a.join_interval(b, 5, 1),
            ConfigurationError,
            "lower bound is 5 ms, greater than the upper",
        ),
        (
            lambda a, b: a.join_interval(b, 0, 1, how="outer"),
            ConfigurationError,
            "'inner', 'left', 'right' or 'full'",
        ),
        (lambda a, b: a.join_temporal(b, how="full"), ConfigurationError, "'inner' or 'left', not 'full'"),
        (
            lambda a, b: a.join_regular(b, where="v > 1"),
            ArgumentTypeError,
            "a condition on columns of both rows",
        ),
        (
            lambda a, b: a.join_regular(b, suffix=""),
            ArgumentTypeError,
            "suffix=...\\) is a text that is not empty",
        ),
        (lambda a, b: a.join_regular(1), ArgumentTypeError, "join_regular"),
        (lambda a, b: a.join_window(b, 5), ArgumentTypeError, "join_window takes an assigner"),
    ],
)
def test_settings_out_of_their_range_are_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(*both())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda a, b: a.join_regular(b, where=pc.field("w") > 1),
            SchemaError,
            "has the column 'w', which neither",
        ),
        (lambda a, b: a.join_regular(b, where=pc.field("v")), SchemaError, "int64 instead of true or false"),
        (
            lambda a, b: a.with_columns(v_right=pc.scalar(1)).key_by("k").join_regular(b),
            ConfigurationError,
            "two columns of the results are named 'v_right'; give another suffix=",
        ),
        (
            lambda a, b: a.join_window(b, EventTimeSessionWindows.with_gap(Time.seconds(1))),
            ConfigurationError,
            "join_window takes windows whose bounds follow from the time of a row alone",
        ),
        (
            lambda a, b: a.join_regular(b, how="left", changes=True).key_by("k").join_temporal(b),
            ConfigurationError,
            "join_temporal takes rows that are only added",
        ),
        (
            lambda a, b: a.join_regular(b.with_columns(k=pc.scalar(1)).key_by("k")),
            SchemaError,
            "no keys would be equal",
        ),
    ],
)
def test_what_does_not_fit_the_columns_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(*both()).execute()


def test_a_result_without_a_timestamp_cannot_be_joined_by_time() -> None:
    left, right = both()
    ends = left.join_regular(right, how="left").key_by("k")  # rows without a match come at the end of time
    joined = ends.join_interval(right, 0, 1, suffix="_of_payment")
    with pytest.raises(DataError, match="comes to join_interval after another operator"):
        joined.to_arrow()


RANDOM = np.random.default_rng(7)


def random_table(n: int) -> pa.Table:
    seconds = np.sort(RANDOM.integers(0, 4000, n)) / 10
    keys = [f"key {key}" for key in RANDOM.integers(0, n // 8, n).tolist()]
    return table(seconds.tolist(), keys, v=RANDOM.integers(0, 100, n).tolist())


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("kind", ["regular", "interval"])
@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_duckdb_has_the_same_rows(parallelism: int, kind: str, how: Any) -> None:
    if kind == "interval" and how in ("semi", "anti"):
        return
    left, right = random_table(600), random_table(500)
    of = environment(parallelism, batch_bytes=4096, batch_rows=100)
    streams = stream(of, left), stream(of, right)
    where = pc.field("v") < pc.field("v_right")
    near, condition = "", "l.v < r.v"
    if kind == "interval":
        joined = streams[0].join_interval(
            streams[1], Time.seconds(-60), Time.seconds(90), how=how, where=where
        )
        near = " AND r.ts - l.ts BETWEEN INTERVAL '-60' SECOND AND INTERVAL '90' SECOND"
    else:
        joined = streams[0].join_regular(streams[1], how=how, where=where)
    columns = "l.k, l.v, l.ts" + ("" if how in ("semi", "anti") else ", r.k, r.v, r.ts")
    query = f"SELECT {columns} FROM l {how} JOIN r ON l.k = r.k AND {condition}{near}"
    expected = of_duckdb(left, right, query)
    given = joined.execute().to_arrow()
    assert Counter(zip(*(each.to_pylist() for each in given.columns), strict=True)) == expected


def of_duckdb(left: pa.Table, right: pa.Table, query: str) -> Counter[Any]:
    connection = duckdb.connect()
    connection.register("l", left)
    connection.register("r", right)
    return Counter(connection.execute(query).fetchall())
