"""Settings by their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkcore.errors import ConfigurationError

_TRUTH = {"true": True, "false": False}


class Configuration:
    """Settings by key; :meth:`StreamExecutionEnvironment.configure` lists the keys that have an effect.

    Parameters
    ----------
    other : Configuration, optional
        Settings to copy.

    Notes
    -----
    Follows ``pyflink.common.Configuration``. Keys without an effect on embedded jobs are accepted.

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
        configuration._values.update(map)
        return configuration

    def get_string(self, key: str, default_value: str) -> str:
        """Return a value as text, or the default."""
        value = self._values.get(key, default_value)
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    def set_string(self, key: str, value: str) -> Configuration:
        """Set a text, and return this configuration."""
        return self._set(key, value, str)

    def get_integer(self, key: str, default_value: int) -> int:
        """Return a value as a whole number, or the default; ConfigurationError if it is none."""
        return int(self._as(int, key, default_value))

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set a whole number, and return this configuration."""
        return self._set(key, value, int)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """Return a value as a bool, or the default; ConfigurationError if it is none."""
        value = self._values.get(key, default_value)
        if isinstance(value, str) and value.lower() in _TRUTH:
            return _TRUTH[value.lower()]
        if isinstance(value, bool):
            return value
        raise ConfigurationError(f"the setting {key} is true or false, not {value!r}")

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set a bool, and return this configuration."""
        return self._set(key, value, bool)

    def get_float(self, key: str, default_value: float) -> float:
        """Return a value as a floating point number, or the default; ConfigurationError if it is none."""
        return float(self._as(float, key, default_value))

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a floating point number, and return this configuration."""
        return self._set(key, value, float)

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """Return bytes, or the default."""
        return bytearray(self._values.get(key, default_value))

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set bytes, and return this configuration."""
        return self._set(key, bytearray(value), bytearray)

    def key_set(self) -> set[str]:
        """Return all keys."""
        return set(self._values)

    def contains_key(self, key: str) -> bool:
        """Return whether a key has a value."""
        return key in self._values

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Add all settings to a dictionary."""
        target_dict.update(self._values)

    def add_all(self, other: Configuration, prefix: str | None = None) -> None:
        """Add all settings of another configuration, with a prefix before their keys."""
        self._values.update({f"{prefix or ''}{key}": value for key, value in other._values.items()})

    def remove_config(self, key: str) -> bool:
        """Remove a setting; return whether it was there."""
        return self._values.pop(key, None) is not None

    def to_dict(self) -> dict[str, str]:
        """Return all settings as texts."""
        return {key: self.get_string(key, "") for key in self._values}

    def _set(self, key: str, value: Any, kind: type) -> Configuration:
        if not isinstance(key, str):
            raise ConfigurationError(f"the key of a setting is a text, not {key!r}")
        if not isinstance(value, kind) and not (kind is float and isinstance(value, int)):
            raise ConfigurationError(f"the setting {key} takes {kind.__name__}, not {value!r}")
        self._values[key] = value
        return self

    def _as(self, kind: Any, key: str, default_value: Any) -> Any:
        value = self._values.get(key, default_value)
        try:
            return kind(value)
        except (TypeError, ValueError):
            raise ConfigurationError(f"the setting {key} is no {kind.__name__}: {value!r}") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values))

    def __str__(self) -> str:
        return str(self.to_dict())
