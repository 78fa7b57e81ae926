"""Settings by their keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, Final, TypeVar

from flinkcore.common.config_options import ConfigOption
from flinkcore.common.settings.setting_types import BOOLEAN, DOUBLE, LIST, SettingType, as_text, integer
from flinkcore.errors import ArgumentTypeError

T = TypeVar("T")

_INTEGER: Final = integer()

_SECRET_WORDS: Final = (
    "password",
    "secret",
    "fs.azure.account.key",
    "apikey",
    "api-key",
    "auth-params",
    "service-key",
    "token",
    "basic-auth",
    "jaas.config",
    "http-headers",
)
"""Keys with one of these words have values that are not shown."""


class Configuration:
    """Settings by key; docs/settings.md says what each of them means to an environment.

    Parameters
    ----------
    other : Configuration, optional
        Settings to copy.

    Notes
    -----
    Follows ``pyflink.common.Configuration``; :meth:`get` and :meth:`set` follow Java's.

    Examples
    --------
    >>> Configuration().set_integer("parallelism.default", 4).get_string("parallelism.default", "1")
    '4'
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, Any] = {} if other is None else dict(other._values)

    @classmethod
    def from_dict(cls, map: Mapping[str, str]) -> Configuration:
        """Return a configuration with these settings."""
        configuration = cls()
        for key, value in map.items():
            configuration._set(key, value)
        return configuration

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        """Return the texts of a list that is spelled ``a;b`` or ``[a, b]``."""
        return LIST.value("the list", value or "")

    def get(self, option: ConfigOption[T]) -> T:
        """Return the value of an option, under its key or the first older one that is set, or its default.

        Raises
        ------
        ConfigurationError
            If it is of another type.
        """
        for key in (option.name, *option.fallback_keys):
            if key in self._values:
                value: T = option.type.value(key, self._values[key])
                return value
        return option.default  # type: ignore[return-value]

    def set(self, option: ConfigOption[T], value: Any) -> Configuration:
        """Set the value of an option, and return this configuration; ConfigurationError if it is of another type."""
        return self._set(option.name, value, option.type)

    def get_string(self, key: str, default_value: Any) -> Any:
        """Return a value as text, or the default."""
        return as_text(self._values[key]) if key in self._values else default_value

    def set_string(self, key: str, value: str) -> Configuration:
        """Set a text, and return this configuration; ConfigurationError if it is not a text."""
        if not isinstance(value, str):
            raise ArgumentTypeError(f"the setting {key} takes a text here, not {value!r}")
        return self._set(key, value)

    def get_integer(self, key: str, default_value: Any) -> Any:
        """Return a value as a whole number, or the default; ConfigurationError if it is not a whole number."""
        return self._as(_INTEGER, key, default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set a whole number, and return this configuration; ConfigurationError if it is not a whole number."""
        return self._set(key, value, _INTEGER)

    def get_boolean(self, key: str, default_value: Any) -> Any:
        """Return a value as a bool, or the default; ConfigurationError if it is not a bool."""
        return self._as(BOOLEAN, key, default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set a bool, and return this configuration; ConfigurationError if it is not a bool."""
        return self._set(key, value, BOOLEAN)

    def get_float(self, key: str, default_value: Any) -> Any:
        """Return a value as a floating point number, or the default; ConfigurationError if it is not a number."""
        return self._as(DOUBLE, key, None if default_value is None else float(default_value))

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a floating point number, and return this configuration; ConfigurationError if it is not a number."""
        return self._set(key, value, DOUBLE)

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """Return bytes, or the default; ConfigurationError if the value is something else."""
        value = self._values.get(key, default_value)
        if not isinstance(value, bytes | bytearray):
            raise ArgumentTypeError(f"the setting {key} must be bytes, not {value!r}")
        return bytearray(value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set bytes, and return this configuration."""
        return self._set(key, bytearray(value))

    def key_set(self) -> Set[str]:
        """Return all keys."""
        return set(self._values)

    def entries(self) -> Iterator[tuple[str, Any]]:
        """Yield keys and values."""
        yield from self._values.items()

    def contains_key(self, key: str) -> bool:
        """Return whether a key has a value."""
        return key in self._values

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Add all settings to a dictionary."""
        target_dict.update(self._values)

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Add all settings of another configuration, with a prefix before their keys; return this configuration."""
        self._values.update({f"{prefix or ''}{key}": value for key, value in other._values.items()})
        return self

    def remove_config(self, key: str) -> bool:
        """Remove a setting; return whether it was there."""
        was_there = key in self._values
        self._values.pop(key, None)
        return was_there

    def to_dict(self) -> dict[str, str]:
        """Return all settings as texts."""
        return {key: as_text(value) for key, value in self._values.items()}

    def _set(self, key: str, value: Any, kind: SettingType[Any] | None = None) -> Configuration:
        if not isinstance(key, str):
            raise ArgumentTypeError(f"the key of a setting is a text, not {key!r}")
        self._values[key] = value if kind is None else kind.value(key, value)
        return self

    def _as(self, kind: SettingType[Any], key: str, default_value: Any) -> Any:
        return kind.value(key, self._values[key]) if key in self._values else default_value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values))

    def __str__(self) -> str:
        shown = (
            f"{key}={'******' if any(word in key.lower() for word in _SECRET_WORDS) else text}"
            for key, text in self.to_dict().items()
        )
        return f"{{{', '.join(shown)}}}"
