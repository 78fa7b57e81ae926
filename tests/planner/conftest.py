"""Tests with Flink's own planner: they are skipped without it, for its libraries have 330 MB."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flinkcore.sql.planner.flink_process import FLINK_HOME, PROCESS, FlinkLibraries


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if FlinkLibraries.found() is None:
        skip = pytest.mark.skip(
            f"needs {FLINK_HOME}, or the package apache-flink-libraries: see .ci/with_flink"
        )
        # pytest passes the tests of all folders.
        for item in items:
            if item.nodeid.startswith("tests/planner/"):
                item.add_marker(skip)


@pytest.fixture(autouse=True)
def _cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture(scope="session", autouse=True)
def _end_of_planner() -> Iterator[None]:
    yield
    PROCESS.close()
