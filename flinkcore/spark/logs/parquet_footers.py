"""Footers of Parquet files: whether Arrow reads from the files what Spark does."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.arrow.plain_columns import plain_type
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore.errors import SchemaError, SourceError
from flinkcore.log.files.log_files import LogFile
from flinkcore.log.formats.columnar_formats import ParquetFormat, check_statistics
from flinkcore.log.sources.log_sources import LogFiles
from flinkcore.spark.logs.plan_nodes import NotJustFiles

_THREADS: Final = 8
_FILES_AT_ONCE: Final = 512
"""Files that wait for the threads; all of them would take 12 KB each."""

_FROM_1582_DAYS: Final = -141_427
_FROM_1900_MS: Final = -2_208_988_800_000
_PER_MS: Final = {"ms": 1, "us": 1_000}


@dataclass(frozen=True)
class RebaseModes:
    """In which calendar Spark takes the days and times of files that do not say in which they are.

    Attributes
    ----------
    datetimes, int96 : str
        ``CORRECTED``: the one that Arrow has; ``EXCEPTION``: that, but an old value is an error; ``LEGACY``: the old
        one.
    """

    datetimes: str
    int96: str


@dataclass(frozen=True)
class ParquetFooters:
    """Conditions on the footers of files under which Arrow reads what Spark reads.

    Attributes
    ----------
    columns : pyarrow.Schema
        Those that are read, with the types that Spark gives them.
    stored : StoredColumns
        Where the files have them.
    modes : RebaseModes
    """

    columns: pa.Schema
    stored: StoredColumns
    modes: RebaseModes

    def check(self, files: Sequence[LogFile]) -> None:
        """Raise NotJustFiles unless they say so in all of these files."""
        with ThreadPoolExecutor(_THREADS) as threads:
            for start in range(0, len(files), _FILES_AT_ONCE):
                deque(threads.map(self._check, files[start : start + _FILES_AT_ONCE]), maxlen=0)

    def _check(self, file: LogFile) -> None:
        constant = {name for name, _ in file.partition}
        wanted = pa.schema([column for column in self.columns if column.name not in constant])
        try:
            found, metadata = ParquetFormat().footer(file)
            located = self.stored.located(wanted, found, file.name)
        except (SchemaError, SourceError) as error:
            raise NotJustFiles(str(error)) from error
        for column in wanted:
            name = located.get(column.name)
            if name is None:
                continue
            if "." in name:
                raise NotJustFiles(f"column {name!r} of {file.name} is named like a part of another")
            stored = plain_type(found.field(name).type)
            if not _is_read_alike(stored, column.type):
                raise NotJustFiles(
                    f"column {name!r} of {file.name} is {stored}, which Spark makes {column.type}"
                )
            leaves = [
                metadata.schema.column(at)
                for at in range(metadata.num_columns)
                if metadata.schema.column(at).path.split(".")[0] == name
            ]
            if {tuple(leaf.path.split(".")) for leaf in leaves} - set(_paths(name, column.type)):
                raise NotJustFiles(
                    f"column {name!r} of {file.name} is nested in a way that has several meanings"
                )
            for leaf in leaves:
                self._check_calendar(leaf, metadata, file)

    def _check_calendar(self, leaf: Any, metadata: Any, file: LogFile) -> None:
        """Days and times must be of the calendar that Arrow has."""
        is_int96 = leaf.physical_type == "INT96"
        if (
            not is_int96
            and leaf.logical_type.type not in ("DATE", "TIMESTAMP")
            and "TIME" not in leaf.converted_type
        ):
            return
        told = metadata.metadata or {}
        version = told.get(b"org.apache.spark.version")
        mode = self.modes.int96 if is_int96 else self.modes.datetimes
        if version is not None:
            is_old = version < (b"3.1.0" if is_int96 else b"3.0.0")
            key = b"org.apache.spark.legacyINT96" if is_int96 else b"org.apache.spark.legacyDateTime"
            mode = "LEGACY" if is_old or key in told else "CORRECTED"
        if mode == "CORRECTED" or (mode == "EXCEPTION" and not is_int96 and _is_recent(file, leaf, metadata)):
            return
        raise NotJustFiles(
            f"days and times of {file.name} may be of the calendar before 1582, which Spark converts"
        )


def _is_read_alike(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether Arrow and Spark read the same values; nullability and names of list items do not count."""
    types = pa.types
    if types.is_timestamp(wanted):
        return bool(
            types.is_timestamp(stored)
            and stored.unit in _PER_MS
            and (stored.tz is None) == (wanted.tz is None)
        )
    if types.is_struct(wanted):
        return bool(
            types.is_struct(stored)
            and [each.name for each in stored] == [each.name for each in wanted]
            and all(
                _is_read_alike(plain_type(one.type), other.type)
                for one, other in zip(stored, wanted, strict=True)
            )
        )
    if types.is_map(wanted):
        return bool(
            types.is_map(stored)
            and _is_read_alike(plain_type(stored.key_type), wanted.key_type)
            and _is_read_alike(plain_type(stored.item_type), wanted.item_type)
        )
    if types.is_list(wanted):
        return bool(
            types.is_list(stored) and _is_read_alike(plain_type(stored.value_type), wanted.value_type)
        )
    return bool(stored == wanted)


