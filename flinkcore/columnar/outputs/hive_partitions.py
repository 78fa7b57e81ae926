"""Directories name=value of partitioned Parquet files, as Spark names them, so that all readers find the values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from flinkcore.columnar.outputs.table_files import partition_text
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.log.files.log_files import NULL_PARTITION

_ESCAPED: Final = frozenset([*map(chr, range(1, 32)), *"\"#%'*/:=?\\{[]^", "\x7f"])
"""Spark's; other characters stay, since Spark reads back no UTF-8 from escapes."""


_TYPES: Final = b"flinkcore.partition_types"
"""Key in the metadata of a file."""


def hive_folder(column: str, value: pa.Scalar) -> str:
    """Return the name of the directory for a value of a column.

    Raises
    ------
    DataError
        If readers would take the value for another.
    """
    text = partition_text(value)
    if text is None:
        return f"{_escaped(column)}={NULL_PARTITION}"
    if text in ("", NULL_PARTITION) or "\0" in text:
        raise DataError(
            f"column {column!r} has {text!r}, for which there is no directory of a partition: readers would take it "
            "for null. Write null or another text in its place, or partition by another column",
            column=column,
        )
    return f"{_escaped(column)}={_escaped(text)}"


def _escaped(text: str) -> str:
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in text)


def partition_fault(path: str, partition_by: Sequence[str]) -> str | None:
    """Return which directory on the way to a file is not one of these partitions, or None if all are.

    Parameters
    ----------
    path : str
        Path of the file below the directory of the results.
    partition_by : sequence of str
    """
    *folders, _ = path.split("/")
    for at, folder in enumerate(folders):
        if at >= len(partition_by) or not folder.startswith(f"{_escaped(partition_by[at])}="):
            return "/".join(folders[: at + 1])
    return None


def with_recorded_types(schema: pa.Schema, partitions: pa.Schema) -> pa.Schema:
    """Return the schema of a file, whose metadata have the types of its partition columns, which directories lack.

    Parameters
    ----------
    schema : pyarrow.Schema
        Columns of the file.
    partitions : pyarrow.Schema
        Columns by which it is partitioned.
    """
    types = json.dumps({field.name: str(field.type) for field in partitions})
    return schema.with_metadata({**(schema.metadata or {}), _TYPES: types.encode()})


def recorded_types(schema: pa.Schema) -> dict[str, str] | None:
    """Return the types of the partition columns of a file by their names, or None if it does not have them."""
    text = (schema.metadata or {}).get(_TYPES)
    return None if text is None else dict(json.loads(text))


def path_of_other_value(files: Iterable[str], level: int, kind: pa.DataType) -> str | None:
    """Return the directory of the first file whose value is not of a type, or None if all are.

    Parameters
    ----------
    files : iterable of str
        Paths below the directory of the results.
    level : int
        Number of the partition column, from 0 on.
    kind : pyarrow.DataType
        Type of the column.
    """
    folders = {"/".join(file.split("/")[: level + 1]) for file in files}
    for folder in sorted(folders):
        value = unquote(folder.rpartition("/")[2].partition("=")[2])
        try:
            pa.scalar(None if value == NULL_PARTITION else value, pa.string()).cast(kind)
        except pa.ArrowInvalid:
            return folder
    return None


def require_hive_types(partition_by: Sequence[str], schema: pa.Schema) -> None:
    """Raise a ConfigurationError unless the values of these columns are found again in names of directories."""
    types = pa.types
    for name in partition_by:
        kind = schema.field(name).type
        if not any(
            is_kind(kind) for is_kind in (types.is_integer, types.is_string, types.is_date, types.is_boolean)
        ):
            advice = "another column"
            if types.is_timestamp(kind):
                advice = f"its day, such as with_columns(day=pc.field({name!r}).cast('date32'))"
            raise ConfigurationError(
                f"partition_by names {name!r}, which is {kind}: directories hold integers, text, dates or booleans. "
                f"Partition by {advice}, or write into a table, with write_delta or write_iceberg"
            )
