"""Savepoints of Flink: keys with a value and a timer, and keys with an open window, written and read back.

Baselines are flinkcore's own checkpoint of the same state, and Flink, which writes and restores it from its heap.
`FLINKCORE_BENCH_EVENTS` sets the number of keys (1 M). A savepoint is written from a checkpoint, whose reading is
counted; all rounds write to one disk, so compare CPU times.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import flinkcore as fc
from benchmarks.measuring import measure
from benchmarks.peers.flink import FlinkUnavailable, run_java
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


def test_flink_writes_and_restores_values_and_timers(benchmark: Any, tmp_path: Path) -> None:
    """Show the seconds of a running Flink's fastest round; the time of the benchmark is that of all rounds."""
    heap = f"{jvm_mib(4 * 1024)}m"
    options = [f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseParallelGC", "-Dorg.apache.logging.log4j.level=OFF"]
    options += [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "time")]
    arguments = str(KEYS), str(tmp_path / "flink"), "4"

    def run() -> str:
        return run_java("SavepointOfKeys", *arguments, options=tuple(options))

    try:
        output = benchmark.pedantic(run, rounds=1)
    except FlinkUnavailable as reason:
        pytest.skip(str(reason))
    benchmark.extra_info |= json.loads(output.splitlines()[-1])
