"""Functions of two streams over windows, and elements that know of which stream they are."""

from pathlib import Path
from typing import Any

import pytest

from flinkcore.common import Time
from flinkcore.datastream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction, RuntimeContext
from flinkcore.datastream.functions.join_functions import (
    CoGroupWindowFunction,
    TaggedUnion,
    WindowJoinFunction,
)
from flinkcore.datastream.window import (
    DynamicEventTimeSessionWindows,
    EventTimeTrigger,
    TimeWindow,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowOperation,
)
from flinkcore.errors import UserCodeError
from flinkcore.testing import KeyedOneInputStreamOperatorTestHarness, StreamRecord, for_window_operation

one, two = TaggedUnion.one, TaggedUnion.two
Harness = KeyedOneInputStreamOperatorTestHarness[str, TaggedUnion[str, str], Any]
TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(10))


class Groups(CoGroupFunction[str, str]):
    calls = ""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls += "open "

    def co_group(self, first: list[str], second: list[str]) -> Any:
        self.calls += "co_group "
        yield "".join(first), "".join(second)

    def close(self) -> None:
        self.calls += "close"


class Pair(JoinFunction[str, str, str]):
    def join(self, first: str, second: str) -> str:
        return f"{first}{second}"


class Flat(FlatJoinFunction[str, str]):
    def join(self, first: str, second: str) -> Any:
        if first == second:
            return None
        return [first, second]


def windows(
    function: WindowJoinFunction, assigner: WindowAssigner[Any, Any] = TUMBLING, restore_from: Any = None
) -> Harness:
    operation = WindowOperation(
        assigner, EventTimeTrigger.create(), window_function=CoGroupWindowFunction(function)
    )
    return for_window_operation(operation, lambda element: "key", restore_from=restore_from)


def test_a_co_group_gets_both_groups_in_order_of_arrival_also_an_empty_one() -> None:
    function = Groups()
    with windows(function) as harness:
        for element, timestamp in ((two("x"), 3), (one("b"), 5), (one("a"), 1), (two("y"), 12)):
            harness.process_element(element, timestamp)
        harness.process_watermark(30)
        assert harness.get_output()[:2] == [StreamRecord(("ba", "x"), 9), StreamRecord(("", "y"), 19)]
    assert function.calls == "open co_group co_group close"


def test_a_join_gets_every_pair_and_none_where_a_group_is_empty() -> None:
    with windows(Pair()) as harness:
        for element, timestamp in (
            (two("x"), 3),
            (one("b"), 5),
            (one("a"), 1),
            (two("y"), 7),
            (one("c"), 12),
        ):
            harness.process_element(element, timestamp)
        harness.process_watermark(30)
        assert harness.extract_output_values() == ["bx", "by", "ax", "ay"]


def test_a_flat_join_gives_any_number_of_elements_for_a_pair() -> None:
    with windows(Flat()) as harness:
        for element in (one("a"), one("b"), two("b")):
            harness.process_element(element, 3)
        harness.process_watermark(30)
        assert harness.extract_output_values() == ["a", "b"]


def test_a_late_element_joins_what_is_still_there() -> None:
    operation = WindowOperation(
        TUMBLING,
        EventTimeTrigger.create(),
        allowed_lateness_ms=5,
        window_function=CoGroupWindowFunction(Pair()),
    )
    with for_window_operation(operation, lambda element: "key") as harness:
        harness.process_element(one("a"), 3)
        harness.process_watermark(12)
        harness.process_element(two("x"), 4)
        harness.process_watermark(14)
        harness.process_element(two("y"), 4)
        assert harness.extract_output_values() == ["ax"]
        harness.refuse_leaks()


def test_a_gap_extractor_gets_elements_that_know_their_stream() -> None:
    assigner = DynamicEventTimeSessionWindows(lambda element: 10 if element.is_one() else 2)
    with windows(Groups(), assigner) as harness:
        harness.process_element(two("x"), 0)
        harness.process_element(two("y"), 3)
        harness.process_element(one("a"), 20)
        harness.process_element(two("z"), 28)
        harness.process_watermark(50)
        assert harness.extract_output_values() == [("", "x"), ("", "y"), ("a", "z")]


def test_windows_of_two_streams_survive_a_snapshot(tmp_path: Path) -> None:
    with windows(Groups()) as harness:
        harness.process_element(one("a"), 3)
        harness.process_element(two("x"), 3)
        harness.snapshot().write(tmp_path / "snapshot")
    with windows(Groups(), restore_from=tmp_path / "snapshot") as harness:
        assert harness.get_keyed_state("window-contents", "key", TimeWindow(0, 10)) == [one("a"), two("x")]
        harness.process_watermark(30)
        assert harness.extract_output_values() == [("a", "x")]


class Failing(JoinFunction[str, str, str]):
    def join(self, first: str, second: str) -> str:
        raise ValueError(first + second)


class FlatText(FlatJoinFunction[str, str]):
    def join(self, first: str, second: str) -> Any:
        return "text"


class NoIterable(CoGroupFunction[str, str]):
    def co_group(self, first: list[str], second: list[str]) -> Any:
        return 5


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Failing(), r"^Failing.join failed at the window .* of the key 'key': ValueError: ax"),
        (FlatText(), r"^FlatText.join failed at .*: TypeError: it gave 'text' for a pair\. Yield elements"),
        (NoIterable(), r"^NoIterable.co_group gave 5 at the window"),
    ],
)
def test_errors_name_the_function_of_the_user(function: WindowJoinFunction, message: str) -> None:
    with windows(function) as harness:
        harness.process_element(one("a"), 3)
        harness.process_element(two("x"), 3)
        with pytest.raises(UserCodeError, match=message):
            harness.process_watermark(30)


def test_a_tagged_union_is_of_one_stream_or_the_other() -> None:
    first, second = one("a"), two("a")
    assert (first.is_one(), first.is_two(), first.get_one(), first.get_two()) == (True, False, "a", None)
    assert (second.is_one(), second.is_two(), second.get_one(), second.get_two()) == (False, True, None, "a")
    assert first == one("a")
    assert len({first, one("a"), second}) == 2
    assert first != "a"
    assert (repr(first), repr(second)) == ("TaggedUnion.one('a')", "TaggedUnion.two('a')")
