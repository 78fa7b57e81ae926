"""Logs whose rows lie in no order: `position=` says in which they come."""

import json
import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from math import inf, nan
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from equipment.event_logs import event_log

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    FILE,
    DataStream,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count
from flinkcore.errors import ConfigurationError, SchemaError, SourceError
from flinkcore.log.sources.log_sources import TableSource

NUMBERS = pa.schema([("n", pa.int64())])


class Numbers(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield (value["n"],)


def clicks(n: int = 300) -> list[dict[str, Any]]:
    """Clicks of three partitions, in the order of their offsets, several of them in a millisecond."""
    return [
        {
            "part": i % 3,
            "offset": i // 3,
            "ts": i // 3 - i * 7 % 40,
            "at": i // 9,
            "user": "ab"[i % 2],
            "n": i,
        }
        for i in range(n)
    ]


def in_no_order(rows: list[dict[str, Any]], seed: int = 1) -> list[dict[str, Any]]:
    return random.Random(seed).sample(rows, len(rows))


def windows(stream: DataStream) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))
    keyed = stream.assign_timestamps_and_watermarks(strategy).key_by("user")
    by_window = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
    return by_window.allowed_lateness(Time.milliseconds(10)).aggregate(clicks=count(), n=collect("n"))


def results(data: Any, parallelism: int = 1, **log: Any) -> list[dict[str, Any]]:
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(5)
    settings = {"timestamp": "ts", "split": "part"} | log
    rows: list[dict[str, Any]] = windows(env.from_event_log(data, **settings)).to_arrow().to_pylist()
    return sorted(rows, key=lambda row: row["user"])  # of a key, the order counts


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("arrival", ["at", None])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_table_in_no_order_gives_what_it_gives_in_order(arrival: str | None, parallelism: int) -> None:
    expected = results(table(clicks()), arrival=arrival)
    found = results(table(in_no_order(clicks())), parallelism, arrival=arrival, position="offset")
    assert found == expected
    assert results(table(clicks()), parallelism, arrival=arrival, position="offset") == expected
    assert results(table(in_no_order(clicks())), arrival=arrival) != expected


def parquet(rows: list[dict[str, Any]], path: Path) -> None:
    pq.write_table(table(rows), path, row_group_size=7)


def csv(rows: list[dict[str, Any]], path: Path) -> None:
    pacsv.write_csv(table(rows), path)


def lines(rows: list[dict[str, Any]], path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def arrow(rows: list[dict[str, Any]], path: Path) -> None:
    with pa.ipc.new_file(path, table(rows).schema) as file:
        file.write_table(table(rows), max_chunksize=11)


def avro(rows: list[dict[str, Any]], path: Path) -> None:
    kinds = {name: "string" if name == "user" else "long" for name in rows[0]}
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "click", "fields": fields}, rows)


FORMATS = {"parquet": parquet, "csv": csv, "json": lines, "arrow": arrow, "avro": avro}


@pytest.mark.parametrize("format", FORMATS)
def test_several_files_of_any_format_have_the_rows_of_a_split(format: str, tmp_path: Path) -> None:
    rows = in_no_order(clicks())
    for number in range(4):
        FORMATS[format](rows[number::4], tmp_path / f"{number}.{format}")
    for arrival in ("at", None):
        found = results(str(tmp_path), 2, arrival=arrival, position="offset")
        assert found == results(table(clicks()), arrival=arrival)


def test_files_and_folders_may_be_the_splits(tmp_path: Path) -> None:
    expected = results(table(clicks()))
    rows = in_no_order(clicks())
    for part in range(3):
        folder = tmp_path / f"part={part}"
        folder.mkdir()
        of_part = [{name: row[name] for name in row if name != "part"} for row in rows if row["part"] == part]
        parquet(of_part, folder / "log.parquet")
    assert results(str(tmp_path), position="offset") == expected
    files = sorted(tmp_path.rglob("*.parquet"))
    assert results(files, split=FILE, position="offset") == expected


