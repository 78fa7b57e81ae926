"""A log of a job on Spark: what its tasks read, and the DataFrame whose partitions they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Final

from flinkcore.replay.log.log_sources import TableSource
from flinkcore.replay.plans.log_plan import LogPlan
from flinkcore.replay.time_plane.time_pass import TimePass
from flinkcore.spark.logs.kept_rows import KeptInput, KeptRows
from flinkcore.spark.logs.log_input import FileInput, LogInput

SHORT_LOG_BYTES: Final = 512 << 20
"""Up to this size of a log, its summaries come with the job that makes them, and no code is compiled for the jobs."""


@dataclass(frozen=True)
class SparkLog:
    """A log and its input.

    Attributes
    ----------
    plan
        What is done with the log.
    log
        What the tasks read.
    dataframe
        Input of the tasks that read it: see `LogInput`.
    kept
        What Spark keeps for it.
    """

    plan: LogPlan
    log: LogInput
    dataframe: Any
    kept: KeptRows | None = None

    @property
    def is_short(self) -> bool:
        """Whether the log is in files, of up to `SHORT_LOG_BYTES`."""
        size = self.log.size_bytes
        return size is not None and size <= SHORT_LOG_BYTES


@dataclass(frozen=True)
class UnreadDataFrame:
    """A log that is a DataFrame, which Spark has not evaluated yet.

    Attributes
    ----------
    plan
        What is done with the log.
    dataframe
        With all columns of the log.
    """

    is_short: ClassVar[bool] = False

    plan: LogPlan
    dataframe: Any

    def kept(self, spark: Any, time_pass: TimePass) -> tuple[SparkLog, Iterator[bytes] | None]:
        """Evaluate it once; the log as tasks read it from then on, and what was told of each chunk: see `PackTask`."""
        columns = self.plan.reader(self.plan.data_columns()).columns_read
        kept = KeptRows.of(spark, self.dataframe.select(*_quoted(columns)), time_pass)
        told = kept.told()
        first = next(told, None)
        if first is not None:
            return SparkLog(self.plan, KeptInput(self.plan.log.schema), kept.rows, kept), chain([first], told)
        # Spark runs no task where there is no partition.
        none = FileInput(tuple(TableSource(self.plan.log.schema.empty_table()).chunks(1)))
        return SparkLog(self.plan, none, none.dataframe(spark)), None


def _quoted(columns: Iterable[str]) -> list[str]:
    return ["`" + name.replace("`", "``") + "`" for name in columns]
