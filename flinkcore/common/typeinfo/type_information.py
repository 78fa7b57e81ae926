"""What a declared type of a stream's elements, or of a state's values, can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import NoneType
from typing import Any, Final, TypeAlias

from flinkcore.errors import ConfigurationError, DataError

Conversion: TypeAlias = Callable[[Any], Any]
"""From a value that a function gave to the same value as its type has it."""

Check: TypeAlias = Callable[[Any], None]
"""Raises a DataError for a value that is not of a type."""

NO_CLASSES: Final = frozenset({NoneType})
"""Those of a type of whose values more is to be known than their class; None is of every type."""


class TypeInformation(ABC):
    """A declared type; made by :class:`Types`.

    Elements stay Python objects: a type says how they look to the next operator, whether a state takes them, how they
    are printed, and which column of Arrow would hold them.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.TypeInformation``, whose types tell how values cross into the JVM. Types of equal
    parts are equal.
    """

    @abstractmethod
    def accepts(self, value: object) -> bool:
        """Return whether a value, which is not None, can be of this type; fields and elements are not looked at."""

    def conversion(self) -> Conversion | None:
        """Return what makes values of this type of those that a function gives; None if they stay as they are.

        The conversion raises a DataError, which tells where in the value, for what cannot be of this type. It leaves
        None as it is.
        """
        return None

    def check(self) -> Check | None:
        """Return what refuses a converted value that is not of this type, down to its fields and elements.

        The error tells where in the value; None if all values are of this type.
        """

        def check(value: Any) -> None:
            if value is not None and not self.accepts(value):
                raise DataError(f"{value!r} is no {self!r}")

        return check

    def plain_classes(self) -> frozenset[type]:
        """Return classes all of whose own instances are of this type: these need no check."""
        return NO_CLASSES

    def is_immutable(self) -> bool:
        """Return whether values of this type can never change: they need not be copied."""
        return False

    def to_arrow_type(self) -> Any:
        """Return the ``pyarrow.DataType`` of a column of such values.

        Raises
        ------
        ConfigurationError
            If there is none.
        """
        raise ConfigurationError(f"no column of Arrow holds values of the type {self!r}")

    def text(self, value: Any) -> str:
        """Return a value as ``print`` shows it: as Java does."""
        return "null" if value is None else str(value)

    @abstractmethod
    def _parts(self) -> tuple[Any, ...]:
        """What two equal types have in common."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self), self._parts()))


def require_type(value: object, setting: str) -> TypeInformation:
    """Return a type; a list of types is a row of these.

    Raises
    ------
    ConfigurationError
        If it is something else.
    """
    if isinstance(value, TypeInformation):
        return value
    if isinstance(value, list):
        from flinkcore.common.typeinfo.row_type_info import RowTypeInfo  # made of types

        return RowTypeInfo(value)
    raise ConfigurationError(f"{setting} is a TypeInformation such as Types.STRING(), not {value!r}")
