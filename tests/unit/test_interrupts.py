"""Ctrl-C ends a replay soon, wherever it is, and leaves no results that look complete."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

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
    root = Path(__file__).parents[2]
    results = tmp_path / "results"
    replay = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(REPLAY), kind, ending, str(parallelism), str(results)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert replay.stdout is not None
        assert replay.stdout.readline() == "runs\n"
        time.sleep(1)  # into the data plane
        began = time.monotonic()
        replay.send_signal(signal.SIGINT)
        output, errors = replay.communicate(timeout=60)
        took = time.monotonic() - began
    finally:
        replay.kill()
    assert output == "", "it ended before"
    assert "KeyboardInterrupt" in errors
    assert took < 10
    assert not list(results.glob("*.parquet"))
