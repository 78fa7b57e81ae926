"""Results in Delta and Iceberg tables: one commit of the files that count, or a table as it was."""

import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.delta_tables import add_file, column, write_delta_log
from equipment.iceberg_tables import catalog_at, data_files
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import PartitionField as IcebergField
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    DoubleType,
    FixedType,
    ListType,
    LongType,
    NestedField,
    StringType,
    UUIDType,
)

from flinkcore.columnar.outputs import table_files
from flinkcore.columnar.outputs.delta_output import DeltaOutput
from flinkcore.columnar.outputs.iceberg_output import IcebergOutput
from flinkcore.columnar.outputs.table_files import PartitionField, WrittenFile, partitioned
from flinkcore.columnar.outputs.table_outputs import TableOutputs
from flinkcore.columnar.outputs.table_types import TypeOf, delta_type, iceberg_type, new_table_schema
from flinkcore.common import Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.errors import ConfigurationError, DataError, SchemaError, SourceError


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    found = catalog_at(tmp_path)
    yield found
    found.close()


def clicks(n: int, first: int = 0) -> pa.Table:
    return pa.table(
        {
            "ts": pa.array(range(first, first + n), pa.timestamp("s", "UTC")),
            "user": [["a", "b c/%", None][i % 3] or "ü" for i in range(n)],
            "price": pa.array([i * 7 % 5 for i in range(n)], pa.int32()),
        }
    )


def per_user(table: pa.Table) -> DataStream:
    log = StreamExecutionEnvironment().from_event_log(table, timestamp="ts")
    keyed = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).key_by("user")
    return keyed.window(TumblingEventTimeWindows.of(Time.minutes(1))).aggregate(
        clicks=count(), spent=sum_("price")
    )


def content(table: pa.Table) -> list[str]:
    names = sorted(table.column_names)
    return sorted(repr([row[name] for name in names]) for row in table.to_pylist())


def delta_rows(path: Any) -> list[str]:
    return content(pa.table(deltalake.DeltaTable(path).to_pyarrow_table()))


def in_micros(table: pa.Table) -> pa.Table:
    fields = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def written(output: TableOutputs, *batches: pa.Table) -> None:
    """Write tables as tasks do, one each."""

    def run() -> dict[str | None, list[str]]:
        names: list[str] = []
        for task, table in enumerate(batches):
            with output.for_tasks.open_parts(task) as parts:
                parts.write(None, table.to_batches())
            names += parts.names[None]
        return {None: names}

    output.write(run)


def files_below(path: Path) -> list[str]:
    return sorted(file.name for file in path.rglob("*.parquet"))


def test_results_are_a_new_delta_table_and_then_more_of_it(tmp_path: Path) -> None:
    path = tmp_path / "by user"
    results = per_user(clicks(90)).write_delta(path, partition_by="user")
    assert results.results == len(delta_rows(path))
    first = in_micros(per_user(clicks(90)).to_arrow())
    assert delta_rows(path) == content(first)
    assert deltalake.DeltaTable(path).metadata().partition_columns == ["user"]
    more = in_micros(per_user(clicks(30, 600)).to_arrow())
    per_user(clicks(30, 600)).write_delta(path, "append")
    assert delta_rows(path) == content(pa.concat_tables([first, more]))
    per_user(clicks(30, 600)).write_delta(path, "overwrite")
    assert delta_rows(path) == content(more)
    assert deltalake.DeltaTable(path).version() == 2
    log = StreamExecutionEnvironment().from_delta(
        path, version=0, timestamp="window_end", arrival="window_end"
    )
    assert log.key_by("user").count_window(1).aggregate(n=sum_("clicks")).to_arrow()["n"].to_pylist()


def test_partitions_that_results_fall_into_are_replaced_and_others_stay(
    tmp_path: Path, catalog: Catalog
) -> None:
    schema = pa.schema([("x", pa.int64()), ("by", pa.string()), ("day", pa.date32())])

    def rows(*values: tuple[int, str | None, int | None]) -> pa.Table:
        days = [None if day is None else date(2001, 1, day) for _, _, day in values]
        return pa.table([[x for x, _, _ in values], [by for _, by, _ in values], days], schema=schema)

    before = rows((1, "a b/%", 1), (2, "a b/%", 2), (3, None, 1), (4, "ü", None), (5, "a b/%", 1))
    after = rows((6, "a b/%", 1), (7, None, 1), (8, "new", 3))
    left = rows((2, "a b/%", 2), (4, "ü", None), (6, "a b/%", 1), (7, None, 1), (8, "new", 3))
    path = tmp_path / "delta"
    written(DeltaOutput(path, schema, "error", ["by", "day"]), before.slice(0, 3), before.slice(3))
    written(DeltaOutput(path, schema, "overwrite_partitions"), after)
    assert delta_rows(path) == content(left)
    assert deltalake.DeltaTable(path).version() == 1
    table = catalog.create_table("logs.results", schema=schema)
    with table.update_spec() as spec:
        spec.add_identity("by")
        spec.add_identity("day")
    written(IcebergOutput(table, schema), before.slice(0, 3), before.slice(3))
    written(IcebergOutput(table, schema, "overwrite_partitions"), after)
    assert content(catalog.load_table("logs.results").scan().to_arrow()) == content(left)


