"""Options of the whole suite."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden",
        metavar="DIR",
        help="folder with golden files (KIND.jsonl) to check instead of tests/golden",
    )
