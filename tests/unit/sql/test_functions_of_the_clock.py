"""Functions of the clock are the arrivals of rows, where no operator comes before."""

import json
from datetime import date, datetime, time, timezone

import pyarrow as pa
from jobs.sql_scenarios import GOLDEN

from flinkcore.datastream import StreamExecutionEnvironment


def test_functions_of_the_clock_return_the_arrival_of_the_row() -> None:
    plan = json.loads((GOLDEN.parent / "clock_plan.json").read_text())
    arrivals = [1_000, 90_061_001]
    rows = pa.table(
        {"k": ["early", "late"], "v": [1, 2], "ts": pa.array([0, 0], pa.timestamp("ms")), "at": arrivals}
    )
    environment = StreamExecutionEnvironment.get_execution_environment()
    log = environment.from_event_log(rows, timestamp="ts", arrival="at")
    settings = {"table.local-time-zone": "Europe/Berlin"}
    (row,) = environment.from_plan(plan, {"f": log}, settings=settings).to_arrow().to_pylist()
    instant = datetime(1970, 1, 2, 1, 1, 1, 1000, timezone.utc)
    local = datetime(1970, 1, 2, 2, 1, 1, 1000)
    assert [row[name] for name in "kabcde"] == ["late", instant, instant, local, instant, date(1970, 1, 2)]
    assert [row[name].replace(microsecond=0) for name in "gh"] == [time(2, 1, 1)] * 2
