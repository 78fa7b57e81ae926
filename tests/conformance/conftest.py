"""Parametrises tests with the golden scenarios: an argument `valve_scenario` takes those of the kind `valve`."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


def scenarios(directory: Path, kind: str) -> list[dict[str, Any]]:
    """All of a kind; none of a kind that a folder of somebody's own lacks."""
    path = directory / f"{kind}.jsonl"
    if directory != GOLDEN and not path.exists():
        return []
    if not path.exists():
        raise pytest.UsageError(f"{path}: no such file, and tests need it")
    with path.open() as lines:
        return [json.loads(line) for line in lines if line.strip()]


def golden_directory(config: pytest.Config) -> Path:
    directory = Path(config.getoption("--golden") or GOLDEN)
    if not directory.is_dir():
        raise pytest.UsageError(f"--golden {directory}: no such directory")
    return directory


@pytest.fixture(scope="session")
def golden(request: pytest.FixtureRequest) -> Callable[[str], list[dict[str, Any]]]:
    """Gives all scenarios of a kind."""
    return partial(scenarios, golden_directory(request.config))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    directory = golden_directory(metafunc.config)
    for argument in metafunc.fixturenames:
        if argument.endswith("_scenario"):
            found = scenarios(directory, argument.removesuffix("_scenario"))
            metafunc.parametrize(argument, found, ids=[scenario["name"] for scenario in found])
