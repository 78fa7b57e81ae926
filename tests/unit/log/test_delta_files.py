"""Delta tables as logs: versions, partitions, schemas that have changed, deletion vectors."""

import subprocess
import sys
import uuid
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from equipment.delta_tables import add_file, column, deletion_vector, write_delta_log
from fsspec.implementations.local import LocalFileSystem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import fs

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.common.split_origin import FILE
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import collect, count, sum_
from flinkcore.datastream.graph.lake_tables import DeltaTable
from flinkcore.errors import ConfigurationError, SchemaError, SourceError
from flinkcore.log.tables.lake_files import table_files


def rows(table: Any, *where: Any, **settings: Any) -> list[dict[str, Any]]:
    """The rows of the log that a table is."""
    source = table_files(
        DeltaTable(str(table) if isinstance(table, Path) else table, where=where, **settings)
    )
    return [row for chunk in source.chunks(1) for batch in chunk.read(None, 3) for row in batch.to_pylist()]


def clicks(n: int, start: int = 0) -> pa.Table:
    """Clicks that arrive 100 ms apart, up to 1.3 s after they have happened."""
    numbers = range(start, start + n)
    return pa.table(
        {
            "ts": pa.array([i * 100 - i * 7 % 13 * 100 for i in numbers], pa.int64()),
            "arrival": pa.array([i // 2 * 200 for i in numbers], pa.int64()),
            "user": pa.array(["abc"[i % 3] for i in numbers], pa.string()),
            "price": pa.array([i * 37 % 11 for i in numbers], pa.int64()),
            "day": pa.array([i // 20 for i in numbers], pa.int32()),
        }
    )


def per_second(stream: DataStream) -> pa.Table:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(500))
    keyed = stream.assign_timestamps_and_watermarks(strategy).key_by("user")
    windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).allowed_lateness(
        Time.milliseconds(300)
    )
    table: pa.Table = windows.aggregate(
        clicks=count(), spent=sum_("price"), prices=collect("price")
    ).to_arrow()
    return table


def content(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


EXPECTED = content(
    per_second(StreamExecutionEnvironment().from_event_log(clicks(40), timestamp="ts", arrival="arrival"))
)


def from_delta(table: Any, **settings: Any) -> DataStream:
    return StreamExecutionEnvironment().from_delta(table, timestamp="ts", arrival="arrival", **settings)


def test_a_table_is_read_at_its_latest_or_any_other_version(tmp_path: Path) -> None:
    path = str(tmp_path / "clicks")
    deltalake.write_deltalake(path, pa.table({"x": [1, 2]}))
    deltalake.write_deltalake(path, pa.table({"x": [3]}), mode="append")
    between = datetime.now(timezone.utc)
    deltalake.write_deltalake(path, pa.table({"x": [4]}), mode="overwrite")
    assert rows(path) == [{"x": 4}]
    assert rows(path, version=0) == [{"x": 1}, {"x": 2}]
    first_two = [{"x": 1}, {"x": 2}, {"x": 3}]
    assert sorted(rows(path, version=1), key=str) == first_two
    assert sorted(rows(path, version=between), key=str) == first_two
    assert sorted(rows(path, version=between.isoformat()), key=str) == first_two
    assert rows(deltalake.DeltaTable(path, version=0)) == [{"x": 1}, {"x": 2}]


def test_a_version_that_is_not_there_and_a_path_without_a_table_are_named(tmp_path: Path) -> None:
    path = str(tmp_path / "clicks")
    with pytest.raises(SourceError, match=r"Delta table /.*/clicks cannot be read: .*clicks"):
        rows(path)
    deltalake.write_deltalake(path, pa.table({"x": [1]}))
    with pytest.raises(SourceError, match=r"clicks at version 7 cannot be read: .*newest version is 0"):
        rows(path, version=7)


def test_partition_values_have_the_types_of_their_columns(tmp_path: Path) -> None:
    values = {
        "text": ["a b/c%=", "ü:x", None],
        "day": [date(2001, 1, 2)] * 3,
        "at": pa.array([datetime(2001, 1, 2, 3, 4, 5, 678901)] * 3, pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.20"), None, Decimal("-3.00")], pa.decimal128(5, 2)),
        "paid": [True, False, None],
    }
    table = pa.table({"x": pa.array([1, 2, 3], pa.int64()), **values})
    path = tmp_path / "with space and ü"
    deltalake.write_deltalake(path, table, partition_by=list(values))
    assert sorted(rows(path), key=lambda row: row["x"]) == table.to_pylist()


def test_columns_that_came_later_are_null_in_the_rows_before(tmp_path: Path) -> None:
    path = str(tmp_path / "clicks")
    deltalake.write_deltalake(path, pa.table({"x": [1]}))
    deltalake.write_deltalake(path, pa.table({"y": ["a"], "x": [2]}), mode="append", schema_mode="merge")
    assert sorted(rows(path), key=str) == [{"x": 1, "y": None}, {"x": 2, "y": "a"}]


def test_a_table_without_files_has_no_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "clicks")
    deltalake.write_deltalake(path, clicks(0))
    assert rows(path) == []
    assert per_second(from_delta(path)).num_rows == 0


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_with_another_name_in_the_files_are_found(tmp_path: Path, mode: str) -> None:
    mapped = {"columnMapping.id": 1, "columnMapping.physicalName": "col-1"}
    columns = [
        column("now", "long", **mapped),
        column("added", "string", **{"columnMapping.id": 3, "columnMapping.physicalName": "col-3"}),
        column("day", "integer", **{"columnMapping.id": 2, "columnMapping.physicalName": "col-2"}),
    ]
    field = pa.field("col-1", pa.int64(), metadata={"PARQUET:field_id": "1"})
    data = pa.table([pa.array([1, 2])], schema=pa.schema([field]))
    path = tmp_path / "clicks"
    write_delta_log(
        path,
        columns,
        [add_file(path, "a.parquet", data, {"col-2": "7"})],
        features=["columnMapping"],
        configuration={"delta.columnMapping.mode": mode},
        partition_by=["day"],
    )
    assert rows(path) == [{"now": 1, "added": None, "day": 7}, {"now": 2, "added": None, "day": 7}]
    assert rows(path, pc.field("now") > 1) == [{"now": 2, "added": None, "day": 7}]


def test_types_that_have_been_widened_have_the_values_of_older_files(tmp_path: Path) -> None:
    path = tmp_path / "clicks"
    old = pa.table({"x": pa.array([1, None], pa.int32()), "y": pa.array([1.5, 2.5], pa.float32())})
    new = pa.table({"x": pa.array([1 << 40], pa.int64()), "y": pa.array([0.1], pa.float64())})
    write_delta_log(
        path,
        [column("x", "long", typeChanges=[{"fromType": "integer", "toType": "long"}]), column("y", "double")],
        [add_file(path, "a.parquet", old), add_file(path, "b.parquet", new)],
        features=["typeWidening"],
    )
    assert rows(path) == [{"x": 1, "y": 1.5}, {"x": None, "y": 2.5}, {"x": 1 << 40, "y": 0.1}]


def test_rows_in_a_deletion_vector_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "clicks"
    deleted = {0, 3, 4, 9, 10, 11}
    table = clicks(15)
    write_delta_log(
        path,
        [column(name, "string" if name == "user" else "long") for name in table.column_names],
        [
            add_file(path, "a ü=%2F.parquet", table, deletionVector=deletion_vector(deleted)),
            add_file(path, "z.parquet", clicks(3, 15)),
        ],
        features=["deletionVectors"],
    )
    left = [row for at, row in enumerate(clicks(18).to_pylist()) if at not in deleted]
    assert rows(path) == left
    assert rows(path, pc.field("arrival") > 900) == [row for row in left if row["arrival"] > 900]
    expected = StreamExecutionEnvironment().from_event_log(
        pa.Table.from_pylist(left, table.schema), timestamp="ts", arrival="arrival"
    )
    assert content(per_second(from_delta(path))) == content(per_second(expected))


def test_without_arrivals_the_order_is_that_of_the_files_and_the_report_says_so(tmp_path: Path) -> None:
    path = str(tmp_path / "clicks")
    for number in range(3):
        deltalake.write_deltalake(path, clicks(1, number), mode="append")
    log = StreamExecutionEnvironment().from_delta(path, timestamp="ts", rate=10)
    explained = str(log.explain())
    assert "clicks: timestamp ts, arrival by position, 10 records/s from 0 ms, one split, unless" in explained
    assert "unless its columns are those of Kafka, in the order of the" in explained
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    windows = log.assign_timestamps_and_watermarks(strategy).key_by("user").count_window(1)
    report = str(windows.aggregate(n=count()).execute().report)
    assert "order of the events: that of the table's files, for there is no arrival" in report


def test_a_feature_that_changes_what_files_mean_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "clicks"
    file = add_file(path, "a.parquet", pa.table({"x": [1]}))
    write_delta_log(path, [column("x", "long")], [file], features=["variantType"])
    with pytest.raises(
        SourceError,
        match=r"Delta table /.*/clicks has the feature variantType.* give from_event_log the DataFrame",
    ):
        rows(path)


def test_files_of_another_table_are_refused(tmp_path: Path) -> None:
    file = {
        **add_file(tmp_path / "of", "a.parquet", pa.table({"x": [1]})),
        "path": f"file://{tmp_path}/of/a.parquet",
    }
    path = write_delta_log(tmp_path / "clone", [column("x", "long")], [file])
    with pytest.raises(
        SourceError, match=r"Delta table /.*/clone has files elsewhere, as a shallow clone has"
    ):
        rows(path)


def test_results_are_the_same_however_a_table_is_compacted(tmp_path: Path) -> None:
    path = str(tmp_path / "clicks")
    for start in (40, 0, 20):
        deltalake.write_deltalake(path, clicks(20, start), mode="append", partition_by=["day"])
    expected = content(
        per_second(StreamExecutionEnvironment().from_event_log(clicks(60), timestamp="ts", arrival="arrival"))
    )
    assert content(per_second(from_delta(path))) == expected
    deltalake.DeltaTable(path).optimize.z_order(["price"])
    assert deltalake.DeltaTable(path).version() == 3
    assert content(per_second(from_delta(path))) == expected
    assert content(per_second(from_delta(path, version=2))) == expected
    by_day = {
        repr(version): content(per_second(from_delta(path, version=version, split="day")))
        for version in (2, 3)
    }
    assert by_day["2"] == by_day["3"]


def test_a_condition_belongs_to_the_log_and_spares_reading_files(tmp_path: Path) -> None:
    path = tmp_path / "clicks"
    deltalake.write_deltalake(path, clicks(60), partition_by=["day"])
    for file in path.glob("day=0/*.parquet"):
        file.unlink()
    stream = from_delta(path).filter(pc.field("day") > 0).filter(pc.field("price") < 9)
    expected = [row for row in clicks(60).to_pylist() if row["day"] > 0 and row["price"] < 9]
    log = pa.Table.from_pylist(expected, clicks(0).schema)
    result = per_second(stream)
    in_memory = StreamExecutionEnvironment().from_event_log(log, timestamp="ts", arrival="arrival")
    assert content(result) == content(per_second(in_memory))
    assert "clicks, where (day > 0), where (price < 9): timestamp ts" in stream.explain()
    later = from_delta(path).with_columns(cents=pc.field("price") * 100).filter(pc.field("cents") < 900)
    with pytest.raises(SourceError, match="is not there any more"):
        per_second(later)


def test_functions_of_single_elements_take_the_rows_of_a_table(tmp_path: Path) -> None:
    path = str(tmp_path / "clicks")
    deltalake.write_deltalake(path, clicks(5))
    prices = from_delta(path).filter(pc.field("price") > 0).map(lambda click: click["price"])
    assert list(prices.execute_and_collect()) == [
        price for price in clicks(5)["price"].to_pylist() if price > 0
    ]


def test_files_are_on_the_file_system_that_is_given(tmp_path: Path) -> None:
    path = tmp_path / "a ü"
    counted = fs.PyFileSystem(Counted())
    log = StreamExecutionEnvironment().from_event_log(clicks(30), timestamp="ts", arrival="arrival")
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    windows = log.assign_timestamps_and_watermarks(strategy).key_by("user").count_window(5)
    windows.aggregate(n=count()).write_delta(path, filesystem=counted)
    assert Counted.written == 1
    assert [row["n"] for row in rows(path)] == [5] * 6
    assert [row["n"] for row in rows(path, filesystem=counted)] == [5] * 6
    assert Counted.read >= 1


class Counted(fs.FSSpecHandler):
    """The local file system, which counts what is opened."""

    read = written = 0

    def __init__(self) -> None:
        super().__init__(LocalFileSystem())

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        Counted.written += 1
        return super().open_output_stream(path, metadata)

    def open_input_file(self, path: str) -> Any:
        Counted.read += 1
        return super().open_input_file(path)


def test_a_deletion_vector_of_a_file_that_is_not_listed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "clicks"
    file = add_file(path, "a.parquet", pa.table({"x": [1]}), deletionVector=deletion_vector([0]))
    write_delta_log(path, [column("x", "long")], [file], features=["deletionVectors"])
    vectors = pa.table({"filepath": [f"file://{tmp_path}/b.parquet"], "selection_vector": [[False]]})
    monkeypatch.setattr(deltalake.DeltaTable, "deletion_vectors", lambda table: vectors.to_reader())
    with pytest.raises(
        SourceError, match=r"has deletion vectors of files that it does not list, .*b\.parquet"
    ):
        rows(path)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_results_are_the_same_wherever_the_rows_of_a_table_lie(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / uuid.uuid4().hex
    table = clicks(40)
    order = data.draw(st.permutations(range(40)))
    cuts = sorted(data.draw(st.lists(st.integers(0, 40), max_size=4)))
    files, junk = [], data.draw(st.integers(0, 7))
    for number, (start, stop) in enumerate(pairwise([0, *cuts, 40])):
        rows_of_file = pa.concat_tables([clicks(junk), table.take(pa.array(order[start:stop], pa.int64()))])
        files.append(
            add_file(
                path,
                f"{number}.parquet",
                rows_of_file,
                **({"deletionVector": deletion_vector(range(junk))} if junk else {}),
            )
        )
    columns = [column(name, "string" if name == "user" else "long") for name in table.column_names]
    write_delta_log(path, columns, files, features=["deletionVectors"])
    assert content(per_second(from_delta(path))) == EXPECTED


def test_a_condition_that_does_not_fit_the_table_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "clicks")
    deltalake.write_deltalake(path, clicks(3))
    with pytest.raises(SchemaError, match="there is no column cost"):
        per_second(from_delta(path).filter(pc.field("cost") > 1))


@pytest.mark.parametrize(
    ("define", "message"),
    [
        (lambda: from_delta(""), "from_delta takes the path of a table, or a deltalake.DeltaTable, not ''"),
        (lambda: from_delta(clicks(1)), "from_delta takes the path of a table"),
        (lambda: from_delta("clicks", version=1.5), r"version= is a number, or a time .*, not 1\.5"),
        (lambda: from_delta("clicks", version=True), "version= is a number"),
        (lambda: from_delta("clicks", split=FILE), "the files of a table are not splits"),
    ],
)
def test_settings_without_meaning_are_refused(define: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        define()


def test_a_version_is_not_given_beside_a_table_that_has_one(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "clicks", clicks(1))
    with pytest.raises(ConfigurationError, match="version= and storage_options= are for a path"):
        from_delta(deltalake.DeltaTable(tmp_path / "clicks"), version=0)


def test_the_extra_is_named_where_the_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(
        ConfigurationError,
        match=r"from_delta needs the library deltalake, .*: pip install 'flinkcore\[delta\]'",
    ):
        from_delta("clicks")


def test_libraries_of_tables_are_imported_only_where_they_are_asked_for() -> None:
    program = (
        "import sys, pyarrow as pa\n"
        "from flinkcore.datastream import StreamExecutionEnvironment\n"
        "log = StreamExecutionEnvironment().from_event_log(pa.table({'ts': [1], 'k': [1]}), timestamp='ts')\n"
        "log.key_by('k').count_window(1).aggregate(n=__import__('flinkcore').datastream.aggregates.count()).to_arrow()\n"
        "print([name for name in ('deltalake', 'pyiceberg') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_topics_of_a_table_have_partitions_of_their_own(tmp_path: Path) -> None:
    topics = pa.table({"at": [1, 2, 3, 4], "topic": ["a", "a", "b", "b"], "partition": [0, 1, 0, 0]})
    for number, (table, splits) in enumerate([(topics, ["a/0", "a/1", "b/0"]), (topics.slice(0, 2), [0, 1])]):
        path = str(tmp_path / str(number))
        deltalake.write_deltalake(path, table, partition_by=["topic", "partition"])
        stream = StreamExecutionEnvironment().from_delta(path, timestamp="at")
        assert sorted(stream.execute().report.split_watermarks) == splits
