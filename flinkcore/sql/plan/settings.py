"""Settings of Flink SQL that are durations, and that Flink reads when it runs a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flinkcore.common.config_options import ConfigOption
from flinkcore.common.configuration import Configuration
from flinkcore.common.settings.setting_types import DURATION
from flinkcore.common.time import Duration

SOURCE_IDLE_TIMEOUT: Final = ConfigOption[Duration]("table.exec.source.idle-timeout", DURATION)
MIN_CLEANUP_INTERVAL: Final = ConfigOption[Duration](
    "table.exec.interval-join.min-cleanup-interval", DURATION
)


def duration_ms(option: ConfigOption[Duration], settings: Mapping[str, str]) -> int:
    """Return a duration among settings in ms; 0 if it is not there."""
    written = settings.get(option.key(), "0 ms")
    return Configuration.from_dict({option.key(): written}).get(option).to_millis()
