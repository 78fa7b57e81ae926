"""Prints what the benchmarks found as a table with versions and machine; `--save-results` keeps it."""

from __future__ import annotations

import datetime
import faulthandler
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

# Last, so that an installed flinkcore is measured rather than the source tree beside it.
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

LOAD = pytest.StashKey[float | None]()
PACKAGES = ("flinkcore", "pyarrow", "numpy", "duckdb", "polars", "pyspark")

# Keys of a benchmark's extra_info that the table shows.
NS, CPU_NS, TIMES = "ns_per_", "cpu_ns_per_", "times_faster_than_"

CAVEATS = """\
What these numbers do not say:

- One machine, few runs; compare rows of one table only. The load average is what else ran, and
  the benchmarks themselves; where it is above the number of processors, believe CPU time only.
- DuckDB, Polars and Spark's `groupBy` aggregate by key and window number. They know no watermarks, lateness
  or firings; their answer is the same here only because no bid of this log is late.
- Flink generates its bids itself, on the fly, from a cold JVM, and drops its results; its start-up is not
  counted. It keeps state that could be checkpointed, and never needs the end of the log to answer.
- The bids are synthetic: integer keys, two in five bids on a few hot keys, up to 4 s out of order.
- Tables, Parquet files and results are in memory or in the page cache of one machine; no network is measured.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--save-results",
        action="store_true",
        help="write benchmarks/results/<date>-<machine>.json and .md at the end of the session",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LOAD] = _load()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Cancel the stack dump of tests that hang: benchmarks take longer."""
    faulthandler.cancel_dump_traceback_later()


def _load() -> float | None:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def cpu_model() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    memory = None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cpu": cpu_model(), "processors": processors, "memory_gib": memory, "system": platform.system()}


def java_version() -> str | None:
    from benchmarks.peers import flink

    try:
        done = subprocess.run(
            [flink.jdk_tool("java"), "-version"], capture_output=True, text=True, check=True
        )
    except (flink.FlinkUnavailable, OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r'"([^"]+)"', done.stderr)
    return found[1] if found else None


def versions() -> dict[str, str | None]:
    from benchmarks.peers import flink

    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    if found["flinkcore"] is None:
        import flinkcore

        found["flinkcore"] = f"{flinkcore.__version__} (source tree)"
    return found | {"flink": flink.VERSION, "java": java_version()}


def _entries(config: pytest.Config) -> list[dict[str, Any]]:
    session = getattr(config, "_benchmarksession", None)
    benchmarks = [] if session is None else session.benchmarks
    return [
        {
            "name": each.name,
            "group": each.group,
            "seconds": {"min": each.stats.min, "median": each.stats.median, "max": each.stats.max},
            "rounds": each.stats.rounds,
            "extra_info": dict(each.extra_info),
        }
        for each in benchmarks
        if each and not each.has_error
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"


def _row(entry: dict[str, Any]) -> list[str]:
    extra = entry["extra_info"]
    per = {prefix: [key for key in extra if key.startswith(prefix)] for prefix in (NS, CPU_NS, TIMES)}
    return [
        entry["name"].removeprefix("test_"),
        _number(entry["seconds"]["median"]),
        f"{_number(entry['seconds']['min'])} to {_number(entry['seconds']['max'])}",
        ", ".join(f"{_number(extra[key])} / {key.removeprefix(NS)}" for key in per[NS]),
        ", ".join(_number(extra[key]) for key in per[CPU_NS]),
        _number(extra.get("peak_mib")),
        ", ".join(f"{_number(extra[key])} {key.removeprefix(TIMES)}" for key in per[TIMES]),
    ]


def markdown(entries: list[dict[str, Any]]) -> str:
    lines = []
    for group in dict.fromkeys(entry["group"] for entry in entries):
        lines += [
            f"### {group or 'others'}",
            "",
            "| benchmark | median s | best to worst s | ns | CPU ns | peak MiB | times faster than |",
            "|---|---:|---:|---:|---:|---:|---|",
        ]
        lines += [f"| {' | '.join(_row(entry))} |" for entry in entries if entry["group"] == group]
        lines.append("")
    return "\n".join(lines)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    entries = _entries(config)
    if not entries:
        return
    ran_on, with_versions = machine(), versions()
    load = {"before": config.stash[LOAD], "after": _load()}
    today = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    system = (
        f"{ran_on['cpu']}, {ran_on['processors']} processors, {ran_on['memory_gib']} GiB, {ran_on['system']}"
    )
    text = "\n".join(
        [
            f"# {today}, {system}",
            "",
            ", ".join(f"{name} {version}" for name, version in with_versions.items() if version),
            "",
            "Load average (1 minute) {before} before, {after} after.".format(**load),
            "",
            markdown(entries),
            CAVEATS,
        ]
    )
    terminalreporter.section("benchmarks in short")
    terminalreporter.write(text)
    if config.getoption("--save-results"):
        from benchmarks.figures import RESULTS

        slug = re.sub(r"[^a-z0-9]+", "-", f"{ran_on['cpu']}-{ran_on['processors']}cpu".lower()).strip("-")
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{today}-{slug}.json"
        content = {
            "date": today,
            "machine": ran_on,
            "load_average": load,
            "versions": with_versions,
            "benchmarks": entries,
        }
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        path.with_suffix(".md").write_text(text, encoding="utf-8")
        terminalreporter.write_line(f"written to {path}")