def test_results_go_into_an_iceberg_table(catalog: Catalog) -> None:
    results = in_micros(per_user(clicks(90)).to_arrow())
    table = catalog.create_table("logs.results", schema=results.schema)
    before = table.metadata.current_snapshot_id
    report = per_user(clicks(90)).write_iceberg(table)
    assert report.results == results.num_rows
    per_user(clicks(30, 600)).write_iceberg(table)
    more = in_micros(per_user(clicks(30, 600)).to_arrow())
    found = catalog.load_table("logs.results")
    assert content(found.scan().to_arrow()) == content(pa.concat_tables([results, more]))
    assert content(found.scan(row_filter="clicks > 29").to_arrow()) == content(
        pa.concat_tables([each.filter(pa.compute.field("clicks") > 29) for each in (results, more)])
    )
    per_user(clicks(30, 600)).write_iceberg(found, "overwrite")
    assert content(catalog.load_table("logs.results").scan().to_arrow()) == content(more)
    assert before is None


@pytest.mark.parametrize(
    ("transform", "column"),
    [
        *(
            (transform, "at")
            for transform in (YearTransform(), MonthTransform(), DayTransform(), HourTransform())
        ),
        *((transform, "day") for transform in (YearTransform(), MonthTransform(), DayTransform())),
    ],
    ids=str,
)
def test_parts_of_times_partition_an_iceberg_table_as_iceberg_has_them(
    catalog: Catalog, transform: Any, column: str
) -> None:
    times = [
        datetime(year, month, 3, 5, 59, 59, 999999, timezone.utc)
        for year in (1, 1969, 1970, 2001)
        for month in (1, 2, 12)
    ]
    rows = pa.table(
        {
            "at": pa.array([*times, None], pa.timestamp("us", "UTC")),
            "day": pa.array([*(time.date() for time in times), None], pa.date32()),
        }
    )
    schema = catalog.create_table("logs.unpartitioned", schema=rows.schema).schema()
    source = schema.find_field(column)
    spec = PartitionSpec(IcebergField(source.field_id, 1000, transform, "part"))
    table = catalog.create_table("logs.results", schema=schema, partition_spec=spec)
    written(IcebergOutput(table, rows.schema), rows)
    expected = {
        transform.transform(source.field_type)(_iceberg_value(value)) for value in rows[column].to_pylist()
    }
    assert {task.file.partition[0] for task in table.scan().plan_files()} == expected
    assert content(table.scan().to_arrow()) == content(rows)
    with pytest.raises(
        ConfigurationError, match=r"logs\.results is partitioned by parts of times\. Give mode='over"
    ):
        IcebergOutput(table, rows.schema, "overwrite_partitions")


def _iceberg_value(value: date | datetime | None) -> int | None:
    if value is None:
        return None
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1, tzinfo=timezone.utc)) // (datetime.resolution)
    return value.toordinal() - date(1970, 1, 1).toordinal()


def test_each_value_of_partition_columns_has_its_rows_in_their_order() -> None:
    batch = pa.record_batch(
        {
            "x": list(range(6)),
            "a": ["p", None, "p", "q", None, "p"],
            "b": [True, None, True, False, None, False],
        }
    )
    found = {
        tuple(value.as_py() for value in values): rows["x"].to_pylist()
        for values, rows in partitioned(
            batch, (PartitionField("a", "a"), PartitionField("b", "b")), "a table"
        )
    }
    assert found == {("p", True): [0, 2], (None, None): [1, 4], ("q", False): [3], ("p", False): [5]}


