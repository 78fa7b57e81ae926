"""Writes the figures of docs/nexmark.md from the results of runs: `python -m benchmarks.nexmark_page RESULTS.json ...`.

A run: `FLINKCORE_BENCH_ROUNDS=3 pytest benchmarks/test_nexmark.py --save-results`. If a later run measured a query
again, all its figures are those of that run; those of SQL, which are in a table of their own, of the last run with it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.figures import RESULTS, ROOT, median_seconds, results_of, short_versions, with_section
from benchmarks.nexmark_sql import LAST_ROWS, OTHER_ROWS

PAGE = ROOT / "docs" / "nexmark.md"

Runs: TypeAlias = Mapping[Path, Mapping[str, Any]]
Measured: TypeAlias = dict[str, tuple[Path, Mapping[str, Any]]]
"""Benchmarks by query and engine, each query with the file of its results."""

# A column of the table, its engine, and the column that it is compared with.
EMBEDDED = ("flinkcore-query", ("flink-query", "duckdb-query"))
ON_SPARK = ("flinkcore-spark-query", ("spark-query",))
IN_SQL = ("flinkcore-sql", "flink-sql")
HEADS = {
    "flinkcore-query": "flinkcore",
    "flink-query": "Flink {flink}",
    "duckdb-query": "DuckDB {duckdb}",
    "flinkcore-spark-query": "flinkcore on Spark",
    "spark-query": "Spark {pyspark} SQL",
}


def section(paths: Sequence[Path]) -> str:
    """The section with the tables, in Markdown, of runs from the first to the last."""
    runs = {path: results_of(path) for path in paths}
    with_peers, in_sql = _last_with(runs, "duckdb-query"), _last_with(runs, "flinkcore-sql")
    content = runs[paths[0]]
    versions, machine = short_versions(content), content["machine"]
    heads = []
    for engine, others in (EMBEDDED, ON_SPARK):
        heads += [HEADS[engine].format(**versions)]
        for other in others:
            heads += [HEADS[other].format(**versions), "times"]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    for query, (_, engines) in with_peers.items():
        cells = [query]
        for engine, others in (EMBEDDED, ON_SPARK):
            cells.append(_speed(engines.get(engine)))
            for other in others:
                cells += [_speed(engines.get(other)), _ratio(engines.get(engine), engines.get(other))]
        lines.append(f"| {' | '.join(cells)} |")
    (_, some), *_ = with_peers.values()
    events = some["duckdb-query"]["extra_info"]["events"]
    head = (
        f"Million events (persons, auctions and bids) per second, of {events:,}; medians of "
        f"{'runs' if len(runs) > 1 else 'a run'} on {content['date']}, {machine['cpu']}, {machine['processors']} "
        "processors. flinkcore, Flink and DuckDB run with one thread: flinkcore and DuckDB from Arrow tables to Arrow "
        "tables, Flink from mapped files to a sink that drops its results. Spark runs as `local[2]`, reads Parquet and "
        "consumes the results. *Times* is the speed of flinkcore divided by the other's. "
        f"From {_sources(runs, with_peers)}."
    )
    return "\n".join(["## Figures", "", head, "", *lines, "", *_in_sql(runs, in_sql)])


def _last_with(runs: Runs, engine: str) -> Measured:
    """Return the benchmarks of each query in the last run with an engine."""
    found: Measured = {}
    for path, run in runs.items():
        of_run: dict[str, dict[str, Any]] = {}
        for entry in run["benchmarks"]:
            info = entry["extra_info"]
            if "query" in info:
                of_run.setdefault(info["query"], {})[info["engine"]] = entry
        found |= {query: (path, engines) for query, engines in of_run.items() if engine in engines}
    return {query: found[query] for query in sorted(found, key=lambda query: int(query[1:]))}


def _sources(runs: Runs, measured: Measured) -> str:
    """The files of results with their load, and the queries of all but the first one."""
    used = [path for path in runs if any(path == of_query for of_query, _ in measured.values())]
    sources = []
    for path in used:
        load = runs[path]["load_average"]
        queries = ", ".join(query for query in measured if path != used[0] and measured[query][0] == path)
        sources.append(
            f"{queries and f'{queries} from '}`benchmarks/results/{path.name}`, load {load['before']} before and "
            f"{load['after']} after"
        )
    return "; ".join(sources)


def _in_sql(runs: Runs, measured: Measured) -> list[str]:
    """The lines of the queries in SQL; none if they were not measured."""
    if not measured:
        return []
    lines = []
    for query, (_, engines) in measured.items():
        ours, flinks = (engines.get(engine) for engine in IN_SQL)
        api = None if query in (*OTHER_ROWS, *LAST_ROWS) else engines.get("flinkcore-query")
        cells = (query, _speed(ours), _ratio(ours, api), _speed(flinks), _ratio(ours, flinks))
        lines.append(f"| {' | '.join(cells)} |")
    content = runs[next(path for path, _ in measured.values())]
    flink = short_versions(content)["flink"]
    return [
        f"The same in Flink's SQL on {content['date']}, with one thread: flinkcore and Flink run the same plan. *Of "
        "the API* is the speed of the SQL divided by that of the query in the API, in the same run. It is left out "
        "where the rows differ, as those of each update do. q6 and q13 are not written in SQL, and q12 depends on the "
        f"clock in Flink. From {_sources(runs, measured)}.",
        "",
        f"| | flinkcore, SQL | of the API | Flink {flink} SQL | times |",
        "|---|---:|---:|---:|---:|",
        *lines,
        "",
    ]


def _speed(entry: Any) -> str:
    return "" if entry is None else f"{entry['extra_info']['events'] / median_seconds(entry) / 1e6:.3g}"


def _ratio(ours: Any, theirs: Any) -> str:
    return "" if ours is None or theirs is None else f"{median_seconds(theirs) / median_seconds(ours):.2g}"


def sources_of(page: str) -> list[Path]:
    """The results that a page has its figures from."""
    return [RESULTS / name for name in re.findall(r"`benchmarks/results/(.+?)`", page)]


def main() -> None:
    """Write the section into the page."""
    written = section([Path(path) for path in sys.argv[1:]])
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), written), "utf-8")


if __name__ == "__main__":
    main()
