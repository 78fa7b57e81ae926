"""Features as they were known: what a model may learn from, and what a plain join would have let it see.

For each flight: how late were departures from its airport in the newest hour that was known two hours before? A
streaming job computes hourly delays; a replay knows when each result was given (`with_emitted_at`), and `as_of` joins
by that time. A join by event time takes hours whose result came later: the model trains on what it will not have. Run
it with ``python -m flinkcore.examples.point_in_time_features``.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flinkcore.analysis import as_of
from flinkcore.common import Time
from flinkcore.datastream import LogStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, mean
from flinkcore.examples.flights import LOG, flights_by_origin

ASKED_BEFORE = timedelta(hours=2)
"""Time before the scheduled departure of a flight at which its delay is predicted."""


def hourly_delays(environment: StreamExecutionEnvironment) -> LogStream:
    """Return the mean delay of each airport and hour, with the time at which it was known."""
    return (
        flights_by_origin(environment)
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .allowed_lateness(Time.hours(6))
        .aggregate(flights=count(), delay=mean("delay"))
        .with_emitted_at()
    )


def questions() -> pa.Table:
    """Return a row for each flight: its airport, its delay, and the time at which it is foretold."""
    flights = pq.read_table(LOG)
    asked_at = pc.subtract(flights["date"], pa.scalar(ASKED_BEFORE, pa.duration("ms")))
    return pa.table({"origin": flights["origin"], "asked_at": asked_at, "late_by": flights["delay"]})


def main() -> None:
    """Replay the log in this process, join both ways, and print how they differ."""
    delays = hourly_delays(StreamExecutionEnvironment.get_execution_environment()).execute().to_arrow()
    asked = questions()
    columns = ["window_end", "delay"]
    known = as_of(asked, delays, at="asked_at", keys="origin", columns=columns, latest_by="window_end")
    # A plain join takes the newest hour that had ended, with the result that it has in the end.
    in_the_end = as_of(
        asked,
        delays.append_column("ended", delays["window_end"]),
        at="asked_at",
        keys="origin",
        columns=columns,
        emitted_at="ended",
        latest_by="window_end",
    )
    print(f"{asked.num_rows:,} flights, {delays.num_rows:,} hours of airports\n")
    for name, table in (("known two hours before", known), ("joined by event time", in_the_end)):
        found = table.filter(pc.is_valid(table["delay"]))
        age = pc.subtract(found["asked_at"], found["window_end"]).cast("int64")
        print(
            f"{name:22}  {found.num_rows:6,} flights have a feature, "
            f"its hour had ended {pc.approximate_median(age).as_py() / 60_000:.0f} min before (median)"
        )
    both = pc.and_(pc.is_valid(known["delay"]), pc.is_valid(in_the_end["delay"]))
    other = pc.sum(pc.and_(both, pc.not_equal(known["delay"], in_the_end["delay"])).cast("int64")).as_py()
    early = pc.sum(
        pc.and_not(pc.is_valid(in_the_end["delay"]), pc.is_valid(known["delay"])).cast("int64")
    ).as_py()
    print(f"\nThe plain join shows {other:,} flights another value, and {early:,} one that nobody had yet.")


if __name__ == "__main__":
    main()
