"""Types of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flinkcore.common.row import Row, row_maker
from flinkcore.common.row_kind import RowKind
from flinkcore.common.typeinfo.field_conversions import checked_field_types, fields_check, fields_conversion
from flinkcore.common.typeinfo.type_information import Check, Conversion, TypeInformation
from flinkcore.errors import ConfigurationError, DataError


class RowTypeInfo(TypeInformation):
    """Rows with a name and a type for each field.

    Parameters
    ----------
    field_types : list of TypeInformation
    field_names : list of str, optional
        f0, f1, ... unless given.

    Raises
    ------
    ConfigurationError
        If they are no list of types, or there are not as many names, or not all different.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.RowTypeInfo``. Tuples, lists, dictionaries and objects with attributes become
    Rows. A Row with names of its own is read by name if it has all names of the type, else by position. As in PyFlink,
    names do not count when types are compared.
    """

    def __init__(
        self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None
    ) -> None:
        self._field_types = checked_field_types(field_types, "Types.ROW")
        names = tuple(f"f{index}" for index in range(len(self._field_types)))
        self._field_names = names if field_names is None else tuple(field_names)
        if len(self._field_names) != len(self._field_types) or len(set(self._field_names)) != len(names):
            raise ConfigurationError(
                f"a row of {len(self._field_types)} fields needs as many different names, not {field_names!r}"
            )

    def get_field_names(self) -> list[str]:
        """Return the names of the fields."""
        return list(self._field_names)

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields."""
        return list(self._field_types)

    def get_field_index(self, field_name: str) -> int:
        """Return the position of a field; ValueError if there is none of this name."""
        return self._field_names.index(field_name)

    def accepts(self, value: object) -> bool:
        """Return whether it is a Row, tuple or list with as many fields, a dictionary or an object with attributes."""
        if isinstance(value, tuple | list | Row):
            return len(value) == len(self._field_types)
        return isinstance(value, dict) or hasattr(value, "__dict__")

    def conversion(self) -> Conversion:
        """Return what makes Rows with the names of this type."""
        names, make = self._field_names, row_maker(self._field_names)
        fields = fields_conversion(self._field_types, self._field_names)
        insert = RowKind.INSERT

        def convert(value: Any) -> Any:
            if value is None:
                return None
            if isinstance(value, Row):
                given, kind = value._fields, value._row_kind
                values = value._values
                if given is not None and given != names:
                    values = self._by_name(value)
            else:
                given, kind, values = None, insert, self._values(value)
            converted = values if fields is None else fields(values)
            if given == names and converted is values:
                return value
            if len(converted) != len(names):
                raise DataError(f"{value!r} has {len(converted)} fields, not {len(names)}: {self!r}")
            row = make(converted)
            if kind is not insert:
                row.set_row_kind(kind)
            return row

        return convert

    def check(self) -> Check:
        """Return what checks all fields."""
        return fields_check(self, self._field_types, self._field_names)

    def _by_name(self, row: Row) -> tuple[Any, ...]:
        place = {name: index for index, name in enumerate(row._fields or ())}
        if all(name in place for name in self._field_names):
            return tuple(row._values[place[name]] for name in self._field_names)
        return row._values

    def _values(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, tuple | list):
            return tuple(value)
        attributes = value if isinstance(value, dict) else getattr(value, "__dict__", None)
        if attributes is None:
            raise DataError(f"{value!r} is no row, as {self!r} wants it")
        return tuple(map(attributes.get, self._field_names))

    def to_arrow_type(self) -> Any:
        """Return a struct with fields of these names."""
        import pyarrow as pa

        fields = zip(self._field_names, self._field_types, strict=True)
        return pa.struct([(name, field_type.to_arrow_type()) for name, field_type in fields])

    def text(self, value: Any) -> str:
        """Return the kind and the values' own texts in brackets, as PyFlink's ``print`` does."""
        if value is None:
            return "null"
        return f"{value.get_row_kind()}[{','.join(map(str, value))}]"

    def _parts(self) -> tuple[Any, ...]:
        return self._field_types

    def __repr__(self) -> str:
        fields = zip(self._field_names, self._field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}: {field_type!r}' for name, field_type in fields)})"
