"""Comparison of DataFrames: rows of a key meet in a task, and only differences leave it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, types
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_type

from flinkcore.analysis.comparison import EXAMPLES, MOST_PAIRS, Comparison, ResultComparison
from flinkcore.analysis.result_tables import names_of
from flinkcore.errors import ConfigurationError
from flinkcore.spark.columns.spark_types import SparkSchema
from flinkcore.spark.logs.dataframe_log import log_schema, quoted, with_field_columns
from flinkcore.spark.negative_zeros import negative_zeros
from flinkcore.spark.result_dataframes import dataframe_of, utc_timestamp
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable

PIECE_ROWS: Final = 1 << 14
"""So many rows are compared at once, and all others of the last key."""


@dataclass(frozen=True)
class CompareTask:
    """Compares rows of both sides that come in order of the hashes of their keys.

    Attributes
    ----------
    comparison : ResultComparison
    output : SparkSchema
        Schema of the differences.
    """

    comparison: ResultComparison
    output: SparkSchema

    @property
    def struct_type(self) -> types.StructType:
        """Columns that are given: differences, and between them the numbers of rows that were compared."""
        fields = [types.StructField("row", self.output.struct_type)]
        fields += [types.StructField(name, types.LongType()) for name in ("expected_rows", "found_rows")]
        return types.StructType(fields)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        held_rows, held_place, of_place = 0, None, [0, 0]
        for batch in batches:
            if not batch.num_rows:
                continue
            places = batch.column("place").to_numpy()
            # Further rows of the last key may come.
            whole = int(np.searchsorted(places, places[-1], "left"))
            is_another = whole > 0 or places[-1] != held_place
            if is_another and held_rows + batch.num_rows >= PIECE_ROWS and (held or whole):
                yield from self._compared([*held, batch.slice(0, whole)])
                held, held_rows, batch, whole = [], 0, batch.slice(whole), 0
            held.append(batch)
            held_rows, held_place = held_rows + batch.num_rows, places[-1]
            of_found = batch.column("expected").slice(whole).null_count
            more = [batch.num_rows - whole - of_found, of_found]
            of_place = more if is_another else [so_far + n for so_far, n in zip(of_place, more, strict=True)]
            if of_place[0] * of_place[1] > MOST_PAIRS:
                self._differences(held)  # refuses the key, before all its rows are held
        if held:
            yield from self._compared(held)

    def _compared(self, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        differences, numbers = self._differences(batches)
        for batch in differences.to_batches():
            given = self.output.cast(batch)
            row = pa.StructArray.from_arrays(given.columns, fields=list(given.schema))
            yield self._given(row, [pa.nulls(len(row), pa.int64())] * 2)
        row = pa.nulls(1, pa.struct(list(self.output.arrow)))
        yield self._given(row, [pa.array([number]) for number in numbers])

    def _given(self, row: pa.StructArray, numbers: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([row, *numbers], names=self.struct_type.names)

    def _differences(self, batches: list[pa.RecordBatch]) -> tuple[pa.Table, list[int]]:
        rows = pa.Table.from_batches(batches)
        sides = []
        for side in ("expected", "found"):
            of_side = rows.column(side).combine_chunks()
            given = of_side.filter(of_side.is_valid())
            sides.append(pa.Table.from_arrays(given.flatten(), [field.name for field in given.type]))
        return self.comparison.differences(*sides), [side.num_rows for side in sides]


def compare(
    expected: Any,
    found: Any,
    *,
    keys: str | Sequence[str],
    columns: str | Sequence[str] | None = None,
    upserts: bool | None = None,
    rel_tol: float = 1e-9,
    abs_tol: float = 0.0,
) -> SparkComparison:
    """Compare the rows that a live job has written with those of its replay, on Spark.

    As :func:`flinkcore.analysis.compare`, but over DataFrames: both are shuffled by the keys and compared in tasks. The
    replay runs once. The sink is read once, and its keys once more if `upserts` has to be found out. The differences
    are persisted until ``close()``, or the end of a ``with`` block.

    Parameters
    ----------
    expected : DataFrame
    found : DataFrame, or result of a job on Spark
    keys, columns, upserts, rel_tol, abs_tol
        As of :func:`flinkcore.analysis.compare`. Rows of a key are in the order in which Spark reads them.

    Returns
    -------
    SparkComparison

    Raises
    ------
    ConfigurationError
        If a column is missing, no column is left to compare, or a tolerance is negative.
    SchemaError
        If a column has types that cannot be compared.
    DataError
        If a value does not fit the type in which it is compared, the keys do not name a result, or Spark cannot compute
        a row.
    SourceError
        If Spark cannot read a file.
    """
    key_names = names_of(keys, "keys")
    named = [*key_names, *(() if columns is None else names_of(columns, "columns"))]
    sink, replay = _with_alike_times(
        with_field_columns(dataframe_of(expected, "expected", for_user=False), named),
        with_field_columns(dataframe_of(found, "found", for_user=False), named),
    )
    comparison = ResultComparison.of(
        log_schema(sink),
        log_schema(replay),
        keys=keys,
        columns=columns,
        upserts=True if upserts is None else upserts,
        rel_tol=rel_tol,
        abs_tol=abs_tol,
    )
    if upserts is None:
        of_key = sink.groupBy(*map(quoted, key_names), negative_zeros(sink, key_names)).count()
        with task_errors_raised():
            comparison = replace(comparison, upserts=of_key.where("count > 1").isEmpty())
    sides = [
        frame.select(
            f.xxhash64(*(f.col(quoted(name)).cast(_type(comparison, name)) for name in key_names)).alias(
                "place"
            ),
            f.lit(side).alias("side"),
            f.monotonically_increasing_id().alias("number"),
            f.struct(*(f.col(quoted(name)) for name in frame.columns)).alias(side),
        )
        for side, frame in (("expected", sink), ("found", replay))
    ]
    both = sides[0].unionByName(sides[1], allowMissingColumns=True)
    in_order = both.repartition("place").sortWithinPartitions("place", "side", "number")
    output = SparkSchema(comparison.schema())
    task = CompareTask(comparison, output)
    rows = in_order.select("place", "expected", "found")
    compared = rows.mapInArrow(portable(sink.sparkSession, task), task.struct_type)
    return SparkComparison(comparison, compared)


class SparkComparison(Comparison):
    """Differences of DataFrames; a context manager that releases them.

    Parameters
    ----------
    comparison : ResultComparison
    compared : DataFrame
        Results of `CompareTask`. They are persisted until `close`.
    """

    def __init__(self, comparison: ResultComparison, compared: DataFrame) -> None:
        compared = compared.persist()
        by_kind = compared.groupBy(f.col("row.difference").alias("kind")).agg(
            f.count("row").alias("differences"),
            f.count("row.expected").alias("unequal"),
            *(f.sum(name).alias(name) for name in ("expected_rows", "found_rows")),
        )
        try:
            with task_errors_raised():
                counts = by_kind.collect()
        except BaseException:
            compared.unpersist()
            raise
        expected_rows, found_rows = (
            sum(row[name] or 0 for row in counts) for name in ("expected_rows", "found_rows")
        )
        equal = expected_rows - sum(row.unequal for row in counts)
        by_kinds = {row.kind: row.differences for row in counts if row.kind is not None}
        super().__init__(comparison, by_kinds, equal, expected_rows, found_rows)
        self._compared: DataFrame | None = compared

    def close(self) -> None:
        """Release the differences; counts stay. May be called again."""
        if self._compared is not None:
            self._compared.unpersist()
            self._compared = None

    def __enter__(self) -> SparkComparison:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def to_dataframe(self) -> DataFrame:
        """Return the differences with the columns of `to_arrow`, in any order; they are persisted until `close`.

        Raises
        ------
        ConfigurationError
            If they are released.
        """
        if self._compared is None:
            raise ConfigurationError("the comparison is closed. Take its differences before, and its counts")
        return self._compared.where(f.col("row").isNotNull()).select("row.*")

    def to_arrow(self) -> pa.Table:
        differences = self.to_dataframe()
        if not hasattr(differences, "toArrow"):
            raise ConfigurationError("to_arrow() needs Spark 4.0 or later. Take to_dataframe()")
        with task_errors_raised():
            return differences.toArrow()

    def _examples(self, kind: str) -> list[dict[str, Any]]:
        if self._compared is None:
            return []
        rows = self.to_dataframe().where(f.col("difference") == kind).limit(EXAMPLES).collect()
        return [row.asDict(recursive=True) for row in rows]


def _with_alike_times(first: DataFrame, second: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Both with timestamps of UTC without a zone where only one of them has these."""
    kinds = [{field.name: field.dataType for field in frame.schema.fields} for frame in (first, second)]
    for name in kinds[0].keys() & kinds[1].keys():
        both = {type(kind[name]) for kind in kinds}
        if both == {types.TimestampType, types.TimestampNTZType}:
            first, second = (
                frame.withColumn(name, utc_timestamp(name, kind[name]))
                for frame, kind in zip((first, second), kinds, strict=True)
            )
    return first, second


def _type(comparison: ResultComparison, name: str) -> Any:
    return from_arrow_type(comparison.types.field(name).type, prefer_timestamp_ntz=True)
