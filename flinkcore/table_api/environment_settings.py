"""Settings of a table environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from flinkcore.common.configuration import Configuration
from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.planner.statements import Statement

_STREAMING = "SQL runs in streaming mode. Call EnvironmentSettings.in_streaming_mode()"
_TEXT: Final = r"'(?:[^']|'')*'|[^\s=;']+"
_SETTING: Final = re.compile(
    rf"SET(?:\s+(?P<key>{_TEXT})\s*=\s*(?P<value>{_TEXT}))?|RESET(?:\s+(?P<removed>{_TEXT}))?", re.IGNORECASE
)


class EnvironmentSettings:
    """Settings with which a table environment begins; always those of streaming mode.

    Notes
    -----
    Follows ``pyflink.table.EnvironmentSettings``.
    """

    class Builder:
        """Builder of settings."""

        def __init__(self) -> None:
            self._configuration = Configuration()

        def in_streaming_mode(self) -> EnvironmentSettings.Builder:
            """Return the builder: streaming mode is the only one."""
            return self

        def in_batch_mode(self) -> EnvironmentSettings.Builder:
            """Raise UnsupportedOperationError."""
            raise UnsupportedOperationError(_STREAMING)

        def with_configuration(self, config: Configuration) -> EnvironmentSettings.Builder:
            """Take settings of the session."""
            self._configuration = config
            return self

        def build(self) -> EnvironmentSettings:
            """Return the settings."""
            return EnvironmentSettings(self._configuration)

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    @staticmethod
    def new_instance() -> EnvironmentSettings.Builder:
        """Return a builder."""
        return EnvironmentSettings.Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Return settings of streaming mode."""
        return EnvironmentSettings()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Raise UnsupportedOperationError."""
        raise UnsupportedOperationError(_STREAMING)

    def is_streaming_mode(self) -> bool:
        """Return True."""
        return True

    def get_configuration(self) -> Configuration:
        """Return the settings of the session."""
        return self._configuration


class TableConfig:
    """Settings of a session, by Flink's keys.

    Notes
    -----
    Follows ``pyflink.table.TableConfig``, as far as keys go.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._configuration = Configuration.from_dict(settings)

    @property
    def settings(self) -> dict[str, str]:
        """The values that are set, by key."""
        return self._configuration.to_dict()

    def set(self, key: str, value: str) -> TableConfig:
        """Set a value."""
        self._configuration.set_string(str(key), str(value))
        return self

    def get(self, key: str, default_value: str) -> str:
        """Return a value, or a default."""
        return str(self._configuration.get_string(key, default_value))

    def get_configuration(self) -> Configuration:
        """Return the settings themselves: what is set in them is set for the session."""
        return self._configuration

    def takes(self, statement: Statement) -> bool:
        """Do what a statement ``SET`` or ``RESET`` says; return whether it is one."""
        found = _SETTING.fullmatch(statement.text)
        if found is None:
            return False
        if found["value"] is not None:
            self.set(_unquoted(found["key"]), _unquoted(found["value"]))
        elif found["removed"] is not None:
            self._configuration.remove_config(_unquoted(found["removed"]))
        elif statement.first_word == "RESET":
            for key in self.settings:
                self._configuration.remove_config(key)
        return True

    def set_local_timezone(self, timezone_id: str) -> None:
        """Set the time zone of the session."""
        self.set("table.local-time-zone", timezone_id)

    def get_local_timezone(self) -> str:
        """Return the time zone of the session."""
        return self.get("table.local-time-zone", "UTC")


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'") if text.startswith("'") else text
