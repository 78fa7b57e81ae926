"""Checks that a job does what its benchmark says, by the plan that `explain()` reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any


def planned(
    job: Callable[[], Any], *parts: str, ways: Collection[str] = frozenset({"columnar"})
) -> Callable[[], Any]:
    """Return a function that makes a job, after a check of the plan of one such job.

    Parameters
    ----------
    job : Callable[[], DataStream]
        Makes the stream whose replay is measured.
    parts : str
        Texts that `explain()` must show, such as how the log is read.
    ways : Collection[str]
        Ways in which the steps of the job run, all of them and no other.

    Raises
    ------
    AssertionError
        The job would run otherwise: its benchmark would measure something else.
    """
    explained = job().explain()
    found = set(re.findall(r"^ +\d+\. \[([^],]*)", explained, re.MULTILINE))
    missing = [part for part in parts if part not in explained]
    if missing or found != set(ways):
        raise AssertionError(
            f"The benchmark measures something else: of {sorted(ways)} and {list(parts)}, "
            f"{missing or sorted(found)} does not agree with the plan:\n{explained}"
        )
    return job
