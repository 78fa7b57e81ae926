"""Arrow's types as those of Spark."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import from_arrow_schema

from flinkcore._internal.arrow.required_values import null_fault, refused_null_of
from flinkcore.columnar.outputs.table_types import SAME, WIDENED, has_digits
from flinkcore.errors import DataError, SchemaError

_SAME = SAME | {pa.null()}


class SparkSchema:
    """An Arrow schema in Spark's types, to which it casts batches.

    Unsigned integers become the next wider signed type (uint64 becomes DECIMAL(20, 0)). Timestamps become TIMESTAMP if
    they have a time zone and TIMESTAMP_NTZ if they have none, both in microseconds; durations become day-time
    intervals, and dictionaries their values.

    Parameters
    ----------
    schema : pyarrow.Schema
        Columns that are not nullable are not nullable in Spark, which is quicker to read them.

    Attributes
    ----------
    arrow : pyarrow.Schema
        Arrow's types of those of Spark.

    Raises
    ------
    SchemaError
        If Spark lacks a type: unions, month intervals, and before Spark 4.1 times of day.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.arrow = pa.schema(
            [pa.field(field.name, _accepted(field.type, field.name), field.nullable) for field in schema]
        )

    @cached_property
    def struct_type(self) -> spark.StructType:
        """The same as Spark has it."""
        return from_arrow_schema(self.arrow, prefer_timestamp_ntz=True)

    def cast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch in Spark's types.

        Raises
        ------
        DataError
            If a value does not fit: a timestamp beyond the year 294,247, or with digits below microseconds; or if a
            null is in a column that is not nullable.
        """
        columns = []
        for column, field in zip(batch.columns, self.arrow, strict=True):
            try:
                columns.append(column if column.type == field.type else column.cast(field.type))
            except pa.ArrowInvalid as error:
                raise DataError(
                    f"column {field.name!r} does not fit into Spark's type {field.type}: {error}. Take to_arrow() or "
                    "write_parquet(), or convert it before, with with_columns(...)",
                    column=field.name,
                ) from error
        made = pa.RecordBatch.from_arrays(columns, schema=self.arrow)
        place = refused_null_of(made)
        if place is not None:
            raise DataError(null_fault(place, "the results"), column=place)
        return made


def _accepted(given: pa.DataType, column: str) -> pa.DataType:
    """Return the Arrow type of a column that Spark accepts."""
    types = pa.types
    if given in _SAME or has_digits(given):
        return given
    if given in WIDENED:
        return WIDENED[given]
    if types.is_dictionary(given):
        return _accepted(given.value_type, column)
    if types.is_timestamp(given):
        return pa.timestamp("us", given.tz)
    if types.is_duration(given):
        return pa.duration("us")
    if types.is_time(given) and hasattr(spark, "TimeType"):
        return pa.time64("ns")
    if types.is_fixed_size_binary(given):
        return pa.binary()
    if types.is_list(given) or types.is_large_list(given) or types.is_fixed_size_list(given):
        return pa.list_(_accepted(given.value_type, column))
    if types.is_struct(given):
        return pa.struct([(field.name, _accepted(field.type, column)) for field in given])
    if types.is_map(given):
        return pa.map_(_accepted(given.key_type, column), _accepted(given.item_type, column))
    raise SchemaError(
        f"column {column!r} is {given}, for which Spark has no type. Convert it before the key, "
        "with with_columns(...), or take to_arrow() or write_parquet()"
    )
