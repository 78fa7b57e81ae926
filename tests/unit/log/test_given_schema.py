"""Schemas of logs in the forms in which users have them."""

import re

import pyarrow as pa
import pytest

from flinkcore.errors import ConfigurationError
from flinkcore.log.schemas.given_schema import GivenSchema

INSTANTS = pa.timestamp("us", "UTC")


def test_ddl_is_read_as_spark_reads_it():
    given = GivenSchema.of(
        "user STRING, price DECIMAL(10, 2) NOT NULL, n dec, `a b`: ARRAY<MAP<STRING, BIGINT>>, "
        "p STRUCT<x: INT, `y``z` timestamp_ntz>, t timestamp"
    )
    assert given == GivenSchema(
        {
            "user": pa.string(),
            "price": pa.decimal128(10, 2),
            "n": pa.decimal128(10, 0),
            "a b": pa.list_(pa.map_(pa.string(), pa.int64())),
            "p": pa.struct({"x": pa.int32(), "y`z": pa.timestamp("us")}),
            "t": INSTANTS,
        },
        is_whole=True,
    )


def test_a_mapping_has_types_of_some_columns_by_either_name():
    types = {
        "zip": "string",
        "n": "bigint",
        "at": "timestamp[ms]",
        "price": "decimal(5, 1)",
        "k": pa.large_string(),
    }
    assert GivenSchema.of(types) == GivenSchema(
        {
            "zip": pa.string(),
            "n": pa.int64(),
            "at": pa.timestamp("ms"),
            "price": pa.decimal128(5, 1),
            "k": pa.string(),
        }
    )


def test_a_schema_of_spark_is_that_of_arrow():
    types = pytest.importorskip("pyspark.sql.types")
    schema = types.StructType(
        [
            types.StructField("a", types.DecimalType(12, 3)),
            types.StructField(
                "b", types.ArrayType(types.StructType([types.StructField("x", types.TimestampType())]))
            ),
            types.StructField("m", types.MapType(types.StringType(), types.LongType())),
            types.StructField("v", types.VarcharType(3)),
        ]
    )
    found = {
        "a": pa.decimal128(12, 3),
        "b": pa.list_(pa.struct({"x": INSTANTS})),
        "m": pa.map_(pa.string(), pa.int64()),
        "v": pa.string(),
    }
    assert GivenSchema.of(schema) == GivenSchema.of(pa.schema(found)) == GivenSchema(found, is_whole=True)
    assert GivenSchema.of({"m": types.LongType()}) == GivenSchema({"m": pa.int64()})


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("", "schema= has no columns"),
        (pa.schema([]), "schema= has no columns"),
        ("a int b", "has 'b' where a comma or its end belongs"),
        ("a int, a int", "names column 'a' more than once"),
        ("a decimal(77)", "has a decimal of 77 digits"),
        ("a decimal(x)", "has x where a number belongs"),
        ("a list<int>", "has the type 'list', which is not known: known are boolean"),
        ("a int(", "has its end where a number belongs"),
        ("a array<int", "has its end where > belongs"),
        ("a <", "has '<' where a type belongs"),
        ("a int not", "has NOT without NULL"),
        ("a int comment 'x'", "has a comment: leave it out"),
        ("a int `", "cannot be read from character 6"),
        (3, "is a schema of Arrow's or Spark's, such as 'user STRING"),
        ({"a": 3}, "has 3 as the type of column 'a'"),
        ({3: "int"}, "has the column 3"),
    ],
)
def test_what_is_not_a_schema_is_refused_with_an_example(schema, told):
    with pytest.raises(ConfigurationError, match=re.escape(told)):
        GivenSchema.of(schema)
