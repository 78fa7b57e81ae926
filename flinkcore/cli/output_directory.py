"""The directory or the file that a command writes its tables into, besides the text: a local path or a URI."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flinkcore.errors import ConfigurationError, SourceError

if TYPE_CHECKING:
    from flinkcore._internal.io.stores import Place


def check_output(output: str | None) -> None:
    """Raise a ConfigurationError if --output names what exists; before anything is read."""
    if output:
        _check_is_new(output, "--output", "directory")


def check_output_file(output: str | None, option: str = "--output") -> None:
    """Raise a ConfigurationError if an option does not name a new file in a directory; before anything is read."""
    if not output:
        return
    place = _check_is_new(output, option, "file")
    directory = output.rpartition("/")[0]
    parent = place.path.rpartition("/")[0] or "/"
    if place.renames and place.filesystem.get_file_info(parent).type.name != "Directory":
        raise ConfigurationError(f"{option} {output}: there is no directory {directory}")


def refuse_table(output: str | None, option: str) -> None:
    """Raise a ConfigurationError if an option that takes a path names a table."""
    if output and output.startswith(("delta:", "iceberg:")):
        raise ConfigurationError(
            f"{option} {output} names a table, and this option takes a path. Only --output of flinkcore replay writes "
            "into tables"
        )


def write_tables(output: str, **tables: Any) -> None:
    """Write Arrow tables by name, as NAME.parquet into a new directory."""
    for name, table in tables.items():
        write_table(f"{output.rstrip('/')}/{name}.parquet", table)


def write_table(output: str, table: Any) -> None:
    """Write an Arrow table as a Parquet file, in a directory that is made if it is missing.

    Raises
    ------
    SourceError
        If it cannot be written.
    """
    import pyarrow.parquet as pq

    place = _place(output)
    with _faults(output):
        place.filesystem.create_dir(place.path.rpartition("/")[0], recursive=True)
        pq.write_table(table, place.path, filesystem=place.filesystem)


def _check_is_new(output: str, option: str, kind: str) -> Place:
    refuse_table(output, option)
    place = _place(output)
    with _faults(output):
        is_there = place.filesystem.get_file_info(place.path).type.name != "NotFound"
    if is_there:
        raise ConfigurationError(f"{option} {output} exists; name a {kind} that does not")
    return place


def _place(output: str) -> Place:
    from flinkcore._internal.io.stores import ENVIRONMENT  # loads pyarrow

    return ENVIRONMENT.locate(output)


@contextmanager
def _faults(output: str) -> Iterator[None]:
    from flinkcore._internal.io.store_errors import reason_of

    try:
        yield
    except OSError as failure:
        raise SourceError(f"--output {output} cannot be written: {reason_of(failure)}") from failure
