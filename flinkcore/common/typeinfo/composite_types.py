"""Types of values that hold others: lists, maps, tuples and rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from operator import is_
from typing import Any, ClassVar, Final

from flinkcore._internal.java.texts import bytes_text
from flinkcore._internal.values.row import Row, row_maker
from flinkcore._internal.values.row_kind import RowKind
from flinkcore._native.element_calls import FieldsConversion
from flinkcore.common.typeinfo.type_information import Conversion, TypeInformation
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError

_TUPLES: Final = (tuple, list, Row)
"""Classes whose values are read as tuples; a union of types would be built again for each value."""


class SequenceTypeInfo(TypeInformation):
    """Lists of elements of one type.

    Other iterables become lists, except for texts and dictionaries, which are errors, and bytes, which stay bytes.

    Parameters
    ----------
    element_type : TypeInformation

    Raises
    ------
    ConfigurationError
        If it is not a type.
    """

    def __init__(self, element_type: TypeInformation) -> None:
        if not isinstance(element_type, TypeInformation):
            raise ArgumentTypeError(
                f"the elements of {type(self).__name__} have a type such as Types.INT(), not {element_type!r}"
            )
        self.elem_type = element_type

    def accepts(self, value: object) -> bool:
        return hasattr(value, "__iter__") and not isinstance(value, str | dict)

    def conversion(self) -> Conversion:
        element, plain = self.elem_type.conversion(), self.elem_type.plain_classes()

        def convert(values: Any) -> Any:
            if values is None or isinstance(values, bytes | bytearray):
                return values
            if not self.accepts(values):
                raise DataError(f"{values!r} is not of type {self!r}")
            if element is None:
                return values if type(values) is list else list(values)
            if type(values) is list and plain.issuperset(map(type, values)):
                return values
            converted: list[Any] = []
            try:
                for value in values:
                    converted.append(element(value))
            except DataError as failure:
                raise DataError(f"item {len(converted)}: {failure}") from failure
            return converted

        return convert

    def to_arrow_type(self) -> Any:
        import pyarrow as pa

        return pa.list_(self.elem_type.to_arrow_type())

    def text(self, value: Any) -> str:
        return "null" if value is None else f"[{', '.join(map(self.elem_type.text, value))}]"

    def collected_type(self) -> TypeInformation:
        element = self.elem_type.collected_type()
        return self if element is self.elem_type else type(self)(element)

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
    """Arrays of primitive values without nulls; an array of bytes is a ``bytes``.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.PrimitiveArrayTypeInfo``.
    """

    def to_arrow_type(self) -> Any:
        import pyarrow as pa

        element = self.elem_type.to_arrow_type()
        return pa.binary() if element == pa.int8() else pa.list_(element)

    def text(self, value: Any) -> str:
        return bytes_text(value) if isinstance(value, bytes | bytearray) else super().text(value)


class BasicArrayTypeInfo(SequenceTypeInfo):
    """Arrays of basic values that may be null.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.BasicArrayTypeInfo``.
    """


class ObjectArrayTypeInfo(SequenceTypeInfo):
    """Arrays of values of any other type.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.ObjectArrayTypeInfo``.
    """


class MapTypeInfo(TypeInformation):
    """Dictionaries with keys and values of one type each.

    Parameters
    ----------
    key_type_info, value_type_info : TypeInformation

    Raises
    ------
    ConfigurationError
        If one of them is not a type.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.MapTypeInfo``.
    """

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        for type_info in (key_type_info, value_type_info):
            if not isinstance(type_info, TypeInformation):
                raise ArgumentTypeError(
                    f"keys and values of a map have types such as Types.INT(), not {type_info!r}"
                )
        self.key_type_info = key_type_info
        self.value_type_info = value_type_info

    def accepts(self, value: object) -> bool:
        return isinstance(value, dict)

    def conversion(self) -> Conversion:
        key, value = self.key_type_info.conversion(), self.value_type_info.conversion()
        plain_keys, plain_values = self.key_type_info.plain_classes(), self.value_type_info.plain_classes()

        def convert(entries: Any) -> Any:
            if entries is None:
                return None
            if not isinstance(entries, dict):
                raise DataError(f"{entries!r} is not of type {self!r}")
            if plain_keys.issuperset(map(type, entries)) and plain_values.issuperset(
                map(type, entries.values())
            ):
                return entries
            converted = {}
            for k, v in entries.items():
                place = "key"
                try:
                    converted_key = k if key is None else key(k)
                    place = "value of the key"
                    converted_value = v if value is None else value(v)
                    place = "key"
                    converted[converted_key] = converted_value
                except (DataError, TypeError) as failure:  # a key may become a list, which is none
                    raise DataError(f"{place} {k!r}: {failure}") from failure
            return converted

        return convert

    def to_arrow_type(self) -> Any:
        import pyarrow as pa

        return pa.map_(self.key_type_info.to_arrow_type(), self.value_type_info.to_arrow_type())

    def text(self, value: Any) -> str:
        if value is None:
            return "null"
        key, item = self.key_type_info.text, self.value_type_info.text
        return f"{{{', '.join(f'{key(k)}={item(v)}' for k, v in value.items())}}}"

    def collected_type(self) -> TypeInformation:
        parts = self.key_type_info, self.value_type_info
        collected = [part.collected_type() for part in parts]
        return self if all(map(is_, parts, collected)) else MapTypeInfo(*collected)

    def _parts(self) -> tuple[Any, ...]:
        return self.key_type_info, self.value_type_info

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self.key_type_info!r}, {self.value_type_info!r}>"


class FieldsTypeInfo(TypeInformation):
    """Values of several fields, each with a type of its own.

    Parameters
    ----------
    field_types : list of TypeInformation

    Raises
    ------
    ConfigurationError
        If they are not a list of types.
    """

    _maker: ClassVar[str]
    """The call that makes the type, for messages."""

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        if not isinstance(field_types, list | tuple):
            raise ArgumentTypeError(
                f"{self._maker} takes a list of types such as [Types.INT(), Types.STRING()], not {field_types!r}"
            )
        for field_type in field_types:
            if not isinstance(field_type, TypeInformation):
                raise ArgumentTypeError(
                    f"a field of {self._maker} has a type such as Types.INT(), not {field_type!r}"
                )
        self._field_types = tuple(field_types)
        self._names: Sequence[object] = range(len(field_types))

    @abstractmethod
    def _with(self, field_types: Sequence[TypeInformation]) -> TypeInformation:
        """Return this type with other types of its fields."""

    def collected_type(self) -> TypeInformation:
        collected = [field_type.collected_type() for field_type in self._field_types]
        return self if all(map(is_, self._field_types, collected)) else self._with(collected)

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields."""
        return list(self._field_types)

    def fields_conversion(self, other_values: Conversion | None = None) -> Conversion:
        """Return the conversion of all fields, from tuple to tuple.

        It returns the same tuple if no field changes, and raises a DataError if the number of fields is another one, or
        a field is not of its type.

        Parameters
        ----------
        other_values : callable, optional
            Makes a tuple of anything else.
        """
        n_fields, names = len(self._field_types), self._names
        conversions = tuple(field_type.conversion() for field_type in self._field_types)

        def convert(value: Any) -> Any:
            values = value if type(value) is tuple or other_values is None else other_values(value)
            if values is None:
                return None
            if len(values) != n_fields:
                raise DataError(f"{value!r} has {len(values)} fields, not {n_fields}: {self!r}")
            for index, conversion in enumerate(conversions):
                if conversion is None:
                    continue
                try:
                    converted = conversion(values[index])
                except DataError as failure:
                    raise DataError(f"field {names[index]!r}: {failure}") from failure
                if converted is not values[index]:
                    values = (*values[:index], converted, *values[index + 1 :])
            return values

        return FieldsConversion(conversions, convert)

    def _parts(self) -> tuple[Any, ...]:
        return self._field_types


