"""Airports that fall silent: an alert when no departure was scheduled for two hours, as a streaming job would raise it.

A process function on keyed state and event-time timers, over the log of `flinkcore.examples.flights`. Run it with
``python -m flinkcore.examples.flight_inactivity``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

from flinkcore.common import Duration, OutputTag, Row, WatermarkStrategy
from flinkcore.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from flinkcore.datastream.state import ValueState, ValueStateDescriptor
from flinkcore.examples.flights import LOG

SILENCE_MS = 2 * 60 * 60 * 1000

ALERTS = pa.schema(
    {"origin": pa.string(), "last_departure": pa.timestamp("ms"), "flights_before": pa.int64()}
)
RESUMED = OutputTag("resumed", pa.schema({"origin": pa.string(), "silent_for": pa.duration("ms")}))


class Inactivity(KeyedProcessFunction):
    """Raises an alert two hours after the last departure, and tells in a side output when flights resume.

    The timer of an airport is deleted and registered anew with every departure that is later than those before.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state of an airport."""
        self.last_departure: ValueState[int] = runtime_context.get_state(
            ValueStateDescriptor("last departure")
        )
        self.flights: ValueState[int] = runtime_context.get_state(
            ValueStateDescriptor("flights since the last silence")
        )

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        """Take a departure."""
        departure = ctx.timestamp()
        assert departure is not None
        timers = ctx.timer_service()
        last, flights = self.last_departure.value(), self.flights.value() or 0
        self.flights.update(flights + 1)
        if last is not None and departure <= last:
            return
        if last is not None and flights == 0:
            yield RESUMED, (value.origin, timedelta(milliseconds=departure - last))
        elif last is not None:
            timers.delete_event_time_timer(last + SILENCE_MS)
        self.last_departure.update(departure)
        timers.register_event_time_timer(departure + SILENCE_MS)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        """Raise an alert."""
        last = datetime.fromtimestamp((timestamp - SILENCE_MS) / 1000, timezone.utc).replace(tzinfo=None)
        yield ctx.get_current_key(), last, self.flights.value()
        self.flights.clear()


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
        .process(Inactivity(), ALERTS, side_outputs=[RESUMED], timestamp_column="raised_for")
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
    longest = result.get_side_output(RESUMED).to_arrow().sort_by([("silent_for", "descending")]).slice(0, 5)
    print("\nLongest silences that ended:")
    for row in longest.to_pylist():
        print(f"{row['origin']:8} {row['silent_for']}")


if __name__ == "__main__":
    main()
