"""Iceberg tables as logs: snapshots, partitions, schemas that have changed, deleted rows."""

import contextlib
import json
import sys
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyiceberg.catalog
import pytest
from equipment.iceberg_tables import add_file, catalog_at, data_files, puffin
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, StringType
from pyiceberg.utils.config import Config

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.graph.lake_tables import IcebergTable
from flinkcore.errors import ConfigurationError, SchemaError, SourceError
from flinkcore.log.tables.lake_files import table_files


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    found = catalog_at(tmp_path)
    yield found
    found.close()


def table_of(catalog: Catalog, rows: pa.Table, name: str = "logs.clicks", **properties: str) -> Any:
    table = catalog.create_table(name, schema=rows.schema, properties=properties)
    if rows.num_rows:
        table.append(rows)
    return table


def rows(table: Any, *where: Any, **settings: Any) -> list[dict[str, Any]]:
    """The rows of the log that a table is."""
    source = table_files(IcebergTable(table, None, where, **settings))
    return [row for chunk in source.chunks(1) for batch in chunk.read(None, 3) for row in batch.to_pylist()]


def in_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=str)


def test_a_table_is_read_in_its_current_or_any_other_snapshot(catalog: Catalog) -> None:
    table = table_of(catalog, pa.table({"x": [1, 2]}))
    first = table.current_snapshot().snapshot_id
    between = datetime.now(timezone.utc)
    table.append(pa.table({"x": [3]}))
    table.manage_snapshots().create_tag(first, "yesterday").commit()
    table.overwrite(pa.table({"x": [4]}))
    assert rows(table) == [{"x": 4}]
    assert rows(table, snapshot=first) == rows(table, snapshot="yesterday") == [{"x": 1}, {"x": 2}]
    assert (
        rows(table, snapshot=between)
        == rows(table, snapshot=between.replace(tzinfo=None))
        == [{"x": 1}, {"x": 2}]
    )
    assert rows(table.metadata_location) == [{"x": 4}]
    assert rows(table.metadata_location, snapshot=first) == [{"x": 1}, {"x": 2}]


def test_a_name_is_that_of_a_table_in_the_default_catalog(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "test")
    monkeypatch.setenv("PYICEBERG_CATALOG__TEST__URI", catalog.properties["uri"])
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    clicks = table_of(catalog, pa.table({"x": [1, 2]}))
    with contextlib.ExitStack() as opened:
        load = pyiceberg.catalog.load_catalog
        monkeypatch.setattr(
            pyiceberg.catalog,
            "load_catalog",
            lambda *name: opened.enter_context(contextlib.closing(load(*name))),
        )
        log = StreamExecutionEnvironment().from_iceberg("logs.clicks", timestamp="x", arrival="x")
        assert log.to_arrow().to_pylist() == [{"x": 1}, {"x": 2}]
        assert log.write_iceberg("logs.clicks").results == 2
        assert in_order(rows("logs.clicks")) == [{"x": 1}, {"x": 1}, {"x": 2}, {"x": 2}]
        with pytest.raises(
            SourceError, match=r"Iceberg table logs\.nothing cannot be opened: .*default catalog"
        ):
            rows("logs.nothing")
    assert in_order(rows(clicks.refresh())) == [{"x": 1}, {"x": 1}, {"x": 2}, {"x": 2}]


def test_a_metadata_file_names_no_class_to_load(catalog: Catalog, tmp_path: Path) -> None:
    table = table_of(catalog, pa.table({"x": [1]}))
    written = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(written.read_text())
    # As the arguments of a program, such a class takes the names of all properties, in their order.
    metadata["properties"] = {"touch": "", str(tmp_path / "ran"): "", "py-io-impl": "subprocess.Popen"}
    forged = written.with_name("forged.metadata.json")
    forged.write_text(json.dumps(metadata))
    assert rows(str(forged)) == [{"x": 1}]
    assert not (tmp_path / "ran").exists()


def test_a_snapshot_that_is_not_there_is_named_with_those_that_are(catalog: Catalog) -> None:
    table = table_of(catalog, pa.table({"x": [1]}))
    known = table.current_snapshot().snapshot_id
    with pytest.raises(
        SourceError,
        match=rf"Iceberg table .*logs.clicks at snapshot 7 .* no such snapshot; snapshots: {known}, .*main",
    ):
        rows(table, snapshot=7)
    with pytest.raises(SourceError, match="no such snapshot"):
        rows(table, snapshot=datetime(2001, 1, 1))
    with pytest.raises(SourceError, match=r"at snapshot tomorrow cannot be read: .*main"):
        rows(table, snapshot="tomorrow")


