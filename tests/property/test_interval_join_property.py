"""An interval join that is cut by snapshots into runs of other parallelism gives what a plain model gives."""

from collections import defaultdict
from typing import Any

from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.datastream.functions import ProcessJoinFunction
from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation
from flinkcore.testing import (
    AbstractStreamOperatorTestHarness,
    KeyedTwoInputStreamOperatorTestHarness,
    OperatorSubtaskState,
    TaskInfo,
    for_interval_join,
)

KEY_GROUPS = 8
Element = tuple[int, int]
Harness = KeyedTwoInputStreamOperatorTestHarness[int, Element, Element, Any]


class Pairs(ProcessJoinFunction[Element, Element]):
    def process_element(self, left: Element, right: Element, ctx: ProcessJoinFunction.Context) -> Any:
        return [(left, right)]


def key_of(element: Element) -> int:
    return element[0]


def subtasks(
    parallelism: int, lower: int, upper: int, restore_from: OperatorSubtaskState | None = None
) -> list[Harness]:
    return [
        for_interval_join(
            IntervalJoinOperation(lower, upper, Pairs()),
            key_of,
            key_of,
            task=TaskInfo("join", parallelism, KEY_GROUPS, index),
            restore_from=restore_from,
        )
        for index in range(parallelism)
    ]


def run(events: list[tuple[str, Any]], lower: int, upper: int) -> dict[int, list[Any]]:
    """Return what comes out, by key; at the end nothing may be left."""
    results: dict[int, list[Any]] = defaultdict(list)
    harnesses, watermark_ms, number = subtasks(1, lower, upper), 0, 0
    for kind, argument in [*events, ("watermark", 1000)]:
        if kind in ("left", "right"):
            number += 1
            key, timestamp = argument
            (owner,) = (harness for harness in harnesses if harness.owns_key(key))
            process = owner.process_element1 if kind == "left" else owner.process_element2
            process((key, number), timestamp)
        elif kind == "watermark":
            watermark_ms += argument
            for harness in harnesses:
                harness.process_both_watermarks(watermark_ms)
        else:
            states = [harness.snapshot() for harness in harnesses]
            for harness in harnesses:
                harness.close()
            joined = AbstractStreamOperatorTestHarness.repackage_state(*states)
            harnesses = subtasks(argument, lower, upper, joined)
            for harness in harnesses:  # inputs begin anew; no watermark goes back
                harness.process_both_watermarks(watermark_ms)
        for harness in harnesses:
            for record in harness.extract_output_stream_records():
                results[record.value[0][0]].append((*record.value, record.timestamp))
            harness.take_output()
    for harness in harnesses:
        harness.refuse_leaks()
        harness.close()
    return dict(results)


def model(events: list[tuple[str, Any]], lower: int, upper: int) -> dict[int, list[Any]]:
    results: dict[int, list[Any]] = defaultdict(list)
    came: list[tuple[str, int, Element]] = []
    watermark_ms, number = 0, 0
    for kind, argument in events:
        if kind == "watermark":
            watermark_ms += argument
            came = [
                (side, timestamp, element)
                for side, timestamp, element in came
                if timestamp + max(0, upper if side == "left" else -lower) > watermark_ms
            ]
        if kind not in ("left", "right"):
            continue
        number += 1
        key, timestamp = argument
        if timestamp < watermark_ms:
            continue
        for side, other_timestamp, other in sorted(came, key=lambda entry: entry[1]):
            if side == kind or other[0] != key:
                continue
            left = ((key, number), timestamp), (other, other_timestamp)
            (first, first_ms), (second, second_ms) = left if kind == "left" else left[::-1]
            if lower <= second_ms - first_ms <= upper:
                results[key].append((first, second, max(first_ms, second_ms)))
        came.append((kind, timestamp, (key, number)))
    return dict(results)


element = st.tuples(st.sampled_from(["left", "right"]), st.tuples(st.integers(0, 4), st.integers(0, 40)))
watermark = st.tuples(st.just("watermark"), st.integers(0, 9))
cut = st.tuples(st.just("cut"), st.integers(1, 4))


@settings(deadline=None, max_examples=examples(40))
@given(
    st.lists(st.one_of(element, element, element, watermark, cut), max_size=40),
    st.integers(-15, 15),
    st.sampled_from([0, 1, 5, 30]),
)
def test_no_pair_is_lost_or_new_whatever_the_parallelism(
    events: list[tuple[str, Any]], lower: int, width: int
) -> None:
    assert run(events, lower, lower + width) == model(events, lower, lower + width)