def test_values_of_all_types_of_partitions_come_back(tmp_path: Path, catalog: Catalog) -> None:
    rows = pa.table(
        {
            "x": pa.array([1, 2], pa.int64()),
            "whole": pa.array([-5, None], pa.int16()),
            "day": [date(1, 2, 3), None],
            "at": pa.array([datetime(2001, 2, 3, 4, 5, 6, 7), None], pa.timestamp("us")),
            "zoned": pa.array([datetime(2001, 2, 3, tzinfo=timezone.utc), None], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal("1.20"), None], pa.decimal128(9, 2)),
            "paid": [True, None],
        }
    )
    written(DeltaOutput(tmp_path / "all", rows.schema, "error", rows.column_names[1:]), rows)
    assert delta_rows(tmp_path / "all") == content(rows)
    written(DeltaOutput(tmp_path / "all", rows.schema, "overwrite_partitions"), rows)
    assert delta_rows(tmp_path / "all") == content(rows)
    timed = (
        rows.set_column(1, "whole", rows["whole"].cast(pa.int32()))
        .append_column("time", pa.array([time(5, 59, 59, 7), None], pa.time64("us")))
        .append_column("text", pa.array(["", "a/%\n"]))
    )
    table = catalog.create_table("logs.results", schema=timed.schema)
    with table.update_spec() as spec:
        for name in timed.column_names[1:]:
            spec.add_identity(name)
    written(IcebergOutput(table, timed.schema), timed)
    assert content(table.refresh().scan().to_arrow()) == content(timed)
    assert len(data_files(table)) == 2
    one = table.scan(row_filter="time = '05:59:59.000007' and zoned = '2001-02-03T00:00:00+00:00'")
    assert content(one.to_arrow()) == content(timed.slice(0, 1))
    written(IcebergOutput(table, timed.schema, "overwrite_partitions"), timed)
    assert content(table.refresh().scan().to_arrow()) == content(timed)


_PARTITIONED = "column 'by', by which .* is partitioned, is "


@pytest.mark.parametrize("kind", [pa.binary(), pa.float32(), pa.float64()], ids=str)
def test_delta_tables_partitioned_by_what_has_no_text_are_refused(tmp_path: Path, kind: pa.DataType) -> None:
    schema = pa.schema([("x", pa.int64()), ("by", kind)])
    with pytest.raises(ConfigurationError, match=f"{_PARTITIONED}{kind}: partitions are integers, text"):
        DeltaOutput(tmp_path / "new", schema, "error", "by")
    deltalake.write_deltalake(tmp_path / "table", schema.empty_table(), partition_by=["by"])
    for mode in ("append", "overwrite", "overwrite_partitions"):
        with pytest.raises(ConfigurationError, match=f"{_PARTITIONED}{kind}: partitions are integers, text"):
            DeltaOutput(tmp_path / "table", schema, mode)


@pytest.mark.parametrize("kind", [BinaryType(), FixedType(4), UUIDType(), DoubleType()], ids=str)
def test_iceberg_tables_partitioned_by_what_may_have_no_equal_are_refused(
    catalog: Catalog, kind: Any
) -> None:
    schema = Schema(NestedField(1, "x", LongType()), NestedField(2, "by", kind))
    spec = PartitionSpec(IcebergField(2, 1000, IdentityTransform(), "part"))
    table = catalog.create_table("logs.results", schema=schema, partition_spec=spec)
    for mode in ("append", "overwrite", "overwrite_partitions"):
        with pytest.raises(ConfigurationError, match=f"{_PARTITIONED}.*: partitions are integers, text"):
            IcebergOutput(table, pa.schema([("x", pa.int64())]), mode)


def test_empty_text_that_delta_would_read_as_null_is_refused_as_a_partition(tmp_path: Path) -> None:
    rows = pa.table({"x": [1, 2], "by": ["a", ""]})
    with pytest.raises(
        DataError, match=r"column 'by' has an empty text, which Delta table .* reads as null in a partition"
    ):
        written(DeltaOutput(tmp_path / "all", rows.schema, "error", "by"), rows)
    assert files_below(tmp_path) == []
    written(DeltaOutput(tmp_path / "all", rows.schema, "error", "x"), rows)
    assert delta_rows(tmp_path / "all") == content(rows)


FAR_DAYS = [
    pa.array([2**31 - 1, 0], pa.date32()),
    pa.array([-(2**31), 0], pa.date32()),
    pa.array([2_932_897, 0], pa.date32()),
    pa.array([-719_163, 0], pa.date32()),
    pa.array([2**63 - 1, 0], pa.timestamp("us")),
    pa.array([253_402_300_800_000_000, 0], pa.timestamp("us", "UTC")),
    pa.array([-62_135_596_800_000_001, 0], pa.timestamp("us", "UTC")),
]


