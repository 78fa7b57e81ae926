"""Interval joins, element by element."""

from pathlib import Path
from typing import Any

import pytest

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, OutputTag, Watermark
from flinkcore.datastream.functions import ProcessJoinFunction, RuntimeContext
from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.errors import ConfigurationError, DataError, LifecycleError, UserCodeError
from flinkcore.operators.interval_join_operator import IntervalJoinOperator
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService
from flinkcore.testing import (
    AbstractStreamOperatorTestHarness,
    KeyedTwoInputStreamOperatorTestHarness,
    StreamRecord,
    TaskInfo,
    for_interval_join,
)

Harness = KeyedTwoInputStreamOperatorTestHarness[str, Any, Any, Any]


class Pair(ProcessJoinFunction[str, str]):
    def process_element(self, left: str, right: str, ctx: ProcessJoinFunction.Context) -> Any:
        return [f"{left}-{right}"]


def first_letter(value: str) -> str:
    return value[0]


def joining(
    lower: int, upper: int, function: Any = None, restore_from: Any = None, **settings: Any
) -> Harness:
    operation = IntervalJoinOperation(lower, upper, function or Pair(), **settings)
    return for_interval_join(operation, first_letter, first_letter, restore_from=restore_from)


def test_a_pair_is_joined_whichever_element_comes_first() -> None:
    with joining(-2, 1) as harness:
        harness.process_element1("a1", 10)
        harness.process_element2("a2", 11)
        harness.process_element2("a3", 12)
        harness.process_element2("b4", 10)
        harness.process_element1("a5", 13)
        assert harness.get_output() == [
            StreamRecord("a1-a2", 11),
            StreamRecord("a5-a2", 13),
            StreamRecord("a5-a3", 13),
        ]


@pytest.mark.parametrize(
    ("settings", "joined"),
    [
        ({}, [8, 9, 10]),
        ({"is_lower_bound_inclusive": False}, [9, 10]),
        ({"is_upper_bound_inclusive": False}, [8, 9]),
        ({"is_lower_bound_inclusive": False, "is_upper_bound_inclusive": False}, [9]),
    ],
)
def test_bounds_are_inclusive_unless_said_otherwise(settings: dict[str, bool], joined: list[int]) -> None:
    with joining(-2, 0, **settings) as harness:
        harness.process_element1("a", 10)
        for timestamp in range(7, 12):
            harness.process_element2(f"a{timestamp}", timestamp)
        assert harness.extract_output_values() == [f"a-a{timestamp}" for timestamp in joined]


def test_nothing_joins_between_exclusive_bounds_without_room() -> None:
    with joining(3, 3, is_lower_bound_inclusive=False, is_upper_bound_inclusive=False) as harness:
        harness.process_element1("a", 10)
        harness.process_element2("a", 13)
        harness.process_both_watermarks(13)
        assert harness.get_output() == [Watermark(13)]
        harness.refuse_leaks()


def test_several_elements_are_met_in_order_of_their_timestamps_and_then_of_their_arrival() -> None:
    with joining(-9, 9) as harness:
        for name, timestamp in (("a1", 7), ("a2", 3), ("a3", 7), ("a4", 5)):
            harness.process_element2(name, timestamp)
        harness.process_element1("a", 6)
        assert harness.extract_output_values() == ["a-a2", "a-a4", "a-a1", "a-a3"]


def test_elements_are_dropped_when_nothing_can_join_them_any_more() -> None:
    with joining(-1, 4) as harness:
        harness.process_element1("a", 10)
        harness.process_element2("a", 10)
        harness.process_both_watermarks(10)
        assert harness.get_keyed_state("RIGHT_BUFFER", "a") == {10: ["a"]}
        harness.process_both_watermarks(11)
        assert harness.get_keyed_state("RIGHT_BUFFER", "a") is None
        harness.process_both_watermarks(13)
        assert harness.get_keyed_state("LEFT_BUFFER", "a") == {10: ["a"]}
        harness.process_both_watermarks(14)
        harness.refuse_leaks()


def test_an_element_at_the_watermark_is_joined_and_one_behind_it_is_late() -> None:
    late = OutputTag("late left")
    with joining(0, 9, left_late_tag=late) as harness:
        harness.process_element2("a", 12)
        harness.process_both_watermarks(10)
        harness.process_element1("a1", 10)
        harness.process_element1("a2", 9)
        harness.process_element2("a3", 9)
        assert harness.extract_output_values() == ["a1-a"]
        assert harness.get_side_output(late) == [StreamRecord("a2", 9)]
        operator = harness.get_operator()
        assert isinstance(operator, IntervalJoinOperator)
        assert operator.num_late_records == 2


def test_the_watermark_of_one_input_alone_makes_nothing_late() -> None:
    with joining(0, 9) as harness:
        harness.process_watermark1(100)
        harness.process_element1("a", 10)
        harness.process_element2("a", 12)
        assert harness.extract_output_values() == ["a-a"]


class Times(ProcessJoinFunction[str, str]):
    side = OutputTag("side")

    def process_element(self, left: str, right: str, ctx: ProcessJoinFunction.Context) -> Any:
        yield ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp()
        yield self.side, left


def test_a_pair_has_the_greater_timestamp_also_in_side_outputs() -> None:
    with joining(-9, 9, Times()) as harness:
        harness.process_element1("a", 10)
        harness.process_element2("a", 12)
        harness.process_element2("a", 7)
        assert harness.get_output() == [StreamRecord((10, 12, 12), 12), StreamRecord((10, 7, 10), 10)]
        assert harness.get_side_output(Times.side) == [StreamRecord("a", 12), StreamRecord("a", 10)]


