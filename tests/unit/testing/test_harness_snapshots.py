"""Snapshots of harnesses: in memory and on disk, into the same parallelism and into another."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flinkcore.common import PickleSerializer, Watermark
from flinkcore.datastream import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from flinkcore.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from flinkcore.errors import ConfigurationError, DataError, LifecycleError, SchemaError, SourceError
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.stream_operator import OneInputStreamOperator
from flinkcore.testing import (
    AbstractStreamOperatorTestHarness,
    KeyedOneInputStreamOperatorTestHarness,
    OneInputStreamOperatorTestHarness,
    OperatorSubtaskState,
    StreamOperatorParameters,
    TaskInfo,
    TwoInputStreamOperatorTestHarness,
    assert_output,
    for_broadcast_process_function,
    for_co_process_function,
    for_keyed_co_process_function,
    for_keyed_process_function,
    for_process_function,
)

RULES: MapStateDescriptor[str, int] = MapStateDescriptor("rules")
repackage_state = AbstractStreamOperatorTestHarness.repackage_state
repartition_operator_state = AbstractStreamOperatorTestHarness.repartition_operator_state


class Collect(KeyedProcessFunction):
    """Keeps the values of a key in a list that it changes in place, until a timer of either domain."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.values = runtime_context.get_state(ValueStateDescriptor[list[int]]("values"))

    def process_element(self, value: tuple[str, int], ctx: KeyedProcessFunction.Context) -> Any:
        values = self.values.value() or []
        values.append(value[1])
        self.values.update(values)
        ctx.timer_service().register_event_time_timer(100)
        ctx.timer_service().register_processing_time_timer(100)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), self.values.value()


Collecting = KeyedOneInputStreamOperatorTestHarness[str, tuple[str, int], tuple[str, list[int]]]


def collecting(restore_from: Any = None, parallelism: int = 1, index: int = 0) -> Collecting:
    task = TaskInfo("collect", parallelism, 128, index)
    return for_keyed_process_function(Collect(), lambda v: v[0], task=task, restore_from=restore_from)


