"""Rows with large payloads, collected in parts: never all of them are in the driver's memory."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import functions as F

from flinkcore.spark.shipping.task_errors import task_errors_raised

SMALL_PAYLOAD_BYTES = 32 << 10
"""Payloads of up to this size are collected by the job that computes them."""

COLLECTED_BYTES = 64 << 20
"""Of the others, about so many are collected at once."""


def collected_in_parts(dataframe: Any, key: str) -> Generator[Any, None, None]:
    """Yield the rows of a DataFrame in any order; close the generator to release what the executors hold.

    One job computes all rows and collects those with small payloads. The executors keep the others on disk, from where
    further jobs collect a few at a time.

    Parameters
    ----------
    dataframe : pyspark.sql.DataFrame
        With a binary column `payload`.
    key : str
        A column of integers, unique in each row.
    """
    kept = dataframe.persist(StorageLevel.DISK_ONLY)
    size = F.length("payload")
    try:
        with task_errors_raised():
            small = F.when(size <= SMALL_PAYLOAD_BYTES, F.col("payload")).alias("payload")
            others = [name for name in kept.columns if name != "payload"]
            rows = kept.select(*others, small, size.alias("size")).collect()
        yield from (row for row in rows if row.payload is not None)
        waiting = [(row[key], row.size) for row in rows if row.payload is None]
        del rows
        for keys in _of_bounded_size(waiting):
            with task_errors_raised():
                rows = kept.where(F.col(key).isin(keys)).collect()
            yield from rows
    finally:
        kept.unpersist()


def _of_bounded_size(sized: list[tuple[int, int]]) -> Iterator[list[int]]:
    """Split keys into runs whose payloads have at most COLLECTED_BYTES, or that are a single key."""
    run: list[int] = []
    held = 0
    for key, size in sized:
        if run and held + size > COLLECTED_BYTES:
            yield run
            run, held = [], 0
        run.append(key)
        held += size
    if run:
        yield run
