"""Tasks that differ by a number alone, such as those that write the parts of a savepoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from flinkcore.spark.exchange.row_format import RowFormat
from flinkcore.spark.sessions.spark_jobs import SparkJobs
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable

_DESCRIPTION: Final = "savepoint"
_RESULTS: Final = RowFormat("number long, text string")


@dataclass(frozen=True)
class NumberedTask:
    """Calls a function with the numbers of its rows; picklable."""

    task: Callable[[int], str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield _RESULTS.row(number, self.task(number))


def run_on_executors(spark: Any, jobs: SparkJobs, task: Callable[[int], str], n_tasks: int) -> list[str]:
    """Call a function with each number below another one, in a Spark task each, and return the texts in order.

    A task may be tried again, or run twice.
    """
    with task_errors_raised(), jobs.described(_DESCRIPTION):
        numbers = spark.range(0, n_tasks, 1, max(n_tasks, 1))
        rows = numbers.mapInArrow(portable(spark, NumberedTask(task)), _RESULTS.struct_type).collect()
    return [row.text for row in sorted(rows, key=lambda row: row.number)]
