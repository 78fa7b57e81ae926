"""`aggregate` without windows: changes as Flink's GROUP BY has them, final rows, and rows that withdraw others."""

import math
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.datastream import KeyedLogStream, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import collect, count, count_distinct, first, max_, mean, stddev, sum_
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.errors import ArgumentTypeError, ConfigurationError, SchemaError


def keyed(parallelism: int = 1, **columns: Any) -> Any:
    """A stream by `k`."""
    n = len(next(iter(columns.values())))
    table = pa.table({**columns, "ts": pa.array(range(n), pa.int64())})
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    return env.from_event_log(table, timestamp="ts", timestamp_unit="ms").key_by("k")


def found(stream: Any, *names: str) -> list[tuple[Any, ...]]:
    table = stream.execute().to_arrow()
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def test_a_row_inserts_or_updates_the_result_of_its_key() -> None:
    stream = keyed(k=["a", "a", "b", "a"], v=[1, 2, 4, 8])
    changes = stream.aggregate(n=count(), total=sum_("v"), changes=True)
    assert changes.columns == ["k", "n", "total", "row_kind"]
    assert found(changes, "k", "n", "total", "row_kind") == [
        ("a", 1, 1, "+I"),
        ("a", 1, 1, "-U"),
        ("a", 2, 3, "+U"),
        ("b", 1, 4, "+I"),
        ("a", 2, 3, "-U"),
        ("a", 3, 11, "+U"),
    ]


@pytest.mark.parametrize("ttl_ms", [0, 3])
def test_rows_before_updates_can_be_left_out_of_counts(ttl_ms: int) -> None:
    def changes(update_before: bool) -> list[tuple[Any, ...]]:
        stream = keyed(k=[*"aababcbcca"], v=[3, 1, None, 4, 1, 5, 9, 2, 6, 5]).aggregate(
            highest=max_("v"), n=count(), changes=True
        )
        stream._transformation.ttl_ms = ttl_ms
        stream._transformation.settings.update_before = update_before
        return found(stream, "k", "highest", "n", "row_kind")

    whole = changes(True)
    assert Counter(row[-1] for row in whole)["-U"] == Counter(row[-1] for row in whole)["+U"] > 0
    assert changes(False) == [row for row in whole if row[-1] != "-U"]


@pytest.mark.parametrize("ranks", ["place", None])
def test_rows_before_updates_can_be_left_out_of_ranks(ranks: str | None) -> None:
    def changes(update_before: bool) -> list[tuple[Any, ...]]:
        stream = keyed(k=[*"aababcbcca" * 3], v=list(range(30))).top(
            1 if ranks is None else 3, "v", rank_column=ranks, changes=True, descending=True
        )
        stream._transformation.settings.update_before = update_before
        return found(stream, "k", "v", *([ranks] if ranks else []), "row_kind")

    whole = changes(True)
    assert {row[-1] for row in whole} == {"+I", "-U", "+U"}
    assert changes(False) == [row for row in whole if row[-1] != "-U"]


def test_a_result_that_stays_the_same_gives_nothing() -> None:
    stream = keyed(k=["a"] * 4, v=[5, 3, None, 7])
    changes = stream.aggregate(highest=max_("v"), changes=True)
    assert found(changes, "highest", "row_kind") == [(5, "+I"), (5, "-U"), (7, "+U")]


def test_a_nan_differs_from_itself_as_in_flink() -> None:
    stream = keyed(k=["a"] * 2, v=[math.nan, 1.0])
    assert [kind for (kind,) in found(stream.aggregate(total=sum_("v"), changes=True), "row_kind")] == [
        "+I",
        "-U",
        "+U",
    ]


def test_nested_results_are_compared() -> None:
    structs = pa.array([{"a": 1}, {"a": 2}])
    stream = keyed(k=["a"] * 2, v=structs)
    assert found(stream.aggregate(v=first("v"), changes=True), "row_kind") == [("+I",)]
    assert len(found(stream.aggregate(v=collect("v"), changes=True), "row_kind")) == 3


@pytest.mark.parametrize("parallelism", [1, 3])
def test_the_last_results_come_when_the_log_ends(parallelism: int) -> None:
    stream = keyed(parallelism, k=["a", "b", "a", "c"], v=[1, 2, 3, None])
    final = stream.aggregate(n=count(), mean=mean("v"))
    assert final.columns == ["k", "n", "mean"]
    assert sorted(found(final, "k", "n", "mean")) == [("a", 2, 2.0), ("b", 1, 2.0), ("c", 1, None)]


def test_rows_of_all_keys_have_one_result() -> None:
    table = pa.table({"v": [1, 2], "ts": pa.array([0, 1], pa.int64())})
    env = StreamExecutionEnvironment.get_execution_environment()
    log = env.from_event_log(table, timestamp="ts", timestamp_unit="ms")
    assert found(KeyedLogStream(log, KeyColumns()).aggregate(total=sum_("v")), "total") == [(3,)]
    assert found(
        KeyedLogStream(log, KeyColumns()).over(by="arrival").aggregate(total=sum_("v")), "total"
    ) == [
        (1,),
        (3,),
    ]


def test_rows_that_withdraw_others_are_subtracted() -> None:
    stream = keyed(
        k=["a", "a", "a", "a", "a", "b"],
        v=[5, 7, 5, 7, 2, 1],
        row_kind=["+I", "+I", "-U", "-D", "+U", "-D"],
    )
    changes = stream.aggregate(
        total=sum_("v"), mean=mean("v"), seen=count_distinct("v"), n=count(), changes=True
    )
    assert found(changes, "k", "total", "mean", "seen", "n", "row_kind") == [
        ("a", 5, 5.0, 1, 1, "+I"),
        ("a", 5, 5.0, 1, 1, "-U"),
        ("a", 12, 6.0, 2, 2, "+U"),
        ("a", 12, 6.0, 2, 2, "-U"),
        ("a", 7, 7.0, 1, 1, "+U"),
        ("a", 7, 7.0, 1, 1, "-D"),
        ("a", 2, 2.0, 1, 1, "+I"),
    ]
    final = stream.aggregate(total=sum_("v"), n=count())
    assert found(final, "k", "total", "n") == [("a", 2, 1)]


def test_aggregates_that_cannot_subtract_are_refused() -> None:
    stream = keyed(k=["a"], v=[1], row_kind=["+I"])
    with pytest.raises(ConfigurationError, match=r"v = stddev\(v\).*only count, sum, .* can subtract"):
        stream.aggregate(v=stddev("v"), changes=True).execute().to_arrow()


def test_wrong_arguments_are_refused() -> None:
    stream = keyed(k=["a"], v=[1])
    with pytest.raises(ConfigurationError, match="needs at least one"):
        stream.aggregate(changes=True)
    with pytest.raises(ArgumentTypeError, match="takes an aggregate"):
        stream.aggregate(n=1)
    with pytest.raises(SchemaError, match="cannot be named 'k'"):
        stream.aggregate(k=count()).execute().to_arrow()
    with pytest.raises(SchemaError, match="there is no column 'w'"):
        stream.aggregate(n=sum_("w")).execute().to_arrow()


def test_explain_shows_the_aggregates() -> None:
    shown = keyed(k=["a"], v=[1]).aggregate(n=count(), changes=True).explain()
    assert "all rows of each key, as changes: n = count()" in shown
