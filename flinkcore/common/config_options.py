"""Options of a configuration: keys with the type and the default of their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from flinkcore.common.settings.setting_types import BOOLEAN, DOUBLE, STRING, SettingType, integer
from flinkcore.errors import ArgumentTypeError

T = TypeVar("T")

__all__ = ["ConfigOption", "ConfigOptions"]


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """A key with the type and the default of its value.

    Attributes
    ----------
    name : str
        The key.
    type : SettingType
    default : object or None
        Default value, or None if the option has no default.
    fallback_keys : tuple of str
        Older keys, which count where this one is not set.

    Notes
    -----
    Follows ``pyflink.common.ConfigOption``, and ``key``, ``hasDefaultValue`` and ``defaultValue`` of Java's.
    """

    name: str
    type: SettingType[T]
    default: T | None = None
    fallback_keys: tuple[str, ...] = ()

    def key(self) -> str:
        """Return the key."""
        return self.name

    def has_default_value(self) -> bool:
        """Return whether there is a default."""
        return self.default is not None

    def default_value(self) -> T | None:
        """Return the default, or None."""
        return self.default


class ConfigOptions:
    """Builds options.

    Notes
    -----
    Follows ``pyflink.common.ConfigOptions``.

    Examples
    --------
    >>> ConfigOptions.key("application.parallelism").int_type().default_value(100).default_value()
    100
    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Start to build the option of a key; ConfigurationError if it is not a text."""
        if not isinstance(key, str):
            raise ArgumentTypeError(f"the key of a setting is a text, not {key!r}")
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """Takes the type of an option."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """Let the value be true or false."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, BOOLEAN)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Let the value be an integer of 32 bits."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, integer(-(1 << 31), (1 << 31) - 1))

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Let the value be an integer of 64 bits."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, integer())

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Let the value be a number; Python has one precision, which is double."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, DOUBLE)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Let the value be a number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, DOUBLE)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Let the value be a text."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, STRING)

    class TypedConfigOptionBuilder(Generic[T]):
        """Takes the default of an option."""

        def __init__(self, key: str, value_type: SettingType[T]) -> None:
            self._key = key
            self._type = value_type

        def default_value(self, value: Any) -> ConfigOption[T]:
            """Return the option with a default; ConfigurationError if it is of another type."""
            return ConfigOption(self._key, self._type, self._type.value(f"the default of {self._key}", value))

        def no_default_value(self) -> ConfigOption[T]:
            """Return the option without a default."""
            return ConfigOption(self._key, self._type)
