"""The directory or the file that a command writes its tables into, besides the text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flinkcore.errors import ConfigurationError


def check_output(output: str | None) -> None:
    """Raise a ConfigurationError if --output names what exists; before anything is read."""
    if output and Path(output).exists():
        raise ConfigurationError(f"--output {output} exists; name a directory that does not")


def check_output_file(output: str | None) -> None:
    """Raise a ConfigurationError if --output names no new file in a directory; before anything is read."""
    if not output:
        return
    if Path(output).exists():
        raise ConfigurationError(f"--output {output} exists; name a file that does not")
    if not Path(output).parent.is_dir():
        raise ConfigurationError(f"--output {output}: there is no directory {Path(output).parent}")


def write_tables(output: str, **tables: Any) -> None:
    """Write Arrow tables by name, as NAME.parquet into a new directory."""
    import pyarrow.parquet as pq

    directory = Path(output)
    directory.mkdir(parents=True)
    for name, table in tables.items():
        pq.write_table(table, directory / f"{name}.parquet")
