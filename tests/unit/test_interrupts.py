"""Ctrl-C ends a replay soon, wherever it is, and leaves no results that look complete."""

from pathlib import Path

import pytest
from models.interrupted_programs import interrupted

REPLAY = """
    import sys
    import threading
    import numpy as np
    import pyarrow as pa
    from flinkcore.common import Duration, Time, WatermarkStrategy
    from flinkcore.datastream import (
        EventTimeSessionWindows, SlidingEventTimeWindows, StreamExecutionEnvironment
    )
    from flinkcore.datastream.window import ContinuousEventTimeTrigger
    from flinkcore.datastream.aggregates import collect, count

    kind, ending, parallelism, directory = sys.argv[1:]
    ROWS = 2_000_000
    log = pa.table({"at": np.arange(ROWS), "key": np.random.default_rng(1).integers(0, 200_000, ROWS)})
    keyed = (
        StreamExecutionEnvironment()
        .set_parallelism(int(parallelism))
        .from_event_log(log, timestamp="at", arrival="at")
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(500)))
        .key_by("key")
    )
    if kind == "sliced":
        sliding = SlidingEventTimeWindows.of(Time.seconds(600), Time.milliseconds(200))
        windows = keyed.window(sliding).aggregate(n=count())
    elif kind == "panes":
        sliding = SlidingEventTimeWindows.of(Time.seconds(100), Time.seconds(1))
        windows = keyed.window(sliding).aggregate(n=collect("at"))
    else:
        windows = (
            keyed.window(EventTimeSessionWindows.with_gap(Time.days(1)))
            .trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(10)))
            .aggregate(n=count())
        )
    print("runs", flush=True)
    if ending == "to_arrow":
        windows.execute().to_arrow()
    elif ending == "to_batches":
        for _ in windows.execute().to_batches():
            pass
    else:
        windows.write_parquet(directory)
    print("finished", flush=True)
"""


@pytest.mark.parametrize(
    ("kind", "ending", "parallelism"),
    [
        ("sliced", "to_arrow", 2),
        ("panes", "to_batches", 1),
        ("panes", "write_parquet", 2),
        ("sessions", "to_batches", 1),
    ],
)
def test_ctrl_c_ends_a_replay_soon(kind: str, ending: str, parallelism: int, tmp_path: Path) -> None:
    results = tmp_path / "results"
    into_the_data_plane = 1
    end = interrupted(
        REPLAY, kind, ending, str(parallelism), str(results), first_line="runs", seconds=into_the_data_plane
    )
    assert end.output == "", "it ended before"
    assert "KeyboardInterrupt" in end.errors
    assert end.seconds < 10
    assert not list(results.glob("*.parquet"))
