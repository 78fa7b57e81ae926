"""The inactivity job as Spark's structured streaming does it: `transformWithStateInPandas` on a RocksDB state store.

    python -m benchmarks.peers.spark_inactivity EVENTS KEYS EVENTS_PER_BATCH

One thread, a file per micro batch. Prints a line of JSON: the events of all micro batches but the first, which starts
Python and the state store, how many these are, and the seconds that they took.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from benchmarks.inactivity import GAP_MS, Clicks


class CountUntilQuiet(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("count and timer", "count bigint, timer bigint")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        for frame in rows:
            for timestamp in frame["ts"]:
                timer_ms = int(timestamp.timestamp() * 1000) + GAP_MS
                held = self._state.get()
                if held is None:
                    count = 1
                else:
                    count = held[0] + 1
                    self._handle.deleteTimer(held[1])
                self._handle.registerTimer(timer_ms)
                self._state.update((count, timer_ms))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield pd.DataFrame({"key": [key[0]], "count": [self._state.get()[0]]})
        self._state.clear()

    def close(self) -> None:
        pass


def write(clicks: Clicks, folder: Path, events_per_batch: int) -> None:
    keys, timestamps_ms = clicks.columns()
    table = pa.table({"key": keys, "ts": pa.array(timestamps_ms, pa.timestamp("ms", "UTC"))})
    for number, first in enumerate(range(0, clicks.events, events_per_batch)):
        path = folder / f"{number:05}.parquet"
        pq.write_table(table.slice(first, events_per_batch), path)
        os.utime(path, (number + 1, number + 1))  # the order in which Spark takes them


def main() -> None:
    clicks = Clicks(events=int(sys.argv[1]), keys=int(sys.argv[2]))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", False)
        .config("spark.sql.shuffle.partitions", 1)
        .config("spark.sql.session.timeZone", "UTC")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory(prefix="inactivity-") as temporary:
        log = Path(temporary) / "log"
        log.mkdir()
        write(clicks, log, int(sys.argv[3]))
        query = (
            spark.readStream.schema("key bigint, ts timestamp")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(log))
            .withWatermark("ts", "0 seconds")
            .groupBy("key")
            .transformWithStateInPandas(CountUntilQuiet(), "key bigint, count bigint", "Append", "EventTime")
            .writeStream.format("noop")
            .option("checkpointLocation", f"{temporary}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        batches = [each for each in query.recentProgress if each["numInputRows"]]
        warm = batches[1:]
        found = {
            "events": sum(each["numInputRows"] for each in warm),
            "batches": len(warm),
            "seconds": sum(each["durationMs"]["triggerExecution"] for each in warm) / 1000,
        }
    spark.stop()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
