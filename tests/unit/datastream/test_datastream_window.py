"""Window assigners refuse what Flink's refuse."""

import copy
import pickle
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from flinkcore.columnar.operator_plans.shown_settings import shown_settings
from flinkcore.common import Duration, Time
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CountWindow,
    CountWindowSerializer,
    CumulativeEventTimeWindows,
    DeltaEvictor,
    DeltaTrigger,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    GlobalWindow,
    GlobalWindows,
    GlobalWindowSerializer,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    TimeWindow,
    TimeWindowSerializer,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    Window,
    WindowStagger,
)
from flinkcore.errors import ConfigurationError


def test_sizes_and_offsets_are_kept_in_milliseconds() -> None:
    assert TumblingEventTimeWindows.of(Time.hours(1)) == TumblingEventTimeWindows(3_600_000, 0)
    assert TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8)) == TumblingEventTimeWindows(
        86_400_000, -28_800_000
    )
    assert SlidingEventTimeWindows.of(
        Time.minutes(1), Time.seconds(10), Time.seconds(5)
    ) == SlidingEventTimeWindows(60_000, 10_000, 5_000)
    assert EventTimeSessionWindows.with_gap(Duration.of_minutes(1)) == EventTimeSessionWindows(60_000)


def test_assigners_are_values_that_can_be_pickled() -> None:
    assigner = SlidingEventTimeWindows.of(Time.minutes(1), Time.seconds(10))
    assert pickle.loads(pickle.dumps(assigner)) == assigner
    assert assigner.is_event_time()


@pytest.mark.parametrize(("size", "offset"), [(5, 5), (5, -5), (10, 11)])
def test_tumbling_windows_need_an_offset_smaller_than_their_size(size: int, offset: int) -> None:
    with pytest.raises(ConfigurationError, match=r"must satisfy abs\(offset\) < size"):
        TumblingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(offset))


@pytest.mark.parametrize(("size", "slide", "offset"), [(50, 5, 5), (50, 5, -5), (5, 6, 7)])
def test_sliding_windows_need_an_offset_smaller_than_their_slide(size: int, slide: int, offset: int) -> None:
    with pytest.raises(ConfigurationError, match=r"must satisfy abs\(offset\) < slide"):
        SlidingEventTimeWindows.of(
            Time.milliseconds(size), Time.milliseconds(slide), Time.milliseconds(offset)
        )


def test_a_slide_above_the_size_is_allowed() -> None:
    assert SlidingEventTimeWindows.of(Time.seconds(1), Time.seconds(5)).slide_ms == 5000


@pytest.mark.parametrize("length", [0, -1])
def test_sizes_and_slides_are_above_zero(length: int) -> None:
    second, wrong = Time.seconds(1), Time.milliseconds(length)
    with pytest.raises(ConfigurationError, match=f"the size must be above zero, it is {length} ms"):
        TumblingEventTimeWindows.of(wrong)
    with pytest.raises(ConfigurationError, match=f"the size must be above zero, it is {length} ms"):
        SlidingEventTimeWindows.of(wrong, second)
    with pytest.raises(ConfigurationError, match=f"the slide must be above zero, it is {length} ms"):
        SlidingEventTimeWindows.of(second, wrong)


@pytest.mark.parametrize("gap", [0, -1])
def test_sessions_need_a_gap(gap: int) -> None:
    with pytest.raises(ConfigurationError, match="the gap must be above zero"):
        EventTimeSessionWindows.with_gap(Time.milliseconds(gap))


