"""The command `flinkcore lateness`: what every bound of out-of-orderness loses in a log, and how long results wait."""

from __future__ import annotations

import argparse
import re
from typing import Any

from flinkcore.cli.engines import add_engine, environment_of
from flinkcore.cli.help_formatter import DefaultsHelpFormatter
from flinkcore.cli.log_options import (
    add_log_options,
    add_watermark_options,
    check_log_options,
    duration_ms,
    events_of,
    window_assigner,
)
from flinkcore.cli.output_directory import check_output, write_tables
from flinkcore.common import Duration, Time
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.window import GlobalWindows
from flinkcore.errors import ConfigurationError


def add_commands(commands: Any) -> None:
    """Add the command to those of a parser."""
    lateness = commands.add_parser(
        "lateness",
        help="tell what every bound of out-of-orderness loses, and how long it makes results wait",
        formatter_class=DefaultsHelpFormatter,
    )
    add_log_options(lateness)
    add_watermark_options(lateness)
    lateness.add_argument(
        "--window",
        action="append",
        default=[],
        help="for which events may be late: tumbling:SIZE[,OFFSET], sliding:SIZE,SLIDE[,OFFSET], local-days:ZONE or "
        "cumulate:SIZE,STEP[,OFFSET]; repeat for more; else for the watermark only",
    )
    lateness.add_argument(
        "--allowed-lateness",
        action="append",
        default=[],
        help="after the end of a window; 0s if not given; repeat for more",
    )
    lateness.add_argument(
        "--bound",
        action="append",
        default=[],
        help="at which late events are counted; repeat; else at thousands",
    )
    lateness.add_argument(
        "--lose", metavar="SHARE", help="tell the least bound that loses at most, such as 0.1%%"
    )
    lateness.add_argument(
        "--delay", help="tell the greatest bound under which 99%% of the results wait no longer, such as 5min"
    )
    lateness.add_argument(
        "--by-split", action="store_true", help="show lateness and delay of each split, too"
    )
    lateness.add_argument(
        "--output", metavar="DIR", help="directory for frontier.parquet and splits.parquet, besides the text"
    )
    lateness.add_argument(
        "--report", metavar="FILE", help="page (HTML) with pictures of all bounds, and the text"
    )
    add_engine(lateness)
    lateness.set_defaults(call=_lateness)


def share_of(text: str) -> float:
    """Return the share of a text such as 0.1% or 0.001; raise a ConfigurationError for others.

    Examples
    --------
    >>> share_of("0.1%"), share_of("0.001")
    (0.001, 0.001)
    """
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(%?)", text)
    share = None if match is None else float(match[1]) / (100 if match[2] else 1)
    if share is None or share > 1:
        raise ConfigurationError(f"--lose {text!r} is not a share of the events; write 0.1% or 0.001")
    return share


def _times(option: str, texts: list[str]) -> list[Time]:
    lengths = [duration_ms(text) for text in texts]
    for text, length in zip(texts, lengths, strict=True):
        if length < 0:
            raise ConfigurationError(f"{option} {text!r} is negative")
    return [Time.milliseconds(length) for length in lengths]


def _lateness(arguments: argparse.Namespace) -> None:
    from flinkcore.analysis.lateness_count import require_time_windows

    check_log_options(arguments)
    check_output(arguments.output)
    if arguments.report:
        from flinkcore.analysis.page import check_page

        check_page(arguments.report)
    share = None if arguments.lose is None else share_of(arguments.lose)
    (delay,) = [None] if arguments.delay is None else _times("--delay", [arguments.delay])
    windows = [require_time_windows(window_assigner(text)) for text in arguments.window]
    allowed_lateness = _times("--allowed-lateness", arguments.allowed_lateness)
    bounds = _times("--bound", arguments.bound)
    if allowed_lateness and not windows:
        raise ConfigurationError("--allowed-lateness needs --window")
    kept = windows[0] if windows else GlobalWindows.create_with_end_of_stream_trigger()
    environment = environment_of(
        arguments,
        lambda planning: events_of(planning, arguments).window_all(kept).aggregate(n=count()).execute(),
    )
    frontier = events_of(environment, arguments).lateness(windows, allowed_lateness or None, bounds or None)
    if share is None and delay is None:
        print(frontier)
    else:
        for line in (*(f"read as {table}" for table in frontier.tables), *frontier.doubts):
            print(line)
    if share is not None:
        print(frontier.sentence(share))
    if arguments.by_split:
        print(f"\n{frontier.shown_splits()}")
    if arguments.output:
        write_tables(arguments.output, frontier=frontier.to_arrow(), splits=frontier.by_split())
        print(f"figures: {arguments.output}")
    if arguments.report:
        frontier.to_html(arguments.report)
        print(f"report: {arguments.report}")
    of_splits = frontier.sentence_for_splits()
    if of_splits is not None and (share is not None or delay is not None):
        print(of_splits)
    if delay is not None:
        # Last: if no bound is enough, the rest explains why.
        print(frontier.sentence_for_delay(Duration.of_millis(delay.to_milliseconds())))
