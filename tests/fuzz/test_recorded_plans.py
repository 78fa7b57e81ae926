"""Recorded plans of Flink SQL over random logs give the same rows and steps, however they are run.

The logs have the columns of the recorded tables, whose values are drawn anew, column by column. They arrive together,
late and in several splits. Each plan runs in one thread, in several, with hardly any memory, and in two parts, the
second one restored from the checkpoint of the first; with a budget, in a real session of Spark, too.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from equipment.spark_sessions import spark_session
from fuzz.budget import Fuzz
from hypothesis import strategies as st
from jobs.sql_scenarios import ARRIVAL, EMITTED_AT, GOLDEN, column_of

from flinkcore.common import Configuration
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import FlinkcoreError, UnsupportedOperationError
from flinkcore.sql.program import plan_sinks
from flinkcore.sql.types.logical_types import type_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KINDS = (
    "dedup",
    "group_by",
    "group_window",
    "interval_join",
    "match",
    "nodes",
    "over",
    "proctime",
    "random",
    "regular_join",
    "sort",
    "temporal_join",
    "topn",
    "ttl",
    "union_view",
    "window_aggregate",
    "window_dedup",
    "window_join",
    "window_topn",
)
TICKS_MS = {"ttl": 250}
"""Milliseconds from one arrival to the next of a kind: times to live are a second, and other plans do not care."""
MEMORY = "taskmanager.memory.managed.size"
SPLIT = "split of the row"


@cache
def recorded(kind: str) -> list[dict[str, Any]]:
    """Return the scenarios of a kind whose plans ran to their end, with values to draw from in each table."""
    found = map(json.loads, (GOLDEN / f"{kind}.jsonl").read_text().splitlines())
    return [
        each
        for each in found
        if "plan" in each and "error" not in each and all(table["rows"] for table in each["tables"].values())
    ]


@dataclass(frozen=True)
class DrawnLogs:
    """Logs for a recorded plan; equal ones have the same rows.

    Attributes
    ----------
    seed : int
        Seed of the plan and of the rows: Hypothesis itself would draw few plans.
    rows : int
        Rows of each table.
    splits : int
    cut : int
        Where a run in two parts is cut, in tenths.
    """

    seed: int
    rows: int
    splits: int
    cut: int

    @property
    def scenario(self) -> dict[str, Any]:
        drawn = random.Random(self.seed)
        return drawn.choice(recorded(drawn.choice(KINDS)))

    @property
    def tick_ms(self) -> int:
        return TICKS_MS.get(self.scenario["kind"], 1)

    def tables(self) -> dict[str, pa.Table]:
        """Return the rows of each table, with arrivals in common and splits."""
        drawn = random.Random(self.seed)
        found = {}
        for name, table in self.scenario["tables"].items():
            physical = [each for each in table["columns"] if not each[1].startswith("AS ")]
            columns = {
                column: column_of(
                    [drawn.choice(table["rows"])[number] for _ in range(self.rows)],
                    type_of(kind).with_nullable(True),
                )
                for number, (column, kind) in enumerate(physical)
            }
            # Each split has a row at first: before, a part of a run would not know it, and not wait for it.
            others = range(self.rows - self.splits)
            arrivals = [0] * self.splits + sorted(drawn.randrange(self.rows) for _ in others)
            splits = [*range(self.splits), *(drawn.randrange(self.splits) for _ in others)]
            columns[ARRIVAL] = pa.array([self.tick_ms * each for each in arrivals], pa.int64())
            columns[SPLIT] = pa.array(splits, pa.int64())
            columns["time of none"] = pa.array([0] * self.rows, pa.int64())
            found[name] = pa.table(columns)
        return found


drawn_logs = st.builds(
    DrawnLogs,
    st.integers(0, 2**32),
    st.integers(3, 40),
    st.sampled_from([1, 1, 2, 3]),
    st.integers(0, 9),
)


class Refused(Exception):
    """The plan does not run over such logs."""


def rows_of(
    logs: DrawnLogs, environment: StreamExecutionEnvironment, tables: dict[str, pa.Table], **parts: Path
) -> Counter[str]:
    """Return how often each row comes, with its kind of change and the step at which it is emitted."""
    scenario = logs.scenario
    interval = scenario["settings"].get("pipeline.auto-watermark-interval", "0 ms")
    environment.get_config().set_auto_watermark_interval(int(interval.removesuffix(" ms")))
    try:
        streams = {
            name: environment.from_event_log(
                table,
                timestamp="time of none",
                timestamp_unit="ms",
                arrival=ARRIVAL,
                split=SPLIT if logs.splits > 1 else None,
            )
            for name, table in tables.items()
        }
        sinks = plan_sinks(environment, scenario["plan"], streams, scenario["settings"], EMITTED_AT)
        (sink,) = sinks.values()
        result = sink.stream.execute(progress=False, **parts)
    except UnsupportedOperationError as error:
        raise Refused(str(error)) from error
    return Counter(map(str, result.to_arrow().to_pylist()))


def embedded(parallelism: int, memory: str | None = None) -> StreamExecutionEnvironment:
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    if memory is not None:
        environment.configure(Configuration().set_string(MEMORY, memory))
    return environment


def in_two_parts(logs: DrawnLogs, tables: dict[str, pa.Table]) -> Counter[str]:
    last = logs.tick_ms * (logs.rows * logs.cut // 10)
    before = {name: table.filter(pa.compute.field(ARRIVAL) <= last) for name, table in tables.items()}
    after = {name: table.filter(pa.compute.field(ARRIVAL) > last) for name, table in tables.items()}
    with TemporaryDirectory() as folder:
        checkpoint = Path(folder, "checkpoint")
        first = rows_of(logs, embedded(2), before, stop_with_checkpoint=checkpoint)
        return first + rows_of(logs, embedded(3), after, restore_from=checkpoint)


def outcome(run: Any) -> Any:
    """Return the rows of a run, or the kind of its error."""
    try:
        return run()
    except FlinkcoreError as error:
        return type(error).__name__


def check(fuzz: Fuzz, logs: DrawnLogs, session: Any = None) -> None:
    """Assert that all ways to run a plan give the same rows."""
    tables = logs.tables()
    try:
        expected = outcome(lambda: rows_of(logs, embedded(1), tables))
    except Refused:
        fuzz.count("(refused)")
        return
    fuzz.count(logs.scenario["kind"] if isinstance(expected, Counter) else f"({expected})")
    if session is not None:
        from flinkcore.spark import SparkExecutionEnvironment

        assert outcome(lambda: rows_of(logs, SparkExecutionEnvironment(session), tables)) == expected
        return
    assert outcome(lambda: rows_of(logs, embedded(3), tables)) == expected
    assert outcome(lambda: rows_of(logs, embedded(2, "1000 b"), tables)) == expected
    if isinstance(expected, Counter):
        try:
            found = in_two_parts(logs, tables)
        except Refused:
            fuzz.count("(no checkpoint)")
        else:
            assert found == expected


@pytest.mark.fuzz_share(2)
def test_a_recorded_plan_gives_the_same_however_it_is_run(fuzz: Fuzz) -> None:
    fuzz.run(lambda logs: check(fuzz, logs), examples=12, logs=drawn_logs)


def test_a_recorded_plan_gives_the_same_in_a_session_of_spark(fuzz: Fuzz) -> None:
    if fuzz.seconds is None:
        pytest.skip("runs with --fuzz-seconds: a job on a real session takes seconds")
    with spark_session("local[2]") as session:
        fuzz.run(lambda logs: check(fuzz, logs, session), examples=2, logs=drawn_logs)
