"""The percentile generator against a window that is sorted anew for each event."""

from equipment.recorders import WatermarkOutputRecorder
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from flinkcore.common import MIN_TIMESTAMP, PercentileOutOfOrdernessWatermarks, Time


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.integers(-20, 20), max_size=60), st.integers(1, 12), st.integers(1, 100), st.integers(0, 5)
)
def test_it_is_the_percentile_of_the_sorted_window(
    timestamps: list[int], size: int, percent: int, delay_ms: int
) -> None:
    assume(percent == 100 or (100 - percent) * size >= 100)
    generator = PercentileOutOfOrdernessWatermarks(Time(delay_ms), percent / 100, size)
    output = WatermarkOutputRecorder()
    for count, timestamp in enumerate(timestamps, 1):
        window = sorted(timestamps[max(0, count - size) : count])
        rank = -(-percent * len(window) // 100)
        leaves_none_out = percent < 100 and rank == len(window)
        expected = MIN_TIMESTAMP if leaves_none_out else window[rank - 1] - delay_ms - 1
        generator.on_event(None, timestamp, output)
        generator.on_periodic_emit(output)
        assert output.take() == [("watermark", expected)]


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.integers(0, 1000), min_size=20, max_size=60),
    st.lists(st.integers(10**6, 10**9), min_size=1, max_size=2),
    st.randoms(use_true_random=False),
)
def test_events_far_ahead_never_move_it_past_the_others(
    regular: list[int], early: list[int], random: object
) -> None:
    generator = PercentileOutOfOrdernessWatermarks(Time(0), 0.9, 20)
    output = WatermarkOutputRecorder()
    mixed = [*regular, *early]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    for count, timestamp in enumerate(mixed, 1):
        generator.on_event(None, timestamp, output)
        generator.on_periodic_emit(output)
        ((_, watermark),) = output.take()
        if count >= 20:
            assert watermark < max(regular)
