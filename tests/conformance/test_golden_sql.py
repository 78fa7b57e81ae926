"""Compiled plans of Flink SQL against Flink's rows, the steps that cause them, late rows and failures."""

import json
from pathlib import Path
from typing import Any

import pytest
from jobs.sql_scenarios import GOLDEN, Skipped, check


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = Path(metafunc.config.getoption("--golden-sql") or GOLDEN)
    if not folder.is_dir():
        raise pytest.UsageError(f"--golden-sql {folder}: no such directory")
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    cases = [json.loads(line) for line in lines if line.strip()]
    metafunc.parametrize("sql_case", cases, ids=[case["name"] for case in cases])


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
def test_a_plan_has_flinks_rows(sql_case: dict[str, Any]) -> None:
    try:
        check(sql_case)
    except Skipped as reason:
        pytest.skip(str(reason))
