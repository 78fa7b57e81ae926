"""Writes the table of docs/performance.md about large logs from a run: `python -m benchmarks.scale_page RESULTS.json`.

A run: `pytest benchmarks/test_scale.py --save-results`.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from benchmarks.figures import RESULTS, ROOT, results_of, short_versions, with_section

PAGE = ROOT / "docs" / "performance.md"
HEADING = "## Logs that are large in one dimension"

# An engine, the place where it runs, the engine that it is compared with, and the name of that.
COMPARED = (
    ("flinkcore", "one process", "duckdb", "DuckDB {duckdb}"),
    ("flinkcore-spark", "Spark {pyspark}", "spark", "`groupBy`"),
)


def section(path: Path) -> str:
    """The section with the table, in Markdown, of a run."""
    content = results_of(path)
    versions, machine = short_versions(content), content["machine"]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for entry in content["benchmarks"]:
        if entry["name"].startswith("test_scale["):
            found.setdefault(entry["group"], {})[entry["extra_info"]["engine"]] = entry["extra_info"]
    lines = [
        "| | on | CPU s | memory, MB | other | CPU s | memory, MB |",
        "|---|---|---:|---:|---|---:|---:|",
    ]
    for name, engines in found.items():
        for engine, where, other, name_of_other in COMPARED:
            if engine in engines:
                of = [name, where.format(**versions), *_cost(engines[engine])]
                with_other = [name_of_other.format(**versions), *_cost(engines[other])]
                lines.append(f"| {' | '.join([*of, *with_other])} |")
    head = (
        "Five aggregates in windows of 10 s, of a day for the last two logs; the others aggregate by key and number of "
        "the window, without watermarks. Each run is the first one of its process or Spark session; after a stroke "
        "comes the second one. CPU time is that of all processes, without the start of Spark. Memory is the most that "
        "the driver has, and the largest worker. pandas is 36 MB of each Python process: pyarrow loads it with its "
        "first array wherever it is installed, as `flinkcore[spark]` does."
    )
    source = (
        f"{machine['cpu']}, {machine['processors']} processors, {content['date']}, from "
        f"`benchmarks/results/{path.name}`."
    )
    return "\n".join([HEADING, "", textwrap.fill(head, 140), "", *lines, "", source, ""])


def _cost(info: dict[str, Any]) -> list[str]:
    seconds = [info["cpu_seconds"], info["warm_cpu_seconds"]]
    mebibytes = [info["driver_mib"], info["worker_mib"]]
    return [
        " / ".join(f"{each:.1f}" for each in seconds if each is not None),
        ", ".join(f"{each * 2**20 / 1e6:,.0f}" for each in mebibytes if each is not None),
    ]


def source_of(page: str) -> Path:
    """The results that a page has its figures from."""
    (name,) = re.findall(r"`benchmarks/results/(\S+-scale\.json)`", page)
    return RESULTS / name


def main() -> None:
    """Write the section into the page."""
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), section(Path(sys.argv[1]))), "utf-8")


if __name__ == "__main__":
    main()
