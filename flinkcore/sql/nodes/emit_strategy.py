"""Moments at which windows of GROUP BY emit results before and after their end: the settings ``table.exec.emit.*``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from flinkcore.common.config_options import ConfigOption
from flinkcore.common.configuration import Configuration
from flinkcore.common.settings.setting_types import BOOLEAN, DURATION
from flinkcore.common.time import Duration
from flinkcore.errors import ConfigurationError
from flinkcore.sql.plan.state_ttl import STATE_TTL

_PREFIX: Final = "table.exec.emit."
_EARLY: Final = ConfigOption(f"{_PREFIX}early-fire.enabled", BOOLEAN, False)
_EARLY_DELAY: Final = ConfigOption[Duration](f"{_PREFIX}early-fire.delay", DURATION)
_LATE: Final = ConfigOption(f"{_PREFIX}late-fire.enabled", BOOLEAN, False)
_LATE_DELAY: Final = ConfigOption[Duration](f"{_PREFIX}late-fire.delay", DURATION)
_LATENESS: Final = ConfigOption[Duration](f"{_PREFIX}allow-lateness", DURATION)


@dataclass(frozen=True)
class EmitStrategy:
    """Moments at which windows emit, beside their end.

    Attributes
    ----------
    early_ms, late_ms : int or None
        Delays of results before and after the end of a window, in ms of processing time after its first row, and then
        at the same distance; 0 for a result with each row, or None without such results.
    lateness_ms : int
        Time after its end during which a window takes rows, in ms of event time: ``allow-lateness``, or else
        ``table.exec.state.ttl``.

    Notes
    -----
    Follows Flink's ``WindowEmitStrategy``.
    """

    early_ms: int | None
    late_ms: int | None
    lateness_ms: int

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> EmitStrategy:
        """Return the strategy of settings.

        Raises
        ------
        ConfigurationError
            If a delay is missing, or they contradict each other.
        """
        configuration = Configuration.from_dict(
            {
                name: value
                for name, value in settings.items()
                if name.startswith(_PREFIX) or name == STATE_TTL.key()
            }
        )

        def delay(enabled: ConfigOption[bool], option: ConfigOption[Duration]) -> int | None:
            if not configuration.get(enabled):
                return None
            if not configuration.contains_key(option.key()):
                raise ConfigurationError(
                    f"{enabled.key()} = true needs a delay. Set {option.key()}, such as '5 s', or '0 s' for each row"
                )
            return configuration.get(option).to_millis()

        early, late = delay(_EARLY, _EARLY_DELAY), delay(_LATE, _LATE_DELAY)
        lateness = 0
        option = _LATENESS if configuration.contains_key(_LATENESS.key()) else STATE_TTL
        if late is not None and configuration.contains_key(option.key()):
            lateness = configuration.get(option).to_millis()
        if late is not None and lateness == 0:
            raise ConfigurationError(
                f"{_LATE.key()} = true needs rows that are late. Set {_LATENESS.key()}, such as '1 min'"
            )
        return cls(early, late, lateness)

    @property
    def is_plain(self) -> bool:
        """Return whether windows emit once, when they end."""
        return self.early_ms is None and self.late_ms is None
