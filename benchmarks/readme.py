"""Writes the sections "Numbers" of both READMEs from results of benchmarks: `python -m benchmarks.readme`.

The README of the project has five rows, that of the benchmarks has all of them. Each figure comes from one of the files
that `RUNS` names. A test fails when a README and these files disagree.
"""

from __future__ import annotations

import textwrap
from typing import Any

from benchmarks.figures import RESULTS, ROOT, median_seconds, results_of, short_versions, with_section

RUNS = {
    "bids": "2026-11-29-amd-epyc-2cpu-bids",
    "pyflink": "2026-11-23-amd-epyc-2cpu-pyflink",
    "inactivity": "2026-11-23-amd-epyc-2cpu-inactivity",
    "lateness": "2026-11-24-amd-epyc-2cpu-lateness",
    "windows": "2026-11-22-amd-epyc-2cpu-windows",
}

# Names of measurements, their benchmarks, and those that they are compared with.
TABLE = [
    (
        "embedded, Arrow table to Arrow table, 1 thread",
        "windowed_bids[flinkcore-arrow-1]",
        [
            ("DuckDB {duckdb}, plain aggregation, 1 thread", "windowed_bids[duckdb-arrow-1]"),
            ("Polars {polars}, plain aggregation, 1 thread", "windowed_bids[polars-arrow-1]"),
            ("Flink {flink} DataStream, Java, parallelism 1", "windowed_bids[flink-generated-1]"),
        ],
    ),
    (
        "embedded, from Parquet, 2 threads",
        "windowed_bids[flinkcore-parquet-2]",
        [
            ("DuckDB from Parquet, 2 threads", "windowed_bids[duckdb-parquet-2]"),
            ("Polars from Parquet, 2 threads", "windowed_bids[polars-parquet-2]"),
        ],
    ),
    (
        "Spark {pyspark} `local[2]`, Parquet to Parquet",
        "windowed_bids[flinkcore-spark-written-2]",
        [
            ("Spark's `groupBy` (no event-time semantics)", "windowed_bids[spark-written-2]"),
            ("Flink DataStream, Java, parallelism 2", "windowed_bids[flink-generated-2]"),
        ],
    ),
    (
        "Spark, in order of an arrival column, summed",
        "windowed_bids_of_dataframes[flinkcore-spark-arrivals-None]",
        [("Spark's `groupBy`, summed", "windowed_bids_of_dataframes[spark-counted-None]")],
    ),
    (
        "2,000 keys, in order of an arrival column, summed",
        "windowed_bids_of_dataframes[flinkcore-spark-arrivals-2000]",
        [("Spark's `groupBy`, summed", "windowed_bids_of_dataframes[spark-counted-2000]")],
    ),
    (
        "Spark, a DataFrame that Spark evaluates, summed",
        "windowed_bids_of_dataframes[flinkcore-spark-evaluated-None]",
        [("Spark's `groupBy`, summed", "windowed_bids_of_dataframes[spark-counted-None]")],
    ),
    (
        "2,000 keys, a DataFrame that Spark evaluates, summed",
        "windowed_bids_of_dataframes[flinkcore-spark-evaluated-2000]",
        [("Spark's `groupBy`, summed", "windowed_bids_of_dataframes[spark-counted-2000]")],
    ),
]

# The rows of the project's README: an engine of flinkcore, how it reads, a baseline of the same run.
SHORT_TABLE = [
    (
        "one process, Arrow table to Arrow table, 1 thread",
        "windowed_bids[flinkcore-arrow-1]",
        "DuckDB {duckdb}, plain aggregation",
        "windowed_bids[duckdb-arrow-1]",
    ),
    (
        "",
        "windowed_bids[flinkcore-arrow-1]",
        "Flink {flink} DataStream, Java",
        "windowed_bids[flink-generated-1]",
    ),
    (
        "Spark {pyspark} `local[2]`, Parquet to Parquet",
        "windowed_bids[flinkcore-spark-written-2]",
        "Spark's `groupBy`",
        "windowed_bids[spark-written-2]",
    ),
    (
        "Spark, a DataFrame that Spark evaluates",
        "windowed_bids_of_dataframes[flinkcore-spark-evaluated-None]",
        "Spark's `groupBy`",
        "windowed_bids_of_dataframes[spark-counted-None]",
    ),
]


def results(run: str) -> dict[str, Any]:
    """Everything that a run of benchmarks noted."""
    return results_of(RESULTS / f"{RUNS[run]}.json")


def benchmark(run: str, name: str) -> dict[str, Any]:
    """One benchmark of a run."""
    entry: dict[str, Any] = next(
        entry for entry in results(run)["benchmarks"] if entry["name"] == f"test_{name}"
    )
    return entry


def table() -> list[str]:
    """Lines of the table, in Markdown."""
    versions = short_versions(results("bids"))
    lines = ["| | seconds | against | seconds | faster by |", "|---|---:|---|---:|---:|"]
    for what, name, baselines in TABLE:
        ours = benchmark("bids", name)
        cells = [what.format(**versions), _range(ours["seconds"])]
        for against, baseline in baselines:
            theirs = benchmark("bids", baseline)
            ratio = median_seconds(theirs) / median_seconds(ours)
            cells += [against.format(**versions), _range(theirs["seconds"]), f"{ratio:.2g}"]
            lines.append(f"| {' | '.join(cells)} |")
            cells = ["", ""]
    return lines