class TupleTypeInfo(FieldsTypeInfo):
    """Tuples with a type for each field.

    Parameters
    ----------
    field_types : list of TypeInformation

    Raises
    ------
    ConfigurationError
        If they are not a list of types.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.TupleTypeInfo``. Lists and Rows become tuples. The Arrow type is a struct with the
    fields f0, f1, ...
    """

    _maker = "Types.TUPLE"

    def accepts(self, value: object) -> bool:
        return isinstance(value, _TUPLES) and len(value) == len(self._field_types)

    def conversion(self) -> Conversion:
        return self.fields_conversion(self._as_tuple)

    def is_immutable(self) -> bool:
        return all(field_type.is_immutable() for field_type in self._field_types)

    def _as_tuple(self, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, _TUPLES):
            return tuple(value)
        raise DataError(f"{value!r} is not a tuple, as {self!r} wants it")

    def to_arrow_type(self) -> Any:
        import pyarrow as pa

        return pa.struct(
            [(f"f{index}", field.to_arrow_type()) for index, field in enumerate(self._field_types)]
        )

    def text(self, value: Any) -> str:
        if value is None:
            return "null"
        fields = zip(self._field_types, value, strict=False)
        return f"({','.join(field_type.text(field) for field_type, field in fields)})"

    def _with(self, field_types: Sequence[TypeInformation]) -> TypeInformation:
        return TupleTypeInfo(field_types)

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(repr, self._field_types))})"


