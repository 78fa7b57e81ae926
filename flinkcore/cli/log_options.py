"""The options of commands that read an event log: its columns, its watermarks, its windows, and where to run."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import time
from typing import Any, Final, Literal

from flinkcore._internal.arrow.time_units import TIME_UNITS
from flinkcore.cli.decoders import DECODERS, decoders_named
from flinkcore.cli.table_names import TABLES, table_named
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.common.split_origin import SplitOrigin
from flinkcore.datastream import (
    FILE,
    PARTITION,
    EventTimeSessionWindows,
    LogStream,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.window import CumulativeEventTimeWindows
from flinkcore.errors import ConfigurationError

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_ms(text: str) -> int:
    """Return the milliseconds of a duration such as 200ms, 10s, 1h30m or 2d; raise ConfigurationError for others.

    Examples
    --------
    >>> duration_ms("1h30m")
    5400000
    """
    parts = re.findall(r"(-?\d+)(ms|min|s|m|h|d)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ConfigurationError(f"{text!r} is not a duration; write 200ms, 10s, 5m, 1h30m or 2d")
    return sum(int(number) * UNITS_MS[unit] for number, unit in parts)


WINDOWS: Final = (
    "tumbling:SIZE[,OFFSET], sliding:SIZE,SLIDE[,OFFSET], cumulate:SIZE,STEP[,OFFSET], session:GAP, "
    "local-days:ZONE[,START], local-weeks:ZONE[,START] or local-months:ZONE[,START], such as "
    "local-days:Europe/Berlin,06:00"
)


def window_assigner(text: str) -> Any:
    """Return the assigner of a text such as tumbling:1h,15m or session:30m (`WINDOWS`); raise ConfigurationError."""
    kind, _, arguments = text.partition(":")
    if kind in _LOCAL_WINDOWS:
        return _local_windows(kind, arguments, text)
    times = [Time.milliseconds(duration_ms(part)) for part in arguments.split(",") if part]
    if kind == "tumbling" and len(times) in (1, 2):
        return TumblingEventTimeWindows.of(times[0], times[1] if len(times) == 2 else None)
    if kind == "sliding" and len(times) in (2, 3):
        return SlidingEventTimeWindows.of(*times)
    if kind == "cumulate" and len(times) in (2, 3):
        return CumulativeEventTimeWindows.of(*times)
    if kind == "session" and len(times) == 1:
        return EventTimeSessionWindows.with_gap(*times)
    raise ConfigurationError(f"{text!r} is not a window; write {WINDOWS}")


_LOCAL_WINDOWS: Final[dict[str, Callable[..., Any]]] = {
    "local-days": TumblingEventTimeWindows.of_local_days,
    "local-weeks": TumblingEventTimeWindows.of_local_weeks,
    "local-months": TumblingEventTimeWindows.of_local_months,
}


def _local_windows(kind: str, arguments: str, text: str) -> Any:
    zone, comma, start = arguments.partition(",")
    try:
        return _LOCAL_WINDOWS[kind](zone, time.fromisoformat(start) if comma else time())
    except ValueError as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"{text!r}: {start!r} is not a time of day; write 06:00") from None


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Add what says where a log is, and what its columns are."""
    parser.add_argument(
        "input",
        nargs="+",
        metavar="LOG",
        help="files, directories, globs in quotes, or URIs of these, such as 's3://logs/clicks/*.parquet'; or one "
        f"table: its directory, {TABLES}",
    )
    parser.add_argument(
        "--format", help="parquet, arrow, orc, avro, csv, tsv or json; by the files' endings if not given"
    )
    parser.add_argument(
        "--format-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of CSV, such as 'delimiter=;', null_values=NA,none, encoding=latin-1, newlines_in_values=true or "
        "block_bytes=67108864; of Parquet int96_unit=ns; repeat for more",
    )
    parser.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="COLUMN=TYPE",
        help="type of a column of files, such as zip=string or 'price=decimal(10, 2)'; repeat for more",
    )
    parser.add_argument(
        "--schema",
        metavar="DDL",
        help="all columns of the files that are read, such as 'ts TIMESTAMP, user STRING'; else those that any has",
    )
    parser.add_argument(
        "--timestamp",
        metavar="COLUMN",
        help="event time; not needed where the columns are those of Kafka's records",
    )
    parser.add_argument(
        "--arrival", metavar="COLUMN", help="when the event reached the system; else by position"
    )
    for column in ("timestamp", "arrival"):
        parser.add_argument(
            f"--{column}-unit",
            choices=list(TIME_UNITS),
            help=f"of the numbers in the {column} column, which may have fractions; else integers are ms",
        )
    parser.add_argument(
        "--integer-times",
        action="store_true",
        help="event times of results are integers in ms since the epoch, and not timestamps",
    )
    parser.add_argument(
        "--rate", type=float, default=1000.0, help="records per second and split, where there is no arrival"
    )
    parser.add_argument(
        "--split", metavar="COLUMN", help="column that tells splits (Kafka partitions, sources) apart"
    )
    parser.add_argument("--split-per-file", action="store_true", help="each file is a split")
    parser.add_argument(
        "--one-split",
        action="store_true",
        help="the log is one split; else each partition that its paths name, such as partition=3, is a split",
    )
    parser.add_argument(
        "--position",
        action="append",
        metavar="COLUMN[:desc]",
        help="column that orders the rows of a split, such as an offset, where they lie in no order; several times for "
        "several, the first of which counts most",
    )
    parser.add_argument(
        "--decode",
        action="append",
        metavar="COLUMN=KIND:SCHEMA",
        help=f"a column has messages, which become structs: {DECODERS}. The last one is for a log whose columns are "
        "Debezium's envelope (op, before, after); header: values have that of Confluent's serializers; repeat for more",
    )
    parser.add_argument(
        "--on-bad-row",
        choices=["fail", "drop"],
        default="fail",
        help="rows that are not events: null timestamps, arrivals, keys; lines that cannot be read; absurd timestamps",
    )


