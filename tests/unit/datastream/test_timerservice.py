"""Timers rounded up to a granularity."""

import pytest

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream import CoalescingTimerService, KeyedProcessFunction, coalesced_timestamp
from flinkcore.errors import ConfigurationError, UserCodeError
from flinkcore.testing import for_keyed_process_function


@pytest.mark.parametrize(
    ("timestamp", "granularity", "expected"),
    [
        (1001, 1000, 2000),
        (2000, 1000, 2000),
        (0, 1000, 0),
        (-1, 1000, 0),
        (-1000, 1000, -1000),
        (-1001, 1000, -1000),
        (7, 1, 7),
        (MAX_TIMESTAMP - 1, 1000, MAX_TIMESTAMP),
        (MAX_TIMESTAMP, 1000, MAX_TIMESTAMP),
        (MIN_TIMESTAMP, 1 << 62, MIN_TIMESTAMP),
    ],
)
def test_a_timestamp_is_rounded_up(timestamp: int, granularity: int, expected: int) -> None:
    assert coalesced_timestamp(timestamp, granularity) == expected


@pytest.mark.parametrize("granularity", [0, -5])
def test_a_granularity_below_a_millisecond_is_refused(granularity: int) -> None:
    with pytest.raises(ConfigurationError, match="at least 1 ms"):
        coalesced_timestamp(5, granularity)


class Session(KeyedProcessFunction):
    """Fires once, with the number of timers that were asked for."""

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        timers = CoalescingTimerService(ctx.timer_service(), 100)
        verb, timestamp = value
        getattr(timers, f"{verb}_timer")(timestamp)
        yield timers.current_watermark(), timers.current_processing_time()

    def on_timer(self, timestamp, ctx):  # type: ignore[no-untyped-def]
        yield ctx.time_domain().name, timestamp


def test_close_timers_are_one_timer_in_either_domain() -> None:
    with for_keyed_process_function(Session(), lambda value: "k") as harness:
        for domain in ("event_time", "processing_time"):
            for timestamp in (1, 99, 100, 101, 250):
                harness.process_element((f"register_{domain}", timestamp))
            harness.process_element((f"delete_{domain}", 201))
        assert set(harness.extract_output_values()) == {(MIN_TIMESTAMP, 0)}
        harness.get_output().clear()
        harness.process_watermark(1000)
        harness.set_processing_time(1000)
        assert harness.extract_output_values() == [
            ("EVENT_TIME", 100),
            ("EVENT_TIME", 200),
            ("PROCESSING_TIME", 100),
            ("PROCESSING_TIME", 200),
        ]


def test_a_service_of_an_impossible_granularity_is_refused() -> None:
    class Wrong(KeyedProcessFunction):
        def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
            CoalescingTimerService(ctx.timer_service(), 0)

    with (
        for_keyed_process_function(Wrong(), lambda value: "k") as harness,
        pytest.raises(UserCodeError, match="at least 1 ms"),
    ):
        harness.process_element(1)
