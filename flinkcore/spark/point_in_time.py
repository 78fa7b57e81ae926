"""Point-in-time join of DataFrames, by Spark's sort and window functions: no row comes to the driver or to Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window, types
from pyspark.sql import functions as f

from flinkcore._internal.arrow.column_ops import HIDDEN_PREFIX
from flinkcore.analysis.point_in_time import WITHDRAWN, PointInTimeJoin, columns_of_features
from flinkcore.analysis.result_tables import names_of
from flinkcore.common.time import Interval
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.spark.logs.dataframe_log import log_schema, quoted, with_field_columns
from flinkcore.spark.negative_zeros import negative_zeros
from flinkcore.spark.result_dataframes import dataframe_of

_NUMBER: Final = f"{HIDDEN_PREFIX}number"


def as_of(
    questions: Any,
    features: Any,
    *,
    at: str,
    keys: str | Sequence[str],
    columns: str | Sequence[str] | None = None,
    emitted_at: str = "emitted_at",
    latest_by: str | None = None,
    max_age: Interval | None = None,
    allow_exact_matches: bool = True,
    prefix: str = "",
) -> DataFrame:
    """Answer each question with the features that a live job would have served at that time, on Spark.

    As :func:`flinkcore.analysis.as_of`, but over DataFrames: both sides are shuffled by their keys and sorted by time,
    and a window function of Spark takes the last row of a key by then. It buffers the rows of one key at a time, and
    spills them to disk beyond ``spark.sql.windowExec.buffer.in.memory.threshold`` rows.

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
        If a column is missing, comes or would come twice, or the age is negative.
    SchemaError
        If the keys of both sides are values of different kinds (a text and a number, a timestamp with a zone and one
        without), a time is not a time, or `latest_by` has nested values.
    """
    asked = dataframe_of(questions, "questions")
    of_answer, key_names = asked.columns, names_of(keys, "keys")
    asked = with_field_columns(asked, [*key_names, at])
    known = with_field_columns(
        dataframe_of(features, "features"), columns_of_features(keys, columns, emitted_at, latest_by)
    )
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
    join.check_types(
        _arrow_types(asked, *join.keys, join.at),
        _arrow_types(
            known, *join.keys, join.emitted_at, *([] if join.latest_by is None else [join.latest_by])
        ),
    )
    # One order for both: features come before the questions of their time, or after them.
    placed_keys = [*(f.col(f"key{number}") for number in range(len(join.keys))), f.col("negative_zeros")]
    by_key = Window.partitionBy(*placed_keys).orderBy("ms", "micros", "side", "number")
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
        *_keys(known, join),
        *_time(known, join.emitted_at),
        f.lit(1).alias("side"),
        f.col(_NUMBER).alias("number"),
        served.alias("served"),
        withdrawn.alias("withdrawn"),
        (f.lit(None) if join.latest_by is None else f.col(quoted(join.latest_by))).alias("latest_by"),
    )
    if join.latest_by is not None:
        rows = rows.withColumn("latest", f.max("latest_by").over(so_far))
        rows = rows.where(f.col("latest").eqNullSafe(f.col("latest_by")))
    feature = f.struct("served", "withdrawn", "ms", "micros").alias("feature")
    both = rows.select(*placed_keys, "ms", "micros", "side", "number", feature).unionByName(
        asked.select(
            *_keys(asked, join),
            *_time(asked, join.at),
            f.lit(2 if join.allow_exact_matches else 0).alias("side"),
            f.lit(0).cast("long").alias("number"),
            f.struct(*(f.col(quoted(name)) for name in of_answer)).alias("question"),
        ),
        allowMissingColumns=True,
    )
    last = f.last("feature", ignorenulls=True).over(so_far)
    answered = both.withColumn("last", last).where(f.col("side") != 1)
    serves = [~f.col("last.withdrawn"), f.col("ms").isNotNull()]
    if join.max_age_ms is not None:
        serves.append(_is_fresh(join.max_age_ms))
    answer = f.when(reduce(and_, serves), f.col("last.served"))
    return answered.select("question", answer.alias("served")).select(
        *(f.col(f"question.{quoted(name)}") for name in of_answer),
        *(f.col(f"served.{quoted(served_as)}") for _, served_as in join.served),
    )


def _keys(frame: DataFrame, join: PointInTimeJoin) -> list[Column]:
    keys = [f.col(quoted(name)).alias(f"key{number}") for number, name in enumerate(join.keys)]
    return [*keys, negative_zeros(frame, join.keys).alias("negative_zeros")]


def _arrow_types(frame: DataFrame, *names: str) -> pa.Schema:
    return log_schema(frame.select(*(quoted(name) for name in dict.fromkeys(names))))


def _time(frame: DataFrame, name: str) -> tuple[Column, Column]:
    """Return a time of UTC as whole ms, and the microseconds beyond; no time zone of the session has part in it."""
    kind, column = frame.schema[name].dataType, quoted(name)
    micros = "0"
    if isinstance(kind, types.TimestampNTZType):
        minutes = f"(datediff({column}, DATE'1970-01-01') * 24L + hour({column})) * 60L + minute({column})"
        within = f"cast(extract(SECOND FROM {column}) * 1000000 AS BIGINT)"
        ms, micros = f"({minutes}) * 60000L + {within} div 1000L", f"cast({within} % 1000L AS INT)"
    elif isinstance(kind, types.TimestampType):
        ms, micros = f"unix_millis({column})", f"cast(pmod(unix_micros({column}), 1000L) AS INT)"
    elif isinstance(kind, types.DateType):
        ms = f"datediff({column}, DATE'1970-01-01') * 86400000L"
    else:
        ms = f"cast({column} AS BIGINT)"
    return f.expr(ms).alias("ms"), f.expr(micros).alias("micros")


def _is_fresh(max_age_ms: int) -> Column:
    """Return whether the last feature is at most that old; no subtraction leaves 64 bits."""
    least = f.lit(-(2**63) + max_age_ms)
    oldest = f.greatest(f.col("ms"), least) - f.lit(max_age_ms)
    is_at_the_end = (f.col("last.ms") == oldest) & (f.col("last.micros") >= f.col("micros"))
    return (f.col("ms") < least) | (f.col("last.ms") > oldest) | is_at_the_end
