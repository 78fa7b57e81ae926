"""Point-in-time join of DataFrames, by Spark's sort and window functions: no row comes to the driver or to Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window, types
from pyspark.sql import functions as f

from flinkcore.analysis.point_in_time import WITHDRAWN, PointInTimeJoin
from flinkcore.common import Duration, Time
from flinkcore.datastream.columnar_windows import ROW_KIND
from flinkcore.replay.log.column_ops import HIDDEN_PREFIX
from flinkcore.spark.result_dataframes import dataframe_of, quoted, utc_timestamp

_NUMBER: Final = f"{HIDDEN_PREFIX}number"


def as_of(
    questions: Any,
    features: Any,
    *,
    at: str,
    keys: str | Sequence[str],
    columns: Sequence[str] | None = None,
    emitted_at: str = "emitted_at",
    latest_by: str | None = None,
    max_age: Duration | Time | int | None = None,
    allow_exact_matches: bool = True,
    prefix: str = "",
) -> DataFrame:
    """Answer each question with the features that a live job would have served at that time, on Spark.

    As :func:`flinkcore.analysis.as_of`, but over DataFrames: both sides are shuffled by their keys and sorted by time,
    and each task keeps the last row of a key as it goes through them.

    Parameters
    ----------
    questions : DataFrame
    features : DataFrame, or result of a job on Spark
        Rows of a key that were emitted at the same time count in the order in which Spark reads them: of a job's
        DataFrame the order in which it emitted them. Where they come from files that others have written, name
        what orders them in `latest_by`.
    at, keys, columns, emitted_at, latest_by, max_age, allow_exact_matches, prefix
        As of :func:`flinkcore.analysis.as_of`. Times without a zone are UTC.

    Returns
    -------
    DataFrame
        The questions, in any order, with the columns of the features.

    Raises
    ------
    ConfigurationError
        If a column is missing, would come twice, or the age is negative.
    SchemaError
        If a time is no timestamp, date or integer.
    """
    asked, known = dataframe_of(questions, "questions"), dataframe_of(features, "features")
    join = PointInTimeJoin.of(
        asked.columns,
        known.columns,
        at=at,
        keys=keys,
        columns=columns,
        emitted_at=emitted_at,
        latest_by=latest_by,
        max_age=max_age,
        allow_exact_matches=allow_exact_matches,
        prefix=prefix,
    )
    question_time, feature_time = _comparable(asked, join.at, known, join.emitted_at)
    # One order for both: features come before the questions of their time, or after them.
    placed_keys = [f.col(f"key{number}") for number in range(len(join.keys))]
    by_key = Window.partitionBy(*placed_keys).orderBy("time", "side", "number")
    so_far = by_key.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    known = known.withColumn(_NUMBER, f.monotonically_increasing_id()).where(
        f.col(quoted(join.emitted_at)).isNotNull()
    )
    if len(join.keys) == 1:
        known = known.where(f.col(quoted(join.keys[0])).isNotNull())
    served = f.struct(
        *(f.col(quoted(name)).alias(served_as) for name, served_as in join.served),
    )
    is_withdrawn = f.col(ROW_KIND).isin(*WITHDRAWN) if join.retracts else f.lit(False)
    withdrawn = f.coalesce(is_withdrawn, f.lit(False))
    rows = known.select(
        *_keys(join),
        feature_time.alias("time"),
        f.lit(1).alias("side"),
        f.col(_NUMBER).alias("number"),
        served.alias("served"),
        withdrawn.alias("withdrawn"),
        (f.lit(None) if join.latest_by is None else f.col(quoted(join.latest_by))).alias("latest_by"),
    )
    if join.latest_by is not None:
        rows = rows.withColumn("latest", f.max("latest_by").over(so_far))
        rows = rows.where(f.col("latest").eqNullSafe(f.col("latest_by")))
    feature = f.struct("served", "withdrawn", "time").alias("feature")
    both = rows.select(*placed_keys, "time", "side", "number", feature).unionByName(
        asked.select(
            *_keys(join),
            question_time.alias("time"),
            f.lit(2 if join.allow_exact_matches else 0).alias("side"),
            f.lit(0).cast("long").alias("number"),
            f.struct(*(f.col(quoted(name)) for name in asked.columns)).alias("question"),
        ),
        allowMissingColumns=True,
    )
    last = f.last("feature", ignorenulls=True).over(so_far)
    answered = both.withColumn("last", last).where(f.col("side") != 1)
    serves = [~f.col("last.withdrawn"), f.col("time").isNotNull()]
    if join.max_age_ms is not None:
        serves.append(f.col("time") - f.col("last.time") <= _span(asked, known, join))
    answer = f.when(reduce(and_, serves), f.col("last.served"))
    return answered.select("question", answer.alias("served")).select(
        *(f.col(f"question.{quoted(name)}") for name in asked.columns),
        *(f.col(f"served.{quoted(served_as)}") for _, served_as in join.served),
    )


def _keys(join: PointInTimeJoin) -> list[Column]:
    return [f.col(quoted(name)).alias(f"key{number}") for number, name in enumerate(join.keys)]


def _comparable(asked: DataFrame, at: str, known: DataFrame, emitted_at: str) -> tuple[Column, Column]:
    """Both times in one type: numbers of ms if both are, else timestamps of UTC without a zone."""
    kinds = [frame.schema[name].dataType for frame, name in ((asked, at), (known, emitted_at))]
    columns = [f.col(quoted(name)) for name in (at, emitted_at)]
    if all(isinstance(kind, types.IntegralType) for kind in kinds):
        first, second = (column.cast("long") for column in columns)
    else:
        first, second = (
            utc_timestamp(name, kind) for name, kind in zip((at, emitted_at), kinds, strict=True)
        )
    return first, second


def _span(asked: DataFrame, known: DataFrame, join: PointInTimeJoin) -> Column:
    kinds = (asked.schema[join.at].dataType, known.schema[join.emitted_at].dataType)
    if all(isinstance(kind, types.IntegralType) for kind in kinds):
        return f.lit(join.max_age_ms)
    return f.expr(f"make_dt_interval(0, 0, 0, {join.max_age_ms} * 0.001BD)")