def add_watermark_options(parser: argparse.ArgumentParser) -> None:
    """Add the watermark strategy, and the arrival up to which events are taken."""
    parser.add_argument(
        "--until",
        metavar="TIME",
        help="take events that arrive before this time (ISO 8601, UTC without an offset, or an integer in the unit of "
        "arrivals); later ones wait for the next run",
    )
    parser.add_argument(
        "--out-of-orderness", default="0s", help="the watermark trails the largest timestamp by this and 1 ms"
    )
    parser.add_argument("--idleness", help="a split without events for longer holds no watermark back")
    parser.add_argument(
        "--watermark-interval", default="200ms", help="of periodic watermarks, on the arrival clock"
    )


def format_options_of(texts: list[str]) -> dict[str, Any]:
    """Return the options of a format from texts such as delimiter=;.

    Raises
    ------
    ConfigurationError
        If a text is not an option, or its value is not of the option's kind.

    Examples
    --------
    >>> format_options_of(["delimiter=;", "null_values=NA,none"])
    {'delimiter': ';', 'null_values': ['NA', 'none']}
    """
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigurationError(
                f"--format-option {text!r} is none; write NAME=VALUE, such as 'delimiter=;'"
            )
        if name in options:
            raise ConfigurationError(f"--format-option {text!r}: {name} is given twice; leave one out")
        reads, example = _FORMAT_OPTIONS.get(name, (str, ""))
        try:
            options[name] = reads(value)
        except (KeyError, ValueError):
            raise ConfigurationError(f"--format-option {text!r}: write {name}={example}") from None
    return options


