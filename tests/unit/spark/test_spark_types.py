"""Arrow schemas as Spark has them."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from flinkcore.errors import DataError, SchemaError
from flinkcore.spark.columns.spark_types import SparkSchema


@pytest.mark.parametrize(
    ("arrow", "spark"),
    [
        (pa.bool_(), "boolean"),
        (pa.int8(), "tinyint"),
        (pa.uint8(), "smallint"),
        (pa.uint16(), "int"),
        (pa.uint32(), "bigint"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.float32(), "float"),
        (pa.decimal128(12, 3), "decimal(12,3)"),
        (pa.large_string(), "string"),
        (pa.binary(16), "binary"),
        (pa.date64(), "date"),
        (pa.timestamp("ms"), "timestamp_ntz"),
        (pa.timestamp("ns", "Asia/Tokyo"), "timestamp"),
        (pa.duration("ms"), "interval day to second"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.list_(pa.uint16()), "array<int>"),
        (pa.struct([("a", pa.uint8()), ("b", pa.timestamp("s"))]), "struct<a:smallint,b:timestamp_ntz>"),
        (pa.map_(pa.string(), pa.uint8()), "map<string,smallint>"),
        (pa.null(), "void"),
    ],
)
def test_types_have_these_counterparts(arrow: pa.DataType, spark: str) -> None:
    schema = SparkSchema(pa.schema([("c", arrow)]))
    assert schema.struct_type["c"].dataType.simpleString() == spark
    nulls = schema.cast(pa.record_batch({"c": pa.nulls(2, arrow)}))
    assert nulls.column("c").null_count == 2


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.array([2**64 - 1, None], pa.uint64()), [Decimal(2**64 - 1), None]),
        (pa.array([-1000, 1000], pa.timestamp("ns")), [-1, 1]),
        (pa.array([-5], pa.timestamp("ms")), [-5000]),
        (pa.array([None, -2000], pa.duration("ns")), [None, -2]),
        (pa.array(["x", None]).dictionary_encode(), ["x", None]),
        (pa.array([[1], None, []], pa.list_(pa.uint8())), [[1], None, []]),
    ],
)
def test_values_stay_the_same(array: pa.Array, values: list[Any]) -> None:
    batch = pa.record_batch({"c": array})
    column = SparkSchema(batch.schema).cast(batch).column("c")
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
        column = column.view(pa.int64())
    assert column.to_pylist() == values


def test_instants_keep_their_zone() -> None:
    noon = dt.datetime(2024, 5, 1, 12, tzinfo=dt.timezone.utc)
    batch = pa.record_batch({"c": pa.array([noon], pa.timestamp("ms", "Asia/Tokyo"))})
    assert SparkSchema(batch.schema).cast(batch).column("c").to_pylist() == [noon]


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns")])
def test_times_that_microseconds_cannot_tell_apart_are_refused(kind: pa.DataType) -> None:
    batch = pa.record_batch({"key": pa.array([1, 2], kind)})
    with pytest.raises(DataError, match=r"column 'key' does not fit into Spark's type .*to_arrow"):
        SparkSchema(batch.schema).cast(batch)


def test_time_beyond_sparks_range_is_told() -> None:
    batch = pa.record_batch({"window_end": pa.array([2**62], pa.timestamp("ms"))})
    with pytest.raises(DataError, match="column 'window_end' does not fit"):
        SparkSchema(batch.schema).cast(batch)


@pytest.mark.parametrize(
    "arrow",
    [pa.month_day_nano_interval(), pa.dense_union([pa.field("a", pa.int8())]), pa.decimal128(5, -2)],
)
def test_type_without_counterpart_is_refused(arrow: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"column 'c' is .* for which Spark has no type"):
        SparkSchema(pa.schema([("c", arrow)]))


def test_columns_that_take_no_null_take_none_in_spark() -> None:
    columns = pa.schema([pa.field("a", pa.uint8(), nullable=False), pa.field("b", pa.uint8())])
    schema = SparkSchema(columns)
    assert [field.nullable for field in schema.struct_type] == [False, True]
    nulls = pa.nulls(1, pa.uint8())
    assert schema.cast(pa.record_batch([pa.array([1], pa.uint8()), nulls], columns)).to_pylist() == [
        {"a": 1, "b": None}
    ]
    with pytest.raises(DataError, match="column 'a' of the results has a null, which its type does not take"):
        schema.cast(pa.record_batch([nulls, nulls], columns))