@pytest.mark.parametrize("far", FAR_DAYS, ids=lambda far: f"{far.type}")
def test_days_of_years_that_only_arrow_has_are_rows_and_no_partitions(
    tmp_path: Path, catalog: Catalog, far: pa.Array
) -> None:
    rows = pa.table({"x": [1, 2], "far": far})

    def numbers(table: Any) -> list[int]:
        return sorted(pa.table(table)["far"].cast(f"int{far.type.bit_width}").to_pylist())

    written(DeltaOutput(tmp_path / "all", rows.schema), rows)
    assert numbers(deltalake.DeltaTable(tmp_path / "all").to_pyarrow_table()) == numbers(rows)
    [statistics] = pa.table(deltalake.DeltaTable(tmp_path / "all").get_add_actions(flatten=True)).to_pylist()
    assert (statistics["min.x"], statistics["max.x"], statistics["null_count.far"]) == (1, 2, 0)
    table = catalog.create_table("logs.results", schema=rows.schema)
    written(IcebergOutput(table, rows.schema), rows)
    assert numbers(table.refresh().scan().to_arrow()) == numbers(rows)
    assert numbers(table.scan(row_filter="x = 1").to_arrow()) == numbers(rows.slice(0, 1))
    message = "column 'far' has a day that is not of the years 1 to 9999, for which .* has no partition"
    with pytest.raises(DataError, match=message):
        written(DeltaOutput(tmp_path / "by", rows.schema, "error", "far"), rows)
    for transform in (IdentityTransform(), YearTransform(), MonthTransform(), DayTransform()):
        spec = PartitionSpec(IcebergField(2, 1000, transform, "part"))
        parts = catalog.create_table(f"logs.{transform}", schema=table.schema(), partition_spec=spec)
        with pytest.raises(DataError, match=message):
            written(IcebergOutput(parts, rows.schema), rows)


def test_columns_of_an_iceberg_table_with_a_width_take_values_of_that_width(catalog: Catalog) -> None:
    rows = pa.table(
        {
            "id": pa.array([bytes(range(16)), None], pa.binary(16)),
            "hash": pa.array([b"abcd", None], pa.binary(4)),
            "list": pa.array([[b"x" * 16], None], pa.list_(pa.binary(16))),
        }
    )
    schema = Schema(
        NestedField(1, "id", UUIDType()),
        NestedField(2, "hash", FixedType(4)),
        NestedField(3, "list", ListType(4, UUIDType(), element_required=False)),
    )
    table = catalog.create_table("logs.results", schema=schema)
    written(IcebergOutput(table, rows.schema), rows)
    found = table.refresh().scan().to_arrow()
    assert found["hash"].to_pylist() == rows["hash"].to_pylist()
    assert [None if each is None else each.bytes for each in found["id"].to_pylist()] == rows[
        "id"
    ].to_pylist()
    with pytest.raises(
        SchemaError, match=r"column 'hash' of the results is fixed_size_binary\[5\], and fixed_"
    ):
        IcebergOutput(table, pa.schema([("hash", pa.binary(5))]))


def required_parts(catalog: Catalog, tmp_path: Path) -> Iterator[Callable[[pa.Schema], TableOutputs]]:
    """A Delta and an Iceberg table whose columns take nulls, and what is nested in them takes none."""
    element = pa.field("element", pa.int64(), nullable=False)
    inner = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    schema = pa.schema(
        [
            ("s", inner),
            ("l", pa.list_(element)),
            ("m", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))),
            ("n", pa.list_(pa.field("element", inner))),
        ]
    )
    deltalake.DeltaTable.create(tmp_path / "required", schema)
    table = catalog.create_table("logs.required", schema=schema)
    yield lambda results: DeltaOutput(tmp_path / "required", results, "append")
    yield lambda results: IcebergOutput(table, results)


def test_nulls_in_nested_fields_that_take_none_are_named(catalog: Catalog, tmp_path: Path) -> None:
    kinds = {
        "s": pa.struct([("a", pa.int64())]),
        "l": pa.list_(pa.int64()),
        "m": pa.map_(pa.string(), pa.int64()),
        "n": pa.list_(pa.struct([("a", pa.int64())])),
    }
    good = {"s": {"a": 1}, "l": [1, 2], "m": [("k", 1)], "n": [{"a": 1}, None]}
    bad = {"s": {"a": None}, "l": [1, None], "m": [("k", None)], "n": [None, {"a": None}]}
    places = {"s": "s.a", "l": "l.element", "m": "m.value", "n": "n.element.a"}

    def rows(**values: list[Any]) -> pa.Table:
        columns = {name: pa.array(values.get(name, [good[name]]), kind) for name, kind in kinds.items()}
        return pa.table(columns)

    for output in required_parts(catalog, tmp_path):
        for name, place in places.items():
            wrong = rows(**{name: [bad[name]]})
            with pytest.raises(DataError, match=f"column '{place}' has a null, which .* does not take there"):
                written(output(wrong.schema), wrong)
        behind = rows(**{name: [bad[name], good[name], None] for name in kinds}).slice(1)
        written(output(behind.schema), behind)
    [file] = data_files(catalog.load_table("logs.required"))
    found = pq.read_table(file.removeprefix("file://"))
    assert content(found) == content(behind) == delta_rows(tmp_path / "required")