def test_a_size_is_a_length_of_time() -> None:
    minute = TumblingEventTimeWindows(60_000)
    assert TumblingEventTimeWindows.of(60_000) == TumblingEventTimeWindows.of(timedelta(minutes=1)) == minute
    with pytest.raises(ConfigurationError, match="window size takes a length of time"):
        TumblingEventTimeWindows.of("1 min")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TumblingProcessingTimeWindows(0), "the size must be above zero"),
        (lambda: TumblingProcessingTimeWindows(5, -5), r"must satisfy abs\(offset\) < size"),
        (lambda: TumblingEventTimeWindows(5, 0, "random"), "the stagger is a WindowStagger"),  # type: ignore[arg-type]
        (lambda: SlidingProcessingTimeWindows(0, 1), "the size must be above zero"),
        (lambda: SlidingProcessingTimeWindows(1, 0), "the slide must be above zero"),
        (lambda: SlidingProcessingTimeWindows(9, 5, 5), r"must satisfy abs\(offset\) < slide"),
        (lambda: SlidingEventTimeWindows(10_000_001, 1), r"must satisfy size / slide <= 10000000"),
        (lambda: CumulativeEventTimeWindows(0, 1), "the size must be above zero"),
        (lambda: CumulativeEventTimeWindows(10, 0), "the step must be above zero"),
        (lambda: CumulativeEventTimeWindows(10, 3), "the size must be a multiple of the step"),
        (lambda: CumulativeEventTimeWindows(10, 20), "the size must be a multiple of the step"),
        (lambda: CumulativeEventTimeWindows(10, 5, 10), r"must satisfy abs\(offset\) < size"),
        (lambda: ProcessingTimeSessionWindows(0), "the gap must be above zero"),
        (lambda: DynamicEventTimeSessionWindows(5), "takes a SessionWindowTimeGapExtractor"),  # type: ignore[arg-type]
        (lambda: DynamicProcessingTimeSessionWindows(None), "takes a Session"),  # type: ignore[arg-type]
        (lambda: CountTumblingWindowAssigner(0), "the size must be a whole number of at least 1, not 0"),
        (lambda: CountSlidingWindowAssigner(5, 0), "the slide must be a whole number of at least 1"),
        (lambda: CountSlidingWindowAssigner(1.5, 1), "the size must be a whole number"),  # type: ignore[arg-type]
        (lambda: CountTrigger.of(-1), "the count must be a whole number of at least 0, not -1"),
        (lambda: CountTrigger.of(2**63), "not 9223372036854775808; it has 64 bits"),
        (lambda: CountEvictor.of(-1), "the count must be a whole number of at least 0"),
        (lambda: ContinuousEventTimeTrigger.of(Time.seconds(0)), "must be at least 1 ms"),
        (lambda: ContinuousEventTimeTrigger(0), "the interval must be at least 1 ms"),
        (lambda: ContinuousProcessingTimeTrigger(-1), "the interval must be at least 1 ms"),
        (lambda: ContinuousEventTimeTrigger(2.5), "the interval must be a whole number of milliseconds"),  # type: ignore[arg-type]
        (lambda: TumblingEventTimeWindows(True), "the size must be a whole number of milliseconds"),
        (lambda: TumblingEventTimeWindows(Time(5)), r"it is Time\(size_ms=5\)"),  # type: ignore[arg-type]
        (lambda: TumblingEventTimeWindows(2**63), "the size must be .* not beyond 64 bits"),
        (lambda: TumblingEventTimeWindows(5, 0.5), "the offset must be a whole number of milliseconds"),  # type: ignore[arg-type]
        (lambda: SlidingEventTimeWindows(5, "1"), "the slide must be a whole number of milliseconds"),  # type: ignore[arg-type]
        (lambda: CumulativeEventTimeWindows(10, 5.0), "the step must be a whole number of milliseconds"),  # type: ignore[arg-type]
        (lambda: EventTimeSessionWindows(2.5), "the gap must be a whole number of milliseconds"),  # type: ignore[arg-type]
        (lambda: TimeEvictor(Time(5)), "TimeEvictor: the size must be a whole number"),  # type: ignore[arg-type]
        (lambda: ProcessingTimeoutTrigger(NeverTrigger(), 2.5), "the timeout must be a whole number"),  # type: ignore[arg-type]
        (lambda: PurgingTrigger.of(5), "takes a trigger"),  # type: ignore[arg-type]
        (lambda: ProcessingTimeoutTrigger.of(NeverTrigger(), Time.seconds(-1)), "cannot be negative"),
        (lambda: ProcessingTimeoutTrigger.of(5, Time.seconds(1)), "takes a trigger"),  # type: ignore[arg-type]
        (lambda: DeltaTrigger.of(1, 5), "takes a DeltaFunction"),  # type: ignore[arg-type]
        (lambda: DeltaEvictor.of(1, None), "takes a DeltaFunction"),  # type: ignore[arg-type]
    ],
)
def test_settings_that_have_no_meaning_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