@pytest.mark.parametrize("timestamp", [None, MIN_TIMESTAMP])
def test_an_element_without_a_timestamp_is_refused(timestamp: int | None) -> None:
    with joining(0, 1) as harness:
        harness.process_element1("a", 1)
        message = r"the element 'b' of the key 'b' .*, of the right input, cannot be joined by time"
        with pytest.raises(DataError, match=message):
            harness.process_element2("b", timestamp)


def test_nothing_wraps_around_at_64_bits() -> None:
    with joining(MIN_TIMESTAMP, MAX_TIMESTAMP) as harness:
        harness.process_element1("a1", 5)
        harness.process_element2("a2", MIN_TIMESTAMP + 5)
        harness.process_element2("a3", MAX_TIMESTAMP)
        assert harness.extract_output_values() == ["a1-a2", "a1-a3"]
        harness.process_both_watermarks(MAX_TIMESTAMP)
        assert harness.get_keyed_state("LEFT_BUFFER", "a") == {5: ["a1"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, 1, Pair()), "the lower bound of an interval join is 2 ms, greater than the upper one of 1 ms"),
        ((0.5, 1, Pair()), "the lower bound of an interval join is an integer of 64 bits, in ms, not 0.5"),
        ((0, 2**63, Pair()), "the upper bound .* not 9223372036854775808"),
        ((0, 1, max), "takes a ProcessJoinFunction, not <built-in function max>"),
        ((0, 1, Pair(), True, True, "late"), "late rows go to an OutputTag, not to 'late'"),
    ],
)
def test_what_is_no_interval_join_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        IntervalJoinOperation(*arguments)


def test_an_operation_says_what_it_does() -> None:
    operation = IntervalJoinOperation(-1, 2, Pair(), False, right_late_tag=OutputTag("r"))
    assert str(operation) == (
        "interval join, right - left in (-1 ms, 2 ms], late left rows counted and dropped, late right rows to side "
        "output r"
    )


class Failing(ProcessJoinFunction[str, str]):
    is_closed = False

    def process_element(self, left: str, right: str, ctx: ProcessJoinFunction.Context) -> Any:
        if left == "a0":
            return 7
        raise ValueError(left)

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ("a0", r"Failing.process_element gave 7 at the element \('a0', 'a'\) of the key 'a'"),
        ("a1", r"Failing.process_element failed at the element \('a1', 'a'\) of the key 'a'.*ValueError: a1"),
    ],
)
def test_errors_of_the_function_name_the_pair(left: str, message: str) -> None:
    function = Failing()
    with joining(0, 1, function) as harness:
        harness.process_element2("a", 1)
        with pytest.raises(UserCodeError, match=message):
            harness.process_element1(left, 1)
    assert function.is_closed


def test_no_element_comes_before_the_operator_is_opened() -> None:
    clock = DrivenProcessingTimeService(0)
    backend = KeyedStateBackend(KeyContext(), clock)
    operation = IntervalJoinOperation(0, 1, Pair())
    operator = IntervalJoinOperator(operation, first_letter, first_letter, None, backend, clock)  # type: ignore[arg-type]
    with pytest.raises(LifecycleError, match="comes before the operator was opened"):
        operator.process_element1(StreamRecord("a", 1))


class Counting(ProcessJoinFunction[str, str]):
    """Uses keyed state of its own."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor[int]("count"))

    def process_element(self, left: str, right: str, ctx: ProcessJoinFunction.Context) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        yield left, right, self.count.value()


def test_what_waits_is_in_snapshots_also_at_another_parallelism(tmp_path: Path) -> None:
    operation = IntervalJoinOperation(-5, 5, Counting())
    names = "abcdef"
    with for_interval_join(operation, first_letter, first_letter) as harness:
        for name in names:
            harness.process_element1(f"{name}1", 10)
            harness.process_element1(f"{name}2", 10)
            harness.process_element2(f"{name}3", 12)
        harness.process_both_watermarks(9)
        harness.take_output()
        harness.snapshot().write(tmp_path / "snapshot")
        harness.process_element1("a4", 11)
    restored: list[Any] = []
    for index in range(2):
        task = TaskInfo("join", 2, 128, index)
        operation = IntervalJoinOperation(-5, 5, Counting())
        with for_interval_join(
            operation, first_letter, first_letter, task=task, restore_from=tmp_path / "snapshot"
        ) as harness:
            for name in filter(harness.owns_key, names):
                harness.process_element2(f"{name}5", 15)
            restored += harness.extract_output_values()
            harness.process_both_watermarks(20)
            assert harness.num_event_time_timers() == 0
    expected = [(f"{name}{left}", f"{name}5", count) for name in names for left, count in ((1, 3), (2, 4))]
    assert sorted(restored) == expected


def test_a_snapshot_does_not_change_while_the_operator_goes_on() -> None:
    with joining(-5, 5) as harness:
        harness.process_element1("a1", 10)
        snapshot = harness.snapshot()
        harness.process_element1("a2", 10)
    repackaged = AbstractStreamOperatorTestHarness.repackage_state(snapshot)
    with joining(-5, 5, restore_from=repackaged) as restored:
        assert restored.get_keyed_state("LEFT_BUFFER", "a") == {10: ["a1"]}


@pytest.mark.parametrize("waiting", [3, 40])
def test_a_short_interval_finds_its_elements_among_few_and_among_many(waiting: int) -> None:
    with joining(-2, 1) as harness:
        for timestamp in range(waiting, 0, -1):
            harness.process_element2(f"a{timestamp}", timestamp)
        harness.process_element1("a", 3)
        expected = [f"a-a{timestamp}" for timestamp in range(1, 5) if timestamp <= waiting]
        assert harness.extract_output_values() == expected
