"""Memory for the open state of a job's operators."""

from __future__ import annotations

from dataclasses import dataclass

from flinkcore._internal.python.process_memory import memory_of_machine, memory_of_process
from flinkcore.common.execution_config import ExecutionConfig


@dataclass(frozen=True)
class ManagedMemory:
    """Memory for open state in each process that runs operators; picklable.

    Parameters
    ----------
    size : int or None
        Bytes in each process, or None for a share of what the process may use.
    fraction : float
        That share, from 0 to 1.

    Notes
    -----
    Flink's ``taskmanager.memory.managed.size`` and ``taskmanager.memory.managed.fraction``.
    """

    size: int | None
    fraction: float

    @classmethod
    def of(cls, configuration: ExecutionConfig) -> ManagedMemory:
        """Return the memory that a configuration sets."""
        size, fraction = configuration.get_managed_memory()
        return cls(size, fraction)

    def of_partitions(self, partitions: int, processes: int = 1) -> int:
        """Return the bytes for the state of one partition.

        Parameters
        ----------
        partitions : int
            Number of partitions, of all operators together, that run in a process at once.
        processes : int
            Number of processes that share the memory of the machine.
        """
        size = self.size
        if size is None:
            size = int(self.fraction * memory_of_machine() / processes)
            own = memory_of_process()
            if own is not None:
                size = min(size, int(self.fraction * own))
        return size // max(1, partitions)
