"""Fixtures for pytest: harnesses that are closed when a test ends, and a clock.

pytest finds this by the entry point ``flinkcore``; ``-p no:flinkcore`` leaves it out. Nothing else of flinkcore is
imported before a test asks for a fixture.

flinkcore_harnesses
    Makers of harnesses (:class:`flinkcore.testing.HarnessMakers`), each closed at the end::

        def test_small_then_large(flinkcore_harnesses):
            harness = flinkcore_harnesses.for_keyed_process_function(FraudDetector(), account_of)

flinkcore_clock
    A :class:`flinkcore.testing.ManualClock` at 0.
``assert harness.get_output() == [...]``
    Shows both sides element by element where they differ, as `flinkcore.testing.assert_output` does.
``@pytest.mark.flinkcore_no_leaks``
    A test that passed is an error all the same if a harness of `flinkcore_harnesses` has keyed state or timers left;
    ``pytestmark = pytest.mark.flinkcore_no_leaks`` marks all tests of a module.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from flinkcore.testing import HarnessMakers, ManualClock


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers",
        "flinkcore_no_leaks: fail if a harness of flinkcore_harnesses has keyed state or timers left",
    )


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain why two outputs are not equal."""
    output_assertion = sys.modules.get("flinkcore.testing.output_assertion")
    return None if op != "==" or output_assertion is None else output_assertion.explained(left, right)


@pytest.fixture
def flinkcore_harnesses(request: pytest.FixtureRequest) -> Iterator["HarnessMakers"]:
    """Makers of operator test harnesses, which are closed at the end of the test."""
    from flinkcore.testing import HarnessMakers

    failed_before = request.session.testsfailed
    with HarnessMakers() as harnesses:
        yield harnesses
        passed = request.session.testsfailed == failed_before
        if passed and request.node.get_closest_marker("flinkcore_no_leaks") is not None:
            harnesses.refuse_leaks()


@pytest.fixture
def flinkcore_clock() -> "ManualClock":
    """A clock that only the test advances."""
    from flinkcore.testing import ManualClock

    return ManualClock()
