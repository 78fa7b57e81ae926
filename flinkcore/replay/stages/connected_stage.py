"""A function over two streams, over the key groups of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.row import Row
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from flinkcore.replay.plans.connected_inputs import ConnectedInputs
from flinkcore.replay.plans.connected_process import ConnectedProcess
from flinkcore.replay.plans.keyed_operator import UserProcess
from flinkcore.replay.plans.stage_plan import StagePlan
from flinkcore.replay.results.result import Output
from flinkcore.replay.stages.element_rows import element_keys, element_rows
from flinkcore.replay.stages.function_stages import FunctionStages
from flinkcore.replay.stages.placed_events import steps_of
from flinkcore.replay.stages.process_output import NO_ROW, ProcessOutput
from flinkcore.replay.stages.process_stage import ProcessStage, record_timestamps
from flinkcore.replay.stages.restored_operator import RestoredOperator
from flinkcore.replay.stages.row_results import Subject
from flinkcore.replay.time_plane.timeline import Timeline
from flinkcore.replay.time_plane.total_order import Events
from flinkcore.runtime.checkpoint import OperatorBackends
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.messages import shown
from flinkcore.runtime.operators import (
    BroadcastProcessOperator,
    CoProcessOperator,
    KeyedBroadcastProcessOperator,
    KeyedCoProcessOperator,
)
from flinkcore.runtime.output import OutputFullError
from flinkcore.runtime.state import DefaultKeyedStateStore, KeyedStateBackend, OperatorStateBackend
from flinkcore.runtime.timers import InternalTimeServiceManager

ElementCall: TypeAlias = Callable[[StreamRecord[Any]], None]


class ConnectedStage(ProcessStage):
    """Runs a copy of a function over ordered events of two streams, on the replay clock.

    Its time is that of :class:`ProcessStage`, with the watermarks of both streams combined.

    Parameters
    ----------
    plan
        The stage.
    process
        Its operator.
    inputs
        How to tell the rows of the streams apart.
    timeline, last_arrival_ms, partition, partitions, restored
        As of :class:`ProcessStage`.

    Raises
    ------
    UserCodeError
        If the function cannot be copied, or its `open` raises.

    Notes
    -----
    What a function gives for an element of a broadcast stream is taken from the first partition only.
    """

    def __init__(
        self,
        plan: StagePlan,
        process: ConnectedProcess,
        inputs: ConnectedInputs,
        timeline: Timeline,
        last_arrival_ms: int | None,
        partition: int,
        partitions: int,
        restored: RestoredOperator | None = None,
    ) -> None:
        self._inputs = inputs
        self._input_keys = [list(stage_input.keys) for stage_input in plan.inputs]
        # Every partition gets the elements of a broadcast stream, but their results are those of the first.
        self._is_repeating = process.is_broadcast and partition > 0
        self._is_keyed = process.is_keyed
        self._broadcast_states = process.broadcast_states or ()
        self._operator_state = OperatorStateBackend()
        self._key: Any = None
        self._repeated = 0
        super().__init__(plan, process, timeline, last_arrival_ms, partition, partitions, restored)
        if not self._is_keyed and self._steps_done:
            # With keys the timers know it.
            self._operator.process_watermark(Watermark(self.current_watermark))

    def _make_output(self, plan: StagePlan, process: UserProcess, key_context: KeyContext) -> ConnectedOutput:
        self._connected_output = ConnectedOutput(plan, process, key_context, self._inputs, self._input_keys)
        return self._connected_output

    def _make_operator(self, function: Any, backend: KeyedStateBackend) -> Any:
        output, clock, states = self._output, self._clock, self._broadcast_states
        selector = self._key_at_hand
        operator: Any
        if isinstance(function, KeyedCoProcessFunction):
            operator = KeyedCoProcessOperator(function, selector, selector, output, backend, clock)
        elif isinstance(function, KeyedBroadcastProcessFunction):
            operator = KeyedBroadcastProcessOperator(
                function, selector, states, output, backend, self._operator_state, clock
            )
        elif isinstance(function, BroadcastProcessFunction):
            operator = BroadcastProcessOperator(function, states, output, self._operator_state, clock)
        else:
            operator = CoProcessOperator(function, output, clock)
        self._process_elements: tuple[ElementCall, ElementCall] = (
            operator.process_element1,
            operator.process_element2,
        )
        return operator

    def _timers_of(self, operator: Any, backend: KeyedStateBackend) -> InternalTimeServiceManager:
        if self._is_keyed:
            return super()._timers_of(operator, backend)
        return InternalTimeServiceManager(backend.key_context, self._clock)

    def _backends_of(self, backend: KeyedStateBackend) -> OperatorBackends:
        if self._is_keyed:
            return OperatorBackends(backend, self._timers, self._operator_state)
        return OperatorBackends(operator_state=self._operator_state)

    def _keyed_state_store(self, backend: KeyedStateBackend) -> DefaultKeyedStateStore | None:
        return super()._keyed_state_store(backend) if self._is_keyed else None

    def _key_at_hand(self, element: Row) -> Any:
        return self._key

    def _process(self, events: Events) -> Iterator[Output]:
        steps = steps_of(events, self._timeline)
        is_second = self._inputs.is_second(events)
        batches = self._batches(events.batch, is_second)
        rows = [element_rows(batch) for batch in batches]
        keys = [
            iter(element_keys(batch, names) if names else [None] * batch.num_rows)
            for batch, names in zip(batches, self._input_keys, strict=True)
        ]
        first_keys, second_keys = self._input_keys
        groups = self._inputs.key_groups(events, (first_keys, second_keys), self._max_parallelism)
        clock, output = self._clock, self._connected_output
        record: StreamRecord[Row | None] = StreamRecord(None)
        output.elements, output.record = events.batch, record
        output.is_second = is_second
        for row, number, key_group, timestamp, arrival, steps_before in zip(
            count(),
            is_second.tolist(),
            groups.tolist(),
            record_timestamps(events),
            events.arrivals.tolist(),
            steps.tolist(),
            strict=False,
        ):
            if steps_before > self._steps_done or clock.next_due_ms < arrival:
                output.row, output.is_muted = NO_ROW, False
                try:
                    self._advance(arrival, steps_before)
                except OutputFullError as full:
                    yield from self._rest_of(full, events)
            self._key, self._key_group = next(keys[number]), key_group
            clock.now_ms = arrival
            output.row, record.value, record.timestamp = row, next(rows[number]), timestamp
            output.is_muted = number == 1 and self._is_repeating
            try:
                self._process_elements[number](record)
            except OutputFullError as full:
                yield from self._rest_of(full, events)
        output.row, output.is_muted = NO_ROW, False
        repeated = int(np.count_nonzero(is_second)) if self._is_repeating else 0
        self._repeated += repeated
        self._processed += len(is_second) - repeated

    def counts(self) -> dict[str, int]:
        """Counts of events, timers and results so far."""
        return {**super().counts(), "repeated": self._repeated}

    def _batches(
        self, batch: pa.RecordBatch, is_second: np.ndarray[Any, np.dtype[np.bool_]]
    ) -> list[pa.RecordBatch]:
        return [
            self._inputs.batch_of(number, batch).filter(pa.array(is_second == bool(number)))
            for number in (0, 1)
        ]


class ConnectedOutput(ProcessOutput):
    """Takes what a function over two streams gives.

    Parameters
    ----------
    plan, process, key_context
        As of :class:`ProcessOutput`.
    inputs
        How to tell the rows of the streams apart.
    keys
        Key columns of each stream.

    Attributes
    ----------
    is_second
        Which of the elements at hand are of the second stream.
    is_muted
        Whether what is given is dropped: another partition gives it.
    """

    def __init__(
        self,
        plan: StagePlan,
        process: UserProcess,
        key_context: KeyContext,
        inputs: ConnectedInputs,
        keys: list[list[str]],
    ) -> None:
        super().__init__(plan, process, key_context)
        self.is_second = np.empty(0, np.bool_)
        self.is_muted = False
        self._inputs = inputs
        self._input_keys = keys

    def collect(self, record: StreamRecord[Any]) -> None:
        """Take a result."""
        if not self.is_muted:
            super().collect(record)

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Take a record of a side output, if it is wanted."""
        if not self.is_muted:
            super().collect_side(output_tag, record)

    def _described(self, subject: Subject, timestamp: int | None) -> str:
        if isinstance(subject, tuple):
            return super()._described(subject, timestamp)
        assert self.elements is not None
        number = int(self.is_second[subject])
        batch = self._inputs.batch_of(number, self.elements.slice(subject, 1))
        names = self._input_keys[number]
        of_key = f" of the key {shown(element_keys(batch, names)[0])}" if names else ""
        if self._gives_windows:
            return f"{self._fired(timestamp)}{of_key}"
        (element,) = element_rows(batch)
        stream = ("first", "second")[number]
        return f"the element {shown(element)} of the {stream} stream{of_key} with the timestamp {timestamp}"


class ConnectedStages(FunctionStages[ConnectedProcess]):
    """Makes stages of two streams.

    Parameters
    ----------
    plan
        The stage.
    process
        Its operator.
    inputs
        How to tell the rows of the streams apart.
    timeline
        The watermarks of both streams combined.
    last_arrival_ms, partitions, restored
        As of :class:`FunctionStages`.
    """

    stage_class: ClassVar[type[ConnectedStage]] = ConnectedStage

    def __init__(
        self,
        plan: StagePlan,
        process: ConnectedProcess,
        inputs: ConnectedInputs,
        timeline: Timeline,
        last_arrival_ms: int | None,
        partitions: int,
        restored: RestoredOperator | None = None,
    ) -> None:
        super().__init__(plan, process, timeline, last_arrival_ms, partitions, restored)
        self._stage_plan = plan
        self._inputs = inputs

    def stage(self, partition: int) -> ConnectedStage:
        """A stage, with a copy of the function, which is opened."""
        return self.stage_class(
            self._stage_plan,
            self._process,
            self._inputs,
            self._timeline,
            self._last_arrival_ms,
            partition,
            self._partitions,
            self._restored,
        )
