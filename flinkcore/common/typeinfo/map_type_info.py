"""Types of maps."""

from __future__ import annotations

from typing import Any

from flinkcore.common.typeinfo.type_information import Check, Conversion, TypeInformation
from flinkcore.errors import ConfigurationError, DataError


class MapTypeInfo(TypeInformation):
    """Dictionaries with keys and values of one type each.

    Parameters
    ----------
    key_type_info, value_type_info : TypeInformation

    Raises
    ------
    ConfigurationError
        If one of them is no type.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.MapTypeInfo``.
    """

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        for type_info in (key_type_info, value_type_info):
            if not isinstance(type_info, TypeInformation):
                raise ConfigurationError(
                    f"keys and values of a map have types such as Types.INT(), not {type_info!r}"
                )
        self._key_type_info = key_type_info
        self._value_type_info = value_type_info

    def accepts(self, value: object) -> bool:
        """Return whether it is a dictionary."""
        return isinstance(value, dict)

    def conversion(self) -> Conversion:
        """Return what converts keys and values, and refuses what is no dictionary."""
        key, value = self._key_type_info.conversion(), self._value_type_info.conversion()

        def convert(entries: Any) -> Any:
            if entries is None:
                return None
            if not isinstance(entries, dict):
                raise DataError(f"{entries!r} is no {self!r}")
            if key is None and value is None:
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

    def check(self) -> Check | None:
        """Return what checks keys and values; None if both can be anything."""
        parts = [
            (place, check, part.plain_classes(), take)
            for place, part, take in (
                ("key", self._key_type_info, dict.keys),
                ("value of the key", self._value_type_info, dict.values),
            )
            if (check := part.check()) is not None
        ]
        if not parts:
            return None

        def check_entries(entries: Any) -> None:
            if entries is None:
                return
            for place, check, plain, take in parts:
                if plain.issuperset(map(type, take(entries))):
                    continue
                for key, value in zip(entries, take(entries), strict=True):
                    try:
                        check(value)
                    except DataError as failure:
                        raise DataError(f"{place} {key!r}: {failure}") from failure

        return check_entries

    def to_arrow_type(self) -> Any:
        """Return a map of both types."""
        import pyarrow as pa

        return pa.map_(self._key_type_info.to_arrow_type(), self._value_type_info.to_arrow_type())

    def text(self, value: Any) -> str:
        """Return the entries in braces."""
        if value is None:
            return "null"
        key, item = self._key_type_info.text, self._value_type_info.text
        return f"{{{', '.join(f'{key(k)}={item(v)}' for k, v in value.items())}}}"

    def _parts(self) -> tuple[Any, ...]:
        return self._key_type_info, self._value_type_info

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self._key_type_info!r}, {self._value_type_info!r}>"
