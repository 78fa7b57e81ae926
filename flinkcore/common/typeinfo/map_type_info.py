"""Types of maps."""

from __future__ import annotations

from typing import Any

from flinkcore.common.typeinfo.type_information import Conversion, TypeInformation
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
            return {
                k if key is None else key(k): v if value is None else value(v) for k, v in entries.items()
            }

        return convert

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
