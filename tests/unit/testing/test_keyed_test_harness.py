"""What a test sees of keyed state and keys, and what it is told about what is left behind."""

from typing import Any

import pyarrow as pa
import pytest
from equipment.keyed_backends import Average

from flinkcore.common import Time
from flinkcore.datastream import KeyedProcessFunction, RuntimeContext
from flinkcore.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.testing import KeyedOneInputStreamOperatorTestHarness, TaskInfo, for_keyed_process_function


class Count(KeyedProcessFunction):
    """Counts per key, and registers a timer of each domain."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor[int]("count"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(100)
        ctx.timer_service().register_processing_time_timer(100)


def first(value: Any) -> Any:
    return value[0]


class Keep(KeyedProcessFunction):
    """Keeps the numbers of a key in states of many kinds, for a second of processing time where `ttl` is given."""

    def __init__(self, ttl: StateTtlConfig | None = None) -> None:
        self.ttl = ttl

    def open(self, runtime_context: RuntimeContext) -> None:
        last, average = ValueStateDescriptor[int]("last"), AggregatingStateDescriptor("average", Average())
        numbers, counts = ListStateDescriptor[int]("numbers"), MapStateDescriptor[int, int]("counts")
        for descriptor in (last, numbers, counts, average):
            if self.ttl is not None:
                descriptor.enable_time_to_live(self.ttl)
        self.last = runtime_context.get_state(last)
        self.numbers = runtime_context.get_list_state(numbers)
        self.counts = runtime_context.get_map_state(counts)
        self.average = runtime_context.get_aggregating_state(average)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.last.update(value[1])
        self.numbers.add(value[1])
        self.counts.put(value[1], 1)
        self.average.add(value[1])


TTL = (
    StateTtlConfig.new_builder(Time.seconds(1))
    .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
    .build()
)


@pytest.mark.parametrize("ttl", [None, TTL])
def test_state_of_every_kind_is_looked_up_by_key(ttl: StateTtlConfig | None) -> None:
    with for_keyed_process_function(Keep(ttl), first) as harness:
        for element in (("a", 1), ("a", 4), ("b", 2)):
            harness.process_element(element)
        assert harness.get_keyed_state("last", "a") == 4
        assert harness.get_keyed_state("numbers", "a") == [1, 4]
        assert harness.get_keyed_state("counts", "a") == {1: 1, 4: 1}
        assert harness.get_keyed_state("average", "a") == 2.5
        assert harness.get_keyed_state("last", "c") is None
        assert sorted(harness.get_keys("numbers")) == ["a", "b"]
        assert (harness.num_keyed_state_entries(), harness.num_keyed_state_entries("window")) == (8, 0)
        harness.get_keyed_state("numbers", "a").clear()
        assert harness.get_keyed_state("numbers", "a") == [1, 4]


def test_what_was_looked_up_stays_as_it_was() -> None:
    class Visits(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.visits = runtime_context.get_state(ValueStateDescriptor[list[int]]("visits"))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
            visits = self.visits.value() or []
            visits.append(value[1])
            self.visits.update(visits)

    with for_keyed_process_function(Visits(), first) as harness:
        harness.process_element(("a", 1))
        before = harness.get_keyed_state("visits", "a")
        harness.process_element(("a", 2))
        assert (before, harness.get_keyed_state("visits", "a")) == ([1], [1, 2])


def test_times_to_live_end_on_the_harnesss_clock_and_looking_up_is_no_access() -> None:
    with for_keyed_process_function(Keep(TTL), first) as harness:
        harness.process_element(("a", 1))
        harness.set_processing_time(500)
        harness.process_element(("a", 2))
        harness.set_processing_time(999)
        assert harness.get_keyed_state("counts", "a") == {1: 1, 2: 1}
        harness.set_processing_time(1000)
        assert harness.get_keyed_state("counts", "a") == {2: 1}
        assert harness.get_keyed_state("last", "a") == 2
        harness.set_processing_time(1500)
        assert harness.get_keyed_state("last", "a") is None
        assert harness.get_keys("counts") == []
        assert harness.num_keyed_state_entries() == 4


def test_a_state_that_was_not_asked_for_is_named() -> None:
    with (
        for_keyed_process_function(Count(), first) as harness,
        pytest.raises(ConfigurationError, match=r"there is no state 'cuont'; there are \['count'\]"),
    ):
        harness.get_keyed_state("cuont", "a")


def test_a_key_belongs_to_one_subtask() -> None:
    def harness_of(index: int) -> KeyedOneInputStreamOperatorTestHarness[str, tuple[str, int], Any]:
        return for_keyed_process_function(Count(), first, task=TaskInfo("count", parallelism=2, index=index))

    subtasks = [harness_of(0), harness_of(1)]
    for key in "abcdefgh":
        owner, other = sorted(subtasks, key=lambda harness: not harness.owns_key(key))
        assert not other.owns_key(key)
        owner.process_element((key, 1))
        with pytest.raises(DataError, match=f"the key '{key}' is in key group"):
            other.process_element((key, 1))
    assert all(harness.num_keyed_state_entries() for harness in subtasks)


def test_the_key_type_decides_on_the_key_group() -> None:
    key = -5  # Java's hash code of the Integer is another than that of the Long
    task = TaskInfo("count", parallelism=64)
    wide = [
        for_keyed_process_function(Count(), first, task=TaskInfo("count", 64, 128, index)).owns_key(key)
        for index in range(task.parallelism)
    ]
    narrow = [
        for_keyed_process_function(
            Count(), first, pa.int32(), task=TaskInfo("count", 64, 128, index)
        ).owns_key(key)
        for index in range(task.parallelism)
    ]
    assert (wide.count(True), narrow.count(True)) == (1, 1)
    assert wide != narrow


# ---- leaks ----


def test_what_is_left_behind_is_listed() -> None:
    with for_keyed_process_function(Count(), first) as harness:
        for key in range(7):
            harness.process_element((key, 1))
        with pytest.raises(AssertionError) as error:
            harness.refuse_leaks()
        assert str(error.value) == (
            "'operator' leaves behind: the state 'count' of 7 keys (0, 1, 2, 3, 4, ...); 7 event-time timers; "
            "7 processing-time timers"
        )


def test_state_with_a_time_to_live_is_no_leak() -> None:
    with for_keyed_process_function(Keep(TTL), first) as harness:
        harness.process_element(("a", 1))
        harness.refuse_leaks()