def test_more_partitions_than_calls_can_nest_are_replaced(catalog: Catalog) -> None:
    schema = pa.schema([("x", pa.int64()), ("by", pa.int64())])
    table = catalog.create_table("logs.results", schema=schema)
    with table.update_spec() as spec:
        spec.add_identity("by")
    rows = pa.table({"x": [1, 2], "by": [999, 5000]}, schema=schema)
    written(IcebergOutput(table, schema), rows)
    output = IcebergOutput(table.refresh(), schema, "overwrite_partitions")
    files = [WrittenFile("", (pa.scalar(value),)) for value in range(1500)]
    condition = output._replaced(files)
    assert content(table.scan(row_filter=condition).to_arrow()) == content(rows.slice(0, 1))


def test_a_delta_table_that_has_changed_since_is_not_replaced(tmp_path: Path) -> None:
    rows = pa.table({"x": [1], "by": [1]})
    path = tmp_path / "all"
    written(DeltaOutput(path, rows.schema, "error", "by"), rows)
    for version, mode in enumerate(("overwrite", "overwrite_partitions")):
        late = DeltaOutput(path, rows.schema, mode)
        written(DeltaOutput(path, rows.schema, "append"), rows)
        with pytest.raises(
            SourceError,
            match=f"none of them: version {version} was to be replaced, and version {version + 1} has been commit",
        ):
            written(late, rows)
        assert delta_rows(path) == content(pa.concat_tables([rows] * (version + 2)))
    late = DeltaOutput(path, rows.schema, "append")
    written(DeltaOutput(path, rows.schema, "append"), rows)
    written(late, rows)
    assert len(delta_rows(path)) == 5


def test_texts_longer_than_names_of_directories_are_partitions(tmp_path: Path, catalog: Catalog) -> None:
    texts = [text * 300 for text in ("x", "ü", "€", "x")]
    rows = pa.table({"x": list(range(4)), "by": [*texts[:3], texts[3] + "y"]})
    written(DeltaOutput(tmp_path / "all", rows.schema, "error", "by"), rows)
    written(DeltaOutput(tmp_path / "all", rows.schema, "overwrite_partitions"), rows)
    assert delta_rows(tmp_path / "all") == content(rows)
    table = catalog.create_table("logs.results", schema=rows.schema)
    with table.update_spec() as spec:
        spec.add_identity("by")
    written(IcebergOutput(table, rows.schema), rows)
    assert content(table.refresh().scan().to_arrow()) == content(rows)


def test_values_that_look_like_paths_name_no_folder_outside_of_their_table(tmp_path: Path) -> None:
    names = ["../../up", "/root", "..", ".", "a/b", "a\\..\\b", "~", "nul\0"]
    log = pa.table({"ts": range(len(names)), "user": names, "price": range(len(names))})
    table = tmp_path / "outer" / "table"
    per_user(log).write_delta(table, partition_by="user")
    files = [file.relative_to(tmp_path) for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) == len(names) + 1
    assert {file.parts[:2] for file in files} == {("outer", "table")}
    assert sorted(deltalake.DeltaTable(table).to_pyarrow_table()["user"].to_pylist()) == sorted(names)


def test_columns_of_a_delta_table_that_differ_in_case_only_are_refused(tmp_path: Path) -> None:
    for names, schema in (
        ("'a' and 'A'", pa.schema([("x", pa.int64()), ("a", pa.int64()), ("A", pa.int64())])),
        ("'b' and 'B'", pa.schema([("s", pa.list_(pa.struct([("b", pa.int64()), ("B", pa.int64())])))])),
    ):
        with pytest.raises(SchemaError, match=f"{names} of the results differ in case only, .* Delta table"):
            DeltaOutput(tmp_path / "new", schema)
    assert not (tmp_path / "new").exists()


def test_a_task_keeps_few_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "_OPEN_FILES", 2)
    rows = pa.table({"x": list(range(12)), "by": [i % 4 for i in range(12)]})
    written(DeltaOutput(tmp_path / "all", rows.schema, "error", "by"), rows, rows.slice(0, 5))
    assert delta_rows(tmp_path / "all") == content(pa.concat_tables([rows, rows.slice(0, 5)]))


