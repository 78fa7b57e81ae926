"""The window operators of the row path against the traces of Flink's: every scenario, order for order."""

from pathlib import Path
from typing import Any

from models.canonical import canonical
from models.window_scenarios import run

# Flink wraps around, or takes the record for late; flinkcore refuses the timestamp of the last record applied.
BEYOND_64_BITS = {
    "window-edge-overflow_window_end": 0,
    "window-edge-near_min": 0,
    "window-edge-after_the_end": 2,
}


def check(kind: str, scenario: dict[str, Any], checkpoint: Path | None = None) -> None:
    item = scenario["input"]
    got = canonical(kind, item, run(item, checkpoint))
    want = canonical(kind, item, scenario["output"])
    refused = BEYOND_64_BITS.get(scenario["name"])
    if refused is None:
        assert got == want
    else:
        before = [entry for entry in want["entries"] if entry["at"] < refused]
        assert got["entries"] == [*before, {"at": refused, "type": "error"}]


def test_every_window_fires_as_in_flink(window_scenario: dict[str, Any]) -> None:
    check("window", window_scenario)


def test_windows_follow_the_seed_trace(seed_trace_scenario: dict[str, Any]) -> None:
    check("window", seed_trace_scenario)


def test_windows_go_on_from_a_checkpoint_as_if_nothing_had_happened(
    window_scenario: dict[str, Any], tmp_path: Path
) -> None:
    check("window", window_scenario, tmp_path / "checkpoint")