@pytest.fixture(params=["memory", "disk"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """How a state is kept until it is restored."""

    def keep(state: OperatorSubtaskState) -> Any:
        if request.param == "memory":
            return state
        state.write(tmp_path / "checkpoint")
        return tmp_path / "checkpoint"

    return keep


def test_state_timers_and_watermark_go_on_in_another_harness(kept: Any) -> None:
    harness = collecting()
    harness.process_element(("a", 1))
    harness.process_watermark(7)
    state = kept(harness.snapshot())
    for restored in (collecting(state), collecting(state)):
        assert restored.get_current_watermark() == 7
        restored.process_element(("a", 2))
        restored.process_watermark(100)
        assert_output(restored.take_output(), [StreamRecord(("a", [1, 2]), 100), Watermark(100)])
        restored.set_processing_time(100)
        assert_output(restored.take_output(), [StreamRecord(("a", [1, 2]))])


class Watermarks(ProcessFunction, CoProcessFunction, KeyedCoProcessFunction):
    """Gives the watermark that it sees."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield ctx.timer_service().current_watermark()

    process_element1 = process_element2 = process_element


def test_functions_without_keys_see_the_watermark_of_the_snapshot() -> None:
    harness = for_process_function(Watermarks())
    harness.process_watermark(7)
    restored = for_process_function(Watermarks(), restore_from=harness.snapshot())
    restored.process_element("a")
    assert restored.extract_output_values() == [restored.get_current_watermark()] == [7]


@pytest.mark.parametrize("keyed", [False, True])
def test_the_watermark_of_two_inputs_goes_on_from_that_of_the_snapshot(keyed: bool) -> None:
    def made(**settings: Any) -> TwoInputStreamOperatorTestHarness[str, str, int]:
        if keyed:
            return for_keyed_co_process_function(Watermarks(), str, str, **settings)
        return for_co_process_function(Watermarks(), **settings)

    harness = made()
    harness.process_both_watermarks(7)
    restored = made(restore_from=harness.snapshot())
    restored.process_element1("a")
    restored.process_both_watermarks(5)
    restored.process_element2("a")
    restored.process_watermark2(9)
    assert restored.take_output() == [StreamRecord(7), StreamRecord(7)]
    restored.process_watermark1(8)
    assert restored.take_output() == [Watermark(8)]
    assert restored.get_current_watermark() == 8


def test_each_of_two_inputs_goes_on_from_its_own_watermark_and_status(kept: Any) -> None:
    harness = for_co_process_function(Watermarks())
    harness.process_watermark1(7)
    harness.process_watermark2(20)
    restored = for_co_process_function(Watermarks(), restore_from=kept(harness.snapshot()))
    restored.process_watermark1(15)
    assert restored.take_output() == [Watermark(15)]
    restored.process_watermark_status1(WatermarkStatus.IDLE)
    assert restored.take_output() == [Watermark(20)]
    again = for_co_process_function(Watermarks(), restore_from=restored.snapshot())
    again.process_watermark2(30)
    assert again.take_output() == [Watermark(30)]


def test_a_snapshot_is_not_changed_by_what_comes_after_it() -> None:
    harness = collecting()
    harness.process_element(("a", 1))
    state = harness.snapshot()
    harness.process_element(("a", 2))
    assert harness.get_keyed_state("values", "a") == [1, 2]
    assert collecting(state).get_keyed_state("values", "a") == [1]


KEYS = [f"k{i}" for i in range(30)]


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2), (2, 1), (3, 3)])
def test_subtasks_go_on_in_another_parallelism(before: int, after: int, kept: Any) -> None:
    subtasks = [collecting(None, before, index) for index in range(before)]
    for key in KEYS:
        (owner,) = (subtask for subtask in subtasks if subtask.owns_key(key))
        owner.process_element((key, 1))
    for i, subtask in enumerate(subtasks):
        subtask.process_watermark(10 + i)
    state = kept(repackage_state(*(subtask.snapshot() for subtask in subtasks)))
    results: list[tuple[str, list[int]]] = []
    for index in range(after):
        restored = collecting(state, after, index)
        # At the same parallelism each goes on where it was, at another where the least was.
        assert restored.get_current_watermark() == (10 + index if after == before else 10)
        assert restored.num_event_time_timers() == restored.num_keyed_state_entries() > 0
        restored.process_watermark(100)
        results += restored.extract_output_values()
    assert sorted(results) == sorted((key, [1]) for key in KEYS)


def test_a_state_may_be_repartitioned_as_for_flinks_harness() -> None:
    harness = collecting()
    for key in KEYS:
        harness.process_element((key, 1))
    state = harness.snapshot()
    shares = [repartition_operator_state(state, 128, 1, 2, index) for index in range(2)]
    assert sum(collecting(share, 2, i).num_keyed_state_entries() for i, share in enumerate(shares)) == len(
        KEYS
    )
    with pytest.raises(
        ConfigurationError, match="was given to subtask 1 of 2, the harness is subtask 0 of 2"
    ):
        collecting(shares[1], 2, 0)
    with pytest.raises(ConfigurationError, match="has 128 key groups and is of 1 subtasks, not 64 and 1"):
        repartition_operator_state(state, 64, 1, 2, 0)
    with pytest.raises(ConfigurationError, match="the subtask index 2 is out of range for the parallelism 2"):
        repartition_operator_state(state, 128, 1, 2, 2)


# ---- operator state ----


class Elements(OneInputStreamOperator):
    """Keeps elements in a list that is split, and in one that is united, when the parallelism changes."""

    def __init__(self, given: StreamOperatorParameters) -> None:
        super().__init__(given.output)
        self._store = given.operator_state_backend

    def open(self, runtime_context: RuntimeContext) -> None:
        self.split = self._store.get_list_state(ListStateDescriptor[int]("split"))
        self.union = self._store.get_union_list_state(ListStateDescriptor[int]("union"))

    def process_element(self, record: StreamRecord[int]) -> None:
        self.split.add(record.value)
        self.union.add(record.value)


def elements(
    parallelism: int, index: int, restore_from: OperatorSubtaskState | None = None
) -> OneInputStreamOperatorTestHarness[int, int]:
    harness = OneInputStreamOperatorTestHarness[int, int](
        Elements, task=TaskInfo("e", parallelism, 128, index)
    )
    if restore_from is not None:
        harness.initialize_state(restore_from)
    harness.open()
    return harness


def lists(harness: OneInputStreamOperatorTestHarness[int, int]) -> tuple[Sequence[int], Sequence[int]]:
    operator = harness.get_operator()
    assert isinstance(operator, Elements)
    return list(operator.split.get()), list(operator.union.get())


def test_operator_state_is_dealt_out_or_given_to_all() -> None:
    before = [elements(2, index) for index in range(2)]
    for value in range(5):
        before[value % 2].process_element(value)
    state = repackage_state(*(harness.snapshot() for harness in before))
    after = [lists(elements(3, index, state)) for index in range(3)]
    assert [union for _, union in after] == [[0, 2, 4, 1, 3]] * 3
    assert [split for split, _ in after] == [[0, 2], [4, 1], [3]]
    # The same subtask of as many takes what it had, without the others.
    assert lists(elements(2, 1, before[1].snapshot())) == ([1, 3], [1, 3])


def test_broadcast_state_is_restored(kept: Any) -> None:
    class Rules(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
            yield ctx.get_broadcast_state(RULES).get(value)

        def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Any:
            ctx.get_broadcast_state(RULES).put(*value)

    with for_broadcast_process_function(Rules(), RULES) as harness:
        harness.process_broadcast_element(("a", 5))
        state = kept(harness.snapshot())
    for index in range(2):
        task = TaskInfo("rules", 2, 128, index)
        with for_broadcast_process_function(Rules(), RULES, task=task, restore_from=state) as restored:
            restored.process_element("a")
            assert restored.extract_output_values() == [5]


# ---- what a checkpoint cannot hold ----


@dataclass
class Visit:
    page: str


class Latest(KeyedProcessFunction):
    def __init__(self, descriptor: ValueStateDescriptor[Visit]) -> None:
        self.descriptor = descriptor

    def open(self, runtime_context: RuntimeContext) -> None:
        self.latest = runtime_context.get_state(self.descriptor)

    def process_element(self, value: Visit, ctx: KeyedProcessFunction.Context) -> None:
        self.latest.update(value)


def test_a_snapshot_finds_values_that_no_checkpoint_holds() -> None:
    with for_keyed_process_function(
        Latest(ValueStateDescriptor("latest")), lambda visit: visit.page
    ) as harness:
        harness.process_element(Visit("home"))
        with pytest.raises(SchemaError, match=r"state 'latest'.*Visit.*name a Serializer"):
            harness.snapshot()


def test_a_serializer_takes_them(kept: Any) -> None:
    def latest() -> Latest:
        return Latest(ValueStateDescriptor("latest", PickleSerializer()))

    with for_keyed_process_function(latest(), lambda visit: visit.page) as harness:
        harness.process_element(Visit("home"))
        state = kept(harness.snapshot())
    with for_keyed_process_function(latest(), lambda visit: visit.page, restore_from=state) as restored:
        assert restored.get_keyed_state("latest", "home") == Visit("home")


# ---- mistakes ----


def test_state_is_restored_once_and_before_the_harness_is_opened() -> None:
    state = collecting().snapshot()
    with pytest.raises(LifecycleError, match="restored once, before the harness is opened"):
        collecting().initialize_state(state)
    harness = elements_unopened()
    empty = for_process_function(Nothing()).snapshot()
    harness.initialize_state(empty)
    with pytest.raises(LifecycleError, match="restored once"):
        harness.initialize_state(empty)


class Nothing(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> None: ...


def elements_unopened() -> OneInputStreamOperatorTestHarness[int, int]:
    return OneInputStreamOperatorTestHarness(Elements)


def test_a_part_of_a_state_goes_only_where_it_came_from() -> None:
    part = collecting(None, 2, 1).snapshot()
    collecting(part, 2, 1)
    message = (
        "that of the subtasks [1] of 2 only, and cannot be restored into subtask 0 of 1: join the snapshots"
    )
    with pytest.raises(ConfigurationError) as error:
        collecting(part)
    assert message in str(error.value)


def test_states_that_do_not_belong_together_are_not_joined(tmp_path: Path) -> None:
    part = collecting(None, 2, 1).snapshot()
    with pytest.raises(
        ConfigurationError, match=r"states of the subtasks \[1, 1\]; each is to be there once"
    ):
        repackage_state(part, part)
    with pytest.raises(ConfigurationError, match="are not those of one operator"):
        repackage_state(part, collecting(None, 3, 0).snapshot())
    with pytest.raises(ConfigurationError, match="there is no state to join"):
        repackage_state()
    with pytest.raises(DataError, match="'collect'"):
        part.write(tmp_path)


def test_the_number_of_key_groups_stays() -> None:
    with pytest.raises(ConfigurationError, match=r"128 key groups, the harness 64: .* max_parallelism=128"):
        for_process_function(Nothing(), task=TaskInfo("n", 1, 64), restore_from=collecting().snapshot())


def test_state_of_keys_needs_a_keyed_harness() -> None:
    with pytest.raises(ConfigurationError, match="an operator with keys, and the harness has none"):
        for_process_function(Nothing(), restore_from=collecting().snapshot())


def test_a_checkpoint_of_several_operators_is_read_by_uid(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        collecting(tmp_path)
    collecting().snapshot().write(tmp_path)
    assert OperatorSubtaskState.read(tmp_path).uid == "collect"
    with pytest.raises(
        ConfigurationError, match=r"has the operators \['collect'\]: name one of them as uid, not 'c'"
    ):
        OperatorSubtaskState.read(tmp_path, "c")
