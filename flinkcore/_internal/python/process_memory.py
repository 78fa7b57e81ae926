"""Memory that this process may use, by the limits of the process, its container and its machine."""

from __future__ import annotations

import os
import resource
from typing import Final

_CGROUP_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files of Linux with the limit of a container: versions 2 and 1."""


def memory_limit() -> int | None:
    """Return how many bytes of addresses this process may have, or None without a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def memory_of_process() -> int | None:
    """Return how many bytes this process may still allocate by its own limit, or None without one.

    Spark sets such a limit in its Python workers where `spark.executor.pyspark.memory` is set.
    """
    limit = memory_limit()
    return None if limit is None else max(0, limit - _address_space())


def memory_of_machine() -> int:
    """Return how many bytes all processes of this container may use together, or of this machine outside of one."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUP_LIMITS:
        try:
            with open(path, encoding="ascii") as file:
                limits.append(int(file.read()))
        except (OSError, ValueError):  # not Linux, another version, or "max"
            continue
    return min(limits)


def _address_space() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return 0
