"""Types of tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flinkcore.common.row import Row
from flinkcore.common.typeinfo.field_conversions import checked_field_types, fields_check, fields_conversion
from flinkcore.common.typeinfo.type_information import Check, Conversion, TypeInformation
from flinkcore.errors import DataError


class TupleTypeInfo(TypeInformation):
    """Tuples with a type for each field.

    Parameters
    ----------
    field_types : list of TypeInformation

    Raises
    ------
    ConfigurationError
        If they are no list of types.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.TupleTypeInfo``. Lists and Rows become tuples; how many fields they have is only
    looked at where a field needs a conversion.
    """

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        self._field_types = checked_field_types(field_types, "Types.TUPLE")

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields."""
        return list(self._field_types)

    def accepts(self, value: object) -> bool:
        """Return whether it is a tuple, list or Row with as many fields."""
        return isinstance(value, tuple | list | Row) and len(value) == len(self._field_types)

    def conversion(self) -> Conversion:
        """Return what makes tuples of lists and Rows."""
        fields = fields_conversion(self._field_types, range(len(self._field_types)))

        def convert_plain(value: Any) -> Any:
            return value if type(value) is tuple else self._as_tuple(value)

        def convert(value: Any) -> Any:
            if type(value) is not tuple:
                value = self._as_tuple(value)
                if value is None:
                    return None
            return fields(value)  # type: ignore[misc]

        return convert_plain if fields is None else convert

    def check(self) -> Check:
        """Return what checks all fields, and how many there are."""
        return fields_check(self, self._field_types, range(len(self._field_types)))

    def is_immutable(self) -> bool:
        """Return whether all fields are."""
        return all(field_type.is_immutable() for field_type in self._field_types)

    def _as_tuple(self, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple | list | Row):
            return tuple(value)
        raise DataError(f"{value!r} is no tuple, as {self!r} wants it")

    def to_arrow_type(self) -> Any:
        """Return a struct with the fields f0, f1, ..."""
        import pyarrow as pa

        return pa.struct(
            [(f"f{index}", field.to_arrow_type()) for index, field in enumerate(self._field_types)]
        )

    def text(self, value: Any) -> str:
        """Return the fields in parentheses."""
        if value is None:
            return "null"
        fields = zip(self._field_types, value, strict=False)
        return f"({','.join(field_type.text(field) for field_type, field in fields)})"

    def _parts(self) -> tuple[Any, ...]:
        return self._field_types

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(repr, self._field_types))})"
