"""Logs whose rows have no positions: arrival orders them, and their content, wherever they lie."""

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.unordered_rows import UnorderedRows

from flinkcore.common import Duration, Time, Watermark, WatermarkGenerator, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import collect, count
from flinkcore.log.order.content_order import content_numbers


class EveryThird(WatermarkGenerator):
    """Depends on the order of events."""

    def __init__(self) -> None:
        self.seen = 0

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        self.seen += 1
        if self.seen % 3 == 0:
            output.emit_watermark(Watermark(event_timestamp - 40))

    def on_periodic_emit(self, output: Any) -> None: ...


BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(30))
STRATEGIES = {
    "bounded": BOUNDED,
    "idle": BOUNDED.with_idleness(Duration.of_millis(60)),
    "monotonous": WatermarkStrategy.for_monotonous_timestamps(),
    "aligned": BOUNDED.with_watermark_alignment("group", Duration.of_millis(50), Duration.of_millis(20)),
    "none": WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(60)),
    "by element": WatermarkStrategy.for_generator(EveryThird),
}


def log_of(dealt: random.Random, n: int) -> pa.Table:
    """Few arrivals and values, so that many events arrive together, and some are equal; with pauses."""
    arrivals, clock = [], dealt.randrange(-500, 500)
    for _ in range(n):
        clock += dealt.choice([0, 0, 1, 5, 5, 200 if dealt.random() < 0.05 else 0])
        arrivals.append(clock)
    return pa.table(
        {
            "at": pa.array(arrivals, pa.int64()),
            "ts": pa.array([at - dealt.randrange(80) for at in arrivals], pa.int64()),
            "part": pa.array([dealt.choice(["x", "y", "z"]) for _ in range(n)], pa.string()),
            "key": pa.array([dealt.randrange(4) for _ in range(n)], pa.int64()),
            "row": pa.array([dealt.randrange(6) for _ in range(n)], pa.int64()),
        }
    )


def results(data: Any, strategy: WatermarkStrategy, split: str | None, interval_ms: int, threads: int) -> Any:
    env = StreamExecutionEnvironment().set_parallelism(threads)
    env.get_config().set_auto_watermark_interval(interval_ms)
    stream: DataStream = env.from_event_log(data, timestamp="ts", arrival="at", split=split)
    windows = stream.assign_timestamps_and_watermarks(strategy).key_by("key")
    windows = windows.window(TumblingEventTimeWindows.of(Time.milliseconds(25)))
    result = (
        windows.allowed_lateness(Time.milliseconds(15)).aggregate(n=count(), rows=collect("row")).execute()
    )
    rows = result.to_arrow().to_pylist()
    return (
        sorted(map(repr, rows)),
        [[repr(row) for row in rows if row["key"] == key] for key in range(4)],
        result.report,
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("split", [None, "part"])
def test_rows_without_positions_give_the_results_of_the_log_in_order(
    strategy: str, split: str | None
) -> None:
    for seed in range(6):
        dealt = random.Random(f"{strategy} {split} {seed}")
        log = log_of(dealt, dealt.choice([0, 1, 50, 400]))
        interval_ms = dealt.choice([0, 7, 20, 200])
        read = log.select(["at", "key", *(["part"] if split else []), "row", "ts"])
        table = read.combine_chunks()
        numbers = content_numbers(table.to_batches()[0]) if table.num_rows else np.empty(0, np.int64)
        keys = [("at", "ascending"), *([("part", "ascending")] if split else []), ("number", "ascending")]
        in_order = log.append_column("number", pa.array(numbers)).sort_by(keys).drop(["number"])
        expected = results(in_order, STRATEGIES[strategy], split, interval_ms, 1)
        for threads in (1, 3):
            places = list(range(log.num_rows))
            dealt.shuffle(places)
            shuffled = log.take(pa.array(places, pa.int64()))
            found = results(UnorderedRows(shuffled), STRATEGIES[strategy], split, interval_ms, threads)
            assert found == expected, (seed, threads)
