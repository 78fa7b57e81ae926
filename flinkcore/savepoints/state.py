"""A state of an operator: its kind, its types and its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flinkcore._native.arrow import NativeArray
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.state_streams import SavepointDirectory


@dataclass(frozen=True)
class ReadSettings:
    """Settings of reading.

    Parameters
    ----------
    exact : bool
    batch_rows : int
        Rows of a batch, at most.
    batch_bytes : int
        Bytes after which a batch ends.
    block_bytes : int
        Bytes of a file that are read at once.
    max_values_per_entry : int
        Most values that an entry may become: a few bytes of a forged file could stand for any number of nulls.
    """

    exact: bool = False
    batch_rows: int = 65_536
    batch_bytes: int = 1 << 26
    block_bytes: int = 1 << 22
    max_values_per_entry: int = 1 << 27


@dataclass(frozen=True)
class SavepointState(ABC):
    """A state of an operator, over all its subtasks.

    Attributes
    ----------
    name : str
    kind : str
        ``VALUE``, ``LIST``, ``MAP``, ``REDUCING``, ``AGGREGATING`` or ``TIMERS`` for keyed state; ``SPLIT_DISTRIBUTE``,
        ``UNION`` or ``BROADCAST`` for operator state.
    """

    directory: SavepointDirectory
    settings: ReadSettings
    name: str
    kind: str

    @property
    @abstractmethod
    def types(self) -> dict[str, StateSerializer]:
        """Serializers by the columns of their values."""

    @property
    def undecodable(self) -> str | None:
        """Class of a serializer whose values are kept as bytes, or None if all values are decoded."""
        return next((unknown for each in self.types.values() if (unknown := each.unknown)), None)

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Columns of the rows."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, of which only one is in memory."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows, without decoding them where the format allows it."""

    def to_arrow(self) -> pa.Table:
        """Return all rows as a table.

        Raises
        ------
        SavepointError
            If a file is damaged or missing, or a value has no place in its column.
        UnsupportedSavepointError
            If the entries of the state cannot be told apart without Java.
        """
        return pa.Table.from_batches(self.batches(), self.schema)


def batch_of(array: NativeArray) -> pa.RecordBatch:
    """Return an array of structs as a batch."""
    structs: Any = pa.array(array)
    return pa.RecordBatch.from_struct_array(structs)
