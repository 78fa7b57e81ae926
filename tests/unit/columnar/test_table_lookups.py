"""Rows find those of a table in memory by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkcore.common import Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import collect
from flinkcore.datastream.graph.table_lookups import table_rows
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.datastream.window import TumblingEventTimeWindows
from flinkcore.errors import ConfigurationError, SchemaError

KEYS = ["b", "a", None, "c", "b", "x"]
TABLE = pa.table({"id": ["a", "b", "b", None], "name": ["Ada", "Bob", "Ben", "Nil"], "n": [1, 2, 9, 4]})


def rows(keys: list[Any] = KEYS, first: int = 0) -> LogStream:
    times = range(first, first + len(keys))
    log = pa.table({"ts": times, "at": times, "key": pa.array(keys, pa.string()), "n": times})
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_event_log(log, timestamp="ts", arrival="at", integer_times=True)
    return stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())


def found(results: LogStream, *names: str) -> list[tuple[Any, ...]]:
    table = results.select(*names).to_arrow()
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True), key=str)


def test_each_row_comes_with_all_rows_of_its_key() -> None:
    results = rows().join_lookup(TABLE, on={"key": "id"})
    assert results.to_arrow().schema.names == ["ts", "at", "key", "n", "id", "name", "n_right"]
    assert found(results, "n", "key", "name", "n_right") == [
        (0, "b", "Ben", 9),
        (0, "b", "Bob", 2),
        (1, "a", "Ada", 1),
        (4, "b", "Ben", 9),
        (4, "b", "Bob", 2),
    ]


def test_rows_that_find_nothing_are_kept_once_by_a_left_join_with_a_condition() -> None:
    condition = pc.field("n_right") > pc.field("n") + 2
    results = rows().join_lookup(TABLE, {"key": "id"}, "left", where=condition, suffix="_of_table")
    with pytest.raises(SchemaError, match=r"has the column 'n_right', which neither"):
        results.to_arrow()
    results = rows().join_lookup(TABLE, {"key": "id"}, "left", where=condition)
    assert found(results, "n", "name") == [(0, "Ben"), (1, None), (2, None), (3, None), (4, "Ben"), (5, None)]


def test_nested_fields_are_keys_and_in_conditions() -> None:
    of = [{"key": key, "n": number} for number, key in enumerate(KEYS)]
    table = pa.table({"ts": range(len(of)), "n": range(len(of)), "of": of})
    env = StreamExecutionEnvironment.get_execution_environment()
    log = env.from_event_log(table, timestamp="ts", integer_times=True)
    condition = pc.field("n_right") > pc.field("of.n") + 2
    results = log.join_lookup(TABLE, {"of.key": "id"}, where=condition)
    assert results.to_arrow().schema.names == [
        "ts",
        "n",
        "of",
        "of.key",
        "of.n",
        "id",
        "name",
        "n_right",
    ]
    assert found(results, "n", "of.key", "name") == [(0, "b", "Ben"), (4, "b", "Ben")]
    with pytest.raises(SchemaError, match=r"no column 'of\.id'.*The struct 'of' has no field 'id'"):
        log.join_lookup(TABLE, {"of.id": "id"}).to_arrow()
    twice = log.join_lookup(TABLE, {"of.key": "id"}).join_lookup(TABLE, {"of.key": "id"}, suffix="_again")
    assert len(found(twice, "n")) == 9


def test_rows_that_find_many_are_expanded_by_parts() -> None:
    many = pa.table({"id": ["a"] * 300 + ["b"] * 3 + ["c"], "text": ["x" * 100] * 304})
    batch = pa.record_batch({"key": pa.array([*("a", "b", "a", None, "x"), *("b",) * 50, "a", "a"])})
    for how, on in (("inner", {"key": "id"}), ("left", {"key": "id"})):
        lookup = table_rows(many, on, how, None, "_right").bound_to(batch.schema)
        parts = list(lookup.expand(batch, 40_000))
        assert 1 < len(parts) < 20
        assert [
            len(numbers)
            for numbers, added in parts
            if sum(column.nbytes for column in added) > 40_000 and numbers[0] < numbers[-1]
        ] == []
        ((numbers, columns),) = lookup.expand(batch, 1 << 30)
        assert [number for own, _ in parts for number in own] == numbers.tolist()
        assert pa.concat_arrays([added[1] for _, added in parts]).equals(columns[1])


def test_a_window_follows_in_event_time_and_results_are_cut_and_resumed(tmp_path: Path) -> None:
    def job(keys: list[Any], first: int = 0, **settings: Any) -> list[tuple[Any, ...]]:
        windows = rows(keys, first).join_lookup(TABLE, {"key": "id"}).key_by("id")
        counted = windows.window(TumblingEventTimeWindows.of(Time.milliseconds(4)))
        table = counted.aggregate(names=collect("name")).execute(**settings).to_arrow()
        return sorted(zip(table["id"].to_pylist(), table["names"].to_pylist(), strict=True), key=str)

    whole = job(KEYS)
    assert whole == [("a", ["Ada"]), ("b", ["Bob", "Ben"]), ("b", ["Bob", "Ben"])]
    first = job(KEYS[:2], stop_with_checkpoint=tmp_path / "cp")
    assert sorted(first + job(KEYS[2:], 2, restore_from=tmp_path / "cp"), key=str) == whole


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=30),
    st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=12),
    st.sampled_from(["inner", "left"]),
    st.sampled_from([1, 100, 1 << 20]),
)
def test_rows_are_those_of_a_model(
    keys: list[int | None], of_table: list[int | None], how: Any, most_bytes: int
) -> None:
    table = pa.table({"id": pa.array(of_table, pa.int64()), "place": range(len(of_table))})
    batch = pa.record_batch({"key": pa.array(keys, pa.int64())})
    lookup = table_rows(table, {"key": "id"}, how, None, "_right").bound_to(batch.schema)
    parts = list(lookup.expand(batch, most_bytes))
    expected: list[tuple[int, int | None]] = []
    for row, key in enumerate(keys):
        places: list[int | None] = [
            place for place, other in enumerate(of_table) if key is not None and other == key
        ]
        expected += [(row, place) for place in places or [None] * (how == "left")]
    found = [
        pair for rows, columns in parts for pair in zip(rows.tolist(), columns[1].to_pylist(), strict=True)
    ]
    assert found == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("prices.parquet", "key"), "takes a table in memory, such as a pyarrow.Table"),
        ((TABLE, "key"), "the table has no column 'key'; columns: id, name, n"),
        ((TABLE, []), "is the name of a column, a list of names, or a mapping"),
        ((TABLE, 3), "is the name of a column, a list of names, or a mapping"),
        ((TABLE, ["n", "n"]), "names columns twice: n"),
        ((TABLE, "n", "right"), r"how=...\) is 'inner' or 'left', not 'right'"),
    ],
)
def test_bad_arguments_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises((ConfigurationError, SchemaError), match=message):
        rows().join_lookup(*arguments)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"on": {"wrong": "id"}},
            r"join_lookup\(on=...\): there is no column 'wrong'; columns: ts, at, key, n",
        ),
        ({"on": {"key": "n"}}, "'key' is string and the column 'n' of the table is int64"),
        ({"on": {"key": "id"}, "where": pc.field("n")}, "gives int64 instead of true or false"),
    ],
)
def test_tables_that_do_not_fit_the_rows_are_refused_when_the_job_is_planned(
    settings: Any, message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        rows().join_lookup(TABLE, **settings).to_arrow()


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_texts_are_equal_whatever_their_encoding(kind: pa.DataType) -> None:
    table = pa.table({"id": TABLE["id"].cast(kind), "name": TABLE["name"]})
    assert found(rows(["a"]).join_lookup(table, {"key": "id"}), "name") == [("Ada",)]
    turned = rows(["a"]).with_columns(key=pc.field("key").cast(pa.large_string()))
    assert found(turned.join_lookup(table, {"key": "id"}), "name") == [("Ada",)]


def test_two_columns_of_one_name_are_refused() -> None:
    twice = TABLE.append_column("n_right", pa.array([1, 2, 3, 4]))
    with pytest.raises(ConfigurationError, match="two columns of the results are named 'n_right'"):
        rows().join_lookup(twice, {"key": "id"}).to_arrow()
