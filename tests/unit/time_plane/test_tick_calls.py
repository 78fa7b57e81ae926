"""The warning about generators that are called at very many ticks."""

import re

import pyarrow as pa
import pytest

from flinkcore.common import Time, Watermark, WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.time_plane import time_warnings
from flinkcore.time_plane.tick_clock import TickClock
from flinkcore.time_plane.time_warnings import tick_calls_warning


class Trailing(WatermarkGenerator[None]):
    def on_event(self, event: None, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class Declared(Trailing):
    changes_at_events_only = True


YEAR = TickClock(200, 0, 365 * 24 * 3_600_000)


def test_ticks_of_a_year_in_one_split_are_told() -> None:
    text = tick_calls_warning(WatermarkStrategy.for_generator(Trailing), YEAR, 1)
    assert text is not None
    assert re.search(
        r"from the first arrival, 0 ms, to the last, 31536000000 ms.*: "
        r"157,680,001 ticks of 200 ms in each of 1 split,.*32 s or more",
        text,
    )


@pytest.mark.parametrize(
    ("generator", "clock", "splits"),
    [
        (Declared, YEAR, 100),
        (Trailing, TickClock(0, 0, 10**15), 100),
        (Trailing, TickClock(200, 0, 3_600_000), 100),
    ],
    ids=["declared", "no ticks", "few ticks"],
)
def test_what_takes_no_time_is_not_told(generator: type[Trailing], clock: TickClock, splits: int) -> None:
    assert tick_calls_warning(WatermarkStrategy.for_generator(generator), clock, splits) is None


def test_ticks_between_the_arrivals_of_several_logs_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_warnings, "MANY_CALLS", 50)
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_generator(Trailing)
    early, late = (
        env.from_event_log(
            pa.table({"ts": [time], "key": [1]}), timestamp="ts", arrival="ts"
        ).assign_timestamps_and_watermarks(strategy)
        for time in (0, 20_000)
    )
    windows = early.union(late).key_by("key").window(TumblingEventTimeWindows.of(Time.seconds(1)))
    with pytest.warns(UserWarning, match=r"from the first arrival, 0 ms, to the last, 20000 ms: 101 ticks"):
        assert windows.aggregate(n=count()).to_arrow().num_rows == 2


def test_a_replay_warns_before_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_warnings, "MANY_CALLS", 5)
    log = pa.table({"ts": [0, 5000], "key": [1, 1]})
    windows = (
        StreamExecutionEnvironment.get_execution_environment()
        .from_event_log(log, timestamp="ts", arrival="ts")
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(Trailing))
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .aggregate(n=count())
    )
    with pytest.warns(UserWarning, match="changes_at_events_only = True"):
        assert windows.to_arrow().num_rows == 2