def _paths(name: str, arrow_type: pa.DataType) -> Iterator[tuple[str, ...]]:
    """The paths that the leaves of a column may have in Parquet's standard form."""
    types = pa.types
    inner: list[tuple[tuple[str, ...], str, pa.DataType]]
    if types.is_struct(arrow_type):
        inner = [((), each.name, each.type) for each in arrow_type]
    elif types.is_map(arrow_type):
        parts = (("key", arrow_type.key_type), ("value", arrow_type.item_type))
        inner = [(("key_value",), *part) for part in parts]
    elif types.is_list(arrow_type):
        inner = [(("list",), item, arrow_type.value_type) for item in ("element", "item")]
    else:
        yield (name,)
        return
    for between, child, child_type in inner:
        for path in _paths(child, child_type):
            yield (name, *between, *path)


def _is_recent(file: LogFile, leaf: Any, metadata: Any) -> bool:
    """Return whether statistics say that no value is so old that calendars differ."""
    at = [metadata.schema.column(number).path for number in range(metadata.num_columns)].index(leaf.path)
    try:
        check_statistics(file, range(metadata.num_row_groups), leaf.path.split(".")[:1])
        columns = [metadata.row_group(number).column(at) for number in range(metadata.num_row_groups)]
        return all(_is_young(column.statistics, column.num_values, _oldest(leaf)) for column in columns)
    except (pa.ArrowException, OSError):
        return False


def _is_young(statistics: Any, values: int, oldest: int) -> bool:
    if statistics is None:
        return False
    if statistics.has_null_count and statistics.null_count == values:
        return True
    return bool(statistics.has_min_max and statistics.min_raw >= oldest)


def _oldest(leaf: Any) -> int:
    if leaf.physical_type == "INT32":
        return _FROM_1582_DAYS
    return _FROM_1900_MS * (1_000 if "MICRO" in str(leaf.logical_type).upper() else 1)


def lie_between(files: LogFiles, column: str, within: tuple[int, int] | None) -> bool:
    """Return whether statistics of all files say that no value of a column is null, nor outside of two numbers.

    Parameters
    ----------
    files : LogFiles
    column : str
        A column of the log.
    within : (int, int) or None
        The least and the greatest number, or None for any.
    """
    schema = files.schema
    if column not in schema.names:
        return False
    located_by = StoredColumns() if files.table is None else files.log_schema.stored or StoredColumns()
    wanted = pa.schema([schema.field(column)])

    def is_sound(file: LogFile) -> bool:
        if any(name == column for name, _ in file.partition):
            return False
        try:
            found, metadata = ParquetFormat().footer(file)
            name = located_by.located(wanted, found, file.name).get(column)
            if name is None:
                return False
            check_statistics(file, range(metadata.num_row_groups), [name])
            paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
            if name not in paths:
                return False
            at = paths.index(name)
            groups = [metadata.row_group(number).column(at) for number in range(metadata.num_row_groups)]
            return all(_is_sound(group.statistics, within) for group in groups)
        except (pa.ArrowException, OSError, SchemaError, SourceError):
            return False

    with ThreadPoolExecutor(_THREADS) as threads:
        return all(threads.map(is_sound, files.files))


def _is_sound(statistics: Any, within: tuple[int, int] | None) -> bool:
    if statistics is None or not statistics.has_null_count or statistics.null_count:
        return False
    if within is None:
        return True
    least, most = within
    return bool(statistics.has_min_max and least <= statistics.min_raw and statistics.max_raw <= most)
