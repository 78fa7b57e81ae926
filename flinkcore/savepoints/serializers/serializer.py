"""Serializers of Flink as flinkcore knows them: name, size, and the column of their values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from flinkcore._native.state_columns import NothingColumn, RestColumn, StateColumn


@dataclass(frozen=True)
class StateSerializer(ABC):
    """A serializer, as its snapshot in a savepoint describes it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its type as Java programs name it, such as ``Tuple2<String, Long>``."""

    @property
    def length(self) -> int | None:
        """Bytes of every value, or None if they differ; as Flink's ``TypeSerializer.getLength`` returns it."""
        return None

    @property
    def parts(self) -> tuple[StateSerializer, ...]:
        """Serializers of which this one consists."""
        return ()

    @abstractmethod
    def column(self, exact: bool) -> StateColumn:
        """Return an empty column for its values.

        Parameters
        ----------
        exact : bool
            Keep values for which Arrow's usual types have no place: see `flinkcore.savepoints.open`.
        """

    def merged(self, other: StateSerializer) -> StateSerializer:
        """Return a serializer of the values of this one and of another subtask's.

        Raises
        ------
        ValueError
            If they differ in more than in the subclasses that they have met.
        """
        if self != other:
            raise ValueError(f"its subtasks differ in types: {self.name} and {other.name}")
        return self

    def walk(self) -> Iterator[StateSerializer]:
        """Yield this serializer and all of its parts."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def opaque_name(self) -> str | None:
        """Its name if its own values stay bytes, or None if they are decoded."""
        return None

    @property
    def unknown(self) -> str | None:
        """Name of the part whose values cannot be decoded, or None if all of them can."""
        return next((name for each in self.walk() if (name := each.opaque_name) is not None), None)


ReadColumn: TypeAlias = Callable[[bool], StateColumn]


@dataclass(frozen=True)
class SimpleSerializer(StateSerializer):
    """A serializer without parts.

    Parameters
    ----------
    name : str
    make : callable
        Returns its column, given whether it is exact.
    size : int or None
        Bytes of every value, or None if they differ.
    snapshot_class : str
        Class of its snapshots, which have no content.
    """

    java_name: str
    make: ReadColumn
    size: int | None = None
    snapshot_class: str = ""

    @property
    def name(self) -> str:
        return self.java_name

    @property
    def length(self) -> int | None:
        return self.size

    def column(self, exact: bool) -> StateColumn:
        return self.make(exact)


@dataclass(frozen=True)
class NothingSerializer(StateSerializer):
    """A serializer of one value only, such as the void namespace.

    Parameters
    ----------
    name : str
    size : int
        Bytes of the value.
    snapshot_class : str
        Class of its snapshots, which have no content.
    byte : int
        Each of the bytes.
    """

    java_name: str
    size: int = 1
    snapshot_class: str = ""
    byte: int = 0

    @property
    def name(self) -> str:
        return self.java_name

    @property
    def length(self) -> int | None:
        return self.size

    def column(self, exact: bool) -> StateColumn:
        return NothingColumn(self.size, self.byte)


@dataclass(frozen=True)
class OpaqueSerializer(StateSerializer):
    """A serializer whose values only Java can read, such as Kryo's.

    Parameters
    ----------
    name : str
        Name of the serializer and the class of its values.
    snapshot : bytes
        Its snapshot with class and version, to write it again.
    """

    java_name: str
    snapshot: bytes = field(default=b"", compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.java_name

    @property
    def opaque_name(self) -> str | None:
        return self.name

    def column(self, exact: bool) -> StateColumn:
        return RestColumn()
