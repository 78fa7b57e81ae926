"""Groups of operators that share the resources of a cluster: settings without a meaning here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from flinkcore._internal.python.missing_features import WithoutJava
from flinkcore.common.memory_size import MemorySize
from flinkcore.errors import ConfigurationError

__all__ = ["MemorySize", "SlotSharingGroup"]


@dataclass(frozen=True)
class SlotSharingGroup(WithoutJava):
    """A group of operators that share slots of a cluster, and its resources; there are no slots here.

    Attributes
    ----------
    name : str
    cpu_cores : float or None
    task_heap_memory, task_off_heap_memory, managed_memory : MemorySize or None
    external_resources : dict of str to float

    Notes
    -----
    Follows ``pyflink.datastream.SlotSharingGroup``.

    Examples
    --------
    >>> SlotSharingGroup.builder("joins").set_cpu_cores(2.0).set_task_heap_memory_mb(512).build().get_name()
    'joins'
    """

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: dict[str, float] = field(default_factory=dict, hash=False)

    def get_name(self) -> str:
        """Return the name."""
        return self.name

    def get_cpu_cores(self) -> float | None:
        """Return the number of processors, or None."""
        return self.cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """Return the memory of the JVM's heap, or None."""
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Return the memory beside the JVM's heap, or None."""
        return self.task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        """Return the memory that Flink manages, or None."""
        return self.managed_memory

    def get_external_resources(self) -> dict[str, float]:
        """Return other resources by name."""
        return dict(self.external_resources)

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Start to build the group of a name."""
        return SlotSharingGroup.Builder(name)

    class Builder:
        """Takes the resources of a group."""

        def __init__(self, name: str) -> None:
            if not isinstance(name, str) or not name:
                raise ConfigurationError(f"a slot sharing group has a name, not {name!r}")
            self._group = SlotSharingGroup(name)

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Set the number of processors."""
            self._group = replace(self._group, cpu_cores=float(cpu_cores))
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the memory of the JVM's heap."""
            self._group = replace(self._group, task_heap_memory=task_heap_memory)
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the memory of the JVM's heap, in units of 1,048,576 bytes."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the memory beside the JVM's heap."""
            self._group = replace(self._group, task_off_heap_memory=task_off_heap_memory)
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the memory beside the JVM's heap, in units of 1,048,576 bytes."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the memory that Flink manages."""
            self._group = replace(self._group, managed_memory=managed_memory)
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the memory that Flink manages, in units of 1,048,576 bytes."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """Set the amount of another resource."""
            resources = {**self._group.external_resources, name: float(value)}
            self._group = replace(self._group, external_resources=resources)
            return self

        def build(self) -> SlotSharingGroup:
            """Return the group; ConfigurationError if it has resources, but no processors or no heap."""
            group = self._group
            needs = group != SlotSharingGroup(group.name)
            heap = group.task_heap_memory or MemorySize(0)
            if needs and not (group.cpu_cores and heap.get_bytes()):
                raise ConfigurationError(
                    f"slot sharing group {group.name!r} has resources, and so needs set_cpu_cores(...) and "
                    "set_task_heap_memory_mb(...) above 0"
                )
            zero = MemorySize(0)
            return replace(
                group,
                task_off_heap_memory=group.task_off_heap_memory or (zero if needs else None),
                managed_memory=group.managed_memory or (zero if needs else None),
            )
