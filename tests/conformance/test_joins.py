"""Interval joins, window joins and co-groups against the traces of Flink's."""

from typing import Any

from jobs.join_scenarios import canonical, run


def test_interval_joins_give_what_flink_gives(interval_join_scenario: dict[str, Any]) -> None:
    check("interval_join", interval_join_scenario)


def test_window_joins_and_co_groups_give_what_flink_gives(window_join_scenario: dict[str, Any]) -> None:
    check("window_join", window_join_scenario)


def check(kind: str, scenario: dict[str, Any]) -> None:
    item = scenario["input"]
    assert canonical(kind, item, run(kind, item)) == canonical(kind, item, scenario["output"])
