"""A log of a job on Spark: what its tasks read, and the DataFrame whose partitions they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from flinkcore.replay.log.column_ops import HIDDEN_PREFIX
from flinkcore.replay.plans.log_plan import LogPlan
from flinkcore.spark.logs.log_input import DataFrameInput, FileInput, StaysWithoutRows
from flinkcore.spark.shipping.tasks import BatchFunction, portable

PARTITION_NUMBER: Final = HIDDEN_PREFIX + "partition"
"""Column with the number of a row's partition, for jobs with several logs, whose tasks Spark numbers together."""


@dataclass
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
    is_alone
        Whether it is the only one of its job.
    without_rows
        The DataFrame that `log` stands for, if that had no rows in the first pass.
    """

    plan: LogPlan
    log: FileInput | DataFrameInput
    dataframe: Any
    is_alone: bool = True
    without_rows: Any = None

    @property
    def is_recomputable(self) -> bool:
        """Whether the log is a DataFrame, whose partitions Spark may compute again, and not alike."""
        return isinstance(self.log, DataFrameInput)

    @property
    def checked(self) -> FileInput | DataFrameInput:
        """The input of the first pass."""
        if not isinstance(self.log, DataFrameInput):
            return self.log
        return replace(
            self.log,
            checked=tuple(self.plan.deciding_columns()),
            number_column=None if self.is_alone else PARTITION_NUMBER,
        )

    @cached_property
    def read_dataframe(self) -> Any:
        """The DataFrame with the columns that tasks read.

        Both passes read the same columns of a DataFrame, although the first needs fewer: for other columns Spark would
        make another plan, which can distribute rows otherwise (`repartition(n)` hashes whole rows).
        """
        if not isinstance(self.log, DataFrameInput):
            return self.dataframe
        read = self.plan.reader(self.plan.data_columns()).columns_read
        columns = [*_quoted(dict.fromkeys([*self.plan.deciding_columns(), *read]))]
        if self.is_alone:
            return self.dataframe.select(*columns)
        # The optimizer computes columns of a small local DataFrame on the driver, where all rows are of one partition;
        # a sample, here of all rows, is taken in the partitions.
        rows = self.dataframe.select(*columns).sample(fraction=1.0, seed=0)
        return rows.selectExpr("*", f"spark_partition_id() AS {PARTITION_NUMBER}")

    def map_in_arrow(self, spark: Any, task: BatchFunction, ddl: str) -> Any:
        """Return a DataFrame of what a task makes of the log in the second pass."""
        mapped = self.read_dataframe.mapInArrow(portable(spark, task), ddl)
        if self.without_rows is None:
            return mapped
        return mapped.union(self.without_rows.mapInArrow(portable(spark, StaysWithoutRows()), ddl))


def _quoted(columns: Iterable[str]) -> list[str]:
    return ["`" + name.replace("`", "``") + "`" for name in columns]
