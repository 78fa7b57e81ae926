"""Functions that choose the subtask of an element by its key."""

from abc import abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function


class Partitioner(Function):
    """Chooses the subtask that gets the elements of a key.

    Notes
    -----
    Follows ``pyflink.datastream.Partitioner``.
    """

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Return the number of the subtask, from 0 to `num_partitions` - 1."""
