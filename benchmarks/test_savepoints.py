"""Savepoints of Flink: keys with a value and a timer, and keys with an open window, written and read back.

Baselines are flinkcore's own checkpoint of the same state, and Flink, which writes and restores it from its heap. Two
more rows are whole processes: a job reads a history of an event for each key, and stops with a savepoint of its open
windows. Both savepoints must hold the same. `FLINKCORE_BENCH_EVENTS` sets the number of keys (1 M). A savepoint is
written from a checkpoint, whose reading is counted; all rounds write to one disk, so compare CPU times.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
import pyarrow as pa
import pytest

import flinkcore as fc
from benchmarks.measuring import ROUNDS, measure
from benchmarks.peers.flink import FlinkUnavailable, run_java
from benchmarks.processes import program
from benchmarks.sizes import jvm_mib, size
from benchmarks.test_checkpoint import MAX_PARALLELISM, filled
from flinkcore import savepoints
from flinkcore.checkpoint import PendingCheckpoint
from flinkcore.common import MIN_TIMESTAMP

KEYS = size(1_000_000)
KINDS = pytest.mark.parametrize("key_of", [int, str], ids=["int", "str"])


def write_checkpoint(path: Path, key_of: Callable[[int], Any]) -> Callable[[], None]:
    """Return a function that writes a checkpoint of keys with a value and a timer each."""
    backends = filled(key_of, True, KEYS)

    def write() -> None:
        with PendingCheckpoint.begin(path, MAX_PARALLELISM) as pending:
            pending.commit([pending.writer().write("op", 0, backends.snapshot(MIN_TIMESTAMP))])

    return write


def entries_of(path: Path) -> int:
    """Read all states of a savepoint, and return the number of their entries."""
    states = [state for each in savepoints.open(path).operators for state in each.states.values()]
    return sum(batch.num_rows for state in states for batch in state.batches())


@KINDS
def test_checkpoint_of_values_and_timers(
    benchmark: Any, tmp_path: Path, key_of: Callable[[int], Any]
) -> None:
    measure(benchmark, KEYS, "key", write_checkpoint(tmp_path / "checkpoint", key_of))


@KINDS
def test_write_values_and_timers(benchmark: Any, tmp_path: Path, key_of: Callable[[int], Any]) -> None:
    write_checkpoint(tmp_path / "checkpoint", key_of)()

    def run() -> None:
        shutil.rmtree(tmp_path / "savepoint", ignore_errors=True)
        savepoints.write(tmp_path / "checkpoint", tmp_path / "savepoint")

    measure(benchmark, KEYS, "key", run)
    assert entries_of(tmp_path / "savepoint") == 2 * KEYS


@KINDS
def test_read_values_and_timers(benchmark: Any, tmp_path: Path, key_of: Callable[[int], Any]) -> None:
    write_checkpoint(tmp_path / "checkpoint", key_of)()
    savepoints.write(tmp_path / "checkpoint", tmp_path / "savepoint")
    assert measure(benchmark, 2 * KEYS, "row", lambda: entries_of(tmp_path / "savepoint")) == 2 * KEYS


def test_write_windows(benchmark: Any, tmp_path: Path) -> None:
    log = pa.table({"key": np.arange(KEYS) * 7919, "ts": np.arange(KEYS) % 1000})
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    env.set_max_parallelism(MAX_PARALLELISM)
    events = env.from_event_log(log, timestamp="ts").assign_timestamps_and_watermarks(
        fc.WatermarkStrategy.for_monotonous_timestamps()
    )
    windows = events.key_by("key").window(fc.TumblingEventTimeWindows.of(fc.Duration.of_hours(1)))
    windows.aggregate(n=fc.count()).execute(stop_with_checkpoint=tmp_path / "checkpoint").to_arrow()

    def run() -> None:
        shutil.rmtree(tmp_path / "savepoint", ignore_errors=True)
        savepoints.write(tmp_path / "checkpoint", tmp_path / "savepoint")

    measure(benchmark, KEYS, "key", run)
    assert entries_of(tmp_path / "savepoint") == 2 * KEYS


def flink_options() -> tuple[str, ...]:
    """Return the options of Flink's JVM."""
    heap = f"{jvm_mib(4 * 1024)}m"
    opened = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "time")]
    level = "-Dorg.apache.logging.log4j.level=OFF"
    return (f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseParallelGC", level, *opened)


def child_cpu_seconds() -> float:
    """Return the CPU time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure_processes(benchmark: Any, run: Callable[[int], Path]) -> Path:
    """Measure whole processes, which get the number of their round; return the savepoint of the last one."""
    made: list[Path] = []
    cpu = []

    def round_of_all() -> None:
        before = child_cpu_seconds()
        made.append(run(len(made)))
        cpu.append(child_cpu_seconds() - before)

    benchmark.pedantic(round_of_all, rounds=ROUNDS)
    benchmark.extra_info |= {"keys": KEYS, "cpu_seconds": sorted(cpu)[len(cpu) // 2]}
    return made[-1]


def contents_of(path: Path) -> dict[str, pa.Table]:
    """Return the states of the job of whole processes, in the order of the keys."""
    states = savepoints.open(path).operator("counts").states
    names = ("window-contents", "_timer_state/event_window-timers")
    return {name: states[name].to_arrow().sort_by("key") for name in names}


def test_job_from_its_history_to_a_savepoint(benchmark: Any, tmp_path: Path) -> None:
    def run(number: int) -> Path:
        folder = tmp_path / f"{number}"
        command = program("benchmarks.savepoint_process", KEYS, folder)
        subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)
        return folder

    for table in contents_of(measure_processes(benchmark, run)).values():
        assert table.column("key").to_numpy().tolist() == (np.arange(KEYS) * 7919).tolist()


def test_flink_job_from_its_history_to_a_savepoint(benchmark: Any, tmp_path: Path) -> None:
    def run(number: int) -> Path:
        output = run_java("SavepointOfWindows", str(KEYS), str(tmp_path / "flink"), options=flink_options())
        return Path(urlparse(output.split()[-1]).path)

    try:
        run_java("SavepointOfWindows", "1", str(tmp_path / "compiled"), options=flink_options())
        made = measure_processes(benchmark, run)
    except FlinkUnavailable as reason:
        pytest.skip(str(reason))
    own = tmp_path / "own"
    command = program("benchmarks.savepoint_process", KEYS, own)
    subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)
    found = contents_of(made)
    for name, table in contents_of(own).items():
        assert table.equals(found[name].select(table.column_names)), name


def test_flink_writes_and_restores_values_and_timers(benchmark: Any, tmp_path: Path) -> None:
    """Show the seconds of a running Flink's fastest round; the time of the benchmark is that of all rounds."""
    arguments = str(KEYS), str(tmp_path / "flink"), "4"

    def run() -> str:
        return run_java("SavepointOfKeys", *arguments, options=flink_options())

    try:
        output = benchmark.pedantic(run, rounds=1)
    except FlinkUnavailable as reason:
        pytest.skip(str(reason))
    benchmark.extra_info |= json.loads(output.splitlines()[-1])
