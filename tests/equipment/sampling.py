"""What runs for each change, and what runs only at night.

Tests of one thing in many variants take most of the time of the suite. For each change, a fixed sample of them runs;
with ``FLINKCORE_TEST_ALL=1``, as in ``.ci/nightly``, all of them.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

ALL = os.environ.get("FLINKCORE_TEST_ALL") == "1"

at_night = pytest.mark.skipif(not ALL, reason="runs at night, or with FLINKCORE_TEST_ALL=1")
"""Marks a test that takes long, of a kind of which a quicker one runs for each change."""

Case = TypeVar("Case")
Way = TypeVar("Way")


def sampled(cases: Iterable[Case], each: int) -> list[Case]:
    """Return the first of so many cases, again and again; at night all cases."""
    return list(cases)[:: 1 if ALL else each]


def in_turn(cases: Iterable[Case], ways: Sequence[Way]) -> list[tuple[Case, Way]]:
    """Return each case with one of the ways, which take turns; at night with all of them."""
    return [
        (case, way)
        for number, case in enumerate(cases)
        for way in (ways if ALL else [ways[number % len(ways)]])
    ]
