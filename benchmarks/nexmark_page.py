"""Writes the figures of docs/nexmark.md from the results of a run: `python -m benchmarks.nexmark_page RESULTS.json`.

A run: `FLINKCORE_BENCH_ROUNDS=3 pytest benchmarks/test_nexmark.py --save-results`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from benchmarks.figures import RESULTS, ROOT, median_seconds, results_of, short_versions, with_section

PAGE = ROOT / "docs" / "nexmark.md"

# A column of the table, its engine, and the column that it is compared with.
EMBEDDED = ("flinkcore-query", ("flink-query", "duckdb-query"))
ON_SPARK = ("flinkcore-spark-query", ("spark-query",))
HEADS = {
    "flinkcore-query": "flinkcore",
    "flink-query": "Flink {flink}",
    "duckdb-query": "DuckDB {duckdb}",
    "flinkcore-spark-query": "flinkcore on Spark",
    "spark-query": "Spark {pyspark} SQL",
}


def section(path: Path) -> str:
    """The section with the table, in Markdown."""
    content = results_of(path)
    found: dict[str, dict[str, Any]] = {}
    for entry in content["benchmarks"]:
        info = entry["extra_info"]
        if "query" in info:
            found.setdefault(info["query"], {})[info["engine"]] = entry
    some = next(iter(next(iter(found.values())).values()))
    versions = short_versions(content)
    heads, lines = [], []
    for engine, others in (EMBEDDED, ON_SPARK):
        heads += [HEADS[engine].format(**versions)]
        for other in others:
            heads += [HEADS[other].format(**versions), "times"]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    for query, engines in found.items():
        cells = [query]
        for engine, others in (EMBEDDED, ON_SPARK):
            cells.append(_speed(engines.get(engine)))
            for other in others:
                cells += [_speed(engines.get(other)), _ratio(engines.get(engine), engines.get(other))]
        lines.append(f"| {' | '.join(cells)} |")
    machine = content["machine"]
    load = content["load_average"]
    head = (
        f"Million events (persons, auctions and bids) per second, of {some['extra_info']['events']:,}; medians of a "
        f"run on {content['date']}, {machine['cpu']}, {machine['processors']} processors, load {load['before']} before "
        f"and {load['after']} after. flinkcore, Flink and DuckDB with one thread: from Arrow tables to Arrow tables, "
        "but Flink from mapped files to a sink that drops its results. On Spark `local[2]`, from Parquet, results "
        "consumed in Spark. *Times*: how many times as fast flinkcore is. From "
        f"`benchmarks/results/{path.name}`."
    )
    return "\n".join(["## Figures", "", head, "", *lines, ""])


def _speed(entry: Any) -> str:
    return "" if entry is None else f"{entry['extra_info']['events'] / median_seconds(entry) / 1e6:.3g}"


def _ratio(ours: Any, theirs: Any) -> str:
    return "" if ours is None or theirs is None else f"{median_seconds(theirs) / median_seconds(ours):.2g}"


def source_of(page: str) -> Path | None:
    """The results that a page has its figures from; None: it has none."""
    found = re.search(r"From `benchmarks/results/(.+?)`", page)
    return None if found is None else RESULTS / found[1]


def main() -> None:
    """Write the section into the page."""
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), section(Path(sys.argv[1]))), "utf-8")


if __name__ == "__main__":
    main()
