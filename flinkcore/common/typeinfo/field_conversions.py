"""Conversion and checks of the fields of tuples and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flinkcore.common.typeinfo.type_information import Check, Conversion, TypeInformation
from flinkcore.errors import ConfigurationError, DataError

Values = tuple[Any, ...]


def checked_field_types(field_types: Sequence[TypeInformation], of: str) -> tuple[TypeInformation, ...]:
    """Return the types of fields.

    Raises
    ------
    ConfigurationError
        If they are no list of types.
    """
    if not isinstance(field_types, list | tuple):
        raise ConfigurationError(
            f"{of} takes a list of types such as [Types.INT(), Types.STRING()], not {field_types!r}"
        )
    for field_type in field_types:
        if not isinstance(field_type, TypeInformation):
            raise ConfigurationError(f"a field of {of} has a type such as Types.INT(), not {field_type!r}")
    return tuple(field_types)


def fields_conversion(field_types: Sequence[TypeInformation], names: Sequence[object]) -> Conversion | None:
    """Return what converts the values of all fields; None if they all stay as they are.

    The conversion takes and gives a tuple, the same one where nothing is converted. It raises a DataError where fields
    are missing, and names a field whose value cannot be converted.
    """
    conversions = [
        (index, conversion)
        for index, field_type in enumerate(field_types)
        if (conversion := field_type.conversion()) is not None
    ]
    if not conversions:
        return None

    def convert(values: Values) -> Values:
        try:
            for index, conversion in conversions:
                value = values[index]
                converted = conversion(value)
                if converted is not value:
                    values = (*values[:index], converted, *values[index + 1 :])
        except IndexError:
            raise DataError(f"{values!r} has {len(values)} fields, not {len(field_types)}") from None
        except DataError as failure:
            raise DataError(f"field {names[index]!r}: {failure}") from failure
        return values

    return convert


def fields_check(
    type_info: TypeInformation, field_types: Sequence[TypeInformation], names: Sequence[object]
) -> Check:
    """Return what checks how many fields a tuple or Row has, and the values of all of them."""
    checks = [
        (index, check, field_type.plain_classes())
        for index, field_type in enumerate(field_types)
        if (check := field_type.check()) is not None
    ]
    n_fields = len(field_types)

    def check_fields(value: Any) -> None:
        if value is None:
            return
        if len(value) != n_fields:
            raise DataError(f"{value!r} has {len(value)} fields, not {n_fields}: {type_info!r}")
        for index, check, plain in checks:
            field = value[index]
            if type(field) not in plain:
                try:
                    check(field)
                except DataError as failure:
                    raise DataError(f"field {names[index]!r}: {failure}") from failure

    return check_fields
