"""The commands `flinkcore replay`, which replays a log, and `flinkcore demo`."""

from __future__ import annotations

import argparse
import os
import re
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flinkcore._internal.io.stores import ENVIRONMENT
from flinkcore._internal.show.tables import shown_table
from flinkcore.checkpoint.state_origin import is_savepoint
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
from flinkcore.cli.output_directory import refuse_table
from flinkcore.cli.table_names import table_named
from flinkcore.common import OutputTag
from flinkcore.datastream import Aggregate, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import FUNCTIONS
from flinkcore.datastream.graph.lake_tables import DeltaTable, IcebergTable
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore import JobResult, ReplayReport
    from flinkcore.savepoints import SavepointSource, SavepointTarget

LATE = OutputTag("late")


def named_aggregate(text: str) -> tuple[str, Aggregate]:
    """Return name and aggregate of a text such as n=count() or best=max_by(item,price); raise ConfigurationError."""
    match = re.fullmatch(r"([^=()]+)=\s*(\w+)\s*(?:\(([^()]*)\))?\s*", text)
    if not match:
        raise ConfigurationError(
            f"{text!r} is not an aggregate; write NAME=FUNCTION(COLUMN), such as total=sum(price)"
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
    """Return aggregates by name; raise ConfigurationError if a text is not an aggregate, or two have the same name."""
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
        formatter_class=DefaultsHelpFormatter,
    )
    add_log_options(replay)
    replay.add_argument(
        "--key", required=True, action="append", metavar="COLUMN", help="key; repeat for a composite key"
    )
    replay.add_argument("--window", required=True, help=WINDOWS)
    add_watermark_options(replay)
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
        "--emitted-at",
        metavar="NAME",
        help="column of the results for when each was emitted; without, there is none",
    )
    replay.add_argument(
        "--output",
        metavar="DIR",
        help="directory for the results as Parquet, or a table, as delta:PATH or iceberg:CATALOG.NAMESPACE.TABLE; else "
        "they are printed",
    )
    replay.add_argument(
        "--late-output", metavar="DIR", help="directory for events too late for all their windows"
    )
    replay.add_argument(
        "--mode",
        choices=["error", "append", "overwrite", "overwrite_partitions"],
        default="error",
        help="what if these directories have Parquet files: error; append adds to them, and replaces what the same run "
        "with the same --checkpoint added before; overwrite replaces them once all of the new ones are complete. The "
        "same for rows of a table, of which overwrite_partitions replaces the partitions that results fall into",
    )
    replay.add_argument(
        "--partition-by",
        action="append",
        default=[],
        metavar="COLUMN",
        help="column by whose values the files of --output are in directories COLUMN=VALUE, or a new Delta table is "
        "partitioned; repeat for more",
    )
    replay.add_argument(
        "--restore-from",
        metavar="DIR",
        help="checkpoint of this job over an earlier log, which is restored; or savepoint of a Flink job, with whose "
        "windows this one begins",
    )
    replay.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="directory for a checkpoint with which the job stops: the end of the log then fires nothing",
    )
    replay.add_argument(
        "--stop-with-savepoint",
        metavar="DIR",
        help="new directory for a savepoint of Flink, with which the job stops: `flink run -s DIR` continues. The "
        "accumulator of its AggregateFunction is a tuple of the aggregates, or the only one",
    )
    replay.add_argument(
        "--uid",
        metavar="UID",
        help="uid of the window in the Flink job; with --stop-with-savepoint, or a savepoint as --restore-from, whose "
        "other operators are then left out",
    )
    replay.add_argument("--report", metavar="FILE", help="page (HTML) with the report and charts of it")
    add_engine(replay)
    replay.set_defaults(call=_replay)

    demo = commands.add_parser("demo", help="replay a small real log of flights that comes with the package")
    demo.add_argument("--output", metavar="DIR", default="flinkcore-demo", help="directory for the results")
    demo.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="open the page of the report in a browser; if not said, in a terminal of a desktop",
    )
    add_engine(demo, "spark if pyspark is installed")
    demo.set_defaults(call=_demo)


def _job(environment: StreamExecutionEnvironment, arguments: argparse.Namespace) -> JobResult:
    """Return the planned job, which runs when its rows are asked for."""
    windowed = (
        events_of(environment, arguments)
        .key_by(*arguments.key)
        .window(window_assigner(arguments.window))
        .allowed_lateness(duration_ms(arguments.allowed_lateness))
    )
    if arguments.late_output:
        windowed = windowed.side_output_late_data(LATE)
    results = windowed.aggregate(**named_aggregates(arguments.aggregate))
    if arguments.emitted_at is not None:
        results = results.with_emitted_at(arguments.emitted_at)
    planned: JobResult = results.execute(
        progress=False if arguments.quiet else None,
        restore_from=_restored(arguments),
        stop_with_checkpoint=arguments.checkpoint,
        stop_with_savepoint=_savepoint(arguments),
    )
    return planned


def _is_from_savepoint(arguments: argparse.Namespace) -> bool:
    return arguments.restore_from is not None and is_savepoint(arguments.restore_from, ENVIRONMENT)


