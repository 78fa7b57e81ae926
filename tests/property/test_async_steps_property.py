"""Random jobs with steps that wait give what they give where these steps are flat maps, in its order."""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jobs.awaited import awaited, several
from jobs.element_steps import STEPS, Element, as_element
from jobs.source_jobs import ListedSource

from flinkcore.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)

elements = st.lists(st.tuples(st.integers(0, 120), st.sampled_from("abcd"), st.integers(0, 8)), max_size=25)
Step = Callable[[DataStream], DataStream]


class Reminders(KeyedProcessFunction):
    """Gives each element, and what the clock and the watermark show some ms later, up to three times."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        timers = ctx.timer_service()
        for delay_ms in range(value[2] % 3 + 1):
            timers.register_processing_time_timer(timers.current_processing_time() + delay_ms)
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        timers = ctx.timer_service()
        yield timers.current_processing_time(), ctx.get_current_key(), max(timers.current_watermark(), 0) % 9


def reminders(stream: DataStream) -> DataStream:
    return stream.key_by(lambda value: value[1]).process(Reminders())


def on_two_ways(stream: DataStream, wait: Step) -> DataStream:
    """Elements that wait meet those that do not."""
    return wait(stream).union(reminders(stream))


def late_meets_early(stream: DataStream, wait: Step) -> DataStream:
    """Elements that wait twice meet those that do not wait."""
    return wait(wait(stream).map(as_element)).union(stream).rebalance()


WAYS: dict[str, Callable[[DataStream, Step], DataStream]] = {
    "one": lambda stream, wait: wait(stream),
    "two": on_two_ways,
    "late meets early": late_meets_early,
    **{name: lambda stream, wait, step=step: step(stream) for name, step in STEPS.items()},  # type: ignore[misc]
    "reminders": lambda stream, wait: reminders(stream),
}


@settings(deadline=None, max_examples=60)
@given(
    st.lists(elements, min_size=1, max_size=2),
    st.lists(st.sampled_from(sorted(WAYS)), max_size=2),
    st.sampled_from(["one", "two", "late meets early"]),
    st.lists(st.sampled_from(sorted(WAYS)), max_size=2),
    st.integers(1, 3),
    st.integers(1, 5),
    st.sampled_from([300, 1000, 2500]),
    st.booleans(),
    st.sampled_from(
        [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH]
    ),
)
def test_steps_that_wait_are_flat_maps_that_hold_up_nobody(
    inputs: list[list[Element]],
    before: list[str],
    way: str,
    after: list[str],
    parallelism: int,
    capacity: int,
    rate: int,
    from_functions: bool,
    mode: RuntimeExecutionMode,
) -> None:
    def given_back(wait: Step) -> list[Any]:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
        env.set_runtime_mode(RuntimeExecutionMode.STREAMING if from_functions else mode)
        env.get_config().set_chaining_enabled(False).set_arrival_rate(rate).set_auto_watermark_interval(7)
        if from_functions:
            stream, *others = [env.add_source(ListedSource(values)) for values in inputs]
        else:
            stream, *others = [env.from_collection(values) for values in inputs]
        stream = stream.union(*others) if others else stream
        for name in [*before, way, *after]:
            stream = WAYS[name](stream, wait)
        return list(stream.execute_and_collect())

    waited = given_back(lambda stream: awaited(stream, capacity))
    assert waited == given_back(lambda stream: stream.flat_map(several))
