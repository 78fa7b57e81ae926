"""The memory for open state, by settings and by the limits of the process."""

import subprocess
import sys

import pytest
from equipment.process_limits import limit_memory

from flinkcore._internal.python.object_sizes import size_of, size_of_all
from flinkcore._internal.python.process_memory import memory_of_machine
from flinkcore.columnar.plans.managed_memory import ManagedMemory
from flinkcore.common import Configuration, ExecutionConfig
from flinkcore.errors import ConfigurationError


def managed(**settings: str) -> ManagedMemory:
    configuration = Configuration()
    for name, value in settings.items():
        configuration.set_string(f"taskmanager.memory.managed.{name}", value)
    return ManagedMemory.of(ExecutionConfig(configuration))


def test_a_size_is_divided_among_the_partitions_of_a_process() -> None:
    assert managed(size="64 kb").of_partitions(4) == 16 << 10
    assert managed(size="64 kb").of_partitions(4, processes=8) == 16 << 10
    assert managed(size="0").of_partitions(1) == 0


def test_a_share_of_the_machine_is_divided_among_processes() -> None:
    whole = managed().of_partitions(1)
    assert whole == int(0.4 * memory_of_machine())
    assert managed(fraction="0.2").of_partitions(2, processes=4) == int(0.2 * memory_of_machine() / 4) // 2


def test_a_fraction_is_at_most_one() -> None:
    with pytest.raises(ConfigurationError, match="fraction"):
        managed(fraction="1.5")


def test_the_limit_of_the_process_counts() -> None:
    script = limit_memory() + (
        "from flinkcore._internal.python.process_memory import memory_of_process\n"
        "from flinkcore.columnar.plans.managed_memory import ManagedMemory\n"
        "assert memory_of_process() is None\n"
        "limit_memory(4 << 30)\n"
        "free = memory_of_process()\n"
        "assert 3 << 30 < free <= 4 << 30, free\n"
        "assert 0 < ManagedMemory(None, 0.5).of_partitions(1) <= free / 2\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_sizes_of_objects_count_their_contents() -> None:
    assert size_of(["a" * 1000] * 10) > 10_000
    assert size_of({"a": [1, 2], "b": ("c" * 5000,)}) > 5000
    assert size_of_all([]) == 0
    assert size_of_all([None] * 1000) == 0
    assert 100_000 < size_of_all(["a" * 1000] * 100 + [None] * 100) < 120_000
    nested: list[object] = []
    nested.append(nested)
    assert size_of(nested) > 0
