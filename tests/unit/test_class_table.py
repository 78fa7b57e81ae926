"""The table of Flink's classes and ours names what exists."""

import importlib
import re
from pathlib import Path

import pytest

TABLE = Path(__file__).parents[2] / "flinkcore" / "runtime" / "README.md"
ROWS = [line.split("|")[2] for line in TABLE.read_text().splitlines() if line.startswith("| ")][1:]
PARTS = [part.strip() for row in ROWS for part in row.split(";") if part.strip()]


def test_the_table_has_rows() -> None:
    assert len(PARTS) > 40


@pytest.mark.parametrize("part", PARTS)
def test_a_row_names_what_exists(part: str) -> None:
    module, *names = re.findall(r"`([\w.]+)`", part)
    assert names
    for name in names:
        assert hasattr(importlib.import_module(f"flinkcore.{module}"), name), name
