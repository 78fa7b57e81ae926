"""Operators that go on from a checkpoint, at any parallelism, give what they would have given without it."""

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import patch

from equipment.example_counts import examples
from equipment.recorders import OutputRecorder
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native.key_groups import (
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
)
from flinkcore.checkpoint import Checkpoint, CheckpointDirectory, OperatorBackends, PendingCheckpoint
from flinkcore.common import MIN_TIMESTAMP, PickleSerializer, Time, Watermark
from flinkcore.datastream.functions import AggregateFunction, KeyedBroadcastProcessFunction
from flinkcore.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from flinkcore.operators.keys.java_keys import JavaKeys
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.process_operators import KeyedBroadcastProcessOperator
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend, OperatorStateBackend
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

KEY_GROUPS = 16
KEYS = [0, 7, -3, "a", "key", 2.5, b"k", (1, "x"), (None, True)]
VALUES = [1, True, 1.0, 2**70, "text", None, [1, [None]], (1, "a"), {"k": (1, 2)}, b"", float("inf")]
RULES = MapStateDescriptor("rules")

key_group_of = JavaKeys(KEY_GROUPS)


class Texts(AggregateFunction[Any, list[str], str]):
    def create_accumulator(self) -> list[str]:
        return []

    def add(self, value: Any, accumulator: list[str]) -> list[str]:
        return [*accumulator, repr(value)]

    def get_result(self, accumulator: list[str]) -> str:
        return " ".join(accumulator)

    def merge(self, acc_a: list[str], acc_b: list[str]) -> list[str]:
        return acc_a + acc_b


def expiring(descriptor: Any, event_time: bool) -> Any:
    builder = StateTtlConfig.new_builder(Time.milliseconds(6)).update_ttl_on_read_and_write()
    descriptor.enable_time_to_live((builder.use_event_time() if event_time else builder).build())
    return descriptor


