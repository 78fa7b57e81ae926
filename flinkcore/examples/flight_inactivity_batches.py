"""Airports that fall silent, as in `flinkcore.examples.flight_inactivity`, by a function over batches.

The rows are the same; nothing is done per flight in Python. Run it with
``python -m flinkcore.examples.flight_inactivity_batches``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore.common import Duration, OutputTag, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    KeyedBatchProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkcore.examples.flights import LOG

SILENCE_MS = 2 * 60 * 60 * 1000
NEVER = np.iinfo(np.int64).min

ALERTS = pa.schema(
    {
        "origin": pa.string(),
        "last_departure": pa.timestamp("ms"),
        "flights_before": pa.int64(),
        "raised_for": pa.timestamp("ms"),
    }
)
RESUMED = OutputTag("resumed", pa.schema({"origin": pa.string(), "silent_for": pa.duration("ms")}))


class InactivityOfBatches(KeyedBatchProcessFunction):
    """Raises an alert two hours after the last departure, and tells in a side output when flights resume."""

    # No departure is followed by an alert earlier than this: as long, an airport's departures can share a batch.
    min_event_time_delay_ms = SILENCE_MS

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state of an airport."""
        self.last_departure = runtime_context.get_column_state("last departure", np.int64, NEVER)
        self.flights = runtime_context.get_column_state("flights since the last silence", np.int64)

    def process_batch(
        self, elements: KeyedBatchProcessFunction.ElementBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[Any]:
        """Take departures; an airport can have several."""
        last, flights = self.last_departure.array, self.flights.array
        first = elements.first_of_keys()
        airports, departures = elements.key_ids[first], elements.timestamps[first]
        before = last[airports]

        resumed = (before != NEVER) & (flights[airports] == 0) & (departures > before)
        yield (
            RESUMED,
            {
                "origin": ctx.keys(airports[resumed])["origin"],
                "silent_for": (departures - before)[resumed],
            },
        )

        np.add.at(flights, elements.key_ids, 1)
        np.maximum.at(last, elements.key_ids, elements.timestamps)
        later = last[airports] > before
        airports = airports[later]
        timers = ctx.timer_service()
        timers.delete_event_time_timers(airports)
        timers.register_event_time_timers(airports, last[airports] + SILENCE_MS)

    def on_timers(
        self, timers: KeyedBatchProcessFunction.TimerBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[Any]:
        """Raise alerts."""
        yield {
            "origin": timers.keys["origin"],
            "last_departure": timers.timestamps - SILENCE_MS,
            "flights_before": self.flights[timers.key_ids],
            "raised_for": timers.timestamps,
        }
        self.flights.clear(timers.key_ids)


def silent_airports(environment: StreamExecutionEnvironment) -> DataStream:
    """The job: alerts, and in the side output `RESUMED` how long each silence was."""
    return (
        environment.from_event_log(str(LOG), timestamp="date", arrival="arrival", split="origin")
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(30)).with_idleness(
                Duration.of_minutes(30)
            )
        )
        .key_by("origin")
        .process(InactivityOfBatches(), ALERTS, side_outputs=[RESUMED])
    )


def main() -> None:
    """Replay the log in this process, and print what came out."""
    result = silent_airports(StreamExecutionEnvironment.get_execution_environment()).execute()
    print(result.report)
    print(f"\n{'airport':8} {'last departure':17} {'alert for':17} flights before")
    for row in result.to_arrow().slice(0, 15).to_pylist():
        print(
            f"{row['origin']:8} {row['last_departure']:%Y-%m-%d %H:%M}  {row['raised_for']:%Y-%m-%d %H:%M}  "
            f"{row['flights_before']:>6}"
        )


if __name__ == "__main__":
    main()
