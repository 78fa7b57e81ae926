"""The commands `flinkcore replay`, which replays a log, and `flinkcore demo`."""

from __future__ import annotations

import argparse
import re
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.cli.spark_environment import spark_environment
from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.common.shown_tables import shown_table
from flinkcore.datastream import (
    FILE,
    Aggregate,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import FUNCTIONS
from flinkcore.datastream.window import CumulativeEventTimeWindows
from flinkcore.errors import ConfigurationError

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

LATE = OutputTag("late")

SUBSECONDS = {"s": 1_000_000, "ms": 1_000, "us": None, "ns": None}
"""Units of time columns, with their microseconds where numbers may have fractions."""


def duration_ms(text: str) -> int:
    """Return the milliseconds of a duration such as 200ms, 10s, 1h30m or 2d; raise ConfigurationError for others.

    Examples
    --------
    >>> duration_ms("1h30m")
    5400000
    """
    parts = re.findall(r"(-?\d+)(ms|min|s|m|h|d)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ConfigurationError(f"{text!r} is no duration; write 200ms, 10s, 5m, 1h30m or 2d")
    return sum(int(number) * UNITS_MS[unit] for number, unit in parts)


def instants(column: str, unit: str, kind: pa.DataType) -> Any:
    """Return the expression that makes timestamps of numbers of a type in a unit: s, ms, us or ns.

    Numbers of seconds and milliseconds may have fractions, unless they are integers.
    """
    if SUBSECONDS[unit] is None or pa.types.is_integer(kind):
        return pc.field(column).cast("int64").cast(pa.timestamp(unit))
    microseconds = pc.round(pc.field(column).cast("float64") * SUBSECONDS[unit])
    return microseconds.cast("int64").cast(pa.timestamp("us"))


def _times(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the columns of times, or the expressions that make times of their numbers, by the names of their settings.

    A unit of a column that has one by its type is refused: read as numbers, its times would be others.
    """
    columns = {"timestamp": arguments.timestamp, "arrival": arguments.arrival}
    units = {"timestamp": arguments.timestamp_unit, "arrival": arguments.arrival_unit}
    if not any(units.values()):
        return columns
    from flinkcore.replay.log.event_log import EventLog

    log = EventLog.of(arguments.input, timestamp=arguments.timestamp, format=arguments.format)
    for setting, unit in units.items():
        if unit is not None:
            column = columns[setting]
            kind = log.require(column, f"--{setting}")
            if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
                raise ConfigurationError(f"{column} is {kind}; leave --{setting}-unit out")
            columns[setting] = instants(column, unit, kind)
    return columns


WINDOWS: Final = (
    "tumbling:SIZE[,OFFSET], sliding:SIZE,SLIDE[,OFFSET], cumulate:SIZE,STEP[,OFFSET] or session:GAP"
)


def window_assigner(text: str) -> Any:
    """Return the assigner of a text such as tumbling:1h,15m or session:30m (`WINDOWS`); raise ConfigurationError."""
    kind, _, arguments = text.partition(":")
    times = [Time.milliseconds(duration_ms(part)) for part in arguments.split(",") if part]
    if kind == "tumbling" and len(times) in (1, 2):
        return TumblingEventTimeWindows.of(times[0], times[1] if len(times) == 2 else None)
    if kind == "sliding" and len(times) in (2, 3):
        return SlidingEventTimeWindows.of(*times)
    if kind == "cumulate" and len(times) in (2, 3):
        return CumulativeEventTimeWindows.of(*times)
    if kind == "session" and len(times) == 1:
        return EventTimeSessionWindows.with_gap(*times)
    raise ConfigurationError(f"{text!r} is no window; write {WINDOWS}")


def named_aggregate(text: str) -> tuple[str, Aggregate]:
    """Return name and aggregate of a text such as n=count() or best=max_by(item,price); raise ConfigurationError."""
    match = re.fullmatch(r"([^=()]+)=\s*(\w+)\s*(?:\(([^()]*)\))?\s*", text)
    if not match:
        raise ConfigurationError(
            f"{text!r} is no aggregate; write NAME=FUNCTION(COLUMN), such as total=sum(price)"
        )
    name, function, columns = match.groups()
    names = [column.strip() for column in (columns or "").split(",") if column.strip()]
    if len(names) > 2:
        raise ConfigurationError(f"{text!r} names {len(names)} columns; an aggregate reads two at most")
    if function == "approx_percentile" and len(names) == 2:
        return name.strip(), Aggregate(function, names[0], percentage=_percentage(text, names[1]))
    return name.strip(), Aggregate(function, *names)


def _percentage(aggregate: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigurationError(
            f"{aggregate!r} takes a percentage from 0 to 1, such as 0.99, not {text!r}"
        ) from None


def named_aggregates(texts: Sequence[str]) -> dict[str, Aggregate]:
    """Return aggregates by name; raise ConfigurationError if a text is no aggregate, or two have the same name."""
    aggregates: dict[str, Aggregate] = {}
    for text in texts:
        name, aggregate = named_aggregate(text)
        if name in aggregates:
            raise ConfigurationError(f"--aggregate {text!r}: there is a {name!r} already; take another name")
        aggregates[name] = aggregate
    return aggregates


def add_commands(commands: Any) -> None:
    """Add the commands to those of a parser."""
    replay = commands.add_parser(
        "replay",
        help="aggregate a log in event-time windows",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    replay.add_argument("input", nargs="+", help="files, directories, globs or URIs")
    replay.add_argument(
        "--format", help="parquet, arrow, avro, csv or json; by the files' endings if not given"
    )
    replay.add_argument("--timestamp", required=True, metavar="COLUMN", help="event time")
    replay.add_argument(
        "--arrival", metavar="COLUMN", help="when the event reached the system; else by position"
    )
    for column in ("timestamp", "arrival"):
        replay.add_argument(
            f"--{column}-unit",
            choices=list(SUBSECONDS),
            help=f"of the numbers in the {column} column; else ms",
        )
    replay.add_argument(
        "--rate", type=float, default=1000.0, help="records per second and split, where there is no arrival"
    )
    replay.add_argument(
        "--split", metavar="COLUMN", help="column that tells splits (Kafka partitions, sources) apart"
    )
    replay.add_argument("--split-per-file", action="store_true", help="each file is a split")
    replay.add_argument(
        "--key", required=True, action="append", metavar="COLUMN", help="key; repeat for a composite key"
    )
    replay.add_argument("--window", required=True, help=WINDOWS)
    replay.add_argument(
        "--out-of-orderness", default="0s", help="the watermark trails the largest timestamp by this and 1 ms"
    )
    replay.add_argument("--idleness", help="a split without events for longer holds no watermark back")
    replay.add_argument(
        "--watermark-interval", default="200ms", help="of periodic watermarks, on the arrival clock"
    )
    replay.add_argument(
        "--allowed-lateness", default="0s", help="late events still fire their window again for so long"
    )
    replay.add_argument(
        "--aggregate",
        required=True,
        action="append",
        metavar="NAME=FUNCTION(COLUMN)",
        help=f"{', '.join(FUNCTIONS)}; repeat for more",
    )
    replay.add_argument(
        "--on-bad-row",
        choices=["fail", "drop"],
        default="fail",
        help="null timestamps, arrivals, keys; text that is no time; absurd timestamps",
    )
    replay.add_argument(
        "--output", metavar="DIR", help="directory for the results as Parquet; else they are printed"
    )
    replay.add_argument(
        "--late-output", metavar="DIR", help="directory for events too late for all their windows"
    )
    replay.add_argument(
        "--restore-from",
        metavar="DIR",
        help="checkpoint of this job over an earlier log, which is restored",
    )
    replay.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="directory for a checkpoint with which the job stops: the end of the log then fires nothing",
    )
    replay.add_argument("--report", metavar="FILE", help="page (HTML) with the report and charts of it")
    _add_engine(replay)
    replay.set_defaults(call=_replay)

    demo = commands.add_parser("demo", help="replay a small real log of flights that comes with the package")
    demo.add_argument("--output", metavar="DIR", default="flinkcore-demo", help="directory for the results")
    demo.add_argument("--open", action="store_true", help="open the page of the report in a browser")
    _add_engine(demo)
    demo.set_defaults(call=_demo)


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=["spark", "embedded"], default="spark", help="where to run")
    parser.add_argument("--master", default="local[*]", help="Spark master")
    parser.add_argument(
        "--parallelism", type=int, help="tasks (spark) or threads (embedded) of the keyed part"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def _environment(arguments: argparse.Namespace) -> StreamExecutionEnvironment:
    if arguments.engine == "embedded":
        environment = StreamExecutionEnvironment.get_execution_environment()
    else:
        environment = spark_environment(arguments.master, "choose --engine embedded")
    if arguments.parallelism is not None:
        environment.set_parallelism(arguments.parallelism)
    return environment


def _job(
    environment: StreamExecutionEnvironment, arguments: argparse.Namespace, times: dict[str, Any]
) -> Any:
    """Return the planned job, which runs when its rows are asked for."""
    environment.get_config().set_auto_watermark_interval(duration_ms(arguments.watermark_interval))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(duration_ms(arguments.out_of_orderness))
    )
    if arguments.idleness:
        strategy = strategy.with_idleness(Duration.of_millis(duration_ms(arguments.idleness)))
    windowed = (
        environment.from_event_log(
            arguments.input,
            timestamp=times["timestamp"],
            arrival=times["arrival"],
            split=FILE if arguments.split_per_file else arguments.split,
            rate=arguments.rate,
            format=arguments.format,
            on_bad_row=arguments.on_bad_row,
        )
        .assign_timestamps_and_watermarks(strategy)
        .key_by(*arguments.key)
        .window(window_assigner(arguments.window))
        .allowed_lateness(duration_ms(arguments.allowed_lateness))
    )
    if arguments.late_output:
        windowed = windowed.side_output_late_data(LATE)
    results = windowed.aggregate(**named_aggregates(arguments.aggregate))
    return results.execute(
        progress=False if arguments.quiet else None,
        restore_from=arguments.restore_from,
        stop_with_checkpoint=arguments.checkpoint,
    )


def _replay(arguments: argparse.Namespace) -> None:
    if arguments.late_output and not arguments.output:
        raise ConfigurationError("--late-output needs --output")
    if arguments.report:
        from flinkcore.analysis.page import check_page

        check_page(arguments.report)
    if arguments.arrival_unit and not arguments.arrival:
        raise ConfigurationError("--arrival-unit needs --arrival")
    if arguments.split and arguments.split_per_file:
        raise ConfigurationError("--split and --split-per-file exclude each other")
    for name, value in vars(arguments).items():
        if value == "" or (isinstance(value, list) and "" in value):
            setting = "an input" if name == "input" else f"--{name.replace('_', '-')}"
            raise ConfigurationError(f"{setting} is empty; give it a value, or leave it out")
    times = _times(arguments)
    if arguments.engine == "spark":
        # An invalid job is reported at once, not after the start of Spark.
        _job(StreamExecutionEnvironment(), arguments, times)
    result = _job(_environment(arguments), arguments, times)
    if arguments.output:
        report = result.write_parquet(
            arguments.output, {LATE: arguments.late_output} if arguments.late_output else {}
        )
        print(report)
        print(f"results: {arguments.output}")
    else:
        print(shown_table(result.to_arrow(), 20))
        report = result.report
        print(report)
    if arguments.report:
        report.to_html(arguments.report)
        print(f"report: {arguments.report}")
    if arguments.late_output:
        print(f"late events: {arguments.late_output}")
    if arguments.checkpoint:
        print(f"checkpoint: {arguments.checkpoint}")


def _demo(arguments: argparse.Namespace) -> None:
    from flinkcore.examples import flights

    page = flights.run(_environment(arguments), Path(arguments.output), False if arguments.quiet else None)
    if arguments.open and page is not None:
        webbrowser.open(page.absolute().as_uri())
