"""Directories of tables as paths of logs: read as the tables, or refused, and never as loose files."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.delta_tables import add_file, column, deletion_vector, write_delta_log
from equipment.iceberg_tables import catalog_at
from fsspec.implementations.memory import MemoryFileSystem
from pyarrow import fs
from pyiceberg.catalog import Catalog

from flinkcore.analysis import compare
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.common.split_origin import FILE
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.connectors.file_system import FileSource, StreamFormat
from flinkcore.errors import ConfigurationError, FlinkcoreError, SchemaError, SourceError
from flinkcore.testing import find_races

LOOSE = "rows that were removed"


def clicks(*numbers: int) -> pa.Table:
    """Clicks of these times, each of which arrives at once."""
    return pa.table(
        {
            "ts": pa.array(numbers, pa.int64()),
            "day": pa.array([number // 10 for number in numbers], pa.int64()),
            "user": ["ab"[number % 2] for number in numbers],
        }
    )


def overwritten(path: Path) -> Path:
    """A Delta table in two partitions, whose rows have been replaced once; both versions have files."""
    deltalake.write_deltalake(path, clicks(1, 2, 11), partition_by=["day"])
    deltalake.write_deltalake(path, clicks(3, 4, 12, 13), mode="overwrite")
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return overwritten(tmp_path / "lake" / "clicks")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    found = catalog_at(tmp_path)
    yield found
    found.close()


@pytest.fixture
def iceberg(catalog: Catalog) -> Any:
    """An Iceberg table whose rows have been replaced once."""
    found = catalog.create_table("logs.clicks", schema=clicks(1).schema)
    found.append(clicks(1, 2, 11))
    found.overwrite(clicks(3, 4, 12, 13))
    return found


def directory_of(iceberg: Any) -> Path:
    return Path(iceberg.location().removeprefix("file://"))


def log_of(path: Any, **settings: Any) -> DataStream:
    return StreamExecutionEnvironment().from_event_log(path, timestamp="ts", arrival="ts", **settings)


def times(path: Any, **settings: Any) -> list[int]:
    return sorted(log_of(path, **settings).to_arrow().column("ts").to_pylist())


def per_user(stream: DataStream) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(2))
    keyed = stream.assign_timestamps_and_watermarks(strategy).key_by("user")
    return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(n=count())


NOW = [3, 4, 12, 13]


def as_text(path: Path) -> Any:
    return str(path)


def with_slash(path: Path) -> Any:
    return f"{path}/"


def in_list(path: Path) -> Any:
    return [path]


def twice(path: Path) -> Any:
    return [path, f"{path}/"]


def as_uri(path: Path) -> Any:
    return path.as_uri()


def as_uri_with_slash(path: Path) -> Any:
    return f"{path.as_uri()}/"


def as_glob(path: Path) -> Any:
    return f"{path.parent}/{path.name[:3]}*"


def as_glob_of_uri(path: Path) -> Any:
    return f"{path.parent.as_uri()}/*"


def behind_link(path: Path) -> Any:
    link = path.parents[1] / "latest"
    link.symlink_to(path)
    return link


def behind_dots(path: Path) -> Any:
    return f"{path}/../{path.name}"


SAME = [as_text, with_slash, in_list, twice, as_uri, as_uri_with_slash, as_glob, as_glob_of_uri]


@pytest.mark.parametrize("named", [lambda path: path, *SAME, behind_link, behind_dots])
def test_the_directory_of_a_delta_table_is_that_table(table: Path, named: Callable[[Path], Any]) -> None:
    assert times(named(table)) == NOW


@pytest.mark.parametrize("named", [lambda path: path, *SAME, behind_link, behind_dots])
def test_a_local_directory_of_an_iceberg_table_is_that_table(
    iceberg: Any, named: Callable[[Path], Any]
) -> None:
    assert times(named(directory_of(iceberg))) == NOW


@pytest.mark.parametrize(
    "given", [fs.LocalFileSystem(), fs.SubTreeFileSystem("/", fs.LocalFileSystem())], ids=["local", "subtree"]
)
def test_a_table_in_a_local_file_system_that_is_given_is_read(table: Path, given: fs.FileSystem) -> None:
    assert times(str(table), filesystem=given) == NOW
    inside = fs.SubTreeFileSystem(str(table), fs.LocalFileSystem())
    with pytest.raises(SourceError, match="lies in a Delta table"):
        times("day=0", filesystem=inside)


def test_relative_paths_and_homes_name_tables(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table.parent)
    monkeypatch.setenv("HOME", str(table.parent))
    assert times("clicks") == times("./clicks/") == times("~/clicks") == NOW
    monkeypatch.chdir(table)
    assert times(".") == NOW


def test_a_table_without_rows_or_files_is_a_log_without_rows(tmp_path: Path) -> None:
    path = overwritten(tmp_path / "clicks")
    deltalake.DeltaTable(path).delete()
    assert times(path) == []


def test_rows_in_deletion_vectors_are_left_out(tmp_path: Path) -> None:
    file = add_file(tmp_path, "a.parquet", clicks(1, 2, 3, 4, 5), deletionVector=deletion_vector([1, 3]))
    columns = [column("ts", "long"), column("day", "long"), column("user", "string")]
    write_delta_log(tmp_path, columns, [file], features=["deletionVectors"])
    assert times(tmp_path) == [1, 3, 5]


def test_columns_are_found_by_their_mapping(tmp_path: Path) -> None:
    columns = [
        column("ts", "long", **{"columnMapping.id": 1, "columnMapping.physicalName": "c1"}),
        column("user", "string", **{"columnMapping.id": 2, "columnMapping.physicalName": "c2"}),
    ]
    file = add_file(tmp_path, "a.parquet", pa.table({"c1": [1, 2], "c2": ["a", "b"]}))
    mapping = {"delta.columnMapping.mode": "name"}
    write_delta_log(tmp_path, columns, [file], features=["columnMapping"], configuration=mapping)
    assert times(tmp_path) == [1, 2]


def test_a_table_that_cannot_be_read_is_no_loose_files_either(tmp_path: Path) -> None:
    file = add_file(tmp_path, "a.parquet", clicks(1))
    write_delta_log(
        tmp_path, [column("ts", "long")], [file], features=["variantType"], readers=["variantType"]
    )
    with pytest.raises(SourceError, match="has the feature variantType"):
        times(tmp_path)
    (empty := tmp_path / "x" / "_delta_log").mkdir(parents=True)
    pq.write_table(clicks(1), empty.parent / "a.parquet")
    with pytest.raises(SourceError):
        times(empty.parent)


def test_rows_of_a_table_have_no_positions_and_its_files_are_no_splits(table: Path) -> None:
    by_path = log_of(table)
    by_call = StreamExecutionEnvironment().from_delta(table, timestamp="ts", arrival="ts")
    assert per_user(by_path).execute().to_arrow() == per_user(by_call).execute().to_arrow()
    with pytest.raises(ConfigurationError, match="the files of a table are not splits"):
        times(table, split=FILE)


INSIDE = ["day=0", "day=*", "*/*.parquet", "**/*.parquet", "day=0/*", "_delta_log", "_delta_log/*.json"]


@pytest.mark.parametrize("inside", INSIDE)
def test_what_lies_in_a_delta_table_is_refused(table: Path, inside: str) -> None:
    with pytest.raises(SourceError, match=LOOSE) as caught:
        times(table / inside)
    assert f"from_delta('{table}')" in str(caught.value)
    with pytest.raises(SourceError, match=LOOSE):
        times([table.as_uri() + f"/{inside}"])


def test_single_files_and_links_into_a_table_are_refused(table: Path, tmp_path: Path) -> None:
    file = next(table.rglob("*.parquet"))
    (tmp_path / "day").symlink_to(table / "day=0")
    (links := tmp_path / "links").mkdir()
    (links / "a.parquet").symlink_to(file)
    (folders := tmp_path / "folders").mkdir()
    (folders / "today").symlink_to(table / "day=0")
    for path in (
        file,
        [file],
        tmp_path / "day",
        links,
        links / "a.parquet",
        folders,
        tmp_path / "*" / "*.parquet",
    ):
        with pytest.raises(SourceError, match=LOOSE):
            times(path)
    with pytest.raises(SourceError, match=LOOSE):
        times(file, format="parquet")


def test_a_directory_that_holds_a_table_is_refused(table: Path, iceberg: Any, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    pq.write_table(clicks(1), tmp_path / "other" / "a.parquet")
    for path in (
        table.parent,
        tmp_path,
        f"{tmp_path}/*",
        f"{tmp_path}/**/*.parquet",
        directory_of(iceberg).parent,
    ):
        with pytest.raises(SourceError, match=f"holds an? .* table|lies in a|{LOOSE}"):
            times(path)
    assert times(tmp_path / "other") == [1]


def test_several_tables_or_a_table_and_files_are_refused(table: Path, tmp_path: Path) -> None:
    overwritten(table.parent / "views")
    pq.write_table(clicks(1), tmp_path / "a.parquet")
    with pytest.raises(
        SourceError, match=r"name a Delta table, '.*clicks', and files besides, of a Delta table '.*views'"
    ):
        times(f"{table.parent}/*")
    for paths in ([table, tmp_path / "a.parquet"], [tmp_path / "a.parquet", table]):
        with pytest.raises(SourceError, match=r"files besides, such as '.*a.parquet'.*union\(\)"):
            times(paths)


def test_hidden_tables_are_passed_over_like_their_files(tmp_path: Path) -> None:
    overwritten(tmp_path / "_old" / "clicks")
    overwritten(tmp_path / ".trash")
    pq.write_table(clicks(1), tmp_path / "a.parquet")
    assert times(tmp_path) == times(f"{tmp_path}/*") == [1]


def test_files_that_are_listed_one_by_one_with_their_format_are_read_as_they_are(table: Path) -> None:
    files = sorted(table.rglob("*.parquet"))
    assert len(files) == 4
    assert times(files, format="parquet") == [1, 2, *NOW[:2], 11, *NOW[2:]]
    with pytest.raises(SourceError, match=LOOSE):
        times(files)
    for paths in ([table / "day=0"], [f"{table}/*/*.parquet"], [*files, table / "day=0"]):
        with pytest.raises(SourceError, match="give from_event_log a list of them and their format="):
            times(paths, format="parquet")


@pytest.mark.parametrize("settings", [{"format": "parquet"}, {"format_options": {"int96_unit": "ns"}}])
def test_the_format_of_a_table_is_not_asked_for(table: Path, settings: dict[str, Any]) -> None:
    for path in (table, [table]):
        with pytest.raises(
            ConfigurationError, match=r"are of files, and '.*clicks' is a Delta table\. Leave them out"
        ):
            times(path, **settings)


def test_what_lies_in_an_iceberg_table_is_refused(iceberg: Any) -> None:
    path = directory_of(iceberg)
    for inside in ("data", "data/*.parquet", "metadata", "metadata/*.json", "**/*.avro"):
        with pytest.raises(SourceError, match=LOOSE) as caught:
            times(path / inside)
        assert f"from_iceberg('{path}')" in str(caught.value)
    with pytest.raises(SourceError, match=LOOSE):
        times(next(path.rglob("*.parquet")))


OLD, NEW = 1, 2
"""Numbers of the metadata files before and after the rows were replaced."""


@pytest.mark.parametrize(
    ("hint", "names", "is_certain"),
    [
        ("2", {"v1.metadata.json": OLD, "v2.metadata.json": NEW}, True),
        (
            "1\n",
            {"v1.metadata.json": OLD, "v2.metadata.json": NEW},
            True,
        ),  # the hint is written after the file
        (None, {"v9.metadata.json": OLD, "v10.metadata.json": NEW}, True),
        (None, {"00009-b.metadata.json": OLD, "00010-a.metadata.json": NEW}, True),
        ("3", {"v1.metadata.json": OLD, "v2.metadata.json": NEW}, False),
        (None, {"00001-b.metadata.json": OLD, "00001-a.metadata.json": NEW}, False),
        (None, {"v1.metadata.json": OLD, "00002-a.metadata.json": NEW}, False),
        ("1", {"v1.metadata.json": OLD, "00002-a.metadata.json": NEW}, False),
        ("one", {"v1.metadata.json": NEW}, False),
        (None, {"newest.metadata.json": NEW}, False),
        ("1", {}, False),
    ],
)
def test_the_newest_metadata_file_is_read_if_it_is_certain_which_it_is(
    iceberg: Any, hint: str | None, names: dict[str, int], is_certain: bool
) -> None:
    folder = directory_of(iceberg) / "metadata"
    files = sorted(folder.glob("*.metadata.json"))
    assert [int(file.name[:5]) for file in files] == [0, OLD, NEW]
    for name, number in names.items():
        shutil.copy(files[number], folder / name)
    for file in files:
        file.unlink()
    if hint is not None:
        (folder / "version-hint.text").write_text(hint)
    if is_certain:
        assert times(folder.parent) == NOW
    else:
        with pytest.raises(SourceError, match=r"the newest metadata file of .* is not certain"):
            times(folder.parent)


def test_a_table_of_two_formats_asks_which_of_them_counts(table: Path) -> None:
    (table / "metadata").mkdir()
    (table / "metadata" / "v1.metadata.json").write_text("{}")
    with pytest.raises(
        SourceError, match=r"Delta and Iceberg table.*from_delta\('.*'\).*, or with from_iceberg"
    ):
        times(table)


def test_a_hudi_table_is_left_to_spark(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    pq.write_table(clicks(1), tmp_path / "a.parquet")
    for path in (tmp_path, tmp_path / "*.parquet", tmp_path / "a.parquet"):
        with pytest.raises(
            SourceError, match=r"a Hudi table.* with Spark, and give from_event_log the DataFrame"
        ):
            times(path)


def test_directories_with_names_like_those_of_tables_are_none(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "about.json").write_text(json.dumps({}))
    (tmp_path / "clicks").mkdir()
    pq.write_table(clicks(1), tmp_path / "clicks" / "a.parquet")
    pq.write_table(clicks(2), tmp_path / "clicks" / "x_delta_log.parquet")
    assert times(tmp_path / "clicks") == times(f"{tmp_path}/*/*.parquet") == [1, 2]


def test_tables_in_stores_are_found_in_listings(table: Path) -> None:
    store = MemoryFileSystem()
    store.put(str(table), "/lake/clicks", recursive=True)
    try:
        for path in ("/lake", "/lake/clicks", "/lake/clicks/day=0", "/lake/*", "/lake/*/*/*.parquet"):
            with pytest.raises(SourceError, match=LOOSE):
                times(path, filesystem=store)
        files = [file for file in store.find("/lake/clicks") if file.endswith(".parquet")]
        assert len(times(files, filesystem=store, format="parquet")) == 7
    finally:
        store.rm("/lake", recursive=True)


def test_reports_and_plans_name_the_version_that_is_read(table: Path, iceberg: Any) -> None:
    snapshot = iceberg.current_snapshot().snapshot_id
    for path, name in (
        (table, f"Delta table {table} at version 1"),
        (directory_of(iceberg), f"Iceberg table {directory_of(iceberg)} at snapshot {snapshot}"),
    ):
        job = per_user(log_of(str(path)))
        result = job.execute()
        result.to_arrow()
        assert result.report.tables == [name]
        assert f"read as {name}" in str(result.report).splitlines()
        assert f"     {path}: read as {name}, in order of arrival" in job.explain().splitlines()
        assert job.lateness().tables == (name,)
        assert f"read as {name}" in str(job.lateness())
        history = job.why({"user": "a"})
        assert history.tables == [name]
        assert f"  read as {name}" in str(history)
        races = find_races(per_user, path, timestamp="ts", arrival="ts")
        assert races.tables == [name]
        assert f"read as {name}" in str(races)
    assert "order of arrival" not in per_user(log_of(clicks(1))).explain()


def test_races_are_looked_for_in_the_order_of_arrivals(tmp_path: Path) -> None:
    for numbers in ((11, 12, 13), (1, 2, 3)):
        deltalake.write_deltalake(tmp_path / "clicks", clicks(*numbers), mode="append")
    expected = per_user(log_of(tmp_path / "clicks")).execute().to_arrow()
    seen: list[int] = []

    def job(stream: DataStream) -> DataStream:
        results = per_user(stream)
        seen.append(results.execute().to_arrow().num_rows)
        return results

    assert not find_races(job, tmp_path / "clicks", timestamp="ts", arrival="ts")
    assert seen[0] == expected.num_rows  # of the log as it is


def test_results_are_not_written_beside_the_files_of_a_table(
    table: Path, iceberg: Any, tmp_path: Path
) -> None:
    results = per_user(log_of(clicks(1, 2)))
    for path in (table, table / "new", directory_of(iceberg) / "data" / "new"):
        for mode in ("error", "overwrite"):
            with pytest.raises(ConfigurationError, match="Parquet files beside its own are not rows of it"):
                results.execute().write_parquet(path, mode=mode)
    for path in (table / "new", directory_of(iceberg) / "new"):
        with pytest.raises(ConfigurationError, match=r"lies in .*, which is an? (Delta|Iceberg) table"):
            results.execute().write_delta(path)
    with pytest.raises(ConfigurationError, match="write_iceberg commits through a catalog"):
        results.execute().write_iceberg(str(directory_of(iceberg)))
    assert not (table / "new").exists()
    results.execute().write_parquet(tmp_path / "results")


def test_a_source_of_files_refuses_directories_of_tables(table: Path, tmp_path: Path) -> None:
    def lines(path: Path) -> list[Any]:
        environment = StreamExecutionEnvironment.get_execution_environment()
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path)).build()
        stream = environment.from_source(source, WatermarkStrategy.no_watermarks(), "files")
        return list(stream.execute_and_collect())

    (table / "day=0" / "a.txt").write_text("one\n")
    for path in (table, table / "day=0", table.parent, tmp_path):
        with pytest.raises(FlinkcoreError, match=LOOSE):
            lines(path)
    assert lines(table / "day=0" / "a.txt") == ["one"]


def test_missing_libraries_are_named_with_their_extra(
    table: Path, iceberg: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, library, extra in (
        (table, "deltalake", "delta"),
        (directory_of(iceberg), "pyiceberg", "iceberg"),
    ):
        with monkeypatch.context() as patch:
            for module in [name for name in sys.modules if name.partition(".")[0] == library]:
                patch.setitem(sys.modules, module, None)
            patch.setitem(sys.modules, library, None)
            with pytest.raises(ConfigurationError, match=rf"table {path} needs .* 'flinkcore\[{extra}\]'"):
                times(path)


def test_columns_that_a_table_lacks_are_named(table: Path) -> None:
    with pytest.raises(SchemaError, match="which the log does not have: ts, day, user"):
        times(table, split="device")
    assert os.listdir(table)


def test_objects_of_tables_and_paths_of_results_say_where_they_go(table: Path, iceberg: Any) -> None:
    for given, call in ((deltalake.DeltaTable(table), "from_delta"), (iceberg, "from_iceberg")):
        with pytest.raises(ConfigurationError, match=f"give it to {call}"):
            log_of(given)
    for path in (table, str(table)):
        with pytest.raises(ConfigurationError, match=r"deltalake\.DeltaTable\(path\)\.to_pyarrow_table\(\)"):
            compare(path, clicks(1), keys="ts")


def test_from_iceberg_takes_the_directory_of_a_table(iceberg: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, first = directory_of(iceberg), iceberg.snapshots()[0].snapshot_id
    monkeypatch.chdir(path.parent)
    for given in (path, str(path), path.as_uri(), f"./{path.name}"):
        environment = StreamExecutionEnvironment()
        for snapshot, expected in ((None, NOW), (first, [1, 2, 11])):
            log = environment.from_iceberg(given, timestamp="ts", arrival="ts", snapshot=snapshot)
            assert sorted(log.to_arrow().column("ts").to_pylist()) == expected
    with pytest.raises(SourceError, match="only its catalog knows which metadata it has"):
        StreamExecutionEnvironment().from_iceberg("s3://lake/clicks", timestamp="ts").to_arrow()
