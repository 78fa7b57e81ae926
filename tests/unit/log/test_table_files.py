"""Files that a catalog lists: values of partitions, schemas that have changed, and conditions."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore._internal.arrow.unified_types import fits
from flinkcore.errors import SchemaError
from flinkcore.log.files.log_files import LogFile
from flinkcore.log.sources.log_sources import LogFiles


def file_of(path: Path, table: pa.Table, partition: dict[str, Any] | None = None, **options: Any) -> LogFile:
    pq.write_table(table, path, **options)
    (info,) = fs.LocalFileSystem().get_file_info([str(path)])
    return LogFile(
        fs.LocalFileSystem(), str(path), str(path), info.size, tuple((partition or {}).items()), info.mtime_ns
    )


def rows_of(
    source: LogFiles, columns: list[str] | None = None, encoded: Iterable[str] = ()
) -> list[dict[str, Any]]:
    return [
        row
        for chunk in source.chunks(1)
        for batch in chunk.read(columns, 1 << 17, list(encoded))
        for row in batch.to_pylist()
    ]


def refuse_reading(*arguments: Any, **options: Any) -> Any:
    raise AssertionError("no file is to be read")


def test_partition_values_have_the_types_of_their_columns_and_may_be_null(tmp_path: Path) -> None:
    schema = pa.schema(
        [("x", pa.int64()), ("day", pa.date32()), ("price", pa.decimal128(5, 2)), ("code", pa.string())]
    )
    values = {"day": date(2001, 1, 2), "price": Decimal("1.50"), "code": "007"}
    source = LogFiles.of_table(
        [
            file_of(tmp_path / "a.parquet", pa.table({"x": [1, 2]}), values),
            file_of(tmp_path / "b.parquet", pa.table({"x": [3]}), dict.fromkeys(values)),
        ],
        schema,
    )
    assert source.schema == schema
    assert rows_of(source) == [
        {"x": 1, **values},
        {"x": 2, **values},
        {"x": 3, "day": None, "price": None, "code": None},
    ]
    assert rows_of(source, ["code", "day"]) == [{"code": "007", "day": values["day"]}] * 2 + [
        {"code": None, "day": None}
    ]
    assert source.chunks(1)[0].constant("day") == (True, date(2001, 1, 2))


def test_columns_that_came_later_are_null_in_older_files_and_narrower_types_are_widened(
    tmp_path: Path,
) -> None:
    old = pa.table({"ts": pa.array([1, None], pa.int32()), "price": pa.array([0.5, 1.5], pa.float32())})
    new = pa.table({"price": [2.5], "meter": ["a"], "ts": pa.array([1 << 40], pa.int64())})
    schema = pa.schema([("ts", pa.int64()), ("meter", pa.string()), ("price", pa.float64())])
    source = LogFiles.of_table(
        [file_of(tmp_path / "old.parquet", old), file_of(tmp_path / "new.parquet", new)], schema
    )
    assert rows_of(source) == [
        {"ts": 1, "meter": None, "price": 0.5},
        {"ts": None, "meter": None, "price": 1.5},
        {"ts": 1 << 40, "meter": "a", "price": 2.5},
    ]
    assert rows_of(source, ["meter"], encoded=["meter"]) == [{"meter": None}, {"meter": None}, {"meter": "a"}]


def test_columns_are_found_by_their_physical_names_their_field_ids_or_in_any_case(tmp_path: Path) -> None:
    fields = [
        pa.field("col-1", pa.int64(), metadata={"PARQUET:field_id": "7"}),
        pa.field("B", pa.string(), metadata={"PARQUET:field_id": "9"}),
    ]
    file = file_of(tmp_path / "a.parquet", pa.table([[1, 2], ["x", "y"]], schema=pa.schema(fields)))
    schema = pa.schema([("b", pa.string()), ("a", pa.int64())])
    expected = [{"b": "x", "a": 1}, {"b": "y", "a": 2}]
    for stored in (
        StoredColumns({"a": "col-1", "b": "B"}),
        StoredColumns({"a": 7, "b": 9}),
        StoredColumns({"a": "COL-1"}, ignores_case=True),
    ):
        source = LogFiles.of_table([file], schema, stored=stored)
        assert rows_of(source) == expected
        assert rows_of(source, ["b"], encoded=["b"]) == [{"b": "x"}, {"b": "y"}]
    assert rows_of(LogFiles.of_table([file], schema)) == [{"b": None, "a": None}] * 2
    both = file_of(tmp_path / "b.parquet", pa.table({"a": [1], "A": [2]}))
    assert rows_of(LogFiles.of_table([both], pa.schema([("A", pa.int64())]))) == [{"A": 2}]
    with pytest.raises(
        SchemaError, match=r"several columns of .*b\.parquet are column 'a' of the table: a, A"
    ):
        rows_of(
            LogFiles.of_table([both], pa.schema([("a", pa.int64())]), stored=StoredColumns(ignores_case=True))
        )


def test_a_type_into_which_values_may_not_fit_is_refused(tmp_path: Path) -> None:
    file = file_of(tmp_path / "a.parquet", pa.table({"x": [1 << 40]}))
    with pytest.raises(SchemaError, match=r"column 'x' is int32 in the table but int64 in .*a\.parquet"):
        rows_of(LogFiles.of_table([file], pa.schema([("x", pa.int32())])))


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.int8(), pa.int64()),
        (pa.uint32(), pa.int64()),
        (pa.int32(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.int32(), pa.decimal128(12, 2)),
        (pa.decimal128(5, 2), pa.decimal128(7, 3)),
        (pa.timestamp("ms", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.date32(), pa.timestamp("us")),
        (pa.binary(4), pa.binary()),
        (pa.list_(pa.field("element", pa.int32(), nullable=False)), pa.list_(pa.int64())),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64())),
        (pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int16())])),
    ],
)
def test_every_value_of_a_narrower_type_is_read_as_what_it_is(
    tmp_path: Path, stored: pa.DataType, wanted: pa.DataType
) -> None:
    values: dict[Any, Any] = {
        "list": [[1, 2], None, []],
        "map<": [[("a", 1)], None, []],
        "stru": [{"a": 1}, None],
    }
    given = values.get(str(stored)[:4], [1, None, 3])
    if pa.types.is_fixed_size_binary(stored):
        given = [b"abcd", None]
    if pa.types.is_decimal(stored):
        given = [Decimal("999.99"), None, Decimal("-0.01")]
    if pa.types.is_date32(stored) or pa.types.is_timestamp(stored):
        column = pa.array([1, None, -1], f"int{stored.bit_width}").cast(stored)
    else:
        column = pa.array(given, stored)
    assert fits(stored, wanted, is_exact=True)
    assert not fits(wanted, stored, is_exact=True)
    (chunk,) = LogFiles.of_table(
        [file_of(tmp_path / "a.parquet", pa.table({"x": column}))], pa.schema([("x", wanted)])
    ).chunks(1)
    (batch,) = chunk.read(None, 100)
    assert batch.column("x").type == wanted
    assert batch.column("x").to_pylist() == column.cast(wanted).to_pylist()


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.int64(), pa.float64()),
        (pa.uint64(), pa.int64()),
        (pa.int64(), pa.decimal128(18, 0)),
        (pa.decimal128(5, 2), pa.decimal128(5, 3)),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.string(), pa.binary()),
        (pa.int64(), pa.string()),
        (pa.struct([("a", pa.int8())]), pa.struct([("b", pa.int8())])),
        (pa.int64(), pa.list_(pa.int64())),
        (pa.int64(), pa.struct([("a", pa.int64())])),
        (pa.int64(), pa.map_(pa.int64(), pa.int64())),
    ],
)
def test_no_other_type_is_a_narrower_one(stored: pa.DataType, wanted: pa.DataType) -> None:
    assert not fits(stored, wanted, is_exact=True)


def test_only_rows_that_meet_the_conditions_are_read_and_what_cannot_hold_any_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table(
        {"n": range(100), "text": [f"{n:03}" for n in range(100)], "price": [n / 2 for n in range(100)]}
    )
    files = [
        file_of(tmp_path / f"{day}.parquet", table, {"day": day}, row_group_size=10) for day in (1, 2, None)
    ]
    schema = table.schema.append(pa.field("day", pa.int64()))
    conditions = (pc.field("day") > 1, pc.field("n") >= 37, pc.field("text") < "040", pc.field("price") != 19)
    source = LogFiles.of_table(files, schema, where=conditions)
    assert [file.partition for file in source.files] == [(("day", 2),)]
    assert rows_of(source, ["price"]) == [{"price": 18.5}, {"price": 19.5}]
    assert rows_of(source, ["text"], encoded=["text"]) == [{"text": "037"}, {"text": "039"}]
    assert [row["n"] for row in rows_of(source)] == [37, 39]
    narrow = LogFiles.of_table(files, schema, columns=["text"], where=conditions)
    assert narrow.schema.names == ["text"]
    assert rows_of(narrow) == [{"text": "037"}, {"text": "039"}]
    assert [chunk.rows for chunk in narrow.chunks(3)] == [None] * 3
    groups: list[int] = []

    def noted(opened: Any, batch_size: int, *, row_groups: Any, **options: Any) -> Any:
        if batch_size > 1:  # or it looks whether statistics are forged
            groups.extend(row_groups)
        return original(opened, batch_size, row_groups=row_groups, **options)

    original = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    assert len(rows_of(source)) == 2
    assert groups == [3]
    monkeypatch.setattr(pq, "ParquetFile", refuse_reading)
    for never in (pc.field("day") == 7, pc.field("day").is_null() & (pc.field("day") > 0)):
        assert rows_of(LogFiles.of_table(files, schema, where=[never])) == []


def test_statistics_of_floats_leave_no_nan_out(tmp_path: Path) -> None:
    file = file_of(tmp_path / "a.parquet", pa.table({"x": [1.0, float("nan"), 1.0]}))
    source = LogFiles.of_table([file], pa.schema([("x", pa.float64())]), where=[pc.field("x") != 1.0])
    assert [str(row["x"]) for row in rows_of(source)] == ["nan"]


@pytest.mark.parametrize(
    "condition", [pc.field("a") > 5, pc.field("a").is_null(), pc.field("late").is_null()]
)
def test_conditions_on_columns_that_a_file_has_by_other_names_or_lacks_are_met_by_the_tables_values(
    tmp_path: Path, condition: Expression
) -> None:
    """The file's own column `a` is another one, whose statistics would leave all rows out."""
    table = pa.table({"b": [9, None, 1], "a": [1, 1, 1]})
    schema = pa.schema([("a", pa.int64()), ("late", pa.string())])
    source = LogFiles.of_table(
        [file_of(tmp_path / "a.parquet", table)], schema, where=[condition], stored=StoredColumns({"a": "b"})
    )
    expected = [9] if ">" in str(condition) else [None] if "is_null(a" in str(condition) else [9, None, 1]
    assert [row["a"] for row in rows_of(source)] == expected


def test_timestamps_in_96_bits_are_those_of_spark(tmp_path: Path) -> None:
    times = pa.array([-62135596800_000000, 253402300799_999999, None], pa.timestamp("us", "UTC"))
    path = tmp_path / "a.parquet"
    file = file_of(path, pa.table({"x": times}), use_deprecated_int96_timestamps=True)
    assert pq.read_metadata(path).schema.column(0).physical_type == "INT96"
    (chunk,) = LogFiles.of_table([file], pa.schema([("x", times.type)])).chunks(1)
    assert [batch.column("x") for batch in chunk.read(None, 100)] == [times]
