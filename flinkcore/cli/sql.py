"""The command `flinkcore sql`, which runs a script or a compiled plan of Flink SQL over logs."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from flinkcore._internal.show.tables import shown_table
from flinkcore.cli.engines import add_engine, environment_of
from flinkcore.cli.help_formatter import DefaultsHelpFormatter
from flinkcore.cli.output_directory import refuse_table
from flinkcore.cli.table_names import table_named
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.sql.sink_rows import SinkRows


def add_commands(commands: Any) -> None:
    """Add the command to those of a parser."""
    sql = commands.add_parser(
        "sql",
        help="run Flink SQL over logs: a script, which Flink plans, or a compiled plan (COMPILE PLAN), without Java",
        formatter_class=DefaultsHelpFormatter,
    )
    sql.add_argument(
        "job",
        metavar="JOB",
        help="script of SQL such as job.sql, or the JSON that Flink writes by COMPILE PLAN 'file:///plan.json' FOR",
    )
    sql.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="log in place of a table: a file, directory or glob, or a table such as delta:PATH; needed for all "
        "connectors but filesystem",
    )
    sql.add_argument(
        "--arrival",
        action="append",
        default=[],
        metavar="NAME=COLUMN",
        help="column of a table's log with the arrival of its rows; without, arrivals are derived from positions",
    )
    sql.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help="setting of the session, such as table.local-time-zone=UTC; repeat for more",
    )
    sql.add_argument(
        "--sink",
        metavar="NAME",
        help="sink whose rows are wanted, or select for those of a query; by default all",
    )
    sql.add_argument(
        "--emitted-at",
        metavar="NAME",
        help="column of the results for when each was emitted; without, there is none",
    )
    sql.add_argument(
        "--function",
        action="append",
        default=[],
        metavar="NAME=MODULE:FUNCTION",
        help="function in Python for one that the job names, of a script with its types (udf); repeat for more",
    )
    sql.add_argument(
        "--final",
        action="store_true",
        help="only the rows that are left when the log ends, the last of each key; without, all changes",
    )
    sql.add_argument("--into", metavar="DIR", help="directory for the rows as Parquet; else they are printed")
    sql.add_argument(
        "--mode",
        choices=["error", "append", "overwrite"],
        default="error",
        help="what if the directory has Parquet files",
    )
    sql.add_argument(
        "--restore-from",
        metavar="DIR",
        help="savepoint of Flink's job of this plan, or checkpoint, with whose state the replay begins",
    )
    sql.add_argument(
        "--stop-with-savepoint",
        metavar="DIR",
        help="new directory for a savepoint of Flink, with which the replay stops: Flink's job of this plan continues",
    )
    add_engine(sql)
    sql.set_defaults(call=_sql, engine="embedded")


def named_values(option: str, texts: list[str]) -> dict[str, str]:
    """Return names and values of texts such as clicks=dump/; raise ConfigurationError if a text is not such a pair."""
    found: dict[str, str] = {}
    for text in texts:
        name, has_value, value = text.partition("=")
        if not has_value or not name or not value:
            raise ConfigurationError(f"{option} {text!r} is not NAME=VALUE. Write {option} clicks=dump/")
        if name in found:
            raise ConfigurationError(f"{option} names {name} twice. Leave one out")
        found[name] = value
    return found


def _function(name: str, text: str) -> Any:
    """Return a function of a module, which may lie in the working directory."""
    module, _, attribute = text.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), attribute or name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"--function {name}={text} cannot be imported ({error}). Write --function {name}=MODULE:FUNCTION"
        ) from error


def _sinks(arguments: argparse.Namespace) -> dict[str, SinkRows]:
    from flinkcore.sql.nodes.rows import Tables
    from flinkcore.sql.program import plan_sinks, script_sinks

    paths = named_values("--table", arguments.table)
    logs = {name: table_named(path) or path for name, path in paths.items()}
    arrivals = named_values("--arrival", arguments.arrival)
    for name in arrivals:
        if name not in paths:
            raise ConfigurationError(
                f"--arrival names {name}, which no --table names. Add --table {name}=PATH"
            )
    tables = Tables(logs, arrivals, reads_paths=not _is_plan(arguments.job))
    settings = named_values("--set", arguments.set)
    given = named_values("--function", arguments.function)
    functions = {name: _function(name, text) for name, text in given.items()}
    environment = environment_of(arguments)
    if _is_plan(arguments.job):
        found = plan_sinks(environment, arguments.job, tables, settings, arguments.emitted_at, functions)
    else:
        script = script_of(arguments.job)
        found = script_sinks(environment, script, tables, settings, arguments.emitted_at, functions)
    tables.check_read()
    if arguments.sink is None:
        return found
    if arguments.sink not in found:
        raise ConfigurationError(
            f"--sink is {arguments.sink}, and the sinks are {', '.join(found)}. Name one of them"
        )
    return {arguments.sink: found[arguments.sink]}


def _is_plan(path: str) -> bool:
    return not path.lower().endswith(".sql")


def script_of(path: str) -> str:
    """Return the text of a script; raise ConfigurationError if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"the script {path} cannot be read: {reason}. Give a file of SQL") from error


def _sql(arguments: argparse.Namespace) -> None:
    refuse_table(arguments.into, "--into")
    found = _sinks(arguments)
    _check_state(arguments, list(found))
    if arguments.final:
        found = {name: rows.final() for name, rows in found.items()}
    for name, rows in found.items():
        into = arguments.into if len(found) == 1 or not arguments.into else os.path.join(arguments.into, name)
        connector = "" if _is_plan(arguments.job) else rows.connector
        if into is None and connector == "filesystem":
            into = rows.path
        if len(found) > 1:
            print(f"{name}:")
        result = rows.stream.execute(
            progress=False if arguments.quiet else None,
            restore_from=arguments.restore_from,
            stop_with_savepoint=arguments.stop_with_savepoint,
        )
        if into:
            report = result.write_parquet(into, mode=arguments.mode, partition_by=rows.partition_by)
        else:
            if connector == "print":
                rows.print(result)
            elif connector != "blackhole":
                print(shown_table(result.to_arrow(), 20))
            report = result.report
        print(report.without_warnings)  # the standard error has the warnings
        if into:
            print(f"results: {into}")
    if arguments.stop_with_savepoint:
        print(f"savepoint: {arguments.stop_with_savepoint}")


def _check_state(arguments: argparse.Namespace, sinks: list[str]) -> None:
    option = "--stop-with-savepoint" if arguments.stop_with_savepoint else "--restore-from"
    if len(sinks) > 1 and (arguments.stop_with_savepoint or arguments.restore_from):
        raise ConfigurationError(
            f"{option} is for one job, and each of the sinks {', '.join(sinks)} is one. Name one of them by --sink"
        )
    if arguments.stop_with_savepoint and arguments.final:
        raise ConfigurationError(
            "--final keeps the last row of each key, which Flink's job does not. Leave it out for a savepoint"
        )