class Everything(KeyedBroadcastProcessFunction):
    """Does what an element says, and tells what it sees."""

    def open(self, runtime_context: Any) -> None:
        self.value = runtime_context.get_state(ValueStateDescriptor("value"))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list"))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map"))
        self.reducing = runtime_context.get_reducing_state(
            ReducingStateDescriptor("reducing", lambda a, b: (a, b) if len(repr(a)) < 50 else b)
        )
        self.aggregating = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("aggregating", Texts())
        )
        self.pickled = runtime_context.get_state(ValueStateDescriptor("pickled", PickleSerializer()))
        self.brief = runtime_context.get_state(expiring(ValueStateDescriptor("brief"), False))
        self.brief_list = runtime_context.get_list_state(expiring(ListStateDescriptor("briefs"), True))
        self.brief_map = runtime_context.get_map_state(expiring(MapStateDescriptor("brief map"), True))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        key, action, argument, number = value
        service = ctx.timer_service()
        if action == "write":
            self.value.update(argument)
            self.pickled.update(None if argument is None else {"set": frozenset([repr(argument)])})
            self.brief.update(argument)
        elif action == "add" and argument is not None:
            self.list.add(argument)
            self.reducing.add(argument)
            self.aggregating.add(argument)
            self.brief_list.add(argument)
        elif action == "put":
            self.map.put(number % 3, argument)
            self.brief_map.put(number % 3, argument)
        elif action == "clear":
            for state in (self.value, self.list, self.map, self.reducing, self.brief_list):
                state.clear()
        elif action == "event timer":
            service.register_event_time_timer(number)
        elif action == "processing timer":
            service.register_processing_time_timer(number)
        elif action == "delete":
            service.delete_event_time_timer(number)
            service.delete_processing_time_timer(number)
        yield key, action, *self.seen(ctx)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(value[0], value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp, ctx.time_domain().name, *self.seen(ctx)
        if timestamp % 3 == 0:
            ctx.timer_service().register_event_time_timer(timestamp + 5)

    def seen(self, ctx: Any) -> Iterator[str]:
        service = ctx.timer_service()
        yield repr((service.current_watermark(), service.current_processing_time()))
        for state in (self.value, self.pickled, self.brief):
            yield repr(state.value())
        for state in (self.list, self.reducing, self.aggregating, self.brief_list):
            yield repr(state.get())
        yield repr(sorted(self.map.items(), key=repr))
        yield repr(sorted(self.brief_map.items(), key=repr))
        yield repr(sorted(ctx.get_broadcast_state(RULES).items(), key=repr))


class Subtask:
    """One operator with all that is around it."""

    def __init__(self, index: int, parallelism: int, now_ms: int) -> None:
        self.index = index
        self.clock = DrivenProcessingTimeService(now_ms)
        self.output = OutputRecorder()
        range_ = compute_key_group_range_for_operator_index(KEY_GROUPS, parallelism, index)
        self.keyed_state = KeyedStateBackend(KeyContext(KEY_GROUPS, range_, first_sweep=2), self.clock)
        operator_state = OperatorStateBackend()
        self.operator = KeyedBroadcastProcessOperator(
            Everything(), lambda e: e[0], [RULES], self.output, self.keyed_state, operator_state, self.clock
        )
        services = self.operator.time_service_manager
        self.backends = OperatorBackends(self.keyed_state, services, operator_state)

    def open(self) -> None:
        self.operator.open(
            StreamingRuntimeContext(TaskInfo("task"), DefaultKeyedStateStore(self.keyed_state))
        )


class Job:
    """Subtasks that share the key groups out."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.watermark_ms = MIN_TIMESTAMP
        self.now_ms = 0
        self.rows: list[Any] = []
        self.subtasks: list[Subtask] = []
        self.checkpointed = False

    def start(self, parallelism: int) -> None:
        """Start, from a checkpoint where there was something before."""
        if self.subtasks:
            self.write_checkpoint()
        self.subtasks = [Subtask(i, parallelism, self.now_ms) for i in range(parallelism)]
        for subtask in self.subtasks:
            if self.checkpointed:
                restored = subtask.backends.restore(
                    Checkpoint.open(self.path), "op", subtask.index, parallelism
                )
                assert restored == self.watermark_ms
            subtask.open()

    def write_checkpoint(self) -> None:
        with PendingCheckpoint.begin(self.path, KEY_GROUPS) as pending:
            pending.commit(
                [
                    pending.writer().write("op", subtask.index, subtask.backends.snapshot(self.watermark_ms))
                    for subtask in self.subtasks
                ]
            )
        self.checkpointed = True

    def handle(self, event: tuple[Any, ...]) -> None:
        kind, argument = event[0], event[1]
        if kind == "element":
            group = key_group_of(argument[0])
            index = compute_operator_index_for_key_group(KEY_GROUPS, len(self.subtasks), group)
            self.subtasks[index].operator.process_element1(StreamRecord(argument, argument[3]))
        elif kind == "rule":
            for subtask in self.subtasks:
                subtask.operator.process_element2(StreamRecord(argument, None))
        elif kind == "watermark":
            self.watermark_ms = max(self.watermark_ms, argument)
            for subtask in self.subtasks:
                subtask.operator.process_watermark(Watermark(self.watermark_ms))
        else:
            self.now_ms += argument
            for subtask in self.subtasks:
                subtask.clock.advance_to(self.now_ms)
        for subtask in self.subtasks:
            taken = subtask.output.take()
            self.rows += [entry[1:] for entry in taken if entry[0] == "record"]


def rows_of(stages: Sequence[tuple[int, Sequence[tuple[Any, ...]]]]) -> list[Any]:
    """The rows of a job that runs each of its stages at a parallelism of its own."""
    # The disk need not keep anything here, and waiting for it is most of the time.
    with tempfile.TemporaryDirectory() as path, patch.object(CheckpointDirectory, "sync"):
        job = Job(path)
        for parallelism, events in stages:
            job.start(parallelism)
            for event in events:
                job.handle(event)
    return job.rows


def by_key(rows: Sequence[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(repr(row[1][0]), []).append(row)
    return found


times = st.integers(-2, 30)
actions = st.sampled_from(
    ["write", "add", "add", "put", "clear", "event timer", "processing timer", "delete"]
)
elements = st.tuples(st.sampled_from(KEYS), actions, st.sampled_from(VALUES), times)
events = st.one_of(
    st.tuples(st.just("element"), elements),
    st.tuples(st.just("element"), elements),
    st.tuples(st.just("element"), elements),
    st.tuples(st.just("rule"), st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES))),
    st.tuples(st.just("watermark"), times),
    st.tuples(st.just("clock"), st.integers(0, 5)),
)
end = [("watermark", 100), ("clock", 100), ("watermark", 200)]


@settings(deadline=None, max_examples=examples(20))
@given(st.lists(st.tuples(st.integers(1, 5), st.lists(events, max_size=25)), min_size=2, max_size=4))
def test_a_job_that_is_interrupted_gives_the_same_rows(stages: list[tuple[int, list[Any]]]) -> None:
    stages[-1][1].extend(end)
    everything = [event for _, events_ in stages for event in events_]
    uninterrupted = rows_of([(1, everything)])
    assert by_key(rows_of(stages)) == by_key(uninterrupted)
    assert rows_of([(1, events_) for _, events_ in stages]) == uninterrupted
