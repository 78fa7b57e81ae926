"""Ctrl-C ends a replay soon, wherever it is, and leaves no results that look complete."""

from pathlib import Path

import pytest
from equipment.interrupted_programs import interrupted

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


WAITING = """
    import asyncio
    import sys
    import time
    import pyarrow as pa
    from flinkcore.common import Types, WatermarkStrategy
    from flinkcore.datastream import AsyncDataStream, SinkFunction, SourceFunction, StreamExecutionEnvironment
    from flinkcore.datastream.functions import AsyncFunction, KeyedProcessFunction
    from flinkcore.common.time import Time
    from flinkcore.elements.sources import stream_source

    kind, clock = sys.argv[1:]
    stream_source.CANCELLATION_TIMEOUT_S = 1  # for which it waits for a function that does not return

    def wait_for_long():
        print("waits", flush=True)
        for _ in range(600):
            time.sleep(0.1)

    class Silent(SourceFunction):
        def run(self, ctx):
            wait_for_long()
        def cancel(self):
            pass

    class Slow(KeyedProcessFunction):
        def process_element(self, value, ctx):
            wait_for_long()
            yield value.key,

    class Unanswered(AsyncFunction):
        async def async_invoke(self, value):
            print("waits", flush=True)
            await asyncio.sleep(60)

    class Sink(SinkFunction):
        def invoke(self, value):
            pass

    env = StreamExecutionEnvironment.get_execution_environment()
    env.configure({"flinkcore.clock": clock})
    if kind == "function":
        log = pa.table({"at": [1, 2], "key": [1, 1]})
        events = env.set_parallelism(2).from_event_log(log, timestamp="at", arrival="at")
        events = events.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        events.key_by("key").process(Slow(), pa.schema({"key": pa.int64()})).execute().to_arrow()
    elif kind == "call":
        stream = env.from_collection([1], Types.INT())
        AsyncDataStream.unordered_wait(stream, Unanswered(), Time.seconds(90), 2, Types.INT()).add_sink(Sink())
        env.execute()
    else:
        env.add_source(Silent()).add_sink(Sink())
        if kind == "source":
            env.execute()
        else:
            env.execute_async().get_job_execution_result().result()
    print("finished", flush=True)
"""


@pytest.mark.parametrize(
    ("kind", "clock"),
    [
        ("function", "arrival"),
        ("call", "arrival"),
        ("call", "system"),
        ("source", "arrival"),
        ("source", "system"),
        ("client", "system"),
    ],
)
def test_ctrl_c_ends_a_program_that_waits(kind: str, clock: str) -> None:
    end = interrupted(WAITING, kind, clock, first_line="waits", seconds=0.5)
    assert "KeyboardInterrupt" in end.errors
    assert "finished" not in end.output
    assert end.seconds < 20
