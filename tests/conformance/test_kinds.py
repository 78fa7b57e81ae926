"""Golden kinds that the project cannot run yet are listed here, scenario by scenario, as skipped."""

from typing import Any

import pytest

REASON = "flinkcore does not run the kind {} yet"


def skip(scenario: dict[str, Any]) -> None:
    assert {"kind", "input", "output"} <= scenario.keys()
    pytest.skip(REASON.format(scenario["kind"]))


def test_keyed_process_is_not_run_yet(keyed_process_scenario: dict[str, Any]) -> None:
    skip(keyed_process_scenario)
