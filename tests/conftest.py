"""Options of the whole suite, and flinkcore's own fixtures where the package is not installed."""

import pytest

from flinkcore import pytest_plugin


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden",
        metavar="DIR",
        help="folder with golden files (KIND.jsonl) to check instead of tests/golden",
    )
    fuzz = parser.getgroup("fuzz", "tests/fuzz, where what they mean is told")
    fuzz.addoption(
        "--fuzz-seconds",
        type=float,
        metavar="N",
        help="run new random examples for so long; otherwise few, the same ones each time",
    )
    fuzz.addoption("--fuzz-seed", type=int, metavar="N", help="of the first round of random examples")


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.has_plugin("flinkcore"):
        config.pluginmanager.register(pytest_plugin, "flinkcore")
