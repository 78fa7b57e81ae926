"""Parametrises tests with the golden scenarios: an argument `valve_scenario` takes those of the kind `valve`."""

import json
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


def scenarios(directory: Path, kind: str) -> list[dict[str, Any]]:
    path = directory / f"{kind}.jsonl"
    if not path.exists():
        return []
    with path.open() as lines:
        return [json.loads(line) for line in lines if line.strip()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    directory = Path(metafunc.config.getoption("--golden") or GOLDEN)
    if not directory.is_dir():
        raise pytest.UsageError(f"--golden {directory}: no such directory")
    for argument in metafunc.fixturenames:
        if argument.endswith("_scenario"):
            found = scenarios(directory, argument.removesuffix("_scenario"))
            metafunc.parametrize(argument, found, ids=[scenario["name"] for scenario in found])
