"""A run that is cut by snapshots into runs of other parallelism gives what one uninterrupted run gives."""

from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from equipment.example_counts import examples
from equipment.memory_disk import MEMORY
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.common import Time
from flinkcore.datastream import KeyedProcessFunction, RuntimeContext
from flinkcore.datastream.state import MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from flinkcore.testing import (
    AbstractStreamOperatorTestHarness,
    KeyedOneInputStreamOperatorTestHarness,
    OperatorSubtaskState,
    StreamRecord,
    TaskInfo,
    for_keyed_process_function,
)

KEY_GROUPS = 8
Harness = KeyedOneInputStreamOperatorTestHarness[int, tuple[int, int], Any]
TTL = StateTtlConfig.new_builder(Time.milliseconds(20)).build()


class Busy(KeyedProcessFunction):
    """Uses timers of both domains, and states with and without a time to live."""

    def open(self, runtime_context: RuntimeContext) -> None:
        recent = MapStateDescriptor[int, int]("recent")
        recent.enable_time_to_live(TTL)
        self.recent = runtime_context.get_map_state(recent)
        self.sum = runtime_context.get_state(ValueStateDescriptor[int]("sum"))

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Any:
        timers = ctx.timer_service()
        number = value[1]
        self.sum.update((self.sum.value() or 0) + number)
        self.recent.put(number, timers.current_processing_time())
        timers.register_event_time_timer(number)
        timers.delete_event_time_timer(number + 1)
        timers.register_processing_time_timer(timers.current_processing_time() + number)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield (
            ctx.get_current_key(),
            ctx.time_domain().name,
            timestamp,
            self.sum.value(),
            sorted(self.recent.keys()),
        )
        if timestamp % 3 == 0:
            self.sum.clear()


def subtasks(parallelism: int, restore_from: OperatorSubtaskState | Path | None = None) -> list[Harness]:
    return [
        for_keyed_process_function(
            Busy(),
            lambda value: value[0],
            task=TaskInfo("busy", parallelism, KEY_GROUPS, index),
            restore_from=restore_from,
        )
        for index in range(parallelism)
    ]


element = st.tuples(st.just("element"), st.tuples(st.integers(0, 9), st.integers(0, 40)))
watermark = st.tuples(st.just("watermark"), st.integers(0, 15))
clock = st.tuples(st.just("clock"), st.integers(0, 15))
cut = st.tuples(st.just("cut"), st.integers(1, 4))


def run(events: list[tuple[str, Any]]) -> dict[int, list[Any]]:
    """Return what came out, by key: the order of keys is open, and that of equal timers of a key is not."""
    results: dict[int, list[Any]] = defaultdict(list)
    harnesses, watermark_ms, clock_ms = subtasks(1), 0, 0
    with TemporaryDirectory(dir=MEMORY) as folder:
        for kind, argument in events:
            if kind == "element":
                (owner,) = (harness for harness in harnesses if harness.owns_key(argument[0]))
                owner.process_element(argument)
            elif kind == "watermark":
                watermark_ms += argument
                for harness in harnesses:
                    harness.process_watermark(watermark_ms)
            elif kind == "clock":
                clock_ms += argument
                for harness in harnesses:
                    harness.set_processing_time(clock_ms)
            else:
                state = AbstractStreamOperatorTestHarness.repackage_state(*(h.snapshot() for h in harnesses))
                if argument % 2:
                    state.write(folder)
                harnesses = subtasks(argument, Path(folder) if argument % 2 else state)
                for harness in harnesses:
                    harness.get_processing_time_service().now_ms = clock_ms
            for harness in harnesses:
                for record in harness.take_output():
                    if isinstance(record, StreamRecord):
                        results[record.value[0]].append((record.value, record.timestamp))
    return results


@settings(deadline=None, max_examples=examples(30))
@given(st.lists(st.one_of(element, element, element, watermark, clock, cut), max_size=40))
def test_snapshots_and_changes_of_parallelism_leave_no_trace(events: list[tuple[str, Any]]) -> None:
    uninterrupted = [event for event in events if event[0] != "cut"]
    assert run(events) == run(uninterrupted)
