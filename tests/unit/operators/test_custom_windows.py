"""Windows by assigners and evictors of the user's own, beyond those that golden traces have, and their misuse."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from jobs.window_programs import TEN, Count, Surroundings, record, values, windows_of

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, Time, Watermark
from flinkcore.datastream.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CumulativeEventTimeWindows,
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
    TimestampedValue,
    TimeWindow,
    Trigger,
    TumblingProcessingTimeWindows,
    Window,
    WindowAssigner,
    WindowStagger,
)
from flinkcore.errors import DataError, UserCodeError


@pytest.fixture
def around() -> Surroundings:
    return Surroundings()


# ---- custom assigners ----


class ByValue(WindowAssigner[Any, TimeWindow]):
    """Windows that the element names."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        return element[1]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


def test_windows_of_a_custom_assigner_come_in_its_order(around: Surroundings) -> None:
    operator = around.windows(windows_of(ByValue(), pre_aggregation=Count()))
    operator.process_element(record("a", (TimeWindow(5, 8), TimeWindow(0, 20)), 6))
    operator.process_element(record("a", iter([TimeWindow(0, 20)]), 0))
    operator.process_watermark(Watermark(30))
    assert values(around) == [1, 2]


class Unhashable(Window):
    __hash__ = None  # type: ignore[assignment]

    def max_timestamp(self) -> int:
        return 1


class Until(Window):
    def __init__(self, end: Any) -> None:
        self.end = end

    def max_timestamp(self) -> int:
        return self.end  # type: ignore[no-any-return]


@pytest.mark.parametrize("end", [None, "9", 1.5, MAX_TIMESTAMP + 1, MIN_TIMESTAMP - 1])
def test_a_window_that_ends_at_no_time_is_an_error(around: Surroundings, end: Any) -> None:
    operator = around.windows(windows_of(ByValue(), trigger=CountTrigger.of(1), pre_aggregation=Count()))
    operator.process_element(record("a", [Until(9)], 6))
    with pytest.raises(
        UserCodeError, match=r"ByValue.assign_windows failed at .* the key 'a' .* max_timestamp"
    ):
        operator.process_element(record("a", [Until(end)], 6))
    assert values(around) == [1]


@pytest.mark.parametrize("windows", [None, 7, [(0, 10)], ["a"], [Unhashable()]])
def test_an_assigner_that_gives_no_windows_is_an_error(around: Surroundings, windows: Any) -> None:
    operator = around.windows(windows_of(ByValue()))
    with pytest.raises(
        UserCodeError, match=r"ByValue.assign_windows failed at the element .* of the key 'a'"
    ):
        operator.process_element(record("a", windows, 6))


def test_an_element_without_a_timestamp_is_an_error_where_windows_need_one(around: Surroundings) -> None:
    operator = around.windows(windows_of(TEN))
    with pytest.raises(DataError, match=r"no timestamp .* assign_timestamps_and_watermarks .* the key 'a'"):
        operator.process_element(record("a", 1))


def test_a_window_beyond_64_bits_is_an_error(around: Surroundings) -> None:
    operator = around.windows(windows_of(EventTimeSessionWindows(10)))
    with pytest.raises(DataError, match=f"the window from {MAX_TIMESTAMP} .* beyond 64 bits"):
        operator.process_element(record("a", 1, MAX_TIMESTAMP))


@pytest.mark.parametrize(
    "window", [TimeWindow(0, MAX_TIMESTAMP + 1), TimeWindow(MIN_TIMESTAMP - 1, 0)], ids=["end", "start"]
)
def test_a_window_of_a_custom_assigner_beyond_64_bits_is_an_error(
    around: Surroundings, window: TimeWindow
) -> None:
    operator = around.windows(windows_of(ByValue()))
    operator.process_element(record("a", [TimeWindow(MIN_TIMESTAMP, MAX_TIMESTAMP)], 6))
    with pytest.raises(DataError, match=r"ByValue gave .*64 bits.* the key 'a'"):
        operator.process_element(record("a", [window], 6))


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return element[1]  # type: ignore[no-any-return]


@pytest.mark.parametrize("gap", [0, -5, 1.5, None, True])
def test_a_session_gap_that_is_no_length_of_time_is_an_error(around: Surroundings, gap: Any) -> None:
    operator = around.windows(windows_of(EventTimeSessionWindows.with_dynamic_gap(Gap())))
    with pytest.raises(UserCodeError, match=rf"extract gave {gap!r} as the gap of .* the key 'a'"):
        operator.process_element(record("a", gap, 3))