@pytest.mark.parametrize(
    ("serializer", "window"),
    [
        (TimeWindowSerializer(), TimeWindow(-5, 2**63 - 1)),
        (CountWindowSerializer(), CountWindow(7)),
        (GlobalWindowSerializer(), GlobalWindow.get()),
    ],
)
def test_windows_are_values_that_can_be_copied_and_written(serializer: Any, window: Window) -> None:
    assert copy.deepcopy(window) == pickle.loads(pickle.dumps(window)) == window
    assert serializer.deserialize(serializer.serialize(window)) == window
    assert hash(copy.deepcopy(window)) == hash(window)


def test_there_is_one_global_window() -> None:
    assert copy.deepcopy(GlobalWindow()) is GlobalWindow.get()
    assert GlobalWindow() != TimeWindow(0, 1)


def test_windows_in_words_say_what_they_are() -> None:
    assert (
        TumblingEventTimeWindows(5, 0, WindowStagger.RANDOM).in_words
        == "tumbling windows of 5 ms, stagger random"
    )
    assert TumblingProcessingTimeWindows(5).in_words == "tumbling windows of 5 ms of processing time"
    assert (
        CumulativeEventTimeWindows(10, 5, 1).in_words
        == "windows that grow by 5 ms up to 10 ms shifted by 1 ms"
    )
    assert GlobalWindows.create().in_words == "the global window"


def test_texts_of_windows_are_those_of_pyflink() -> None:
    assert [
        str(assigner)
        for assigner in (
            TumblingEventTimeWindows.of(Time.seconds(5), Time.seconds(1)),
            TumblingProcessingTimeWindows.of(Time.seconds(5)),
            SlidingEventTimeWindows.of(Time.seconds(5), Time.seconds(1), Time.milliseconds(3)),
            SlidingProcessingTimeWindows.of(Time.seconds(5), Time.seconds(1)),
            EventTimeSessionWindows.with_gap(Time.minutes(2)),
            ProcessingTimeSessionWindows.with_gap(Time.minutes(2)),
            GlobalWindows.create(),
            CountTumblingWindowAssigner.of(3),
            CountSlidingWindowAssigner.of(3, 1),
        )
    ] == [
        "TumblingEventTimeWindows(5000, 1000)",
        "TumblingProcessingTimeWindows(5000, 0)",
        "SlidingEventTimeWindows(5000, 1000, 3)",
        "SlidingProcessingTimeWindows(5000, 1000, 0)",
        "EventTimeSessionWindows(120000)",
        "ProcessingTimeSessionWindows(120000)",
        "GlobalWindows()",
        "CountTumblingWindowAssigner(3)",
        "CountSlidingWindowAssigner(3, 1)",
    ]
    assert repr(TimeWindow(0, 5)) == "TimeWindow(start=0, end=5)"


@pytest.mark.parametrize(
    "settings",
    [
        lambda: EventTimeSessionWindows.with_dynamic_gap(lambda element: 5),
        lambda: DeltaTrigger.of(5, lambda one, other: 1.0),
        lambda: DeltaEvictor.of(5, lambda one, other: 1.0),
    ],
)
def test_checkpoints_know_the_functions_of_windows_by_their_names(settings: Callable[[], Any]) -> None:
    one, other = settings(), settings()  # as in two processes: functions at two places in memory
    assert repr(one) != repr(other)
    described = [shown_settings(SimpleNamespace(setting=each), ("setting",)) for each in (one, other)]
    assert described[0] == described[1]
    assert "<lambda>" in described[0]["setting"]