def test_columns_are_those_of_the_snapshot_and_found_by_their_ids(catalog: Catalog) -> None:
    table = table_of(
        catalog, pa.table({"a": pa.array([1], pa.int32()), "b": ["x"], "c": pa.array([0.5], pa.float32())})
    )
    first = table.current_snapshot().snapshot_id
    with table.update_schema() as schema:
        schema.delete_column("b")
        schema.update_column("a", LongType())
        schema.update_column("c", DoubleType())
        schema.move_first("c")
    with table.update_schema() as schema:
        schema.add_column("b", StringType())
        schema.rename_column("a", "id")
    table.append(pa.table({"c": [1.5], "id": [1 << 40], "b": ["y"]}))
    assert in_order(rows(table)) == [{"c": 0.5, "id": 1, "b": None}, {"c": 1.5, "id": 1 << 40, "b": "y"}]
    assert rows(table, pc.field("b") == "y") == [{"c": 1.5, "id": 1 << 40, "b": "y"}]
    assert rows(table, snapshot=first) == [{"a": 1, "b": "x", "c": 0.5}]


def test_partitions_may_have_changed_and_spare_reading_files(catalog: Catalog) -> None:
    day, at = date(2001, 1, 2), datetime(2001, 1, 2, 3, 4, 5, 678901, timezone.utc)

    def clicks(*numbers: int) -> pa.Table:
        return pa.table(
            {
                "x": pa.array(numbers, pa.int64()),
                "day": pa.array([day] * len(numbers)),
                "at": pa.array([at] * len(numbers), pa.timestamp("us", "UTC")),
                "price": pa.array([Decimal("1.20")] * len(numbers), pa.decimal128(5, 2)),
                "user": pa.array([None if number % 2 else "a" for number in numbers], pa.string()),
            }
        )

    table = table_of(catalog, clicks(0, 1))
    with table.update_spec() as spec:
        for column in ("day", "at", "price", "user"):
            spec.add_field(column, IdentityTransform(), f"by_{column}")
    table.append(clicks(2, 3))
    with table.update_spec() as spec:
        spec.remove_field("by_day")
    table.append(clicks(4, 5))
    assert in_order(rows(table)) == clicks(*range(6)).to_pylist()
    for location in data_files(table):
        if "by_user=a" in location:
            Path(location.removeprefix("file://")).unlink()
    assert in_order(rows(table, pc.field("user").is_null())) == clicks(1, 3, 5).to_pylist()


def position_deletes(*deleted: tuple[str, int]) -> pa.Table:
    return pa.table({"file_path": [file for file, _ in deleted], "pos": [row for _, row in deleted]})


def test_rows_of_position_deletes_are_left_out(catalog: Catalog) -> None:
    table = table_of(catalog, pa.table({"x": list(range(10))}), **{"write.parquet.row-group-limit": "4"})
    table.append(pa.table({"x": [10, 11]}))
    first, second = sorted(data_files(table), key=lambda file: -pq.read_metadata(file[7:]).num_rows)
    before = table.current_snapshot().snapshot_id
    for name, deletes in (
        ("a.parquet", position_deletes((first, 0), (first, 5), (second, 1))),
        ("b.parquet", position_deletes((first, 9), (first, 5))),
    ):
        add_file(table, name, deletes, DataFileContent.POSITION_DELETES)
    assert sorted(row["x"] for row in rows(table)) == [1, 2, 3, 4, 6, 7, 8, 10]
    assert sorted(row["x"] for row in rows(table, pc.field("x") > 7)) == [8, 10]
    assert sorted(row["x"] for row in rows(table, snapshot=before)) == list(range(12))


def test_rows_of_deletion_vectors_are_left_out(catalog: Catalog) -> None:
    table = table_of(catalog, pa.table({"x": list(range(10))}))
    table.append(pa.table({"x": [10, 11]}))
    first, second = sorted(data_files(table), key=lambda file: -pq.read_metadata(file[7:]).num_rows)
    add_file(
        table,
        "a.puffin",
        puffin({first: [0, 1, 8], second: [1]}),
        DataFileContent.POSITION_DELETES,
        file_format=FileFormat.PUFFIN,
    )
    assert sorted(row["x"] for row in rows(table)) == [2, 3, 4, 5, 6, 7, 9, 10]


def test_equality_deletes_are_refused(catalog: Catalog) -> None:
    table = table_of(catalog, pa.table({"x": [1, 2]}))
    field = pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "1"})
    deletes = pa.table([pa.array([1])], schema=pa.schema([field]))
    add_file(table, "a.parquet", deletes, DataFileContent.EQUALITY_DELETES, equality_ids=[1])
    with pytest.raises(
        SourceError,
        match=r"logs\.clicks .*equality deletes.* compact it, or read it with Spark, and give",
    ):
        rows(table)


