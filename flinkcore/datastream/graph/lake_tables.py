"""Tables of a lake as the data of an event log: which table, which version of it, and which of its rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from flinkcore._internal.arrow.expressions import Expression, is_arrow_expression
from flinkcore.common.split_origin import FILE
from flinkcore.datastream.graph.transformations import LogData
from flinkcore.errors import ConfigurationError

T = TypeVar("T", bound="LakeTable")


@dataclass(eq=False, repr=False)
class LakeTable(LogData):
    """A table whose catalog or log says which data files it has; nothing of it has been read.

    Attributes
    ----------
    table : Any
        Location of the table, or the table as an object of its library.
    filesystem : pyarrow.fs.FileSystem, Stores or None
        File system of the data files, or the settings of stores. None if the table's location and the environment
        determine it.
    where : tuple of pyarrow.compute.Expression
        Conditions that are true of the rows; the others are not part of the log.
    """

    table: Any
    filesystem: Any = None
    where: tuple[Expression, ...] = ()

    @property
    def order(self) -> str:
        return "the order of the table's files"

    def filter(self: T, condition: Any) -> T | None:
        return replace(self, where=(*self.where, condition)) if is_arrow_expression(condition) else None

    def with_columns(self, expressions: Mapping[str, Any]) -> None:
        return None

    def __str__(self) -> str:
        where = "".join(f", where {condition}" for condition in self.where)
        return f"{self.name}{where}"

    @property
    @abstractmethod
    def name(self) -> str:
        """Return what messages call the table, with its version where one is asked for."""


@dataclass(eq=False, repr=False)
class DeltaTable(LakeTable):
    """A Delta table.

    Attributes
    ----------
    table : str or deltalake.DeltaTable
        Path or URI, or the table at the version that it has loaded.
    version : int, datetime, str or None
        Number of the version, or the time as of which the table is read; by default the latest.
    storage_options : mapping or None
        Options of deltalake.
    """

    version: Any = None
    storage_options: Mapping[str, str] | None = None

    @property
    def name(self) -> str:
        location = self.table if isinstance(self.table, str) else self.table.table_uri
        version = self.version if isinstance(self.table, str) else self.table.version()
        return f"Delta table {location}{'' if version is None else f' at version {version}'}"


@dataclass(eq=False, repr=False)
class IcebergTable(LakeTable):
    """An Iceberg table.

    Attributes
    ----------
    table : str or pyiceberg.table.Table
        Path or URI of a metadata file, path of the table's directory, the name of a table in the default catalog, or
        the table.
    snapshot : int, str, datetime or None
        Id, name of a branch or tag, or the time as of which the table is read; by default the current one.
    catalog : str or None
        Name of the catalog in which a name is looked up, or None for the default one.
    """

    snapshot: int | str | datetime | None = None
    catalog: str | None = None

    @property
    def name(self) -> str:
        name = self.table if isinstance(self.table, str) else ".".join(self.table.name())
        name = name if self.catalog is None else f"{self.catalog}.{name}"
        return f"Iceberg table {name}{'' if self.snapshot is None else f' at snapshot {self.snapshot}'}"


def refuse_files_as_splits(split: object) -> None:
    """Raise a ConfigurationError if each file of a table would be a split."""
    if split is FILE:
        raise ConfigurationError(
            "the files of a table are not splits, since compacting it changes them: name a column, or none"
        )
