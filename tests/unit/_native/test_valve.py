"""The verbs of StatusWatermarkValve, one at a time."""

import numpy as np
import pytest

from flinkcore._native.valve import ACTIVE_KIND, IDLE_KIND, WATERMARK_KIND, StatusWatermarkValve
from flinkcore.errors import ConfigurationError, DataError

MIN_TIMESTAMP = -(2**63)
MAX_TIMESTAMP = 2**63 - 1


def batch(*events: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    channels, kinds, timestamps = zip(*events, strict=True)
    return np.array(channels, np.int32), np.array(kinds, np.int8), np.array(timestamps, np.int64)


def test_the_watermark_is_the_minimum_over_the_channels() -> None:
    valve = StatusWatermarkValve(2)
    assert valve.input_watermark(0, 10) == []
    assert valve.input_watermark(1, 7) == [("watermark", 7)]
    assert valve.input_watermark(1, 12) == [("watermark", 10)]
    assert valve.current_watermark == 10


def test_a_watermark_that_does_not_advance_its_channel_is_ignored() -> None:
    valve = StatusWatermarkValve(1)
    assert valve.input_watermark(0, MIN_TIMESTAMP) == []
    assert valve.input_watermark(0, 5) == [("watermark", 5)]
    assert valve.input_watermark(0, 5) == []
    assert valve.input_watermark(0, 4) == []
    assert valve.input_watermark(0, MAX_TIMESTAMP) == [("watermark", MAX_TIMESTAMP)]


def test_an_idle_channel_does_not_hold_the_watermark_back() -> None:
    valve = StatusWatermarkValve(2)
    valve.input_watermark(0, 10)
    assert valve.input_watermark_status(1, "idle") == [("watermark", 10)]
    assert valve.input_watermark(1, 99) == []
    assert not valve.is_idle


def test_the_last_channel_to_turn_idle_flushes_the_maximum_if_it_held_the_minimum() -> None:
    valve = StatusWatermarkValve(2)
    valve.input_watermark(0, 10)
    valve.input_watermark(1, 30)
    assert valve.input_watermark_status(1, "idle") == []
    assert valve.input_watermark_status(0, "idle") == [("watermark", 30), ("status", "idle")]
    assert valve.is_idle


def test_the_last_channel_to_turn_idle_flushes_nothing_if_it_was_ahead() -> None:
    valve = StatusWatermarkValve(3)
    valve.input_watermark(0, 10)
    valve.input_watermark(1, 30)
    valve.input_watermark(2, 20)
    valve.input_watermark_status(0, "idle")
    valve.input_watermark(2, 25)
    valve.input_watermark_status(2, "idle")
    assert valve.current_watermark == 30
    assert valve.input_watermark_status(1, "idle") == [("status", "idle")]


def test_a_channel_that_returns_counts_once_it_has_caught_up() -> None:
    valve = StatusWatermarkValve(2)
    valve.input_watermark_status(1, "idle")
    assert valve.input_watermark(0, 10) == [("watermark", 10)]
    assert valve.input_watermark_status(1, "active") == []
    assert valve.input_watermark(1, 5) == []
    assert valve.input_watermark(0, 20) == [("watermark", 20)]
    assert valve.input_watermark(1, 20) == []
    assert valve.input_watermark(0, 30) == []
    assert valve.input_watermark(1, 25) == [("watermark", 25)]


def test_the_first_channel_to_return_makes_the_output_active() -> None:
    valve = StatusWatermarkValve(2)
    valve.input_watermark_status(0, "idle")
    assert valve.input_watermark_status(1, "idle") == [("status", "idle")]
    assert valve.input_watermark_status(0, "active") == [("status", "active")]
    assert valve.input_watermark_status(1, "active") == []


def test_a_batch_names_the_input_behind_each_output() -> None:
    valve = StatusWatermarkValve(2)
    rows, kinds, timestamps = valve.input_batch(
        *batch(
            (0, WATERMARK_KIND, 10),
            (1, WATERMARK_KIND, 30),
            (1, IDLE_KIND, 0),
            (0, IDLE_KIND, 0),
            (1, ACTIVE_KIND, 0),
        )
    )
    assert rows.tolist() == [1, 3, 3, 4]
    assert kinds.tolist() == [WATERMARK_KIND, WATERMARK_KIND, IDLE_KIND, ACTIVE_KIND]
    assert timestamps.tolist() == [10, 30, 0, 0]


def test_an_empty_batch_puts_out_nothing() -> None:
    empty = np.empty(0, np.int32), np.empty(0, np.int8), np.empty(0, np.int64)
    assert [len(column) for column in StatusWatermarkValve(1).input_batch(*empty)] == [0, 0, 0]


def test_a_read_only_batch_is_accepted() -> None:
    columns = batch((0, WATERMARK_KIND, 3))
    for column in columns:
        column.setflags(write=False)
    assert StatusWatermarkValve(1).input_batch(*columns)[2].tolist() == [3]


@pytest.mark.parametrize("channels", [0, -1, 2**31])
def test_a_valve_without_channels_is_refused(channels: int) -> None:
    with pytest.raises(ConfigurationError, match=f"between 1 and .* channels, not {channels}"):
        StatusWatermarkValve(channels)


@pytest.mark.parametrize("channel", [-1, 2, 2**40])
def test_a_channel_out_of_range_is_named(channel: int) -> None:
    valve = StatusWatermarkValve(2)
    with pytest.raises(DataError, match=f"no channel {channel} in a valve of 2 channels"):
        valve.input_watermark(channel, 1)
    with pytest.raises(DataError, match=f"no channel {channel}"):
        valve.input_watermark_status(channel, "idle")


def test_an_unknown_status_is_named() -> None:
    with pytest.raises(DataError, match="not 'sleepy'"):
        StatusWatermarkValve(1).input_watermark_status(0, "sleepy")  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [(2, WATERMARK_KIND, 5), (-1, IDLE_KIND, 0), (0, 3, 0), (0, -1, 0)])