def _range(seconds: dict[str, float]) -> str:
    return f"{seconds['median']:.3g} ({seconds['min']:.3g} to {seconds['max']:.3g})"


def times_as_fast(baseline: str, windows: str) -> str:
    """Return the speed of windows of some kind in multiples of Flink's, with the fewest and the most keys."""
    ratios = []
    for keys in (1_000, 20_000, 258_000):
        ours, theirs = (
            median_seconds(benchmark("windows", f"windows_of_bids[{engine}-{keys}]"))
            for engine in (windows, baseline)
        )
        ratios.append(theirs / ours)
    return f"{min(ratios):.2g} to {max(ratios):.2g}"


def of_programs() -> dict[str, str]:
    """µs per event of programs of PyFlink's, in flinkcore and in PyFlink."""
    found = {}
    for name, program in (
        ("inactivity", "inactivity"),
        ("windows", "tumbling_windows"),
        ("steps", "map_filter_reduce"),
    ):
        ours = benchmark("pyflink", f"program_of_flinkcore[{program}]")["extra_info"]["ns_per_event"]
        theirs = benchmark("pyflink", f"{program}_of_pyflink[thread]")["extra_info"]["ns_per_event"]
        found |= {name: f"{ours / 1_000:.2g}", f"{name}_there": f"{theirs / 1_000:.2g}"}
    return found


def of_logs() -> dict[str, str]:
    """µs of CPU time per event of functions over a log, and million events per second of `lateness`."""
    found = {
        form: f"{benchmark('inactivity', f'inactivity[{form}]')['extra_info']['cpu_ns_per_event'] / 1_000:.2g}"
        for form in ("replay", "batches")
    }
    for name, of in (
        ("of_one_split", "lateness[one split]"),
        ("of_splits", "lateness[64 splits]"),
        ("on_spark", "lateness_on_spark[64 splits]"),
    ):
        entry = benchmark("lateness", of)
        found[name] = f"{entry['extra_info']['events'] / median_seconds(entry) / 1e6:.0f}"
    return found


def short_table() -> list[str]:
    """Return the lines of the table of the project's README, in Markdown."""
    versions = short_versions(results("bids"))
    lines = ["| | seconds | against | seconds | faster by |", "|---|---:|---|---:|---:|"]
    for what, name, against, baseline in SHORT_TABLE:
        ours, theirs = (median_seconds(benchmark("bids", of)) for of in (name, baseline))
        cells = [what.format(**versions), f"{ours:.3g}", against.format(**versions), f"{theirs:.3g}"]
        lines.append(f"| {' | '.join([*cells, f'{theirs / ours:.2g}'])} |")
    program = of_programs()
    ratio = float(program["inactivity_there"]) / float(program["inactivity"])
    lines.append(
        f"| a PyFlink program, unedited: a timer per event, 1 M events | {float(program['inactivity']):.2g} "
        f"| PyFlink, thread mode | {float(program['inactivity_there']):.2g} | {ratio:.2g} |"
    )
    return lines


def short_section() -> str:
    """Return the section of the project's README."""
    cpu = results("bids")["machine"]["cpu"]
    lines = [
        "## Numbers",
        "",
        f"20 M bids of 674 k keys in windows of 10 s, out of order by up to 4 s, on 2 cores ({cpu}):",
        "",
        *short_table(),
        "",
        "[All figures, how they are made, and how they can mislead](benchmarks/README.md).",
    ]
    return "\n".join(lines) + "\n"


def section() -> str:
    """Return the section of the README of the benchmarks."""
    cpu = results("bids")["machine"]["cpu"]
    lines = [
        "## Numbers",
        "",
        "20 M bids, 674 k keys, 10 s windows, up to 4 s out of order, 10.7 M results; 2 cores "
        f"({cpu}), one run: medians of six rounds (best to worst):",
        "",
        *table(),
        "",
        *_wrapped(
            _PROSE.format(
                sliding=times_as_fast("flink-sliding", "flinkcore-sliding"),
                sessions=times_as_fast("flink-session", "flinkcore-session"),
                **of_programs(),
                **of_logs(),
            )
        ),
    ]
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, width=140, break_long_words=False, break_on_hyphens=False)


_PROSE = (
    "Time per event of an unedited PyFlink program without its start, 1 M events, 10,000 keys: resetting a timer "
    "{inactivity} µs (PyFlink, thread mode: {inactivity_there}), an aggregate function over windows "
    "{windows} µs ({windows_there}), `map`, `filter`, `key_by` and `reduce` {steps} µs ({steps_there}). The first one "
    "takes {replay} µs over a log and {batches} µs over Arrow batches. `lateness` reads {of_splits} M events/s from "
    "Parquet, {of_one_split} M of one split, and {on_spark} M on Spark. With 1,000 to 258,000 keys, sliding windows "
    "are {sliding} times as fast as Flink's, and sessions {sessions} times. [All runs](results)."
)


SECTIONS = {ROOT / "README.md": short_section, ROOT / "benchmarks" / "README.md": section}
"""The function that returns the section of each README."""


def main() -> None:
    """Write the sections into both READMEs."""
    for path, text in SECTIONS.items():
        path.write_text(with_section(path.read_text(encoding="utf-8"), text()), "utf-8")


if __name__ == "__main__":
    main()