class RowTypeInfo(FieldsTypeInfo):
    """Rows with a name and a type for each field.

    Parameters
    ----------
    field_types : list of TypeInformation
    field_names : list of str, optional
        f0, f1, ... by default.

    Raises
    ------
    ConfigurationError
        If they are not a list of types, or there are not as many different names.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.RowTypeInfo``. Tuples, lists, dictionaries and objects with attributes become
    Rows. A Row with names is read by name if it has all names of the type, otherwise by position. As in PyFlink, names
    are ignored when types are compared.
    """

    _maker = "Types.ROW"

    def __init__(
        self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None
    ) -> None:
        super().__init__(field_types)
        names = tuple(f"f{index}" for index in range(len(self._field_types)))
        self._field_names = names if field_names is None else tuple(field_names)
        self._names = self._field_names
        self._has_names = field_names is not None
        if len(self._field_names) != len(self._field_types) or len(set(self._field_names)) != len(names):
            raise ConfigurationError(
                f"a row of {len(self._field_types)} fields needs as many different names, not {field_names!r}"
            )

    def get_field_names(self) -> list[str]:
        """Return the names of the fields."""
        return list(self._field_names)

    def get_field_index(self, field_name: str) -> int:
        """Return the position of a field, or -1 if the type was given no names.

        Raises
        ------
        ValueError
            If no field has the name.
        """
        return self._field_names.index(field_name) if self._has_names else -1

    def accepts(self, value: object) -> bool:
        if isinstance(value, _TUPLES):
            return len(value) == len(self._field_types)
        return isinstance(value, dict) or hasattr(value, "__dict__")

    def conversion(self) -> Conversion:
        names, make = self._field_names, row_maker(self._field_names)
        fields = self.fields_conversion()
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
            converted = fields(values)
            if given == names and converted is values:
                return value
            row = make(converted)
            if kind is not insert:
                row.set_row_kind(kind)
            return row

        return convert

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
            raise DataError(f"{value!r} is not a row, as {self!r} wants it")
        return tuple(map(attributes.get, self._field_names))

    def to_arrow_type(self) -> Any:
        import pyarrow as pa

        fields = zip(self._field_names, self._field_types, strict=True)
        return pa.struct([(name, field_type.to_arrow_type()) for name, field_type in fields])

    def printed(self, value: Any) -> str:
        if value is None:
            return "null"
        return f"{value.get_row_kind()}[{','.join(map(str, value))}]"

    def text(self, value: Any) -> str:
        if value is None:
            return "null"
        fields = zip(self._field_types, value, strict=False)
        texts = ", ".join(field_type.text(field) for field_type, field in fields)
        return f"{value.get_row_kind()}[{texts}]"

    def _with(self, field_types: Sequence[TypeInformation]) -> TypeInformation:
        return RowTypeInfo(field_types, self._field_names)

    def __repr__(self) -> str:
        names = [f"{name}: " if self._has_names else "" for name in self._field_names]
        fields = zip(names, self._field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}{field_type!r}' for name, field_type in fields)})"
