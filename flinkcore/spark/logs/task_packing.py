"""Packing of chunks into tasks: by bytes and the cost of opening a file, as Spark packs files into partitions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

from flinkcore.log.sources.log_sources import even_runs
from flinkcore.spark.sessions.session import setting

MOST_BYTES: Final = 128 << 20
OPEN_BYTES: Final = 4 << 20
"""Defaults of Spark's settings."""

TASKS_PER_CORE: Final = 2

_SIZE: Final = re.compile(r"([0-9]+)\s*([kmgtp]?)(i?b)?")


@dataclass(frozen=True)
class TaskPacking:
    """Rule by which chunks are packed into tasks, in log order.

    Parameters
    ----------
    most_bytes : int
        About the most that a task reads; `spark.sql.files.maxPartitionBytes`.
    open_bytes : int
        Bytes that could be read in the time in which a file is opened; `spark.sql.files.openCostInBytes`.
    least_tasks : int
        Least number of tasks, as far as there are so many chunks.
    """

    most_bytes: int = MOST_BYTES
    open_bytes: int = OPEN_BYTES
    least_tasks: int = 1

    @classmethod
    def of(cls, spark: Any, cores: int) -> TaskPacking:
        """Return the packing that the settings of a session ask for."""
        least = setting(spark, "spark.sql.files.minPartitionNum")
        return cls(
            max(1, _bytes_of(setting(spark, "spark.sql.files.maxPartitionBytes"), MOST_BYTES)),
            _bytes_of(setting(spark, "spark.sql.files.openCostInBytes"), OPEN_BYTES),
            int(least) if least else cores * TASKS_PER_CORE,
        )

    @property
    def most_files(self) -> int | None:
        """The most files that a task opens, however small they are; None if opening one costs nothing."""
        return max(1, self.most_bytes // self.open_bytes) if self.open_bytes else None

    def tasks(self, sizes: Sequence[int | None], files: Sequence[int] | None = None) -> tuple[range, ...]:
        """Pack chunks into tasks.

        Parameters
        ----------
        sizes : sequence of int or None
            The size of each in bytes, or None if it is unknown.
        files : sequence of int, optional
            Number of files of each; by default one.

        Returns
        -------
        tuple of range
            Places of the chunks of each task: consecutive, none left out, no task without chunks. Tasks cost about the
            same.
        """
        if not sizes:
            return ()
        costs = [
            opened * self.open_bytes + (self.most_bytes if size is None else size)
            for opened, size in zip(repeat(1) if files is None else files, sizes, strict=False)
        ]
        return tuple(even_runs(costs, max(self.least_tasks, -(-sum(costs) // self.most_bytes))))


UNPACKED: Final = TaskPacking(most_bytes=1)
"""A task for each chunk."""


def _bytes_of(text: str | None, default: int) -> int:
    """Return the number of bytes that a setting of Spark's asks for, such as `128MB` or `134217728b`."""
    found = None if text is None else _SIZE.fullmatch(text.strip().lower())
    if found is None:
        return default
    return int(found[1]) << (0 if not found[2] else 10 * (1 + "kmgtp".index(found[2])))
