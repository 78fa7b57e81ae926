"""Windows of GROUP BY with EMIT: checkpoints, spilled state, late rows in the report, and settings that are refused."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.small_batches import read_in_batches_of
from jobs.sql_scenarios import golden

from flinkcore.common import Configuration
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, UnsupportedOperationError

EMIT = "table.exec.emit."
EARLY_AND_LATE = {
    f"{EMIT}early-fire.enabled": "true",
    f"{EMIT}early-fire.delay": "700 ms",
    f"{EMIT}late-fire.enabled": "true",
    f"{EMIT}late-fire.delay": "300 ms",
    f"{EMIT}allow-lateness": "20 s",
}
NAME = "emit-1-44"  # COUNT, ARRAY_AGG, MIN by k in windows of 5 seconds, 1 minute late


def rows_of(n: int = 400) -> pa.Table:
    draw = random.Random(7)
    seconds = sorted(draw.randint(0, 60_000) for _ in range(n))
    return pa.table(
        {
            "k": pa.array([draw.choice(["a", "b", None]) for _ in seconds]),
            "v": pa.array([draw.randint(0, 9) for _ in seconds], pa.int64()),
            "x": pa.array([draw.choice([None, 0.5, -1.0]) for _ in seconds]),
            "d": pa.array([draw.randint(0, 9) for _ in seconds], pa.int64()).cast(pa.decimal128(19, 0)),
            "i": pa.array([draw.randint(0, 3) for _ in seconds], pa.int32()),
            "ts": pa.array([max(0, each - draw.randint(0, 30_000)) for each in seconds], pa.timestamp("ms")),
            "arrival": pa.array(seconds, pa.int64()),
        }
    )


def run(
    rows: pa.Table, name: str = NAME, settings: Any = None, parallelism: int = 1, **execution: Any
) -> tuple[list[str], Any]:
    memory = execution.pop("memory", None)
    environment = StreamExecutionEnvironment.get_execution_environment()
    if memory is not None:
        read_in_batches_of(16, environment)
        environment.configure(Configuration().set_string("taskmanager.memory.managed.size", f"{memory} b"))
    environment.set_parallelism(parallelism).get_config().set_auto_watermark_interval(0)
    log = environment.from_event_log(rows, timestamp="ts", arrival="arrival", split=None)
    plan = golden(name)["plan"]
    stream = environment.from_plan(plan, {"f": log}, settings=settings or EARLY_AND_LATE, emitted_at="seen")
    result = stream.execute(**execution)
    return sorted(map(repr, result.to_arrow().to_pylist())), result.report


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
def test_results_before_and_after_the_end_are_the_same_if_the_log_is_cut(tmp_path: Path) -> None:
    rows = rows_of()
    whole, report = run(rows)
    assert {kind for each in whole for kind in ("+I", "-U", "+U") if kind in each} == {"+I", "-U", "+U"}
    assert report.late
    arrivals = rows["arrival"].to_pylist()
    cut = next(row for row in range(150, 400) if arrivals[row] > arrivals[row - 1])
    first, before = run(rows.slice(0, cut), stop_with_checkpoint=tmp_path / "cp")
    second, after = run(rows.slice(cut), parallelism=3, restore_from=tmp_path / "cp")
    # What a run emits at its end has a time here, and none in the run over all.
    assert sorted(first + second) == whole
    assert before.late + after.late == report.late


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
def test_aggregates_that_spill_are_the_same() -> None:
    rows = rows_of(100)
    whole = run(rows)[0]
    assert run(rows, memory=0)[0] == whole
    assert run(rows, memory=10_000, parallelism=2)[0] == whole


def test_sessions_have_no_early_results() -> None:
    with pytest.raises(UnsupportedOperationError, match="EMIT is supported for TUMBLE and HOP"):
        run(rows_of(1), "edges-session_legacy")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {f"{EMIT}early-fire.delay": None},
            r"early-fire.enabled = true needs a delay. Set .*early-fire.delay",
        ),
        ({f"{EMIT}allow-lateness": None}, "needs rows that are late. Set table.exec.emit.allow-lateness"),
    ],
)
def test_settings_that_say_not_enough_are_refused(changed: dict[str, None], message: str) -> None:
    settings = {name: value for name, value in EARLY_AND_LATE.items() if name not in changed}
    with pytest.raises(ConfigurationError, match=message):
        run(rows_of(1), settings=settings)
