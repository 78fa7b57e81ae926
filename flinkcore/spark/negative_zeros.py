"""Places of -0.0 in columns, which Spark takes for 0.0 as it groups rows, unlike flinkcore."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as f

from flinkcore.spark.logs.dataframe_log import quoted


def negative_zeros(frame: DataFrame, names: Sequence[str]) -> Column:
    """Return a text that tells rows apart whose columns are equal for Spark, and not for flinkcore.

    Parameters
    ----------
    frame : DataFrame
    names : sequence of str
        Columns; their types may be others in a DataFrame with which this one is compared.
    """
    places = [
        (f"{number}{place}", is_one)
        for number, name in enumerate(names)
        for place, is_one in _within(f.col(quoted(name)), frame.schema[name].dataType)
    ]
    return f.concat_ws(",", *(f.when(is_one, f.lit(place)) for place, is_one in places))


def _within(column: Column, kind: types.DataType) -> Iterator[tuple[str, Column]]:
    """Yield the places of floats in a column, and whether there is -0.0."""
    if isinstance(kind, types.FloatType | types.DoubleType):
        yield "", (column == 0) & (column.cast("string") == "-0.0")
    elif isinstance(kind, types.StructType):
        # Names of fields may be those of others, but for their case.
        numbered = [types.StructField(f"f{at}", field.dataType) for at, field in enumerate(kind.fields)]
        fields = column.cast(types.StructType(numbered))
        for field in numbered:
            for place, is_one in _within(fields.getField(field.name), field.dataType):
                yield f".{field.name}{place}", is_one
