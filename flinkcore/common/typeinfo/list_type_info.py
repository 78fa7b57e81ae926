"""Types of lists and arrays."""

from __future__ import annotations

from typing import Any

from flinkcore.common.typeinfo.type_information import Check, Conversion, TypeInformation
from flinkcore.errors import ConfigurationError, DataError


class SequenceTypeInfo(TypeInformation):
    """Lists of elements of one type, whatever Java makes of them.

    Parameters
    ----------
    element_type : TypeInformation

    Raises
    ------
    ConfigurationError
        If it is no type.
    """

    def __init__(self, element_type: TypeInformation) -> None:
        if not isinstance(element_type, TypeInformation):
            raise ConfigurationError(
                f"the elements of {type(self).__name__} have a type such as Types.INT(), not {element_type!r}"
            )
        self.elem_type = element_type

    def accepts(self, value: object) -> bool:
        """Return whether it has elements, and is neither a text nor a mapping."""
        return hasattr(value, "__iter__") and not isinstance(value, str | dict)

    def conversion(self) -> Conversion:
        """Return what makes lists of other iterables; bytes stay bytes."""
        element = self.elem_type.conversion()

        def convert(values: Any) -> Any:
            if values is None or isinstance(values, bytes | bytearray):
                return values
            if not self.accepts(values):
                raise DataError(f"{values!r} is no {self!r}")
            if element is None:
                return values if type(values) is list else list(values)
            converted: list[Any] = []
            try:
                for value in values:
                    converted.append(element(value))
            except DataError as failure:
                raise DataError(f"item {len(converted)}: {failure}") from failure
            return converted

        return convert

    def check(self) -> Check | None:
        """Return what checks all elements; None if they can be anything. Bytes are not looked into."""
        element, plain = self.elem_type.check(), self.elem_type.plain_classes()
        if element is None:
            return None

        def check(values: Any) -> None:
            if values is None or isinstance(values, bytes | bytearray) or plain.issuperset(map(type, values)):
                return
            for index, value in enumerate(values):
                try:
                    element(value)
                except DataError as failure:
                    raise DataError(f"item {index}: {failure}") from failure

        return check

    def to_arrow_type(self) -> Any:
        """Return a list of the element's type."""
        import pyarrow as pa

        return pa.list_(self.elem_type.to_arrow_type())

    def text(self, value: Any) -> str:
        """Return the elements in brackets."""
        return "null" if value is None else f"[{', '.join(map(self.elem_type.text, value))}]"

    def _parts(self) -> tuple[Any, ...]:
        return (self.elem_type,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.elem_type!r}>"


class ListTypeInfo(SequenceTypeInfo):
    """Lists.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.ListTypeInfo``.
    """


class PrimitiveArrayTypeInfo(SequenceTypeInfo):
    """Arrays without nulls; of bytes, ``bytes``.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.PrimitiveArrayTypeInfo``.
    """


class BasicArrayTypeInfo(SequenceTypeInfo):
    """Arrays of basic values that may be null.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.BasicArrayTypeInfo``.
    """


class ObjectArrayTypeInfo(SequenceTypeInfo):
    """Arrays of anything else.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.ObjectArrayTypeInfo``.
    """
