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

from flinkcore.analysis.comparison import EXAMPLES, Comparison, ResultComparison
from flinkcore.analysis.result_tables import names_of
from flinkcore.errors import ConfigurationError
from flinkcore.spark.columnar.spark_types import SparkSchema
from flinkcore.spark.logs.dataframe_log import log_schema
from flinkcore.spark.result_dataframes import dataframe_of, quoted, utc_timestamp
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
        Of the differences.
    """

    comparison: ResultComparison
    output: SparkSchema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(part.num_rows for part in held) < PIECE_ROWS:
                continue
            rows = pa.Table.from_batches(held)
            places = rows.column("place").to_numpy()
            whole = int(np.searchsorted(places, places[-1], "left"))  # further rows of the last key may come
            if whole:
                yield from self._differences(rows.slice(0, whole))
                held = rows.slice(whole).to_batches()
        if held:
            yield from self._differences(pa.Table.from_batches(held))

    def _differences(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        sides = []
        for side in ("expected", "found"):
            of_side = rows.column(side).combine_chunks()
            given = of_side.filter(of_side.is_valid())
            sides.append(pa.Table.from_arrays(given.flatten(), [field.name for field in given.type]))
        for batch in self.comparison.differences(*sides).to_batches():
            yield self.output.cast(batch)


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
    """Compare what a live job has written with what its replay gives, on Spark.

    As :func:`flinkcore.analysis.compare`, but over DataFrames: both are shuffled by the keys and compared in tasks, and
    the differences are persisted.

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
        If a column is missing, there is none to compare, or a tolerance is negative.
    SchemaError
        If a column has types that cannot be compared.
    DataError
        If a value does not fit the type in which it is compared, or the keys do not name a result.
    """
    sink, replay = _with_alike_times(dataframe_of(expected, "expected"), dataframe_of(found, "found"))
    key_names = names_of(keys, "keys")
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
        of_key = sink.groupBy(*map(quoted, key_names)).count()
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
    task = portable(sink.sparkSession, CompareTask(comparison, output))
    differences = in_order.select("place", "expected", "found").mapInArrow(task, output.struct_type).persist()
    return SparkComparison(differences, sink.count(), replay.count(), comparison.upserts)


class SparkComparison(Comparison):
    """Differences of DataFrames.

    Parameters
    ----------
    differences : DataFrame
    expected_rows, found_rows, upserts
        As of `Comparison`.
    """

    def __init__(self, differences: DataFrame, expected_rows: int, found_rows: int, upserts: bool) -> None:
        by_kind = differences.groupBy("difference").agg(
            f.count("*").alias("differences"), f.count("expected").alias("unequal")
        )
        with task_errors_raised():
            counts = by_kind.collect()
        equal = expected_rows - sum(row.unequal for row in counts)
        super().__init__(
            {row.difference: row.differences for row in counts}, equal, expected_rows, found_rows, upserts
        )
        self._differences = differences

    def to_dataframe(self) -> DataFrame:
        """Return the differences with the columns of `to_arrow`, in any order; they are persisted."""
        return self._differences

    def to_arrow(self) -> pa.Table:
        if not hasattr(self._differences, "toArrow"):
            raise ConfigurationError("to_arrow() needs Spark 4.0 or later: take to_dataframe()")
        return self._differences.toArrow()

    def _examples(self, kind: str) -> list[dict[str, Any]]:
        rows = self._differences.where(f.col("difference") == kind).limit(EXAMPLES).collect()
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
