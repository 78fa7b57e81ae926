"""A job over the logs of two days, whose splits end at different times, and what one run over both gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, sum_

MIDNIGHT_MS = 978_480_000_000
"""3 January 2001."""
ENDS_MS = {0: MIDNIGHT_MS + 7_000, 1: MIDNIGHT_MS, 2: MIDNIGHT_MS + 90_000}
"""When the first day's files of each split end."""
LATE = OutputTag("late")
USERS = ["ann", "b=c/d", "ä é", "50% off", "x:y", "null", None]


def two_days(rows: int = 4_000, seed: int = 7) -> pa.Table:
    random = np.random.default_rng(seed)
    arrival = MIDNIGHT_MS + np.sort(random.integers(-300_000, 300_000, rows))
    return pa.table(
        {
            "ts": pa.array(arrival - random.integers(0, 20_000, rows), pa.timestamp("ms", "UTC")),
            "at": pa.array(arrival, pa.timestamp("ms", "UTC")),
            "split": random.integers(0, 3, rows),
            "user": [USERS[number] for number in random.integers(0, len(USERS), rows)],
            "size": random.integers(0, 100, rows),
        }
    )


def write_days(folder: Path, log: pa.Table) -> tuple[Path, Path]:
    """Write the files of both days, some per split, and return their directories."""
    days = folder / "first", folder / "second"
    for day in days:
        day.mkdir(parents=True)
    for split, end in ENDS_MS.items():
        of_split = log.filter(pc.equal(log["split"], split))
        is_first = pc.less(of_split["at"].cast(pa.int64()), end)
        for day, rows in zip(
            days, (of_split.filter(is_first), of_split.filter(pc.invert(is_first))), strict=True
        ):
            pq.write_table(rows, day / f"{split}.parquet", row_group_size=100)
    return days


def job(
    log: Any,
    env: StreamExecutionEnvironment | None = None,
    until: Any = None,
    seconds: int = 10,
    **settings: Any,
) -> Any:
    """Return windows by split and user, with the day of their begin; late events go to a side output."""
    env = env or StreamExecutionEnvironment()
    stream = env.from_event_log(log, timestamp="ts", arrival="at", split="split", until=until, **settings)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
    keyed = stream.assign_timestamps_and_watermarks(strategy).key_by("split", "user")
    windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(seconds))).side_output_late_data(LATE)
    counted = windows.aggregate(n=count(), size=sum_("size"))
    return counted.with_columns(day=pc.field("window_start").cast("date32"))


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    names = sorted(table.column_names)
    return sorted(table.select(names).to_pylist(), key=lambda row: tuple(map(str, row.values())))
