"""Hourly flights per airport, as a streaming job would have counted them while the reports arrived.

The log has two days of US flights (January 2001, US Department of Transportation, public domain). The event time of a
flight is its scheduled departure; its arrival is the time when the delay is known, so events are out of order. Each
airport is a split with its own watermark.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    KeyedLogStream,
    LogStream,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count, max_, mean
from flinkcore.errors import ConfigurationError

LOG = Path(__file__).with_name("flights.parquet")
LATE = OutputTag("late")


def flights_by_origin(environment: StreamExecutionEnvironment) -> KeyedLogStream:
    """Return the flights of the log with event time, up to 30 minutes out of order, keyed by airport."""
    half_an_hour = Duration.of_minutes(30)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(half_an_hour).with_idleness(half_an_hour)
    return (
        environment.from_event_log(str(LOG), timestamp="date", arrival="arrival", split="origin")
        .assign_timestamps_and_watermarks(strategy)
        .key_by("origin")
    )


def hourly_flights(environment: StreamExecutionEnvironment) -> LogStream:
    """Return flights, mean and largest delay per origin and hour; late flights update an hour for one more hour."""
    return (
        flights_by_origin(environment)
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .allowed_lateness(Time.hours(1))
        .side_output_late_data(LATE)
        .aggregate(flights=count(), mean_delay=mean("delay"), longest_delay=max_("delay"))
    )


def _earlier_results(directories: Mapping[Path, Collection[str]], page: Path) -> list[Path]:
    """Return the Parquet files of an earlier run, which have these columns; ConfigurationError if others are there."""
    parts = []
    for directory, columns in directories.items():
        for file in sorted(directory.glob("part-*.parquet")):
            if not set(columns) <= set(pq.read_schema(file).names):
                raise ConfigurationError(
                    f"{file} is not of an earlier run: name another directory (--output)"
                )
            parts.append(file)
    if page.exists() and not parts:
        raise ConfigurationError(f"{page} is not of an earlier run: name another directory (--output)")
    return parts


def run(environment: StreamExecutionEnvironment, output: Path, progress: bool | None = None) -> Path | None:
    """Replay the log, write results, late flights and the page of the report below `output`, and print a part of them.

    Results of an earlier run there are replaced. Returns the page; None where what draws it is not installed.

    Raises
    ------
    ConfigurationError
        If there are other files where results of an earlier run would be.
    """
    directories, page = {"flights": output / "hourly", "late": output / "late"}, output / "report.html"
    result = hourly_flights(environment).execute(progress=progress)
    columns = {
        directories["flights"]: ("origin", "window_start", "mean_delay", "longest_delay"),
        directories["late"]: pq.read_schema(LOG).names,
    }
    earlier = _earlier_results(columns, page)
    if earlier:
        print(f"The results of an earlier run in {output} are replaced.")
    for file in earlier:
        file.unlink()
    report = result.write_parquet(directories["flights"], {LATE: directories["late"]})
    print(
        "Hourly flights per airport, replayed with 30 minutes of out-of-orderness and one hour of allowed lateness.\n"
    )
    print(report)
    print(f"\nWhat other bounds of out-of-orderness would lose: {hourly_flights(environment).lateness()}")
    hours = ds.dataset(directories["flights"]).to_table(filter=pc.field("origin") == "ATL")
    print("\nAtlanta, as its hours fired (a late flight fires its hour again):\n")
    print(f"{'hour':17} {'flights':>7} {'mean delay':>11} {'longest':>8}  fired")
    for row in (
        hours.sort_by([("window_start", "ascending"), ("flights", "ascending")]).slice(0, 14).to_pylist()
    ):
        print(
            f"{row['window_start']:%Y-%m-%d %H:%M}  {row['flights']:>7} {row['mean_delay']:>7.1f} min "
            f"{row['longest_delay']:>4} min  {'by a late flight' if row['late_firing'] else 'by the watermark'}"
        )
    print(f"\nresults:      {directories['flights']}\nlate flights: {directories['late']}")
    if find_spec("vl_convert") is None:
        print("report:       pip install 'flinkcore[report]' draws one")
        return None
    report.to_html(page, "Two days of US flights")
    print(f"report:       {page}")
    return page