def test_types_that_tables_lack_become_wider_or_are_refused_with_the_column(
    tmp_path: Path, catalog: Catalog
) -> None:
    rows = pa.table(
        {
            "small": pa.array([255, None], pa.uint8()),
            "large": pa.array([2**64 - 1, None], pa.uint64()),
            "text": pa.array(["a", None]).dictionary_encode(),
            "ms": pa.array([5, None], pa.timestamp("ms")),
            "list": pa.array([[1], None], pa.large_list(pa.uint16())),
            "struct": pa.array([{"x": 1.5}, None], pa.struct([("x", pa.float32())])),
        }
    )
    plain = content(rows.cast(pa.schema([field.with_type(_plain(field.type)) for field in rows.schema])))
    written(DeltaOutput(tmp_path / "all", rows.schema), rows)
    assert delta_rows(tmp_path / "all") == plain
    output = DeltaOutput(tmp_path / "other", rows.schema)
    table = catalog.create_table("logs.results", schema=output.files.schema)
    written(IcebergOutput(table, rows.schema), rows)
    assert content(table.scan().to_arrow()) == plain
    took = pa.schema([("took", pa.duration("ms"))])
    with pytest.raises(
        SchemaError,
        match=r"column 'took' of the results is duration\[ms\], for which Delta table .* has no type",
    ):
        DeltaOutput(tmp_path / "took", took)
    with pytest.raises(
        SchemaError, match=r"column 'took' \(duration\[ms\]\) of the results is not in Iceberg table"
    ):
        IcebergOutput(table, took)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    return pa.decimal128(20, 0) if kind == pa.uint64() else kind


