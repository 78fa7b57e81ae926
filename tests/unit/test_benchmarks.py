"""Benchmarks measure what they say, at the size that they are given."""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.common import Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count

ROOT = Path(__file__).parents[2]
EMBEDDED = ("arrow", "parquet", "streamed", "sliding", "session")


@pytest.fixture
def bids_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.syspath_prepend(ROOT)
    module = importlib.import_module("benchmarks.flinkcore_bids")
    monkeypatch.setattr("benchmarks.cached_log.CACHE", tmp_path)
    yield module
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def counted(by_function: bool = False) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    log = pa.table({"ts": [1, 2], "user": ["a", "b"]})
    events = env.from_event_log(log, timestamp="ts").assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps()
    )
    keyed = events.key_by((lambda row: row.user) if by_function else "user")
    windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(1)))
    return windows.reduce(lambda a, b: a) if by_function else windows.aggregate(n=count())


@pytest.mark.parametrize("engine", EMBEDDED)
def test_the_plan_of_each_engine_is_checked_and_its_answer_is_that_of_the_log(
    engine: str, bids_module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bids = importlib.import_module("benchmarks.nexmark").Bids(20_000)
    checked: list[Any] = []
    planned = bids_module.planned
    monkeypatch.setattr(bids_module, "planned", lambda *job: checked.append(job) or planned(*job))
    answer = getattr(bids_module, f"open_{engine}")(bids, 2)()
    assert len(checked) == 1
    found = answer if isinstance(answer, tuple) else bids.checksum(answer)
    if engine in ("arrow", "parquet", "streamed"):
        assert found.n == bids.events
    else:
        assert found.n >= bids.events


def test_all_engines_of_flinkcore_without_spark_are_tried_here(bids_module: Any) -> None:
    engines = importlib.import_module("benchmarks.engine_process").ENGINES
    ours = {name for name in engines if name.startswith("flinkcore-") and "spark" not in name}
    assert ours == {f"flinkcore-{name}" for name in (*EMBEDDED, "query", "sql")}


def test_a_benchmark_is_refused_that_would_measure_something_else(bids_module: Any) -> None:
    planned = bids_module.planned
    assert planned(counted, "embedded replay, parallelism 1,", "tumbling windows of 1000 ms")
    with pytest.raises(AssertionError, match=r"something else.*parallelism 2"):
        planned(counted, "embedded replay, parallelism 2,")
    with pytest.raises(AssertionError, match=r"something else.*'rows'"):
        planned(lambda: counted(by_function=True))


def test_the_plan_of_a_query_of_nexmark_is_checked(bids_module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    query = importlib.import_module("benchmarks.nexmark_log").Query("q1", 5_000)
    engine = importlib.import_module("benchmarks.flinkcore_query")
    assert engine.open_arrow(query, 2)().num_rows
    monkeypatch.setattr(engine, "QUERIES", {"q1": lambda streams: counted()})
    with pytest.raises(AssertionError, match="something else"):
        engine.open_arrow(query, 2)


def test_the_plan_of_a_query_in_sql_is_checked(bids_module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    query = importlib.import_module("benchmarks.nexmark_log").Query("q2", 5_000)
    row = "ROW<`auction` BIGINT, `price` BIGINT>"
    scan = {"table": {"identifier": "`c`.`d`.`bids`"}, "abilities": []}
    plan = {
        "flinkVersion": "2.3",
        "nodes": [
            {"id": 1, "type": "stream-exec-table-source-scan_2", "scanTableSource": scan, "outputType": row},
            {
                "id": 2,
                "type": "stream-exec-sink_2",
                "dynamicTableSink": {"table": {"identifier": "`c`.`d`.`results`"}},
                "inputChangelogMode": ["INSERT"],
                "outputType": row,
            },
        ],
        "edges": [{"source": 1, "target": 2}],
    }
    sql = importlib.import_module("benchmarks.nexmark_sql")
    monkeypatch.setattr(sql, "plan", lambda name: plan)
    engine = importlib.import_module("benchmarks.flinkcore_query")
    assert engine.open_sql(query, 1)().column_names == ["auction", "price"]
    monkeypatch.setattr(StreamExecutionEnvironment, "set_parallelism", lambda self, number: self)
    with pytest.raises(AssertionError, match=r"something else.*parallelism 2"):
        engine.open_sql(query, 2)


def test_the_last_row_of_a_key_counts_unless_it_is_withdrawn(bids_module: Any) -> None:
    last_rows = importlib.import_module("benchmarks.flinkcore_query")._last_rows
    changes = pa.table({"k": [1, 1, 2, 2, 3], "row_kind": ["+I", "+U", "+I", "-D", "+I"]})
    assert sorted(last_rows(changes, "k")["row_kind"].to_pylist()) == ["+I", "+U"]
    assert last_rows(changes, None) is changes


def test_the_timers_are_as_many_as_the_setting_says_and_no_time_looks_like_a_failure(tmp_path: Path) -> None:
    pytest.importorskip("pytest_benchmark")
    # A worker of pytest-xdist measures nothing.
    left_out = ("JAVA_HOME", "PYTEST_XDIST_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    environment |= {"FLINKCORE_BENCH_EVENTS": "4000", "PATH": str(tmp_path)}  # where Java is not
    options = ("-n", "0", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=1")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "benchmarks/test_timers.py",
            "-k",
            "verbs or flinks_queue or memory",
            *options,
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "batch_verbs[1000-add]" in done.stdout
    assert "batch_verbs[4000-poll]" in done.stdout
    assert "Timeout" not in done.stdout + done.stderr
    assert "no java in JAVA_HOME or on the PATH" in done.stdout


WITHOUT_EVENTS = {"test_shipping.py", "test_start.py"}
"""Suites of the start of a session and of a program."""

NO_JOB_MEASURED = {"test_savepoints.py"}
"""Modules whose job only makes the state that is measured."""


def test_one_setting_has_the_size_of_every_suite() -> None:
    suites = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("test_*.py")}
    assert suites.keys() > WITHOUT_EVENTS
    sized = {name for name, text in suites.items() if re.search(r"\bsize\([\d_]+\)|\bsize\(MOST", text)}
    assert sized == suites.keys() - WITHOUT_EVENTS


def test_every_module_that_makes_a_job_over_a_log_checks_its_plan() -> None:
    modules = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("*.py")}
    of_logs = {name for name, text in modules.items() if ".from_event_log(" in text}
    assert of_logs > NO_JOB_MEASURED
    assert {name for name in of_logs if "planned(" not in modules[name]} == NO_JOB_MEASURED


@pytest.mark.parametrize(("machine_gib", "heap_mib"), [(64, 6_144), (8, 4_096), (2, 1_024)])
def test_a_jvm_asks_for_half_of_the_memory_at_most(
    bids_module: Any, monkeypatch: pytest.MonkeyPatch, machine_gib: int, heap_mib: int
) -> None:
    sizes = importlib.import_module("benchmarks.sizes")
    pages = {"SC_PHYS_PAGES": machine_gib << 18, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(sizes.os, "sysconf", pages.__getitem__)
    assert sizes.jvm_mib(6 * 1024) == heap_mib


def test_the_virtual_machine_of_flinks_timers_fits_into_two_gigabytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("pytest_benchmark")
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.delenv("FLINKCORE_BENCH_EVENTS", raising=False)
    try:
        module = importlib.import_module("benchmarks.test_timers")
        assert int(module.JVM_HEAP.removesuffix("m")) <= 2_048
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
            del sys.modules[name]