def _restored(arguments: argparse.Namespace) -> str | SavepointSource | None:
    """Return the checkpoint or the savepoint of --restore-from."""
    path: str | None = arguments.restore_from
    if path is None or arguments.uid is None or not _is_from_savepoint(arguments):
        return path
    from flinkcore import savepoints

    found = savepoints.open(path)
    own = found.operator(arguments.uid)
    others = [each.operator_id for each in found.operators if each is not own]
    return savepoints.SavepointSource(path, [savepoints.FlinkOperator(arguments.uid)], others)


def _savepoint(arguments: argparse.Namespace) -> SavepointTarget | None:
    if arguments.stop_with_savepoint is None:
        return None
    from flinkcore.savepoints import FlinkOperator, SavepointTarget

    return SavepointTarget(arguments.stop_with_savepoint, [FlinkOperator(arguments.uid)])


def _replay(arguments: argparse.Namespace) -> None:
    if arguments.late_output and not arguments.output:
        raise ConfigurationError("--late-output needs --output")
    if arguments.partition_by and not arguments.output:
        raise ConfigurationError("--partition-by needs --output")
    if arguments.stop_with_savepoint is not None and arguments.uid is None:
        raise ConfigurationError("--stop-with-savepoint needs --uid, the uid of the window in the Flink job")
    if (
        arguments.uid is not None
        and arguments.stop_with_savepoint is None
        and not _is_from_savepoint(arguments)
    ):
        raise ConfigurationError(
            "--uid needs --stop-with-savepoint, or a savepoint of Flink as --restore-from"
        )
    refuse_table(arguments.late_output, "--late-output")
    table = _output_table(arguments) if arguments.output else None
    if arguments.report:
        from flinkcore.analysis.page import check_page

        check_page(arguments.report)
    check_log_options(arguments)
    environment = environment_of(arguments, lambda planning: _job(planning, arguments))
    result = _job(environment, arguments)
    if arguments.output:
        report = _written(result, table, arguments)
        print(report.without_warnings)  # the standard error has the warnings
        print(f"results: {arguments.output}")
    else:
        print(shown_table(result.to_arrow(), 20))
        report = result.report
        print(report.without_warnings)  # the standard error has the warnings
    if arguments.report:
        report.to_html(arguments.report)
        print(f"report: {arguments.report}")
    if arguments.late_output:
        print(f"late events: {arguments.late_output}")
    if arguments.checkpoint:
        print(f"checkpoint: {arguments.checkpoint}")
    if arguments.stop_with_savepoint:
        print(f"savepoint: {arguments.stop_with_savepoint}")


def _output_table(arguments: argparse.Namespace) -> DeltaTable | IcebergTable | None:
    """Return the table into which results are written, or None if --output is a directory.

    Raises
    ------
    ConfigurationError
        If the options do not go together.
    """
    table, output, mode = table_named(arguments.output), arguments.output, arguments.mode
    if not isinstance(table, DeltaTable | IcebergTable):
        if mode == "overwrite_partitions":
            raise ConfigurationError(
                f"--mode overwrite_partitions is for tables, and --output {output} is a directory. Give --mode "
                "overwrite, which replaces all of its Parquet files, or --output delta:PATH"
            )
        return None
    is_iceberg = isinstance(table, IcebergTable)
    if (table.version if isinstance(table, DeltaTable) else table.snapshot) is not None:
        raise ConfigurationError(
            f"--output {output} names a version of the table, and results go into its latest one. Leave out what "
            "follows the last @"
        )
    if arguments.late_output:
        raise ConfigurationError(
            f"--late-output needs a directory as --output, and {output} is a table, which takes the results only. "
            "Leave out --late-output, or write Parquet files"
        )
    if is_iceberg and "/" in table.table:
        raise ConfigurationError(
            f"--output {output} is a path, and results are committed through a catalog. Write "
            "iceberg:CATALOG.NAMESPACE.TABLE"
        )
    if is_iceberg and arguments.partition_by:
        raise ConfigurationError(
            f"--partition-by is for directories and new Delta tables, and {output} has partitions of its own. Leave it "
            "out"
        )
    if is_iceberg and mode == "error":
        raise ConfigurationError(
            f"--output {output} is a table that is there already. Give --mode append, overwrite or overwrite_partitions"
        )
    return table


def _written(
    result: JobResult, table: DeltaTable | IcebergTable | None, arguments: argparse.Namespace
) -> ReplayReport:
    """Write the results into the directory or the table of --output."""
    if isinstance(table, DeltaTable):
        return result.write_delta(table.table, arguments.mode, arguments.partition_by)
    if isinstance(table, IcebergTable):
        from flinkcore.log.tables.iceberg_files import opened_table  # loads pyiceberg

        return result.write_iceberg(opened_table(table), arguments.mode)
    late = {LATE: arguments.late_output} if arguments.late_output else {}
    return result.write_parquet(arguments.output, late, arguments.mode, arguments.partition_by)


def _demo(arguments: argparse.Namespace) -> None:
    from flinkcore.examples import flights

    refuse_table(arguments.output, "--output")
    page = flights.run(environment_of(arguments), Path(arguments.output), False if arguments.quiet else None)
    opens = _is_at_a_desktop() if arguments.open is None else arguments.open
    if opens and page is not None:
        webbrowser.open(page.absolute().as_uri())


def _is_at_a_desktop() -> bool:
    """Return whether somebody sits at a terminal, and a browser would not replace it."""
    has_windows = sys.platform in ("darwin", "win32") or any(
        map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))
    )
    return sys.stdout.isatty() and has_windows