def test_columns_that_do_not_fit_a_table_are_named(tmp_path: Path, catalog: Catalog) -> None:
    path = tmp_path / "all"
    old = pa.schema([("x", pa.int32()), ("at", pa.timestamp("us"))])
    written(DeltaOutput(path, old))
    for results, message in (
        (
            pa.schema([("x", pa.int64())]),
            "column 'x' of the results is int64, and int32 in Delta table .*/all",
        ),
        (pa.schema([("y", pa.int64())]), "column 'y' .* is not in Delta table .*/all, which has x, at"),
    ):
        with pytest.raises(SchemaError, match=message):
            DeltaOutput(path, results, "append")
    nanos = pa.table({"at": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(
        DataError, match=r"column 'at' does not fit into Delta table .*/all, where it is timestamp\[us"
    ):
        written(DeltaOutput(path, nanos.schema, "append"), nanos)
    written(
        DeltaOutput(path, pa.schema([("x", pa.int16())]), "append"),
        pa.table({"x": pa.array([3], pa.int16())}),
    )
    assert delta_rows(path) == content(pa.table({"x": [3], "at": [None]}))
    assert len(files_below(path)) == 1
    required = Schema(NestedField(1, "x", LongType(), required=True), NestedField(2, "y", StringType()))
    table = catalog.create_table("logs.results", schema=required)
    with pytest.raises(
        SchemaError, match=r"column 'x' of Iceberg table .* takes no null, and is not in the results"
    ):
        IcebergOutput(table, pa.schema([("y", pa.string())]))
    nulls = pa.table({"x": pa.array([1, None], pa.int64())})
    with pytest.raises(DataError, match=r"column 'x' has a null, which Iceberg table .* does not take there"):
        written(IcebergOutput(table, nulls.schema), nulls)
    assert list(Path(table.location().removeprefix("file://")).rglob("*.parquet")) == []


class Stopped(Exception):
    pass


def test_a_replay_that_fails_leaves_the_tables_as_they_were(tmp_path: Path, catalog: Catalog) -> None:
    rows = pa.table({"x": [1, 2]})
    path = tmp_path / "all"
    table = catalog.create_table("logs.results", schema=rows.schema)

    def fails() -> Any:
        for output in (DeltaOutput(path, rows.schema), IcebergOutput(table, rows.schema)):
            with pytest.raises(Stopped):
                output.write(lambda output=output: stopped(output))
        assert files_below(tmp_path) == []

    def stopped(output: TableOutputs) -> Any:
        with output.for_tasks.open_parts(0) as parts:
            parts.write(None, rows.to_batches())
        assert len(files_below(tmp_path)) == 1
        raise Stopped

    fails()
    assert not deltalake.DeltaTable.is_deltatable(str(path))
    assert table.refresh().current_snapshot() is None
    written(DeltaOutput(path, rows.schema), rows)
    assert delta_rows(path) == content(rows)


def test_files_of_attempts_that_do_not_count_are_removed(tmp_path: Path) -> None:
    rows = pa.table({"x": [1, 2]})
    output = DeltaOutput(tmp_path / "all", rows.schema)

    def run() -> dict[str | None, list[str]]:
        names: list[list[str]] = []
        for _ in range(2):
            with output.for_tasks.open_parts(0) as parts:
                parts.write(None, rows.to_batches())
            names.append(parts.names[None])
        return {None: names[1]}

    output.write(run)
    assert delta_rows(tmp_path / "all") == content(rows)
    assert len(files_below(tmp_path)) == 1


def test_a_commit_that_another_one_has_overtaken_leaves_nothing(tmp_path: Path, catalog: Catalog) -> None:
    rows = pa.table({"x": [1, 2]})
    path = tmp_path / "all"
    written(DeltaOutput(path, rows.schema), rows)
    late = DeltaOutput(path, rows.schema, "overwrite")
    written(DeltaOutput(path, rows.schema, "overwrite"), rows.slice(1))
    with pytest.raises(
        SourceError,
        match=r"Delta table .*/all could not take the results, and has none of them: version 0 was",
    ):
        written(late, rows)
    assert delta_rows(path) == content(rows.slice(1))
    assert len(files_below(path)) == 2
    new = [DeltaOutput(tmp_path / "new", rows.schema) for _ in range(2)]
    written(new[0], rows)
    with pytest.raises(
        SourceError, match=r"/new could not take the results, and has none of them: .*already exists"
    ):
        written(new[1], rows)
    assert delta_rows(tmp_path / "new") == content(rows)


def test_a_commit_that_a_catalog_refuses_or_reports_wrongly(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"x": [1, 2]})
    table = catalog.create_table(
        "logs.results", schema=rows.schema, properties={"commit.retry.num-retries": "0"}
    )
    commit = type(catalog).commit_table

    def refused(*arguments: Any, **named: Any) -> Any:
        raise CommitFailedException("somebody else was faster")

    def lost(*arguments: Any, **named: Any) -> Any:
        commit(*arguments, **named)
        raise ConnectionError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(type(catalog), "commit_table", refused)
        with pytest.raises(
            SourceError, match="could not take the results, and has none of them: somebody else"
        ):
            written(IcebergOutput(table, rows.schema), rows)
    assert files_below(tmp_path) == []
    with monkeypatch.context() as patched:
        patched.setattr(type(catalog), "commit_table", lost)
        written(IcebergOutput(table, rows.schema), rows)
    found = catalog.load_table("logs.results")
    assert content(found.scan().to_arrow()) == content(rows)
    assert len(data_files(found)) == 1


def test_a_checkpoint_that_fails_behind_the_commit_is_reported_as_such(tmp_path: Path) -> None:
    rows = pa.table({"x": [1]})
    output = DeltaOutput(tmp_path / "all", rows.schema)

    def fails() -> None:
        raise OSError("no room")

    with pytest.raises(
        SourceError,
        match=r"has the results, but the checkpoint could not be completed: no room\. Restore the table",
    ):
        output.write(lambda: {None: []}, fails)


def test_a_job_stops_with_a_checkpoint_and_goes_on_in_one_table(tmp_path: Path) -> None:
    table = clicks(90)
    for part, settings in (
        (table.slice(0, 50), {"stop_with_checkpoint": tmp_path / "checkpoint"}),
        (table.slice(50), {"restore_from": tmp_path / "checkpoint"}),
    ):
        arrivals = part.append_column("arrival", part["ts"])
        log = StreamExecutionEnvironment().from_event_log(arrivals, timestamp="ts", arrival="arrival")
        keyed = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).key_by(
            "user"
        )
        windows = keyed.window(TumblingEventTimeWindows.of(Time.minutes(1)))
        windows.aggregate(clicks=count()).write_delta(tmp_path / "all", "append", **settings)
    found = pa.table(deltalake.DeltaTable(tmp_path / "all").to_pyarrow_table())
    assert sum(found["clicks"].to_pylist()) == 90
    assert found.num_rows == 6


