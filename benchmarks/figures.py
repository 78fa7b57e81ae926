"""Figures of documents: what a run of benchmarks noted, and the section of a page that shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


@cache
def results_of(path: Path) -> dict[str, Any]:
    """Return everything that a run noted."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def short_versions(results: Mapping[str, Any]) -> dict[str, str]:
    """Return the major and minor version of each package of a run; empty for one that was not there."""
    return {name: ".".join((version or "").split(".")[:2]) for name, version in results["versions"].items()}


def median_seconds(entry: dict[str, Any]) -> float:
    """Return the median of a benchmark."""
    return float(entry["seconds"]["median"])


def with_section(page: str, section: str) -> str:
    """Return a page with a section, which begins with its heading, in place of the one with that heading."""
    heading = re.escape(section.partition("\n")[0])
    return re.sub(
        rf"^{heading}\n.*?\n(?=## )", lambda _: f"{section}\n", page, flags=re.MULTILINE | re.DOTALL
    )
