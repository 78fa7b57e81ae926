"""Windows in harnesses: what is in them, what is late, and what survives."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkcore.common import OutputTag, Time, Watermark
from flinkcore.datastream import EventTimeSessionWindows, TumblingEventTimeWindows
from flinkcore.datastream.functions import ProcessWindowFunction
from flinkcore.datastream.window import EventTimeTrigger, TimeWindow, WindowAssigner, WindowOperation
from flinkcore.testing import (
    AbstractStreamOperatorTestHarness,
    OperatorSubtaskState,
    StreamRecord,
    TaskInfo,
    assert_output,
    for_window_operation,
)

LATE = OutputTag("late")
TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(10))


class Sum(ProcessWindowFunction[int, tuple[str, int], str, TimeWindow]):
    def process(self, key: str, context: Any, elements: Iterable[int]) -> Iterator[tuple[str, int]]:
        yield key, sum(elements)


def sums(assigner: WindowAssigner[int, TimeWindow]) -> WindowOperation:
    return WindowOperation(assigner, EventTimeTrigger(), late_tag=LATE, window_function=Sum())


def parity(value: int) -> str:
    return "odd" if value % 2 else "even"


def test_windows_fire_and_their_contents_are_looked_up() -> None:
    with for_window_operation(sums(TUMBLING), parity) as harness:
        for value in range(12):
            harness.process_element(value, value)
        assert harness.get_keyed_state("window-contents", "odd", TimeWindow(0, 10)) == [1, 3, 5, 7, 9]
        assert harness.num_keyed_state_entries(TimeWindow(10, 20)) == 2
        harness.process_watermark(9)
        assert_output(harness, [StreamRecord(("even", 20), 9), StreamRecord(("odd", 25), 9), Watermark(9)])
        harness.process_element(5, 5)
        assert harness.get_side_output(LATE) == [StreamRecord(5, 5)]
        harness.process_watermark(Watermark.MAX_WATERMARK)
        harness.refuse_leaks()


@pytest.mark.parametrize("assigner", [TUMBLING, EventTimeSessionWindows.with_gap(Time.milliseconds(5))])
def test_open_windows_survive_a_change_of_parallelism(
    assigner: WindowAssigner[int, TimeWindow], tmp_path: Path
) -> None:
    with for_window_operation(sums(assigner), parity) as harness:
        for value in (0, 1, 4, 5):
            harness.process_element(value, value)
        harness.process_watermark(3)
        harness.snapshot().write(tmp_path)
    states: list[OperatorSubtaskState] = []
    for index in range(2):
        task = TaskInfo("sums", parallelism=2, index=index)
        with for_window_operation(sums(assigner), parity, task=task, restore_from=tmp_path) as part:
            for value in (6, 7):
                if part.owns_key(parity(value)):
                    part.process_element(value, value)
            assert part.extract_output_values() == []
            states.append(part.snapshot())
    joined = AbstractStreamOperatorTestHarness.repackage_state(*states)
    with for_window_operation(sums(assigner), parity, restore_from=joined) as whole:
        whole.process_watermark(20)
        assert sorted(whole.extract_output_values()) == [("even", 10), ("odd", 13)]
        whole.refuse_leaks()


def test_a_pane_that_has_fired_fires_again_for_more_where_the_watermark_of_another_part_counts() -> None:
    class Counts(ProcessWindowFunction[int, tuple[int, int], int, TimeWindow]):
        def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterator[tuple[int, int]]:
            yield key, len(list(elements))

    operation = WindowOperation(TUMBLING, EventTimeTrigger(), allowed_lateness_ms=5, window_function=Counts())
    states, keys = [], []
    for index in range(2):
        task = TaskInfo("counts", parallelism=2, index=index)
        with for_window_operation(operation, int, task=task) as part:
            keys.append(next(key for key in range(100) if part.owns_key(key)))
            part.process_element(keys[index], 1)
            if index == 0:
                part.process_watermark(9)
                assert part.extract_output_values() == [(keys[0], 1)]
            states.append(part.snapshot())
    joined = AbstractStreamOperatorTestHarness.repackage_state(*states)
    with for_window_operation(operation, int, restore_from=joined) as whole:
        for key in reversed(keys):
            whole.process_element(key, 2)
        whole.process_watermark(9)
        assert sorted(whole.extract_output_values()) == sorted((key, 2) for key in keys)
        whole.process_watermark(Watermark.MAX_WATERMARK)
        whole.refuse_leaks()