@pytest.mark.parametrize(
    ("define", "message"),
    [
        (lambda path, x: DeltaOutput(path, x, "replace"), r"mode= is 'error', 'append', .*, not 'replace'"),
        (lambda path, x: DeltaOutput("", x), "write_delta takes the path of a table, not ''"),
        (lambda path, x: DeltaOutput(path / "table", x), "table is there already: give mode='append'"),
        (
            lambda path, x: DeltaOutput(path / "table", x, "append", "x"),
            r"is partitioned by \['y'\], and not by \['x'\]",
        ),
        (
            lambda path, x: DeltaOutput(path / "new", x, "error", "z"),
            "partition_by names 'z'; it takes different ones",
        ),
        (lambda path, x: DeltaOutput(path / "new", x, "error", ["x", "y"]), "partition_by names all columns"),
        (lambda path, x: DeltaOutput(path / "new", x, "overwrite_partitions"), "has no partitions"),
        (lambda path, x: DeltaOutput(path / "files", x), "is neither a Delta table nor an empty directory"),
        (
            lambda path, x: DeltaOutput(path / "new", x.set(0, pa.field("x", pa.float64())), "error", "x"),
            "is double",
        ),
        (lambda path, x: IcebergOutput(path, x), "write_iceberg takes a pyiceberg"),
        (lambda path, x: IcebergOutput("logs.results", x, "error"), "mode= is 'append', 'overwrite', 'over"),
    ],
)
def test_settings_without_meaning_are_refused(
    tmp_path: Path, define: Callable[[Path, pa.Schema], Any], message: str
) -> None:
    schema = pa.schema([("x", pa.int64()), ("y", pa.int64())])
    deltalake.write_deltalake(tmp_path / "table", schema.empty_table(), partition_by=["y"])
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.parquet").touch()
    with pytest.raises(ConfigurationError, match=message):
        define(tmp_path, schema)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("columns", "settings", "mode", "message"),
    [
        (
            [column("x", "long")],
            {"features": ["rowTracking", "domainMetadata"]},
            "append",
            "domainMetadata, rowTracking",
        ),
        (
            [column("x", "long", **{"columnMapping.id": 1, "columnMapping.physicalName": "c"})],
            {"features": ["columnMapping"], "configuration": {"delta.columnMapping.mode": "name"}},
            "append",
            "has columnMapping: take write_parquet",
        ),
        (
            [column("x", "long")],
            {"features": ["checkConstraints"], "configuration": {"delta.constraints.small": "x < 3"}},
            "append",
            r"has delta\.constraints\.small",
        ),
        (
            [column("x", "long", generationExpression="1")],
            {"features": ["generatedColumns"]},
            "append",
            r"has delta\.generationExpression of x",
        ),
        (
            [column("x", "long")],
            {"features": ["appendOnly"], "configuration": {"delta.appendOnly": "true"}},
            "overwrite",
            "takes appended rows only",
        ),
    ],
    ids=["features", "mapping", "constraints", "generated", "append-only"],
)
def test_delta_tables_that_ask_for_more_than_files_are_refused(
    tmp_path: Path, columns: list[dict[str, Any]], settings: dict[str, Any], mode: str, message: str
) -> None:
    path = tmp_path / "table"
    readers = [name for name in settings["features"] if name == "columnMapping"]
    write_delta_log(path, columns, [], readers=readers, **settings)
    with pytest.raises(ConfigurationError, match=message):
        DeltaOutput(path, pa.schema([("x", pa.int64())]), mode)


def test_an_iceberg_table_partitioned_by_buckets_is_refused(catalog: Catalog) -> None:
    schema = Schema(NestedField(1, "x", LongType()))
    spec = PartitionSpec(IcebergField(1, 1000, BucketTransform(4), "part"))
    table = catalog.create_table("logs.results", schema=schema, partition_spec=spec)
    with pytest.raises(ConfigurationError, match=r"is partitioned by bucket\[4\] of x\. Take write_parquet"):
        IcebergOutput(table, pa.schema([("x", pa.int64())]))


def test_the_extra_is_named_where_the_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, extra in (("deltalake", "delta"), ("pyiceberg", "iceberg")):
        monkeypatch.setitem(sys.modules, module, None)
        results = per_user(clicks(3)).execute()
        with pytest.raises(ConfigurationError, match=rf"pip install 'flinkcore\[{extra}\]'"):
            getattr(results, f"write_{extra}")("x")


def test_added_files_are_those_of_a_delta_table_written_elsewhere(tmp_path: Path) -> None:
    file = add_file(tmp_path / "all", "a.parquet", pa.table({"x": [1]}))
    path = write_delta_log(tmp_path / "all", [column("x", "long")], [file])
    written(DeltaOutput(path, pa.schema([("x", pa.int64())]), "append"), pa.table({"x": [2]}))
    assert delta_rows(path) == content(pa.table({"x": [1, 2]}))


@pytest.mark.parametrize("type_of", [delta_type, iceberg_type])
@pytest.mark.parametrize("kind", [pa.decimal128(5, -2), pa.list_(pa.decimal128(5, -2))], ids=str)
def test_tables_have_no_decimals_of_hundreds(type_of: TypeOf, kind: pa.DataType) -> None:
    with pytest.raises(
        SchemaError, match=r"column 'n' of the results is .*decimal128\(5, -2\).* has no type"
    ):
        new_table_schema(pa.schema({"n": kind}), type_of, "the table")