def test_a_session_gap_may_be_an_integer_of_numpy(around: Surroundings) -> None:
    operator = around.windows(windows_of(EventTimeSessionWindows.with_dynamic_gap(Gap())))
    for timestamp in (3, 8, 14):
        operator.process_element(record("a", np.int32(5), timestamp))
    operator.process_watermark(Watermark(30))
    assert [(window, len(held)) for _, window, held in values(around)] == [
        (TimeWindow(3, 13), 2),
        (TimeWindow(14, 19), 1),
    ]


def test_a_gap_extractor_that_raises_is_named(around: Surroundings) -> None:
    class Failing(Gap):
        def extract(self, element: Any) -> int:
            return 1 // 0

    for extractor, name in ((lambda element: 1 // element[1], "<lambda>"), (Failing(), r"Failing\.extract")):
        operator = around.windows(windows_of(DynamicEventTimeSessionWindows(extractor)))
        with pytest.raises(
            UserCodeError,
            match=rf"{name} failed to give the gap of a session: ZeroDivisionError.*at the element \('a', 0\)",
        ):
            operator.process_element(record("a", 0, 3))


def test_an_equal_session_takes_the_place_of_one_that_was_merged_as_in_flink(around: Surroundings) -> None:
    operator = around.windows(windows_of(EventTimeSessionWindows.with_dynamic_gap(Gap())))
    for gap, timestamp in ((10, 0), (10, 5), (15, 0)):  # [0, 15) has its state in [0, 10) when it comes again
        operator.process_element(record("a", gap, timestamp))
    operator.process_watermark(Watermark(100))
    assert values(around) == [("a", TimeWindow(0, 15), [15])]


class Hours(EventTimeSessionWindows):
    """Merges windows into one that the test names."""

    result = TimeWindow(0, 5)

    def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
        callback.merge(list(windows), self.result)


def test_merging_cannot_make_a_window_late(around: Surroundings) -> None:
    operator = around.windows(windows_of(Hours(10)))
    operator.process_watermark(Watermark(4))
    with pytest.raises(UserCodeError, match="none of them is in flight"):
        operator.process_element(record("a", 1, 20))

    class OnceTwo(Hours):
        def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
            if len(list(windows)) > 1:
                super().merge_windows(windows, callback)

    other = Surroundings()
    operator = other.windows(windows_of(OnceTwo(10)))
    operator.process_watermark(Watermark(4))
    operator.process_element(record("a", 1, 20))
    with pytest.raises(
        UserCodeError,
        match=r"TimeWindow\(start=0, end=5\), which ended before the current watermark 4, "
        "with an allowed lateness of 0 ms: merging cannot make a window late",
    ):
        operator.process_element(record("a", 1, 30))
    late = Surroundings()
    operator = late.windows(windows_of(OnceTwo(10), allowed_lateness_ms=7))
    operator.process_watermark(Watermark(11))
    operator.process_element(record("a", 1, 20))
    with pytest.raises(UserCodeError, match="the current watermark 11, with an allowed lateness of 7 ms"):
        operator.process_element(record("a", 1, 30))


def test_merging_cannot_make_a_window_of_processing_time_late(around: Surroundings) -> None:
    class OnceTwo(ProcessingTimeSessionWindows):
        def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
            if len(list(windows)) > 1:
                callback.merge(list(windows), TimeWindow(0, 5))

    operator = around.windows(windows_of(OnceTwo(10)))
    around.clock.advance_to(7)
    operator.process_element(record("a", 1))
    around.clock.advance_to(8)
    with pytest.raises(UserCodeError, match="before the current processing time 8"):
        operator.process_element(record("a", 2))


def test_cumulating_windows_grow_from_one_start(around: Surroundings) -> None:
    operator = around.windows(windows_of(CumulativeEventTimeWindows(30, 10)))
    for value in (1, 12, 25, 31):
        operator.process_element(record("a", value, value))
    operator.process_watermark(Watermark(100))
    assert [(window.start, window.end, held) for _, window, held in values(around)] == [
        (0, 10, [1]),
        (0, 20, [1, 12]),
        (0, 30, [1, 12, 25]),
        (30, 40, [31]),
        (30, 50, [31]),
        (30, 60, [31]),
    ]


def test_count_windows_fire_when_they_are_full(around: Surroundings) -> None:
    tumbling = around.windows(windows_of(CountTumblingWindowAssigner.of(2)))
    for value in range(5):
        tumbling.process_element(record("a", value))
    assert [(window.id, held) for _, window, held in values(around)] == [(0, [0, 1]), (1, [2, 3])]


def test_sliding_count_windows_overlap(around: Surroundings) -> None:
    sliding = around.windows(windows_of(CountSlidingWindowAssigner.of(3, 2)))
    for value in range(6):
        sliding.process_element(record("a", value))
    assert [(window.id, held) for _, window, held in values(around)] == [(0, [0, 1, 2]), (1, [2, 3, 4])]


def test_every_key_group_has_a_stagger_of_its_own(around: Surroundings) -> None:
    natural = TumblingProcessingTimeWindows.of(Time.milliseconds(10), None, WindowStagger.NATURAL)
    operator = around.windows(windows_of(natural))
    around.clock.advance_to(13)
    operator.process_element(record("a", 1))
    around.clock.advance_to(18)
    operator.process_element(record("b", 2))
    operator.process_element(record("a", 3))
    around.clock.advance_to(60)
    assert [(key, window.start, held) for key, window, held in values(around)] == [
        ("a", 13, [1, 3]),
        ("b", 18, [2]),
    ]


def test_staggers_go_on_from_a_snapshot() -> None:
    natural = TumblingProcessingTimeWindows.of(Time.milliseconds(10), None, WindowStagger.NATURAL)
    before, after = Surroundings(), Surroundings()
    operator = before.windows(windows_of(natural))
    before.clock.advance_to(13)
    operator.process_element(record("a", 1))
    before.clock.advance_to(30)
    after.keyed_state.restore(before.keyed_state.snapshot())
    operator = after.windows(windows_of(natural))
    after.clock.advance_to(38)
    operator.process_element(record("a", 2))
    after.clock.advance_to(60)
    ((key, window, held),) = values(after)
    assert (key, window.start, held) == ("a", 33, [2])


def test_a_random_stagger_depends_on_the_key_group_alone() -> None:
    offsets = [
        WindowStagger.RANDOM.get_stagger_offset(now, 1000, group) for now in (0, 7) for group in range(40)
    ]
    assert offsets[:40] == offsets[40:]
    assert all(0 <= offset < 1000 for offset in offsets)
    assert len(set(offsets)) > 20


# ---- custom evictors ----


class Scissors(Evictor[Any]):
    def __init__(self, cut: Callable[[list[TimestampedValue]], Any]) -> None:
        self.cut = cut

    def evict_before(self, elements: Any, size: int, window: Any, evictor_context: Any) -> None:
        assert size == len(elements)
        assert evictor_context.get_current_watermark() >= MIN_TIMESTAMP
        return self.cut(elements)  # type: ignore[no-any-return]

    def evict_after(self, elements: Any, size: int, window: Any, evictor_context: Any) -> None:
        pass


def test_a_custom_evictor_removes_elements_for_good(around: Surroundings) -> None:
    def odd_ones(elements: list[TimestampedValue]) -> None:
        elements[:] = [element for element in elements if element.value[1] % 2 == 0]

    operator = around.windows(
        windows_of(GlobalWindows.create(), trigger=CountTrigger.of(2), evictor=Scissors(odd_ones))
    )
    for value in range(4):
        operator.process_element(record("a", value))
    assert [held for _, _, held in values(around)] == [[0], [0, 2]]


def test_what_an_evictor_returns_is_ignored_unless_it_is_a_list(around: Surroundings) -> None:
    windows = windows_of(
        GlobalWindows.create(), trigger=CountTrigger.of(2), evictor=Scissors(lambda elements: elements.pop(0))
    )
    operator = around.windows(windows)
    for value in range(2):
        operator.process_element(record("a", value))
    assert [held for _, _, held in values(around)] == [[1]]


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (
            lambda elements: elements.append(7),
            r"Scissors.evict_before left 7 in the window TimeWindow.*'a': it is to remove",
        ),
        (lambda elements: [], r"Scissors.evict_before gave \[\] at the window TimeWindow.*to return no list"),
        (lambda elements: 1 // 0, r"Scissors.evict_before failed at the window .* ZeroDivisionError"),
    ],
)
def test_a_misused_evictor_is_an_error(around: Surroundings, cut: Any, message: str) -> None:
    operator = around.windows(windows_of(TEN, evictor=Scissors(cut)))
    operator.process_element(record("a", 1, 1))
    with pytest.raises(UserCodeError, match=message):
        operator.process_watermark(Watermark(9))
