"""Callbacks that register timers again and again at the end of a log."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import KeyedBatchProcessFunction, KeyedProcessFunction, StreamExecutionEnvironment
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.window import ContinuousEventTimeTrigger, GlobalWindows
from flinkcore.errors import UserCodeError
from flinkcore.operators.timers import unending_timers

TIMES = pa.schema({"time": pa.int64()})
NAMED = (
    "timers of the key '[ab]' register further ones without end: 1,00[0-9] have fired at the end of the log"
)


class Periodic(KeyedProcessFunction):
    def __init__(self, last_ms: int | None = None) -> None:
        self._last_ms = last_ms

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_event_time_timer(value.ts + 10)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[int]]:
        if self._last_ms is None or timestamp < self._last_ms:
            ctx.timer_service().register_event_time_timer(timestamp + 10)
        yield (timestamp,)


class PeriodicBatches(KeyedBatchProcessFunction):
    def __init__(self, last_ms: int | None = None) -> None:
        self._last_ms = last_ms

    def process_batch(self, elements: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timers(elements.key_ids, elements.timestamps + 10)

    def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
        goes_on = np.full(len(timers), True) if self._last_ms is None else timers.timestamps < self._last_ms
        ctx.timer_service().register_event_time_timers(
            timers.key_ids[goes_on], timers.timestamps[goes_on] + 10
        )
        yield pa.record_batch([pa.array(timers.timestamps)], schema=TIMES)


EITHER = pytest.mark.parametrize("function", [Periodic, PeriodicBatches])


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unending_timers, "MANY", 1_000)


def events() -> KeyedStream:
    log = pa.table({"user": ["b", "a", "a"], "ts": [1, 2, 3], "at": [4, 5, 6]})
    stream = StreamExecutionEnvironment().from_event_log(log, timestamp="ts", arrival="at")
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(2))
    return stream.assign_timestamps_and_watermarks(strategy).key_by("user")


@EITHER
def test_a_timer_that_always_registers_the_next_one_ends_with_an_error_that_says_what_to_do(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(UserCodeError, match=NAMED) as raised:
        events().process(function(), TIMES).execute().to_arrow()
    assert "Register no timer while ctx.timer_service().current_watermark() is 2**63 - 1" in str(raised.value)


@EITHER
def test_timers_that_end_after_all_may_be_many_and_are_told(
    function: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        results = events().process(function(last_ms=4_500), TIMES).execute().to_arrow()
    assert results.num_rows == 3 * 450
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith("The end of the log has fired 1,00")
    assert "Do they ever end?" in warning


def test_timers_that_have_waited_for_the_end_are_not_limited(caplog: pytest.LogCaptureFixture) -> None:
    class Many(Periodic):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
            for time_ms in range(1, 2_001):
                ctx.timer_service().register_event_time_timer(value.ts + time_ms)

    results = events().process(Many(last_ms=0), TIMES).execute().to_arrow()
    assert results.num_rows == 2_000 + 2_001
    assert not caplog.records


@EITHER
def test_timers_that_register_the_next_one_wait_in_a_checkpoint(
    function: Callable[..., Any], tmp_path: Any
) -> None:
    results = (
        events().process(function(), TIMES).execute(stop_with_checkpoint=tmp_path / "checkpoint").to_arrow()
    )
    assert results.num_rows == 0


def test_a_continuous_trigger_fires_once_at_the_end_for_a_window_without_end() -> None:
    windows = events().window(GlobalWindows.create()).trigger(ContinuousEventTimeTrigger(1))
    assert len(windows.reduce(lambda one, other: other).execute().to_arrow()) == 2