def test_a_bad_row_is_named_and_no_row_of_its_batch_is_taken_in(bad: tuple[int, int, int]) -> None:
    valve = StatusWatermarkValve(2)
    with pytest.raises(DataError, match=f"row 2: channel {bad[0]}, kind {bad[1]}"):
        valve.input_batch(*batch((0, WATERMARK_KIND, 10), (1, WATERMARK_KIND, 10), bad))
    assert valve.current_watermark == MIN_TIMESTAMP
    valve._check()


def test_columns_of_different_lengths_are_refused() -> None:
    channels, kinds, timestamps = batch((0, WATERMARK_KIND, 1), (0, WATERMARK_KIND, 2))
    with pytest.raises(DataError, match="2 channels, 1 kinds and 2 timestamps"):
        StatusWatermarkValve(1).input_batch(channels, kinds[:1], timestamps)


def test_a_valve_goes_on_where_another_stood() -> None:
    valve = StatusWatermarkValve(3)
    for channel, timestamp in ((0, 10), (1, 30), (2, 20)):
        valve.input_watermark(channel, timestamp)
    valve.input_watermark_status(0, "idle")
    watermarks, idle, watermark = valve.state()
    assert (watermarks.tolist(), idle.tolist(), watermark) == ([10, 30, 20], [1, 0, 0], 20)
    going_on = StatusWatermarkValve(4)
    going_on.restore(np.append(watermarks, watermark), np.append(idle, np.uint8(0)), watermark)
    going_on._check()
    # The new channel holds it back until it has caught up.
    assert going_on.input_watermark(2, 25) == []
    assert going_on.input_watermark(3, 22) == [("watermark", 22)]
    assert going_on.input_watermark_status(0, "active") == []
    assert going_on.input_watermark_status(3, "idle") == [("watermark", 25)]
    with pytest.raises(DataError, match="3 watermarks and 3 statuses for 4 channels"):
        going_on.restore(watermarks, idle, watermark)
