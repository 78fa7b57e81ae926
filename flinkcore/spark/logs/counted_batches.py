"""Rows of one width, which Spark passes to Python in batches that it counts and does not measure.

Where batches have a limit in bytes, Spark adds up the buffers of a batch after each row that it writes
(`BatchedPythonArrowInput.writeSizedBatch`), which takes two fifths of the time of `mapInArrow`. If all rows have one
width, their number limits the bytes, too. The setting is one of a copy of the session, since rows of other jobs that
begin in the session at the same time may be blocks.
"""

from __future__ import annotations

from typing import Any, Final

from py4j.protocol import Py4JError

from flinkcore.spark.logs.dataframe_log import log_schema
from flinkcore.spark.sessions.session import is_classic, spark_version
from flinkcore.spark.sessions.spark_settings import BYTES_PER_BATCH, ROWS_PER_BATCH

COUNTED_BYTES: Final = 4 << 20
"""Bytes of a batch, as `configure_spark` limits those that are measured."""

_NOT_MEASURED: Final = str(2**31 - 1)
"""The limit in bytes with which Spark measures no batch."""

_OTHER_ROWS: Final = ("Python", "Pandas", "Arrow", "LogicalRDD")
"""Parts of the names of steps that send other rows to Python, or may do so."""


def counting_session(dataframe: Any) -> Any:
    """Return a session of the JVM in which batches of a DataFrame's rows are counted.

    Parameters
    ----------
    dataframe : pyspark.sql.DataFrame

    Returns
    -------
    py4j.java_gateway.JavaObject or None
        None if not all rows have one width, if Spark also sends other rows to Python to compute these, if the session
        shows no plans (Spark Connect), and before Spark 4, which measures no batches.
    """
    spark: Any = getattr(dataframe, "sparkSession", None)
    if spark_version() < (4, 0) or not is_classic(spark):
        return None
    try:
        bits = sum(1 + field.type.bit_width for field in log_schema(dataframe))
    except ValueError:  # texts, lists and others
        return None
    try:
        plan = dataframe._jdf.queryExecution().optimizedPlan().toString()
        if any(name in plan for name in _OTHER_ROWS):
            return None
        session = spark._jsparkSession.cloneSession()
        session.conf().set(ROWS_PER_BATCH, str(max(1, COUNTED_BYTES * 8 // max(1, bits))))
        session.conf().set(BYTES_PER_BATCH, _NOT_MEASURED)
        in_session(dataframe, session)
        return session
    except (Py4JError, TypeError):  # a vendor's Spark may allow none of this
        return None


def in_session(dataframe: Any, session: Any) -> Any:
    """Return a DataFrame as one that a session of the JVM runs."""
    spark = dataframe.sparkSession
    plan = dataframe._jdf.queryExecution().analyzed()
    moved = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, plan)
    return type(dataframe)(moved, spark)
