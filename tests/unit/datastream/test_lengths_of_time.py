"""Every setting of a length of time takes a Time, a Duration, a timedelta and whole milliseconds alike."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.checkpoint_config import CheckpointConfig
from flinkcore.datastream.state import StateTtlConfig
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
)
from flinkcore.errors import ArgumentTypeError

MINUTE: list[Any] = [Duration.of_minutes(1), timedelta(minutes=1), 60_000]


def events(strategy: WatermarkStrategy | None = None) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    log = env.from_event_log(pa.table({"ts": [0, 90_000, 40_000], "user": ["a"] * 3}), timestamp="ts")
    return log.assign_timestamps_and_watermarks(strategy or WatermarkStrategy.for_monotonous_timestamps())


def checkpoint_timeout(interval: Any) -> Any:
    config = StreamExecutionEnvironment.get_execution_environment().get_checkpoint_config()
    assert isinstance(config, CheckpointConfig)
    return config.set_aligned_checkpoint_timeout(interval).get_aligned_checkpoint_timeout()


SETTINGS: dict[str, Callable[[Any], Any]] = {
    "bound": WatermarkStrategy.for_bounded_out_of_orderness,
    "idleness": lambda interval: WatermarkStrategy.no_watermarks().with_idleness(interval),
    "alignment": lambda interval: WatermarkStrategy.no_watermarks().with_watermark_alignment(
        "g", interval, interval
    ),
    "tumbling": lambda interval: TumblingEventTimeWindows.of(interval),
    "offset": lambda interval: TumblingEventTimeWindows.of(Time.hours(1), interval),
    "sliding": lambda interval: SlidingEventTimeWindows.of(interval, interval),
    "cumulative": lambda interval: CumulativeEventTimeWindows.of(interval, interval),
    "gap": EventTimeSessionWindows.with_gap,
    "trigger": lambda interval: str(ContinuousEventTimeTrigger.of(interval)),
    "evictor": lambda interval: str(TimeEvictor.of(interval)),
    "time to live": lambda interval: StateTtlConfig.new_builder(interval).build().ttl_ms,
    "checkpoint timeout": checkpoint_timeout,
    "lateness": lambda interval: (
        events()
        .key_by("user")
        .window(TumblingEventTimeWindows.of(interval))
        .allowed_lateness(interval)
        .aggregate(n=count())
        .explain()
    ),
    "frontier": lambda interval: events().lateness(bounds=[interval]).at(interval).to_pydict(),
}


@pytest.mark.parametrize("interval", MINUTE, ids=lambda interval: type(interval).__name__)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_takes_all_lengths_of_time_alike(setting: str, interval: Any) -> None:
    assert SETTINGS[setting](interval) == SETTINGS[setting](Time.minutes(1))


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_fraction_is_refused_everywhere(setting: str) -> None:
    with pytest.raises((ArgumentTypeError, ValueError)):
        SETTINGS[setting](1.5)
