"""Windows that know their open panes give what asking assigner and trigger for every element gives."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jobs.window_programs import Count, Sum, Surroundings, record

from flinkcore.common import MAX_TIMESTAMP, OutputTag, Watermark
from flinkcore.datastream.functions import ProcessWindowFunction, WindowContext
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowOperation,
)
from flinkcore.operators.windowing.open_panes import has_open_panes

LATE = OutputTag("late")


class AskedEachTime(EventTimeTrigger):
    """The same trigger, but of another class: what it does is not known beforehand."""


class WithNone(Count):
    """Whose accumulator is None now and then, which empties the pane."""

    def add(self, value: Any, accumulator: int) -> Any:
        return None if value[1] == 0 else accumulator + 1


class Cancelling(Sum):
    """Whose values cancel each other out now and then, which empties the pane, too."""

    def reduce(self, value1: Any, value2: Any) -> Any:
        return None if (value1[1] + value2[1]) % 3 == 0 else super().reduce(value1, value2)


class Telling(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self) -> None:
        self.cleared: list[Any] = []

    def process(self, key: Any, context: WindowContext[Any], elements: Iterable[Any]) -> Any:
        yield key, context.window(), list(elements), context.current_watermark()

    def clear(self, context: WindowContext[Any]) -> None:
        self.cleared.append(context.window())


lengths = st.integers(1, 12)
assigners = st.one_of(
    st.builds(lambda size, offset: TumblingEventTimeWindows(size, offset % size), lengths, lengths),
    st.builds(
        lambda size, slide, offset: SlidingEventTimeWindows(size, slide, offset % slide),
        lengths,
        lengths,
        lengths,
    ),
    st.builds(lambda step, steps: CumulativeEventTimeWindows(step * steps, step), lengths, st.integers(1, 4)),
    st.builds(EventTimeSessionWindows, lengths),
)
actions = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(-20, 40)),
        st.integers(-20, 45),  # a watermark, which may go back
    ),
    max_size=40,
)


def outputs(
    assigner: WindowAssigner[Any, Any],
    trigger: EventTimeTrigger,
    lateness: int,
    aggregation: Any,
    has_function: bool,
    done: list[Any],
) -> list[Any]:
    around, function = Surroundings(), Telling()
    operation = WindowOperation(
        assigner, trigger, None, lateness, LATE, aggregation, function if has_function else None
    )
    operator = around.windows(operation)
    timers = []
    for action in done:
        if isinstance(action, int):
            operator.process_watermark(Watermark(action))
        else:
            operator.process_element(record(*action))
        around.keyed_state._check()
        timers.append(operator.time_service_manager.num_event_time_timers())
    operator.process_watermark(Watermark(MAX_TIMESTAMP))
    assert operator.time_service_manager.num_event_time_timers() == 0
    return [around.output.take(), function.cleared, timers, operator.num_late_records]


@settings(deadline=None, max_examples=250)
@given(
    assigners,
    st.integers(0, 8),
    st.sampled_from([None, Count(), Sum(), WithNone(), Cancelling()]),
    st.booleans(),
    actions,
)
def test_open_panes_give_what_the_trigger_gives_when_it_is_asked(
    assigner: WindowAssigner[Any, Any],
    lateness: int,
    aggregation: Any,
    has_function: bool,
    done: list[Any],
) -> None:
    has_function |= aggregation is None
    known, unknown = (
        outputs(assigner, trigger, lateness, aggregation, has_function, done)
        for trigger in (EventTimeTrigger(), AskedEachTime())
    )
    assert known == unknown


def test_only_what_is_known_of_windows_that_fire_at_their_end_is_done_without_asking() -> None:
    tumbling = TumblingEventTimeWindows(10)
    assert has_open_panes(WindowOperation(tumbling, EventTimeTrigger(), pre_aggregation=Count()))
    assert not has_open_panes(WindowOperation(tumbling, AskedEachTime(), pre_aggregation=Count()))
