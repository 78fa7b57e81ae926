"""Airports that fall silent, as in `flinkcore.examples.flight_inactivity`, by a function over batches.

The results are the same, without a call in Python per flight. Run it with
``python -m flinkcore.examples.flight_inactivity_batches``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore.datastream import (
    KeyedBatchProcessFunction,
    LogStream,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkcore.examples.flight_inactivity import RESUMED, SILENCE_MS, print_alerts
from flinkcore.examples.flights import flights_by_origin

NEVER = np.iinfo(np.int64).min

ALERTS = pa.schema(
    {
        "origin": pa.string(),
        "last_departure": pa.timestamp("ms"),
        "flights_before": pa.int64(),
        "raised_for": pa.timestamp("ms"),
    }
)


class InactivityOfBatches(KeyedBatchProcessFunction):
    """Raises an alert two hours after the last departure, and reports in a side output when flights resume."""

    # No alert follows a departure earlier than this; within it, departures of an airport can share a batch.
    min_event_time_delay_ms = SILENCE_MS

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last_departure = runtime_context.get_column_state("last departure", np.int64, NEVER)
        self.flights = runtime_context.get_column_state("flights since the last silence", np.int64)

    def process_batch(
        self, elements: KeyedBatchProcessFunction.ElementBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[Any]:
        last, flights = self.last_departure.array, self.flights.array
        first = elements.first_of_keys()
        airports, departures = elements.key_ids[first], elements.timestamps[first]
        before = last[airports]

        resumed = (before != NEVER) & (flights[airports] == 0) & (departures > before)
        yield (
            RESUMED,
            elements.results(
                {
                    "origin": ctx.keys(airports[resumed])["origin"],
                    "silent_for": (departures - before)[resumed],
                },
                first[resumed],
            ),
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
        yield timers.results(
            {
                "origin": timers.keys["origin"],
                "last_departure": timers.timestamps - SILENCE_MS,
                "flights_before": self.flights[timers.key_ids],
                "raised_for": timers.timestamps,
            }
        )
        self.flights.clear(timers.key_ids)


def silent_airports(environment: StreamExecutionEnvironment) -> LogStream:
    """Return alerts; the side output `RESUMED` has the length of each silence."""
    return flights_by_origin(environment).process(InactivityOfBatches(), ALERTS, side_outputs=[RESUMED])


def main() -> None:
    """Replay the log in this process, and print the alerts."""
    print_alerts(silent_airports(StreamExecutionEnvironment.get_execution_environment()).execute())


if __name__ == "__main__":
    main()
