"""Airports that fall silent: an alert when no departure was scheduled for two hours, as a streaming job would raise it.

A process function on keyed state and event-time timers, over the log of `flinkcore.examples.flights`. Run it with
``python -m flinkcore.examples.flight_inactivity``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

from flinkcore.common import OutputTag, Row
from flinkcore.datastream import KeyedProcessFunction, LogStream, RuntimeContext, StreamExecutionEnvironment
from flinkcore.datastream.graph.pipeline_executor import ReplayResult
from flinkcore.datastream.state import ValueState, ValueStateDescriptor
from flinkcore.examples.flights import flights_by_origin

SILENCE_MS = 2 * 60 * 60 * 1000

ALERTS = pa.schema(
    {"origin": pa.string(), "last_departure": pa.timestamp("ms"), "flights_before": pa.int64()}
)
RESUMED = OutputTag("resumed", pa.schema({"origin": pa.string(), "silent_for": pa.duration("ms")}))


class Inactivity(KeyedProcessFunction):
    """Raises an alert two hours after the last departure, and reports in a side output when flights resume.

    Every departure that is later than those before deletes the timer of its airport and registers a new one.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last_departure: ValueState[int] = runtime_context.get_state(
            ValueStateDescriptor("last departure")
        )
        self.flights: ValueState[int] = runtime_context.get_state(
            ValueStateDescriptor("flights since the last silence")
        )

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
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
        last = datetime.fromtimestamp((timestamp - SILENCE_MS) / 1000, timezone.utc).replace(tzinfo=None)
        yield ctx.get_current_key(), last, self.flights.value()
        self.flights.clear()


def silent_airports(environment: StreamExecutionEnvironment) -> LogStream:
    """Return alerts; the side output `RESUMED` has the length of each silence."""
    return flights_by_origin(environment).process(
        Inactivity(), ALERTS, side_outputs=[RESUMED], timestamp_column="raised_for"
    )


def print_alerts(result: ReplayResult) -> None:
    """Print the report and the first alerts of a replay."""
    print(result.report)
    print(f"\n{'airport':8} {'last departure':17} {'alert for':17} flights before")
    alerts = result.to_arrow().sort_by([("raised_for", "ascending"), ("origin", "ascending")])
    for row in alerts.slice(0, 15).to_pylist():
        print(
            f"{row['origin']:8} {row['last_departure']:%Y-%m-%d %H:%M}  {row['raised_for']:%Y-%m-%d %H:%M}  "
            f"{row['flights_before']:>6}"
        )


def main() -> None:
    """Replay the log in this process, and print alerts and the longest silences."""
    result = silent_airports(StreamExecutionEnvironment.get_execution_environment()).execute()
    print_alerts(result)
    longest = result.get_side_output(RESUMED).to_arrow().sort_by([("silent_for", "descending")]).slice(0, 5)
    print("\nLongest silences that ended:")
    for row in longest.to_pylist():
        print(f"{row['origin']:8} {row['silent_for']}")


if __name__ == "__main__":
    main()
