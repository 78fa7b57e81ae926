"""WatermarksWithIdleness, over a clock that the tests move."""

import pytest
from equipment.recorders import WatermarkOutputRecorder

from flinkcore.common import AscendingTimestampsWatermarks, Duration, WatermarksWithIdleness
from flinkcore.errors import ConfigurationError

IDLE = ("status", "idle")


class IdleAfter100:
    """A generator with a timeout of 100 ms; its calls return what it put out."""

    def __init__(self, start_ms: int) -> None:
        self.now_ms = start_ms
        self.output = WatermarkOutputRecorder()
        self.generator = WatermarksWithIdleness(
            AscendingTimestampsWatermarks(), Duration.of_millis(100), lambda: self.now_ms
        )

    def event(self, timestamp: int) -> list[tuple[object, ...]]:
        self.generator.on_event(None, timestamp, self.output)
        return self.output.take()

    def tick_after(self, elapsed_ms: int) -> list[tuple[object, ...]]:
        self.now_ms += elapsed_ms
        self.generator.on_periodic_emit(self.output)
        return self.output.take()


@pytest.fixture(params=[-5000, 1, 1_700_000_000_000])
def split(request: pytest.FixtureRequest) -> IdleAfter100:
    idle_after_100 = IdleAfter100(request.param)
    idle_after_100.event(5)
    assert idle_after_100.tick_after(0) == [("watermark", 4)]
    return idle_after_100


def test_idleness_counts_from_the_first_tick_without_an_event(split: IdleAfter100) -> None:
    assert split.tick_after(1000) == [("watermark", 4)]
    assert split.tick_after(100) == [("watermark", 4)], (
        "the timeout itself is not yet longer than the timeout"
    )
    assert split.tick_after(1) == [IDLE]


def test_an_idle_split_says_so_once_and_makes_no_watermarks(split: IdleAfter100) -> None:
    split.tick_after(1)
    assert [split.tick_after(101), split.tick_after(101), split.tick_after(101)] == [[IDLE], [], []]


def test_an_event_ends_idleness_with_the_next_watermark(split: IdleAfter100) -> None:
    split.tick_after(1)
    assert split.tick_after(101) == [IDLE]
    assert split.event(9) == []
    assert split.tick_after(1) == [("watermark", 8)]


def test_idleness_can_come_again(split: IdleAfter100) -> None:
    split.tick_after(1)
    split.tick_after(101)
    split.event(9)
    assert [split.tick_after(1), split.tick_after(1)] == [[("watermark", 8)]] * 2
    assert split.tick_after(101) == [IDLE]


def test_events_between_ticks_keep_a_split_active(split: IdleAfter100) -> None:
    for timestamp in range(6, 10):
        split.event(timestamp)
        assert split.tick_after(1000) == [("watermark", timestamp - 1)]


def test_a_split_without_any_event_turns_idle() -> None:
    split = IdleAfter100(1)
    assert [kind for kind, _ in split.tick_after(0)] == ["watermark"]
    assert split.tick_after(101) == [IDLE]


def test_a_clock_of_zero_does_not_begin_the_count() -> None:
    split = IdleAfter100(0)
    split.tick_after(0)
    assert [kind for kind, _ in split.tick_after(101)] == ["watermark"]
    assert split.tick_after(101) == [IDLE]


@pytest.mark.parametrize("timeout", [Duration.of_millis(0), Duration.of_millis(-5)])
def test_a_timeout_that_is_not_above_zero_is_refused(timeout: Duration) -> None:
    with pytest.raises(ConfigurationError, match="idle_timeout must be at least 1 ms"):
        WatermarksWithIdleness(AscendingTimestampsWatermarks(), timeout, lambda: 0)
