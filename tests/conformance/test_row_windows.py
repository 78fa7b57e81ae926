"""The window operators of the row path against the traces of Flink's: every scenario, order for order."""

from typing import Any

from equipment.canonical import canonical
from jobs.window_scenarios import run, wanted_output


def check(scenario: dict[str, Any]) -> None:
    item = scenario["input"]
    got = run(item)
    want = wanted_output(scenario)
    assert canonical("window", item, {name: got[name] for name in want}) == canonical("window", item, want)


def test_every_window_fires_as_in_flink(window_scenario: dict[str, Any]) -> None:
    check(window_scenario)


def test_windows_follow_the_seed_trace(seed_trace_scenario: dict[str, Any]) -> None:
    check(seed_trace_scenario)