def test_files_that_are_not_parquet_are_refused(catalog: Catalog) -> None:
    table = table_of(catalog, pa.table({"x": [1, 2]}))
    add_file(table, "a.orc", pa.table({"x": [3]}), file_format=FileFormat.ORC)
    with pytest.raises(
        SourceError, match=r"logs\.clicks has a file that is not Parquet, file:.*a\.orc: rewrite"
    ):
        rows(table)


def test_encrypted_files_are_refused(catalog: Catalog) -> None:
    table = table_of(catalog, pa.table({"x": [1, 2]}))
    add_file(table, "a.parquet", pa.table({"x": [3]}), key_metadata=b"key")
    with pytest.raises(
        SourceError,
        match=r"logs\.clicks has an encrypted file, file:.*/a\.parquet: read it with Spark, and give",
    ):
        rows(table)


def test_columns_with_a_default_value_for_earlier_files_are_refused(catalog: Catalog) -> None:
    table = table_of(catalog, pa.table({"x": [1]}))
    with table.update_schema() as schema:
        schema.add_column("y", LongType())
    written = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(written.read_text())
    # Only version 3 has such columns, and pyiceberg reads it only.
    metadata |= {"format-version": 3, "next-row-id": 0}
    column = metadata["schemas"][-1]["fields"][-1]

    def with_default(kind: str) -> str:
        column[kind] = 5
        written.write_text(json.dumps(metadata))
        return str(written)

    assert rows(with_default("write-default")) == [{"x": 1, "y": None}]
    with pytest.raises(
        SourceError,
        match=r"column 'y' of Iceberg table /.* has a default value for files .*: rewrite these, or read",
    ):
        rows(with_default("initial-default"))


def test_nested_columns_whose_fields_have_changed_are_refused(catalog: Catalog) -> None:
    table = table_of(catalog, pa.table({"at": [{"x": 1, "y": "a"}], "ids": [["b"]]}))
    assert rows(table) == [{"at": {"x": 1, "y": "a"}, "ids": ["b"]}]
    with table.update_schema() as schema:
        schema.delete_column("at.y")
    with table.update_schema() as schema:
        schema.add_column(("at", "y"), StringType())
    with pytest.raises(SourceError, match=r"column 'at' of Iceberg table .*logs\.clicks is nested, and its"):
        rows(table)


def test_files_without_field_ids_need_a_name_mapping(catalog: Catalog, tmp_path: Path) -> None:
    table = table_of(catalog, pa.table({"x": [1], "y": ["a"]}))
    add_file(table, "a.parquet", pa.table({"x": [2], "y": ["b"]}))
    with pytest.raises(
        SchemaError, match=r"a\.parquet has no field ids, by which columns such as 'x' .* name mapping"
    ):
        rows(table)
    pq.write_table(pa.table({"y": ["c"], "x": [3]}), tmp_path / "b.parquet")
    table.add_files([f"file://{tmp_path}/b.parquet"])
    assert in_order(rows(table)) == [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}, {"x": 3, "y": "c"}]
    with table.update_schema() as schema:
        schema.rename_column("y", "name")
    assert in_order(rows(table))[2] == {"x": 3, "name": "c"}


def test_an_empty_table_and_one_in_no_catalog(catalog: Catalog) -> None:
    table = table_of(catalog, pa.table({"x": pa.array([], pa.int64())}))
    assert rows(table) == []
    with pytest.raises(SourceError, match=r"Iceberg table logs/nothing\.metadata\.json cannot be opened: "):
        rows("logs/nothing.metadata.json")


def test_settings_without_meaning_are_refused(catalog: Catalog) -> None:
    env = StreamExecutionEnvironment()
    with pytest.raises(
        ConfigurationError, match=r"from_iceberg takes a pyiceberg\.table\.Table, the name of"
    ):
        env.from_iceberg(pa.table({"x": [1]}), timestamp="x")
    table = table_of(catalog, pa.table({"x": [1]}))
    with pytest.raises(ConfigurationError, match="snapshot= is the id of a snapshot"):
        env.from_iceberg(table, timestamp="x", snapshot=1.5)


def test_the_extra_is_named_where_the_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    with pytest.raises(
        ConfigurationError,
        match=r"from_iceberg needs the library pyiceberg, .*: pip install 'flinkcore\[iceberg\]'",
    ):
        StreamExecutionEnvironment().from_iceberg("logs.clicks", timestamp="x")
