"""The operators of user's functions, and how the rows of a batch come to each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from flinkcore.checkpoint import OperatorBackends, OperatorSnapshot
from flinkcore.columnar.plans.connected_inputs import ConnectedInputs
from flinkcore.columnar.plans.operators import (
    ConnectedProcess,
    IntervalJoinProcess,
    UserProcess,
    WindowJoinProcess,
    WindowProcess,
)
from flinkcore.columnar.stages.process_output import ProcessOutput
from flinkcore.columnar.stages.restored_namespaces import check_namespaces, check_window_namespaces, is_void
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from flinkcore.datastream.functions.join_functions import TaggedUnion
from flinkcore.operators.function_calls import TIMER_SERVICE_NAME
from flinkcore.operators.interval_join_operator import (
    CLEANUP_NAMESPACE_LEFT,
    CLEANUP_NAMESPACE_RIGHT,
    CLEANUP_TIMER_NAME,
    IntervalJoinOperator,
)
from flinkcore.operators.keys.element_rows import element_keys, element_rows, event_key_groups
from flinkcore.operators.process_operators import (
    BroadcastProcessOperator,
    CoProcessOperator,
    KeyedBroadcastProcessOperator,
    KeyedCoProcessOperator,
    KeyedFunctionOperator,
    KeyedProcessOperator,
)
from flinkcore.operators.records.copies import copied_function
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.replay_clock import ReplayClock
from flinkcore.operators.state import KeyedStateBackend, OperatorStateBackend
from flinkcore.operators.stream_operator import AbstractStreamOperator, TwoInputStreamOperator
from flinkcore.operators.timers import InternalTimeServiceManager
from flinkcore.operators.windowing import WindowOperator, make_window_operator
from flinkcore.time_plane.total_order import Events

RowCall = Callable[[Hashable, StreamRecord[Any]], None]
"""Processes a record of a key."""

ProcessedRows = tuple[Iterable[Any], Iterable[Any], list[int], Iterable[RowCall]]
"""For each row its value, its key, its key group, and what processes it."""


class Surroundings(NamedTuple):
    """What operators of keyed functions are given besides their functions, in the order of their parameters.

    Attributes
    ----------
    output : ProcessOutput
        Takes what the function gives.
    backend : KeyedStateBackend
    clock : ReplayClock
    """

    output: ProcessOutput
    backend: KeyedStateBackend
    clock: ReplayClock


@dataclass
class FunctionOperator:
    """The operator of a function.

    Attributes
    ----------
    operator
        Of the runtime: opens, closes, and gets watermarks.
    timers : InternalTimeServiceManager
    backends : OperatorBackends
        What a checkpoint holds.
    rows : callable
        From events, in total order, to what is processed one by one.
    check_restored : callable
        Raises a SchemaError if the operator cannot have what a snapshot has.
    fates : callable
        From the number of rows processed to how many of them had which fate.
    is_keyed : bool
    """

    operator: AbstractStreamOperator
    timers: InternalTimeServiceManager
    backends: OperatorBackends
    rows: Callable[[Events], ProcessedRows]
    check_restored: Callable[[OperatorSnapshot], None]
    fates: Callable[[int], dict[str, int]]
    is_keyed: bool = True

    @classmethod
    def keyed(
        cls,
        operator: KeyedFunctionOperator[Any],
        backend: KeyedStateBackend,
        rows: Callable[[Events], ProcessedRows],
        check_restored: Callable[[OperatorSnapshot], None],
        fates: Callable[[int], dict[str, int]],
    ) -> FunctionOperator:
        """An operator with timers and keyed state."""
        timers = operator.time_service_manager
        return cls(operator, timers, OperatorBackends(backend, timers), rows, check_restored, fates)


def function_operator(
    context: StageContext, process: UserProcess, partition: int, around: Surroundings
) -> FunctionOperator:
    """Make the operator of a function, with a copy of the function.

    Parameters
    ----------
    context : StageContext
    process : UserProcess
    partition : int
    around : Surroundings

    Raises
    ------
    UserCodeError
        If the function cannot be copied.
    """
    function = copied_function(process.function)
    if isinstance(process, ConnectedProcess):
        streams = _TwoStreams.of(context, process, partition, around.output)
        if isinstance(process, IntervalJoinProcess):
            return _interval_join(function, streams, around)
        if isinstance(process, WindowJoinProcess):
            return _window_join(function, streams, around)
        return _connected(process, function, streams, around)
    if isinstance(process, WindowProcess):
        windows = make_window_operator(function, None, *around, as_in_pyflink=True)
        rows = _rows_of_one(context, lambda: windows.process_element_of_key)
        return _of_windows(windows, around.backend, rows)
    operator = KeyedProcessOperator(function, None, *around)
    return FunctionOperator.keyed(
        operator,
        around.backend,
        _rows_of_one(context, lambda: operator.process_element_of_key),
        _check_user_timers,
        lambda processed: {"processed": processed},
    )


def _rows_of_one(context: StageContext, call: Callable[[], RowCall]) -> Callable[[Events], ProcessedRows]:
    """Rows of one stream; what processes them is known once the operator is open."""
    keys, max_parallelism = list(context.plan.keys), context.plan.max_parallelism

    def rows(events: Events) -> ProcessedRows:
        batch = events.batch
        groups = event_key_groups(batch, keys, max_parallelism)
        return element_rows(batch), element_keys(batch, keys), groups.tolist(), repeat(call())

    return rows


def _check_user_timers(snapshot: OperatorSnapshot) -> None:
    check_namespaces(snapshot, TIMER_SERVICE_NAME, is_void, is_void)


def _of_windows(
    windows: WindowOperator, backend: KeyedStateBackend, rows: Callable[[Events], ProcessedRows]
) -> FunctionOperator:
    def fates(processed: int) -> dict[str, int]:
        late, in_no_window = windows.num_late_records, windows.num_records_in_no_window
        return {"windowed": processed - late - in_no_window, "late": late, "in_no_window": in_no_window}

    return FunctionOperator.keyed(
        windows,
        backend,
        rows,
        lambda snapshot: check_window_namespaces(snapshot, windows.operation),
        fates,
    )


# ---- two streams ----


@dataclass
class _TwoStreams:
    """Rows of two streams on their way to an operator.

    Parameters
    ----------
    inputs : ConnectedInputs
        Tells the rows apart.
    keys : tuple of list of str
        Key columns of each stream.
    max_parallelism : int
    output : ProcessOutput
    is_repeating : bool
        Whether the second stream is broadcast, and this is not the first partition, of which its results are taken.

    Attributes
    ----------
    key : object
        Of the row at hand.
    repeated : int
        Rows of the second stream so far, if this partition repeats them.
    """

    inputs: ConnectedInputs
    keys: tuple[list[str], list[str]]
    max_parallelism: int
    output: ProcessOutput
    is_repeating: bool
    key: Any = field(default=None, init=False)
    repeated: int = field(default=0, init=False)

    @classmethod
    def of(
        cls, context: StageContext, process: ConnectedProcess, partition: int, output: ProcessOutput
    ) -> _TwoStreams:
        plan, inputs = context.plan, context.inputs
        assert inputs is not None
        first, second = plan.inputs
        keys = list(first.keys), list(second.keys)
        return cls(inputs, keys, plan.max_parallelism, output, process.is_broadcast and partition > 0)

    def key_at_hand(self, element: Any) -> Any:
        return self.key

    def called(self, process_element: Callable[[StreamRecord[Any]], None]) -> RowCall:
        """What processes a record by a call that asks for its key."""

        def call(key: Hashable, record: StreamRecord[Any]) -> None:
            self.key = key
            process_element(record)

        return call

    def rows(self, *calls: RowCall) -> Callable[[Events], ProcessedRows]:
        """The rows of both streams, each for its own call."""
        first, second = calls
        of_number = first, self._muted(second) if self.is_repeating else second

        def rows(events: Events) -> ProcessedRows:
            is_second = self.inputs.is_second(events)
            self.output.is_second = is_second
            numbers = is_second.tolist()
            if self.is_repeating:
                self.repeated += int(np.count_nonzero(is_second))
            batches = [
                self.inputs.batch_of(number, events.batch).filter(pa.array(is_second == bool(number)))
                for number in (0, 1)
            ]
            elements = [element_rows(batch) for batch in batches]
            keys = [self._keys_of(names, batch) for names, batch in zip(self.keys, batches, strict=True)]
            groups = self.inputs.key_groups(events, self.keys, self.max_parallelism)
            return (
                map(next, [elements[number] for number in numbers]),
                map(next, [keys[number] for number in numbers]),
                groups.tolist(),
                [of_number[number] for number in numbers],
            )

        return rows

    @staticmethod
    def _keys_of(names: list[str], batch: pa.RecordBatch) -> Iterator[Any]:
        return iter(element_keys(batch, names) if names else [None] * batch.num_rows)

    def _muted(self, call: RowCall) -> RowCall:
        def muted(key: Hashable, record: StreamRecord[Any]) -> None:
            self.output.is_muted = True
            try:
                call(key, record)
            finally:
                self.output.is_muted = False

        return muted

    def fates(self, processed: int) -> dict[str, int]:
        return {"processed": processed - self.repeated, "repeated": self.repeated}


def _connected(
    process: ConnectedProcess, function: Any, streams: _TwoStreams, around: Surroundings
) -> FunctionOperator:
    output, backend, clock = around
    selector, states = streams.key_at_hand, process.broadcast_states or ()
    operator_state = OperatorStateBackend()
    operator: TwoInputStreamOperator
    if isinstance(function, KeyedCoProcessFunction):
        operator = KeyedCoProcessOperator(function, selector, selector, *around)
    elif isinstance(function, KeyedBroadcastProcessFunction):
        operator = KeyedBroadcastProcessOperator(
            function, selector, states, output, backend, operator_state, clock
        )
    elif isinstance(function, BroadcastProcessFunction):
        operator = BroadcastProcessOperator(function, states, output, operator_state, clock)
    else:
        operator = CoProcessOperator(function, output, clock)
    timers = operator.time_service_manager
    if timers is None:
        timers = InternalTimeServiceManager(backend.key_context, clock)
        backends = OperatorBackends(operator_state=operator_state)
    else:
        backends = OperatorBackends(backend, timers, operator_state)
    return FunctionOperator(
        operator,
        timers,
        backends,
        streams.rows(streams.called(operator.process_element1), streams.called(operator.process_element2)),
        _check_user_timers,
        streams.fates,
        process.is_keyed,
    )


def _interval_join(function: Any, streams: _TwoStreams, around: Surroundings) -> FunctionOperator:
    join = IntervalJoinOperator(function, streams.key_at_hand, streams.key_at_hand, *around)
    sides = CLEANUP_NAMESPACE_LEFT, CLEANUP_NAMESPACE_RIGHT

    def fates(processed: int) -> dict[str, int]:
        late = join.num_late_records
        return {"processed": processed - late, "late": late}

    return FunctionOperator.keyed(
        join,
        around.backend,
        streams.rows(streams.called(join.process_element1), streams.called(join.process_element2)),
        lambda snapshot: check_namespaces(
            snapshot, CLEANUP_TIMER_NAME, lambda namespace: namespace in sides, is_void
        ),
        fates,
    )


def _window_join(function: Any, streams: _TwoStreams, around: Surroundings) -> FunctionOperator:
    windows = make_window_operator(function, None, *around, as_in_pyflink=True)

    def tagged(tag: Callable[[Any], TaggedUnion[Any, Any]]) -> RowCall:
        united: StreamRecord[Any] = StreamRecord(None)

        def call(key: Hashable, record: StreamRecord[Any]) -> None:
            united.value, united.timestamp = tag(record.value), record.timestamp
            windows.process_element_of_key(key, united)  # known once it is open

        return call

    rows = streams.rows(tagged(TaggedUnion.one), tagged(TaggedUnion.two))
    return _of_windows(windows, around.backend, rows)
