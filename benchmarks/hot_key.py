"""A process that replays on Spark a log of which one key has nine tenths, and prints the peak memory of its workers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.cached_log import cached_parquet
from benchmarks.engine import KEY, WINDOW_MS
from benchmarks.flinkcore_bids import MERGED_ON_SPARK, planned_bids, spark_session
from benchmarks.job_plans import planned
from benchmarks.nexmark import SCHEMA, Bids
from benchmarks.processes import peak_bytes_of_workers
from flinkcore.common import Duration, Row, Time, WatermarkStrategy
from flinkcore.datastream import KeyedProcessFunction, LogStream, RuntimeContext
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.datastream.state import ValueState, ValueStateDescriptor
from flinkcore.spark import SparkExecutionEnvironment

HOT = 1
BIDDERS = 10_000
"""Few enough that a longer log has no more keys: what grows then grows with the events of the hot one."""


def hot_bids(bids: Bids) -> Path:
    """The bids, nine of ten of which are the hot bidder's."""

    def slice_of(start: int, stop: int) -> pa.RecordBatch:
        batch = bids.slice(start, stop)
        bidder = np.where(np.arange(start, stop) % 10 > 0, HOT, batch[KEY].to_numpy())
        at = SCHEMA.get_field_index(KEY)
        return batch.set_column(at, SCHEMA.field(at), pa.array(bidder))

    return cached_parquet(
        f"hot-bids-{bids.events}-bidders{bids.bidders}",
        SCHEMA,
        slice_of,
        events=bids.events,
        files=4,
        row_group=1_000_000,
    )


class Counts(KeyedProcessFunction):
    """A value and a timer for each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count: ValueState[int] = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> None:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(value.date_time // WINDOW_MS * WINDOW_MS + WINDOW_MS)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[int, int]]:
        yield ctx.get_current_key(), self.count.value() or 0


def _joined(bids: LogStream) -> LogStream:
    """Each bid with those of one in 10,000 prices of its bidder in the second after it."""
    few = pc.field("price") - pc.divide(pc.field("price"), 10_000) * 10_000 == 0
    rare = bids.filter(few).select(KEY, top=pc.field("price"))
    return bids.key_by(KEY).join_interval(rare.key_by(KEY), Time.seconds(0), Time.seconds(1))


RELATIONAL: dict[str, Callable[[LogStream], LogStream]] = {
    "join": _joined,
    "over": lambda bids: bids.key_by(KEY).over(100).aggregate(n=count(), total=sum_("price")),
    "rank": lambda bids: bids.key_by(KEY).top(10, by="price"),
}


def main() -> None:
    events, form = int(sys.argv[1]), sys.argv[2]
    bids = Bids(events, bidders=BIDDERS)
    path, env = str(hot_bids(bids)), SparkExecutionEnvironment(spark_session(2))
    if form == "windows":
        job = planned_bids(lambda: env, path, bids, *MERGED_ON_SPARK)
    else:
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(bids.disorder_seconds))
        log = env.from_event_log(
            path, timestamp="date_time", rate=bids.bids_per_second, arrival_start_ms=bids.base_ms
        ).assign_timestamps_and_watermarks(strategy)
        if form == "function":
            given = pa.schema([("bidder", pa.int64()), ("n", pa.int64())])
            counts = log.key_by(KEY).process(Counts(), given)
            job = planned(lambda: counts, "spark replay", ways={"columnar", "rows"})
        else:
            job = planned(lambda: RELATIONAL[form](log), "spark replay")
    rows = job().to_dataframe().count()
    print(json.dumps({"rows": rows, "peak_bytes": peak_bytes_of_workers()}))


if __name__ == "__main__":
    main()