def _schema_of(arguments: argparse.Namespace) -> str | dict[str, str] | None:
    types = {}
    for text in arguments.type:
        column, _, kind = text.partition("=")
        if not column or not kind:
            raise ConfigurationError(f"--type {text!r}: write COLUMN=TYPE, such as zip=string")
        if column in types:
            raise ConfigurationError(f"--type {text!r}: column {column!r} is given twice; leave one out")
        types[column] = kind
    if types and arguments.schema:
        raise ConfigurationError("--type and --schema exclude each other: give the types in the schema")
    return types or arguments.schema


_FORMAT_OPTIONS: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "delimiter": (lambda text: "\t" if text in ("\\t", "tab") else text, ";"),
    "null_values": (lambda text: text.split(","), "NA,none"),
    "newlines_in_values": (lambda text: {"true": True, "false": False}[text.lower()], "true"),
    "block_bytes": (lambda text: int(text.replace(",", "")), "67108864"),
}
"""Parsers of the values of options, with an example of each."""


def check_log_options(arguments: argparse.Namespace) -> None:
    """Raise a ConfigurationError where options exclude each other, or one is empty; nothing is read.

    The name of a table becomes that table.
    """
    if arguments.arrival_unit and not arguments.arrival:
        raise ConfigurationError("--arrival-unit needs --arrival")
    splits = {
        "--split": arguments.split,
        "--split-per-file": arguments.split_per_file,
        "--one-split": arguments.one_split,
    }
    chosen = [option for option, value in splits.items() if value]
    if len(chosen) > 1:
        raise ConfigurationError(f"{' and '.join(chosen)} exclude each other")
    for name, value in vars(arguments).items():
        if name == "given":  # the command as it was written
            continue
        if value == "" or (isinstance(value, list) and "" in value):
            setting = "an input" if name == "input" else f"--{name.replace('_', '-')}"
            raise ConfigurationError(f"{setting} is empty; give it a value, or leave it out")
    tables = [table for table in map(table_named, arguments.input) if table is not None]
    if not tables:
        return
    if len(arguments.input) > 1:
        raise ConfigurationError(
            f"{' '.join(arguments.input)} is more than one log. Name one table and nothing besides it"
        )
    if arguments.format or arguments.format_option or arguments.type or arguments.schema:
        raise ConfigurationError(
            "--format, --format-option, --type and --schema are of files, and not of a table; leave them out"
        )
    (arguments.input,) = tables


def log_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the options say of a log, as settings of `from_event_log`."""
    return {
        "timestamp": arguments.timestamp,
        "arrival": arguments.arrival,
        "timestamp_unit": arguments.timestamp_unit,
        "arrival_unit": arguments.arrival_unit,
        "integer_times": arguments.integer_times,
        "split": _split(arguments),
        "rate": arguments.rate,
        "format": arguments.format,
        "format_options": format_options_of(arguments.format_option),
        "schema": _schema_of(arguments),
        "on_bad_row": arguments.on_bad_row,
        "decode": decoders_named(arguments.decode),
        "position": arguments.position and list(map(_position, arguments.position)),
    }


def _split(arguments: argparse.Namespace) -> str | SplitOrigin | None:
    if arguments.one_split:
        return None
    return FILE if arguments.split_per_file else arguments.split or PARTITION


def _position(column: str) -> str | tuple[str, Literal["descending"]]:
    name = column.removesuffix(":desc")
    return name if name == column else (name, "descending")


def events_of(environment: StreamExecutionEnvironment, arguments: argparse.Namespace) -> LogStream:
    """Return the events of the log with their watermarks."""
    environment.get_config().set_auto_watermark_interval(duration_ms(arguments.watermark_interval))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(duration_ms(arguments.out_of_orderness))
    )
    if arguments.idleness:
        strategy = strategy.with_idleness(Duration.of_millis(duration_ms(arguments.idleness)))
    events = environment.from_event_log(arguments.input, until=arguments.until, **log_of(arguments))
    return events.assign_timestamps_and_watermarks(strategy)
