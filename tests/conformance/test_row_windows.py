"""The window operators of the row path against the traces of Flink's: every scenario, order for order."""

from pathlib import Path
from typing import Any

from equipment.canonical import canonical
from jobs.window_scenarios import run, wanted_output


def check(kind: str, scenario: dict[str, Any], checkpoint: Path | None = None) -> None:
    item = scenario["input"]
    got = run(item, checkpoint)
    want = wanted_output(scenario)
    assert canonical(kind, item, {name: got[name] for name in want}) == canonical(kind, item, want)


def test_every_window_fires_as_in_flink(window_scenario: dict[str, Any]) -> None:
    check("window", window_scenario)


def test_windows_follow_the_seed_trace(seed_trace_scenario: dict[str, Any]) -> None:
    check("window", seed_trace_scenario)


def test_windows_go_on_from_a_checkpoint_as_if_nothing_had_happened(
    window_scenario: dict[str, Any], tmp_path: Path
) -> None:
    check("window", window_scenario, tmp_path / "checkpoint")
