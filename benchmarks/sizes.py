"""The size of a suite: `FLINKCORE_BENCH_EVENTS` sets its number of events, or of what it counts instead."""

from __future__ import annotations

import os


def size(usual: int) -> int:
    """Return the number of events that the setting has, or else the usual one of the suite."""
    return int(os.environ.get("FLINKCORE_BENCH_EVENTS", usual))


def jvm_mib(wanted: int) -> int:
    """Return the MiB that a JVM may have: as many as it wants, and at most half of the machine's memory."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    return min(wanted, machine // 2)
