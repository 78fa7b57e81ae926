"""The command `flinkcore compare`, which compares what a live job has written with what its replay gave."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flinkcore.cli.help_formatter import DefaultsHelpFormatter
from flinkcore.cli.output_directory import check_output_file, write_table
from flinkcore.cli.table_names import TABLES, table_named
from flinkcore.errors import SourceError

if TYPE_CHECKING:
    from flinkcore.log.files.log_files import LogFile


def add_commands(commands: Any) -> None:
    """Add the command to those of a parser."""
    compare = commands.add_parser(
        "compare",
        help="compare what a live job has written with what its replay gave",
        description="Prints how rows of a live job's sink and of its replay differ, and why. Both are read into "
        "memory: for large ones there is flinkcore.spark.compare. The exit status is 1 if they differ, and 2 after an "
        "error.",
        formatter_class=DefaultsHelpFormatter,
    )
    compare.add_argument(
        "expected",
        metavar="SINK",
        help="rows of the live job: Parquet files, as a file, directory, glob in quotes, or URI of these; or a table: "
        f"its directory, {TABLES}",
    )
    compare.add_argument("found", metavar="REPLAY", help="rows of the replay, likewise")
    compare.add_argument(
        "--key",
        required=True,
        action="append",
        metavar="COLUMN",
        help="what names a result, such as the key and window_start; repeat for more",
    )
    compare.add_argument(
        "--column", action="append", metavar="COLUMN", help="what is compared; else all that both have"
    )
    kept = compare.add_mutually_exclusive_group()
    kept.add_argument(
        "--upserts", action="store_true", help="the sink keeps the last row of a key; else its rows tell"
    )
    kept.add_argument("--appends", action="store_true", help="the sink keeps all rows")
    compare.add_argument("--rel-tol", type=float, default=1e-9, help="of numbers with fractions")
    compare.add_argument("--abs-tol", type=float, default=0.0, help="of numbers with fractions")
    compare.add_argument("--output", metavar="FILE", help="new Parquet file for the differences")
    compare.set_defaults(call=_compare, status_of_errors=2)


def _rows(text: str) -> Any:
    """Return the rows of a table or of Parquet files; print which table is read, so that it can be read again."""
    import pyarrow as pa

    from flinkcore.log.files.log_files import PathOfTable, discover_files
    from flinkcore.log.tables.lake_files import table_at, table_files

    table = table_named(text)
    if table is None:
        try:
            return _rows_of_files(discover_files(text))
        except PathOfTable as of_table:
            table = table_at(of_table)
    files = table_files(table)
    print(f"{text} is read as {files.table_name}")
    batches = [batch for chunk in files.chunks(1) for batch in chunk.read(None, 1 << 16)]
    return pa.Table.from_batches(batches, files.schema)


def _rows_of_files(files: Sequence[LogFile]) -> Any:
    """Return the rows of Parquet files, with the columns of their partition directories."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from flinkcore._internal.io.store_errors import reason_of
    from flinkcore.log.files.log_files import partition_fields

    fields, tables = partition_fields(files), []
    for file in files:
        try:
            table = pq.read_table(
                file.path, filesystem=file.filesystem, partitioning=None, coerce_int96_timestamp_unit="us"
            )
        except (pa.ArrowException, OSError) as error:
            raise SourceError(
                f"{file.name} cannot be read as Parquet: {reason_of(error)}", file=file.name
            ) from error
        for field, (name, value) in zip(fields, file.partition, strict=True):
            table = table.select([column for column in table.column_names if column != name])
            values = pa.repeat(pa.scalar(value, pa.string()).cast(field.type), len(table))
            table = table.append_column(field, values)
        tables.append(table)
    return pa.concat_tables(tables, promote_options="permissive")


def _compare(arguments: argparse.Namespace) -> int:
    from flinkcore.analysis import compare

    check_output_file(arguments.output)
    result = compare(
        _rows(arguments.expected),
        _rows(arguments.found),
        keys=arguments.key,
        columns=arguments.column,
        upserts=arguments.upserts if arguments.upserts or arguments.appends else None,
        rel_tol=arguments.rel_tol,
        abs_tol=arguments.abs_tol,
    )
    print(result)
    if arguments.output:
        write_table(arguments.output, result.to_arrow())
        print(f"differences: {arguments.output}")
    return 0 if result.is_equal else 1
