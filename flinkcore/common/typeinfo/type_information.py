"""The base of declared types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import NoneType
from typing import Any, Final, TypeAlias

from flinkcore._internal.java.texts import bytes_text
from flinkcore._internal.python.missing_features import WithoutJava
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError

Conversion: TypeAlias = Callable[[Any], Any]
"""Converts a value to the form that its type prescribes; a DataError if it is not of the type."""

NO_CLASSES: Final = frozenset({NoneType})
"""The plain classes of a type that needs to look into a value; None is of every type."""


class TypeInformation(WithoutJava, ABC):
    """A declared type; made by :class:`Types`.

    Elements stay Python objects: a type defines their form for the next operator, whether a state accepts them, how
    they are printed, and the type of their Arrow column.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.TypeInformation``, whose types define how values are passed to the JVM. Types of
    equal parts are equal.
    """

    @abstractmethod
    def accepts(self, value: object) -> bool:
        """Return whether a value, which is not None, can be of this type; fields and elements are not checked."""

    def conversion(self) -> Conversion | None:
        """Return the conversion of values to this type, or None if values need no conversion.

        For a value that is not of the type, it raises a DataError that names the field or item. None stays None.
        """

        def convert(value: Any) -> Any:
            if value is not None and not self.accepts(value):
                raise DataError(f"{value!r} is not of type {self!r}")
            return value

        return convert

    def plain_classes(self) -> frozenset[type]:
        """Return classes whose direct instances are all of this type, and stay as they are."""
        return NO_CLASSES

    def is_immutable(self) -> bool:
        """Return whether values of this type are immutable, and need not be copied."""
        return False

    def to_arrow_type(self) -> Any:
        """Return the ``pyarrow.DataType`` of a column of such values.

        Raises
        ------
        ConfigurationError
            If Arrow has no such type.
        """
        raise ConfigurationError(f"no column of Arrow holds values of the type {self!r}")

    def text(self, value: Any) -> str:
        """Return a value as Java's ``toString`` does, for files and within other values."""
        return "null" if value is None else str(value)

    def printed(self, value: Any) -> str:
        """Return a value as ``print`` shows it, which is Python's text for some types."""
        return self.text(value)

    def collected_type(self) -> TypeInformation:
        """Return the type that converts a value for the program that collects it; by default this type."""
        return self

    @abstractmethod
    def _parts(self) -> tuple[Any, ...]:
        """Return what two equal types have in common."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self), self._parts()))


def require_type(value: object, setting: str) -> TypeInformation:
    """Return a type as it is, and for a list of types a row of these; raise ConfigurationError for anything else."""
    if isinstance(value, TypeInformation):
        return value
    if isinstance(value, list):
        from flinkcore.common.typeinfo.composite_types import RowTypeInfo  # made of types

        return RowTypeInfo(value)
    hint = ""
    if isinstance(value, dict):
        hint = "; columns of a replay are declared by a pyarrow schema, such as pyarrow.schema({'k': pyarrow.string()})"
    raise ArgumentTypeError(f"{setting} is a TypeInformation such as Types.STRING(), not {value!r}{hint}")


class PickledBytesTypeInfo(TypeInformation):
    """Any Python object; the type of elements without a declared one.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.PickledBytesTypeInfo``. Nothing is pickled here: objects stay in the process.
    """

    def accepts(self, value: object) -> bool:
        return True

    def conversion(self) -> Conversion | None:
        return None

    def text(self, value: Any) -> str:
        return bytes_text(value) if isinstance(value, bytes | bytearray) else str(value)

    def printed(self, value: Any) -> str:
        return str(value)

    def _parts(self) -> tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"
