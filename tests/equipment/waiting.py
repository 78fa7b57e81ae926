"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable

LONG_S = 60.0
"""What has not come by then will not come."""


def wait_until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG_S
    while not reached() and time.monotonic() < end:
        time.sleep(0.002)
    assert reached()
