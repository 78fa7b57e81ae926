"""The command `flinkcore sql`, which runs a compiled plan of Flink SQL over logs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from flinkcore._internal.show.tables import shown_table
from flinkcore.cli.engines import add_engine, environment_of
from flinkcore.cli.help_formatter import DefaultsHelpFormatter
from flinkcore.cli.output_directory import refuse_table
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream import LogStream, StreamExecutionEnvironment


def add_commands(commands: Any) -> None:
    """Add the command to those of a parser."""
    sql = commands.add_parser(
        "sql",
        help="run a compiled plan of Flink SQL (COMPILE PLAN) over logs, without Java",
        formatter_class=DefaultsHelpFormatter,
    )
    sql.add_argument(
        "plan", help="JSON that Flink writes by COMPILE PLAN 'file:///plan.json' FOR INSERT INTO ..."
    )
    sql.add_argument(
        "--table",
        required=True,
        action="append",
        metavar="NAME=PATH",
        help="log in place of a table of the plan: a file, directory or glob; repeat for more",
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
        help="setting of the job that is not in the plan, such as table.local-time-zone=UTC; repeat for more",
    )
    sql.add_argument("--sink", metavar="NAME", help="sink whose rows are wanted; only for plans of several")
    sql.add_argument(
        "--emitted-at",
        metavar="NAME",
        help="column of the results for when each was emitted; without, there is none",
    )
    sql.add_argument("--into", metavar="DIR", help="directory for the rows as Parquet; else they are printed")
    sql.add_argument(
        "--mode",
        choices=["error", "append", "overwrite"],
        default="error",
        help="what if the directory has Parquet files",
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


def _stream(environment: StreamExecutionEnvironment, arguments: argparse.Namespace) -> LogStream:
    from flinkcore.sql.nodes.scans import log_of_table
    from flinkcore.sql.plan.compiled_plan import CompiledPlan

    plan = CompiledPlan.of(arguments.plan)
    paths = named_values("--table", arguments.table)
    arrivals = named_values("--arrival", arguments.arrival)
    for name in arrivals:
        if name not in paths:
            raise ConfigurationError(
                f"--arrival names {name}, which no --table names. Add --table {name}=PATH"
            )
    tables = {
        name: log_of_table(environment, plan, name, path, arrivals.get(name)) for name, path in paths.items()
    }
    settings = named_values("--set", arguments.set)
    return environment.from_plan(
        plan.json, tables, sink=arguments.sink, settings=settings, emitted_at=arguments.emitted_at
    )


def _sql(arguments: argparse.Namespace) -> None:
    refuse_table(arguments.into, "--into")
    stream = _stream(environment_of(arguments), arguments)
    result = stream.execute(progress=False if arguments.quiet else None)
    if arguments.into:
        report = result.write_parquet(arguments.into, mode=arguments.mode)
    else:
        print(shown_table(result.to_arrow(), 20))
        report = result.report
    print(report.without_warnings)  # the standard error has the warnings
    if arguments.into:
        print(f"results: {arguments.into}")
