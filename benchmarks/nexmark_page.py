"""Writes the figures of docs/nexmark.md from the results of runs: `python -m benchmarks.nexmark_page RESULTS.json ...`.

A run: `FLINKCORE_BENCH_ROUNDS=3 pytest benchmarks/test_nexmark.py --save-results`. The figures of a query in a table
are all of the last run that measured it with the engines of that table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.figures import RESULTS, ROOT, median_seconds, results_of, short_versions, with_section
from benchmarks.nexmark_sql import LAST_ROWS, OTHER_ROWS

PAGE = ROOT / "docs" / "nexmark.md"

Runs: TypeAlias = Mapping[Path, Mapping[str, Any]]
Measured: TypeAlias = dict[str, tuple[Path, Mapping[str, Any]]]
"""Benchmarks by query and engine, each query with the file of its results."""

# The engine of a table, and those that it is compared with.
EMBEDDED = ("flinkcore-query", ("flink-query", "duckdb-query"))
IN_SQL = ("flinkcore-sql", ("flink-sql",))
WRITTEN = ("flinkcore-spark-query-written", ("spark-query-written",))
CONSUMED = ("flinkcore-spark-query", ("spark-query",))
HEADS = {
    "flinkcore-query": "flinkcore",
    "flink-query": "Flink {flink}",
    "duckdb-query": "DuckDB {duckdb}",
    "flinkcore-sql": "flinkcore, SQL",
    "flink-sql": "Flink {flink} SQL",
    **dict.fromkeys((CONSUMED[0], WRITTEN[0]), "flinkcore on Spark"),
    **dict.fromkeys((*CONSUMED[1], *WRITTEN[1]), "Spark {pyspark} SQL"),
}


def section(paths: Sequence[Path]) -> str:
    """The section with the tables, in Markdown, of runs from the first to the last."""
    runs = {path: results_of(path) for path in paths}
    return "\n".join(["## Figures", "", *_embedded(runs), "", *_in_sql(runs), "", *_on_spark(runs)])


def _embedded(runs: Runs) -> list[str]:
    measured = _last_with(runs, "duckdb-query")
    content = _first(runs, measured)
    (_, some), *_ = measured.values()
    events, machine = some["duckdb-query"]["extra_info"]["events"], content["machine"]
    return [
        f"Million events (persons, auctions and bids) per second, of {events:,}; medians of runs on "
        f"{_dates(runs, measured)}, {machine['cpu']}, {machine['processors']} processors. Each engine runs with one "
        "thread: flinkcore and DuckDB from Arrow tables to Arrow tables, Flink from mapped files to a sink that drops "
        "its results. *Times* is the speed of flinkcore divided by the other's. "
        f"From {_sources(runs, measured)}.",
        "",
        *_table(content, measured, EMBEDDED),
    ]


def _in_sql(runs: Runs) -> list[str]:
    measured = _last_with(runs, "flinkcore-sql")

    def of_api(query: str, engines: Mapping[str, Any]) -> str:
        api = None if query in (*OTHER_ROWS, *LAST_ROWS) else engines.get("flinkcore-query")
        return _ratio(engines["flinkcore-sql"], api)

    return [
        f"The same in Flink's SQL on {_dates(runs, measured)}, with one thread: flinkcore and Flink run the same plan. "
        "*Of the API* is the speed of the SQL divided by that of the query in the API, in the same run. It is left out "
        "where the rows differ, as those of each update do. q6 and q13 are not written in SQL, and q12 depends on the "
        f"clock in Flink. From {_sources(runs, measured)}.",
        "",
        *_table(_first(runs, measured), measured, IN_SQL, ("of the API", of_api)),
    ]


def _on_spark(runs: Runs) -> list[str]:
    lines = []
    for compared, does in (
        (WRITTEN, "from Parquet to Parquet: flinkcore's tasks write their results themselves"),
        (CONSUMED, "which reads Parquet and consumes the results as a DataFrame"),
    ):
        measured = _last_with(runs, compared[0])
        lines += [
            f"Spark, `local[2]`, on {_dates(runs, measured)}, {does}. From {_sources(runs, measured)}.",
            "",
            *_table(_first(runs, measured), measured, compared),
            "",
        ]
    return lines


def _table(
    content: Mapping[str, Any],
    measured: Measured,
    compared: tuple[str, Sequence[str]],
    further: tuple[str, Callable[[str, Mapping[str, Any]], str]] | None = None,
) -> list[str]:
    """Return the lines of a table: speeds of an engine, what is further said of it, and the others with their ratio."""
    engine, others = compared
    versions = short_versions(content)
    heads = ["", HEADS[engine].format(**versions), *(() if further is None else (further[0],))]
    for other in others:
        heads += [HEADS[other].format(**versions), "times"]
    lines = [f"| {' | '.join(heads)} |".replace("|  |", "| |", 1), f"|---|{'---:|' * (len(heads) - 1)}"]
    for query, (_, engines) in measured.items():
        cells = [query, _speed(engines[engine]), *(() if further is None else (further[1](query, engines),))]
        for other in others:
            cells += [_speed(engines.get(other)), _ratio(engines[engine], engines.get(other))]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _first(runs: Runs, measured: Measured) -> Mapping[str, Any]:
    """Return the results of the first query."""
    return runs[next(path for path, _ in measured.values())]


def _dates(runs: Runs, measured: Measured) -> str:
    return " and ".join(sorted({runs[path]["date"] for path, _ in measured.values()}))


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


def _speed(entry: Any) -> str:
    return "" if entry is None else f"{entry['extra_info']['events'] / median_seconds(entry) / 1e6:.3g}"


def _ratio(ours: Any, theirs: Any) -> str:
    return "" if ours is None or theirs is None else f"{median_seconds(theirs) / median_seconds(ours):.2g}"


def sources_of(page: str) -> list[Path]:
    """The results that a page has its figures from, earlier runs before those that measured the same again."""
    order: TopologicalSorter[str] = TopologicalSorter()
    for line in page.splitlines():
        names = re.findall(r"`benchmarks/results/(.+?)`", line)
        for number, name in enumerate(names):
            order.add(name, *names[:number])
    return [RESULTS / name for name in order.static_order()]


def main() -> None:
    """Write the section into the page."""
    written = section([Path(path) for path in sys.argv[1:]])
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), written), "utf-8")


if __name__ == "__main__":
    main()
