"""The command `flinkcore why`: what became of the events of one key, and what its results were made of."""

from __future__ import annotations

import argparse
from typing import Any

from flinkcore.cli.engines import add_engine, environment_of
from flinkcore.cli.help_formatter import DefaultsHelpFormatter
from flinkcore.cli.log_options import (
    WINDOWS,
    add_log_options,
    add_watermark_options,
    check_log_options,
    duration_ms,
    events_of,
    window_assigner,
)
from flinkcore.cli.output_directory import check_output, write_tables
from flinkcore.cli.replay import LATE, named_aggregates
from flinkcore.datastream import LogStream, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import FUNCTIONS
from flinkcore.errors import ConfigurationError


def add_commands(commands: Any) -> None:
    """Add the command to those of a parser."""
    why = commands.add_parser(
        "why",
        help="tell what became of the events of one key, and what its results were made of",
        formatter_class=DefaultsHelpFormatter,
    )
    add_log_options(why)
    why.add_argument(
        "--key", required=True, action="append", metavar="COLUMN=VALUE", help="repeat for a composite key"
    )
    why.add_argument("--window", required=True, help=WINDOWS)
    why.add_argument(
        "--at",
        metavar="TIME",
        help="only the windows that this time falls into, such as 2001-01-01T07:00; START,END: that window",
    )
    add_watermark_options(why)
    why.add_argument(
        "--allowed-lateness", default="0s", help="late events still fire their window again for so long"
    )
    why.add_argument(
        "--aggregate",
        action="append",
        metavar="NAME=FUNCTION(COLUMN)",
        help=f"{', '.join(FUNCTIONS)}; repeat for more; n=count() if not given",
    )
    why.add_argument(
        "--output",
        metavar="DIR",
        help="directory for events.parquet, firings.parquet and timers.parquet, besides the text",
    )
    why.add_argument("--report", metavar="FILE", help="page (HTML) with a picture of the key, and the text")
    add_engine(why)
    why.set_defaults(call=_why)


def _key(texts: list[str]) -> dict[str, str]:
    """Return columns and values of texts such as origin=ATL."""
    key: dict[str, str] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        if not equals or not column:
            raise ConfigurationError(f"--key {text!r} is not a key; write COLUMN=VALUE, such as origin=ATL")
        if column in key:
            raise ConfigurationError(f"--key {text!r}: {column!r} is given twice; leave one out")
        key[column] = value
    return key


def _at(text: str) -> Any:
    """Return the windows that a text asks for: a time, or two."""
    times = [int(part) if part.lstrip("-").isdigit() else part for part in text.split(",")]
    return times[0] if len(times) == 1 else tuple(times)


def _job(
    environment: StreamExecutionEnvironment,
    arguments: argparse.Namespace,
    key: dict[str, str],
) -> LogStream:
    windows = events_of(environment, arguments).key_by(*key).window(window_assigner(arguments.window))
    windows = windows.allowed_lateness(duration_ms(arguments.allowed_lateness)).side_output_late_data(LATE)
    return windows.aggregate(**named_aggregates(arguments.aggregate or ["n=count()"]))


def _why(arguments: argparse.Namespace) -> None:
    check_log_options(arguments)
    key = _key(arguments.key)
    at = None if arguments.at is None else _at(arguments.at)
    check_output(arguments.output)
    if arguments.report:
        from flinkcore.analysis.page import check_page

        check_page(arguments.report)
    environment = environment_of(arguments, lambda planning: _job(planning, arguments, key).execute())
    history = _job(environment, arguments, key).why(key, at)
    if arguments.output:
        write_tables(arguments.output, events=history.events, firings=history.firings, timers=history.timers)
    print(history)
    if arguments.output:
        print(f"events, firings and timers: {arguments.output}")
    if arguments.report:
        history.to_html(arguments.report)
        print(f"report: {arguments.report}")
