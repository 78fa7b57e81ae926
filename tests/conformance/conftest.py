"""Parametrises tests with the golden scenarios: an argument `valve_scenario` takes those of the kind `valve`."""

import json
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


def scenarios(path: Path) -> list[dict[str, Any]]:
    with path.open() as lines:
        return [json.loads(line) for line in lines if line.strip()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    directory = Path(metafunc.config.getoption("--golden") or GOLDEN)
    if not directory.is_dir():
        raise pytest.UsageError(f"--golden {directory}: no such directory")
    for argument in metafunc.fixturenames:
        if argument.endswith("_scenario"):
            path = directory / f"{argument.removesuffix('_scenario')}.jsonl"
            if directory == GOLDEN and not path.exists():
                raise pytest.UsageError(f"{path}: no such file, and {metafunc.definition.nodeid} needs it")
            found = scenarios(path) if path.exists() else []
            metafunc.parametrize(argument, found, ids=[scenario["name"] for scenario in found])
