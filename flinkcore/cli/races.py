"""The command `flinkcore races`: whether other legal histories of a log change the results of a job."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flinkcore.cli.help_formatter import DefaultsHelpFormatter
from flinkcore.cli.log_options import add_log_options, check_log_options, duration_ms, log_of
from flinkcore.cli.sql import named_values, script_of
from flinkcore.datastream import LogStream
from flinkcore.errors import ConfigurationError


def add_commands(commands: Any) -> None:
    """Add the command to those of a parser."""
    races = commands.add_parser(
        "races",
        help="replay a job under other legal histories of a small log, which is held in memory, and tell which change "
        "its results",
        formatter_class=DefaultsHelpFormatter,
    )
    races.add_argument(
        "job",
        metavar="JOB",
        help="jobs.py:late_clicks, or package.jobs:late_clicks: a function from the "
        "stream of events to the stream of results; or a script of Flink SQL (job.sql) or a compiled plan (plan.json)",
    )
    races.add_argument("--table", metavar="NAME", help="table of a job of Flink SQL, which the log replaces")
    races.add_argument("--sink", metavar="NAME", help="sink of a job of Flink SQL, if it has several")
    races.add_argument(
        "--final",
        action="store_true",
        help="compare the rows of Flink SQL that are left when the log ends; without, all changes",
    )
    races.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help="setting of a session of Flink SQL, such as table.local-time-zone=UTC; repeat for more",
    )
    add_log_options(races)
    races.add_argument("--watermark-interval", default="200ms", help="of periodic watermarks")
    races.add_argument(
        "--history",
        action="append",
        metavar="KIND",
        help="again, clock, parallelism, restart, ties, delay or ticks; repeat for more; all possible ones if not "
        "given",
    )
    races.set_defaults(call=_races, status_of_errors=2)


def _races(arguments: argparse.Namespace) -> int:
    from flinkcore.testing.determinism import find_races
    from flinkcore.testing.histories import KINDS

    unknown = sorted(set(arguments.history or ()) - set(KINDS))
    if unknown:
        raise ConfigurationError(f"--history {', '.join(unknown)}: there are {', '.join(KINDS)}")
    check_log_options(arguments)
    interval_ms = duration_ms(arguments.watermark_interval)
    found = find_races(
        _job(arguments),
        arguments.input,
        **log_of(arguments),
        histories=arguments.history,
        interval_ms=interval_ms,
    )
    print(found)
    return 1 if found else 0


def _job(arguments: argparse.Namespace) -> Callable[..., Any]:
    """Return the job that is named: a function, or one of Flink SQL."""
    path, of_sql = arguments.job, arguments.job.lower().endswith((".sql", ".json"))
    if not of_sql:
        named = [name for name in ("table", "sink", "final", "set") if getattr(arguments, name)]
        if named:
            raise ConfigurationError(
                f"--{named[0]} is for jobs of Flink SQL, and {path} is a function. Leave it out"
            )
        return _function(path)
    if not arguments.table:
        raise ConfigurationError(
            f"{path} is a job of Flink SQL. Name the table that the log replaces: --table clicks. A job over several "
            "logs is written as a function: see flinkcore.testing.find_races"
        )
    text = script_of(path) if path.lower().endswith(".sql") else None
    settings = named_values("--set", arguments.set)

    def rows_of(events: LogStream) -> LogStream:
        environment, tables = events.get_execution_environment(), {arguments.table: events}
        given: dict[str, Any] = {"sink": arguments.sink, "settings": settings, "final": arguments.final}
        if text is None:
            return environment.from_plan(path, tables, **given)
        return environment.from_sql(text, tables, **given)

    return rows_of


def _function(text: str) -> Callable[..., Any]:
    """Return the function of a text such as jobs.py:late_clicks."""
    program, colon, name = text.rpartition(":")
    if not colon or not program or not name:
        raise ConfigurationError(
            f"{text!r} is not a function; write PROGRAM:FUNCTION, such as jobs.py:late_clicks"
        )
    module = _program(Path(program)) if program.endswith(".py") else _module(program)
    function = getattr(module, name, None)
    if not callable(function):
        raise ConfigurationError(f"{program} has no function {name!r}")
    found: Callable[..., Any] = function
    return found


def _program(path: Path) -> Any:
    if not path.is_file():
        raise ConfigurationError(f"there is no program {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.absolute()))
    spec.loader.exec_module(module)
    return module


def _module(name: str) -> Any:
    sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"there is no module {name!r}: {error}") from error