def test_the_last_may_come_first_and_several_columns_may_give_the_order() -> None:
    expected = results(table(clicks()))
    rows = [row | {"left": 99 - row["offset"]} for row in clicks()]
    assert results(table(in_no_order(rows)), position=[("left", "descending")]) == expected
    rows = [row | {"day": row["offset"] // 10, "left": 9 - row["offset"] % 10} for row in clicks()]
    by_two = ["day", ("left", "descending")]
    assert results(table(in_no_order(rows)), position=by_two) == expected
    assert results(table(in_no_order(rows)), position=["left", "day"]) != expected


NOON = datetime(2026, 5, 4, 12)
VALUES: dict[str, pa.Array] = {
    "int8": pa.array([None, -128, 0, 127], pa.int8()),
    "uint64": pa.array([None, 0, 2**63 - 1, 2**63, 2**64 - 1], pa.uint64()),
    "float": pa.array([None, -inf, -1.5, -1e-300, 0.0, 1e-300, inf, nan]),
    "float32": pa.array([None, -1.5, 0.25], pa.float32()),
    "bool": pa.array([None, False, True]),
    "text": pa.array([None, "", "a", "a\0", "a\0b", "ab", "b", "ä"]),
    "binary": pa.array([None, b"", b"\0", b"\0\0", b"\0\xff", b"\xff", b"\xff\0"]),
    "fixed": pa.array([None, b"\0a", b"\xff\0"], pa.binary(2)),
    "decimal": pa.array(
        [None, *map(Decimal, ("-99.50", "-0.01", "0.00", "9.99", "10.00"))], pa.decimal128(38, 2)
    ),
    "date": pa.array([None, date(1969, 12, 31), date(2026, 5, 4)]),
    "timestamp": pa.array([None, NOON, NOON + timedelta(microseconds=1)]),
    "duration": pa.array([None, timedelta(-1), timedelta(0), timedelta(1)]),
    "time": pa.array([None, 0, 86_399], pa.time32("s")),
    "sequence number": pa.array(["4955" + str(10**50 + i) for i in range(20)]),
}
"""In their order, null first."""


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("direction", ["ascending", "descending"])
def test_values_of_every_type_have_an_order_null_being_the_least(kind: str, direction: str) -> None:
    values = VALUES[kind]
    numbers = list(range(len(values)))
    shuffled = in_no_order([{"n": n} for n in numbers])
    order = [row["n"] for row in shuffled]
    columns = {
        "value": values.take(pa.array(order)),
        "n": order,
        "ts": [0] * len(order),
        "user": ["a"] * len(order),
    }
    log = StreamExecutionEnvironment().from_event_log(
        pa.table(columns),
        timestamp="ts",
        position=[("value", direction)],  # type: ignore[list-item]
    )
    (row,) = windows(log).to_arrow().to_pylist()
    assert row["n"] == (numbers if direction == "ascending" else numbers[::-1])


def test_equal_zeros_and_nans_are_ties() -> None:
    rows = [{"value": value, "ts": 0, "user": "a", "n": n} for n, value in enumerate([0.0, -0.0, nan, -nan])]

    def found(rows: list[dict[str, Any]]) -> Any:
        log = StreamExecutionEnvironment().from_event_log(table(rows), timestamp="ts", position="value")
        return windows(log).to_arrow().column("n").to_pylist()

    (order,) = found(rows)
    assert {order[0], order[1]} == {0, 1}
    assert found(rows[::-1]) == [order]


@pytest.mark.parametrize("arrival", ["at", None])
def test_ties_are_ordered_by_content_however_the_rows_lie(arrival: str | None) -> None:
    rows = [row | {"offset": row["offset"] // 5} for row in clicks()]
    expected = results(table(rows), arrival=arrival, position="offset")
    for seed in range(5):
        found = results(table(in_no_order(rows, seed)), seed % 3 + 1, arrival=arrival, position="offset")
        assert found == expected


def test_arrival_orders_events_ahead_of_their_position() -> None:
    rows = [{"ts": 0, "user": "a", "n": n, "at": at} for n, at in enumerate([5, 4, 4, 3, 9])]
    log = StreamExecutionEnvironment().from_event_log(table(rows), timestamp="ts", arrival="at", position="n")
    result = windows(log).execute()
    assert result.to_arrow().column("n").to_pylist() == [[3, 1, 2, 0, 4]]
    assert result.report.arrival_regressions == 0
    assert "order of the events: arrival, then n, then the content of the rows" in str(result.report)


def test_rows_that_are_left_out_keep_their_position(tmp_path: Path) -> None:
    rows = [row | ({"ts": None} if row["n"] % 11 == 0 else {}) for row in clicks()]
    bad = OutputTag("bad")
    for settings in ({"on_bad_row": "drop"}, {"on_bad_row": bad}):
        found, expected = (
            results(table(each), **settings, **order)
            for each, order in ((in_no_order(rows), {"position": "offset"}), (rows, {}))
        )
        assert found == expected

    def filtered(rows: list[dict[str, Any]], **order: Any) -> Any:
        log = StreamExecutionEnvironment().from_event_log(table(rows), timestamp="ts", split="part", **order)
        return sorted(map(str, windows(log.filter(pc.field("user") == "a")).to_arrow().to_pylist()))

    assert filtered(in_no_order(clicks()), position="offset") == filtered(clicks())


def test_rows_of_no_split_do_not_move_others() -> None:
    rows = clicks()
    without = [row | {"part": None, "user": "lost"} for row in rows[:50]]
    found = results(table(in_no_order(rows + without)), on_bad_row="drop", position="offset")
    assert found == results(table(rows))


def test_a_bad_row_is_named_by_where_it_lies() -> None:
    rows = in_no_order(clicks())
    rows[17] = rows[17] | {"ts": None}
    with pytest.raises(Exception, match=r"row 17 \(from 0\) of the table: null timestamp"):
        results(table(rows), position="offset")


def test_columns_and_their_types_are_checked_when_the_job_is_planned() -> None:
    rows = table(clicks())
    with pytest.raises(
        SchemaError, match="position= names column 'ofset', which the log does not have: part, offset"
    ):
        results(rows, position="ofset")
    nested = rows.append_column("place", pa.array([{"x": 1}] * rows.num_rows))
    with pytest.raises(
        SchemaError, match="position= names column 'place', which is struct<x: int64>: numbers, text"
    ):
        results(nested, position=["offset", "place"])
    with pytest.raises(ConfigurationError, match="position= names no column"):
        results(rows, position=[])
    with pytest.raises(ConfigurationError, match="position= names column 'offset' twice"):
        results(rows, position=["offset", ("offset", "descending")])
    for wrong in (7, ["offset", 7], [("offset", "down")], "", [("offset",)]):
        with pytest.raises(ConfigurationError, match="position= takes names of columns"):
            results(rows, position=wrong)


def test_the_column_is_not_replaced_behind_the_log() -> None:
    log = StreamExecutionEnvironment().from_event_log(table(clicks()), timestamp="ts", position="offset")
    with pytest.raises(ConfigurationError, match="column 'offset' is computed after position="):
        windows(log.with_columns(offset=pc.field("n"))).execute().to_arrow()


def test_the_hidden_column_is_in_no_result() -> None:
    log = StreamExecutionEnvironment().from_event_log(
        table(in_no_order(clicks())), timestamp="ts", split="part", position="offset"
    )
    assert log.execute().to_arrow().column_names == ["part", "offset", "ts", "at", "user", "n"]
    found = log.map(lambda row: row.as_dict()).execute_and_collect()
    with found as rows:
        assert list(rows) == sorted(clicks(), key=lambda row: (row["offset"], row["part"]))


def test_a_log_that_goes_on_from_a_checkpoint_is_ordered_for_itself(tmp_path: Path) -> None:
    rows = clicks()
    for arrival, until in (("at", 18 * 9), (None, 150)):
        expected = results(table(rows), arrival=arrival)
        found: list[dict[str, Any]] = []
        for number, part in enumerate((rows[:until], rows[until:])):
            env = StreamExecutionEnvironment()
            env.get_config().set_auto_watermark_interval(5)
            stream = env.from_event_log(
                table(in_no_order(part)), timestamp="ts", arrival=arrival, split="part", position="offset"
            )
            checkpoint = tmp_path / str(arrival)
            places = {"stop_with_checkpoint": checkpoint} if number == 0 else {"restore_from": checkpoint}
            found += windows(stream).execute(**places).to_arrow().to_pylist()  # type: ignore[arg-type]
        assert sorted(found, key=lambda row: row["user"]) == expected


@pytest.mark.parametrize("cuts", [[3], [4], [3, 5], [3, 4, 5, 6]])
def test_events_of_paused_splits_that_wait_over_cuts_come_before_those_of_later_logs(
    cuts: list[int], tmp_path: Path
) -> None:
    arrivals = [4, 5, 35, 35, 35, 35, 36, 37]
    rows = [
        {"part": int(n == 0), "offset": n, "ts": at, "at": at, "user": "a", "n": n}
        for n, at in enumerate(arrivals)
    ]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    aligned = strategy.with_watermark_alignment("both", Duration.of_millis(0), Duration.of_millis(1))

    def replayed(bounds: list[int]) -> list[int]:
        found: list[int] = []
        for number, (start, stop) in enumerate(pairwise(bounds)):
            env = StreamExecutionEnvironment()
            env.get_config().set_auto_watermark_interval(1)
            log = env.from_event_log(
                table(in_no_order(rows[start:stop])),
                timestamp="ts",
                arrival="at",
                split="part",
                position="offset",
            )
            numbers = log.assign_timestamps_and_watermarks(aligned).key_by("user").process(Numbers(), NUMBERS)
            folders = [tmp_path / str(n) if 0 <= n < len(bounds) - 2 else None for n in (number - 1, number)]
            result = numbers.execute(restore_from=folders[0], stop_with_checkpoint=folders[1])
            found += result.to_arrow()["n"].to_pylist()
        return found

    whole = replayed([0, len(rows)])
    assert whole == [0, 1, 2, 3, 4, 5, 6, 7]
    assert replayed([0, *cuts, len(rows)]) == whole


def test_a_log_without_rows_has_an_order(tmp_path: Path) -> None:
    none = table(clicks())[:0]
    assert results(none, position="offset") == []
    pq.write_table(none, tmp_path / "none.parquet")
    parquet(in_no_order(clicks()), tmp_path / "some.parquet")
    assert results(str(tmp_path), position="offset") == results(table(clicks()))


def test_what_is_not_needed_is_not_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    log = event_log(table(in_no_order(clicks())), timestamp="ts", arrival="at", **ordered_by_offset())
    chunks = log.chunks(3)
    reads: list[list[str]] = []
    read = TableSource.of(table(clicks())).chunks(1)[0].__class__.read

    def counted(chunk: Any, columns: Any, *rest: Any) -> Any:
        reads.append(list(columns))
        return read(chunk, columns, *rest)

    monkeypatch.setattr(type(TableSource.of(table(clicks())).chunks(1)[0]), "read", counted)
    assert [batch.num_rows for chunk in chunks for batch in chunk.read(["n"], 1000)] == [100] * 3
    assert reads == [["n"]] * 3


def ordered_by_offset() -> dict[str, Any]:
    from flinkcore._internal.arrow.sort_keys import SortKey

    return {"ordered_by": (SortKey("offset"),)}


def test_files_that_change_behind_the_order_are_found(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    lines(in_no_order(clicks()), path)
    log = event_log(str(path), timestamp="ts", split="part", **ordered_by_offset())
    (chunk,) = log.chunks(1)
    first = [batch.num_rows for batch in chunk.read([log.position or "", "n"], 100)]
    assert sum(first) == 300
    lines(in_no_order(clicks(301)), path)
    with pytest.raises(SourceError):
        list(chunk.read([log.position or "", "n"], 100))


def test_explain_and_the_checkpoint_say_what_orders_the_rows() -> None:
    env = StreamExecutionEnvironment()

    def explained(**log: Any) -> str:
        return windows(env.from_event_log(table(clicks()), timestamp="ts", **log)).explain()

    by_two = ["part", ("offset", "descending")]
    assert "unless its columns are those of Kafka, in order of part, then offset descending" in explained(
        position=by_two
    )
    assert "unless its columns are those of Kafka, in order of arrival, then offset" in explained(
        arrival="at", position="offset"
    )


def test_histories_of_a_log_begin_with_its_order() -> None:
    from flinkcore.testing.determinism import find_races

    def job(stream: DataStream) -> DataStream:
        return windows(stream)

    rows = clicks(40)
    for arrival in ("at", None):
        log = {"timestamp": "ts", "arrival": arrival, "split": "part", "interval_ms": 5}
        in_order = find_races(job, table(rows), **log)  # type: ignore[arg-type]
        found = find_races(job, table(in_no_order(rows)), **log, position="offset")  # type: ignore[arg-type]
        assert str(found) == str(in_order)


def test_why_tells_of_the_rows_in_their_order() -> None:
    def told(rows: list[dict[str, Any]], **order: Any) -> Any:
        stream = StreamExecutionEnvironment().from_event_log(
            table(rows), timestamp="ts", split="part", **order
        )
        events = windows(stream).why({"user": "a"}).events
        return [{name: row[name] for name in row if name != "position"} for row in events.to_pylist()]

    assert told(in_no_order(clicks(60)), position="offset") == told(clicks(60))


@pytest.mark.parametrize("table_of", ["delta", "iceberg"])
def test_tables_of_a_lake_have_an_order_at_a_version(table_of: str, tmp_path: Path) -> None:
    rows = in_no_order(clicks())
    env = StreamExecutionEnvironment()
    env.get_config().set_auto_watermark_interval(5)
    settings: dict[str, Any] = {"timestamp": "ts", "split": "part", "position": "offset"}
    if table_of == "delta":
        deltalake = pytest.importorskip("deltalake")
        for number in range(3):
            deltalake.write_deltalake(str(tmp_path), table(rows[number::3]), mode="append")
        stream = env.from_delta(str(tmp_path), **settings)
    else:
        pytest.importorskip("pyiceberg")
        from equipment.iceberg_tables import catalog_at

        catalog = catalog_at(tmp_path)
        lake = catalog.create_table("logs.clicks", schema=table(rows).schema)
        for number in range(3):
            lake.append(table(rows[number::3]))
        stream = env.from_iceberg(lake, **settings)
        catalog.close()
    found = windows(stream.filter(pc.field("offset") < 90)).to_arrow().to_pylist()
    expected = results(table([row for row in clicks() if row["offset"] < 90]))
    assert sorted(found, key=lambda row: row["user"]) == expected
