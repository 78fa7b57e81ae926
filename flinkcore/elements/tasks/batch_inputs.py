"""The inputs of an operator in the execution mode BATCH: keyed ones are sorted, broadcast ones come first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.graph.element_transformations import KeyedTransformation, SinkTransformation
from flinkcore.datastream.graph.transformations import BroadcastTransformation, PartitionTransformation
from flinkcore.elements.tasks.operator_setup import OperatorSetup
from flinkcore.operators.function_calls import KeySelector, selected_key
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.operators.state.keyed_state_backend import KeyedStateBackend
from flinkcore.operators.stream_operator import AbstractStreamOperator, ElementCall, Input

_KEYED: Final = (KeyedTransformation, PartitionTransformation)
_LONGS: Final = 1 << 64


def batch_key_selectors(setup: OperatorSetup) -> list[KeySelector | None] | None:
    """Return the key selector of each input, None for one without keys; None if the inputs stay as they are."""
    step = setup.node.transformation
    if not setup.job.configuration.is_batch() or setup.node.collects or isinstance(step, SinkTransformation):
        return None
    inputs = step.inputs()
    if not any(isinstance(given, (*_KEYED, BroadcastTransformation)) for given in inputs):
        return None
    return [setup.key_selector(given) if isinstance(given, _KEYED) else None for given in inputs]


class BatchInputs:
    """Holds the records of an operator's inputs until all of these have ended, and then hands them over.

    Records of keyed inputs come key by key, those of a key in the order of their timestamps, of two inputs as one;
    after each key its timers fire. Integers and texts as keys are sorted as their bytes are, other keys come in the
    order of their first records. Records of an input without keys come as they are: those that are broadcast at once,
    the others when all inputs have ended. No watermark but the last one reaches the operator.

    Parameters
    ----------
    operator : AbstractStreamOperator
    inputs : sequence of (Input, callable)
        The operator's inputs, each with what processes its records.
    selectors : sequence of callable or None
        The key selector of each input.
    backend : KeyedStateBackend or None
        State backend of the operator, or None if no input is keyed.

    Notes
    -----
    Flink's ``MultiInputSortingDataInput`` with ``BatchExecutionInternalTimeService``, and the inputs of its batch
    operators with broadcast state. Deliberate difference: records are sorted in memory.
    """

    def __init__(
        self,
        operator: AbstractStreamOperator,
        inputs: Sequence[tuple[Input, ElementCall]],
        selectors: Sequence[KeySelector | None],
        backend: KeyedStateBackend | None,
    ) -> None:
        self._operator = operator
        self._inputs = inputs
        self._backend = backend
        self._by_key: list[dict[int, list[StreamRecord[Any]]]] = [{} for _ in inputs]
        self._waiting: list[StreamRecord[Any]] = []
        self._open = set(range(len(inputs)))
        self._selectors = selectors
        if backend is not None:
            backend.key_context.add_holder(lambda: [key for keys in self._by_key for key in keys])

    def inputs(self) -> list[tuple[Input, ElementCall]]:
        """Return what stands before each input of the operator, with what takes its records."""
        held = [_BatchInput(self, number, self._record_call(number)) for number in range(len(self._inputs))]
        return [(given, given.process_element) for given in held]

    def _record_call(self, number: int) -> ElementCall:
        selector = self._selectors[number]
        if selector is not None:
            return self._by_key_call(number, selector)
        # Without keys, the second input is broadcast.
        return self._inputs[number][1] if number == 1 else self._hold

    def _hold(self, record: StreamRecord[Any]) -> None:
        self._waiting.append(StreamRecord(record.value, record.timestamp))

    def _by_key_call(self, number: int, selector: KeySelector) -> ElementCall:
        assert self._backend is not None
        set_current_key, key_context = self._backend.set_current_key, self._backend.key_context
        by_key = self._by_key[number]

        def hold(record: StreamRecord[Any]) -> None:
            set_current_key(selected_key(selector, record))
            held = StreamRecord(record.value, record.timestamp)
            by_key.setdefault(key_context.current_key_id, []).append(held)

        return hold

    def forward_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Let the operator measure a latency marker."""
        self._operator.process_latency_marker(latency_marker)

    def end(self, number: int) -> None:
        """Note that an input has ended; hand over all records when it is the last one."""
        self._open.discard(number)
        if self._open:
            return
        waiting, self._waiting = self._waiting, []
        for record in waiting:
            self._inputs[0][1](record)
        self._hand_over_by_key()
        for given, _ in self._inputs:
            given.process_watermark(Watermark(MAX_TIMESTAMP))

    def _hand_over_by_key(self) -> None:
        current: int | None = None
        for key_id, call, record in self._in_order():
            if current is not None and key_id != current:
                self._operator.end_key()
            current = key_id
            call(record)
        if current is not None:
            self._operator.end_key()
        for records in self._by_key:
            records.clear()

    def _in_order(self) -> Iterator[tuple[int, ElementCall, StreamRecord[Any]]]:
        """Yield records with their keys; of two that are equal, the one whose input has waited for longer."""
        ranks = self._ranks()
        merged = [list(self._sorted(number, ranks)) for number in range(len(self._inputs))]
        positions = [0] * len(merged)
        last = len(merged) - 1
        while True:
            ready = [number for number, place in enumerate(positions) if place < len(merged[number])]
            if not ready:
                return
            number = min(ready, key=lambda each: (merged[each][positions[each]][:2], each == last))
            _, _, key_id, record = merged[number][positions[number]]
            positions[number] += 1
            last = number
            yield key_id, self._inputs[number][1], record

    def _sorted(
        self, number: int, ranks: dict[int, int]
    ) -> Iterator[tuple[int, int, int, StreamRecord[Any]]]:
        by_key = self._by_key[number]
        for key_id in sorted(by_key, key=ranks.__getitem__):
            for record in sorted(by_key[key_id], key=_time):
                yield ranks[key_id], _time(record), key_id, record

    def _ranks(self) -> dict[int, int]:
        """Return the place of each key, by its id."""
        if self._backend is None:
            return {}
        key_of = self._backend.key_context.key_of
        ids = list(dict.fromkeys(key_id for records in self._by_key for key_id in records))
        keys = {key_id: key_of(key_id) for key_id in ids}
        if all(type(key) is int for key in keys.values()):
            ids.sort(key=lambda key_id: keys[key_id] % _LONGS)
        elif all(type(key) is str for key in keys.values()):
            ids.sort(key=lambda key_id: (len(keys[key_id]), keys[key_id]))
        return {key_id: rank for rank, key_id in enumerate(ids)}


def _time(record: StreamRecord[Any]) -> int:
    return MIN_TIMESTAMP if record.timestamp is None else record.timestamp


class _BatchInput:
    """An :class:`Input` that waits for the end."""

    def __init__(self, inputs: BatchInputs, number: int, process_element: ElementCall) -> None:
        self._inputs = inputs
        self._number = number
        self.process_element = process_element

    def process_watermark(self, watermark: Watermark) -> None:
        if watermark.timestamp == MAX_TIMESTAMP:
            self._inputs.end(self._number)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Take no notice of idleness: there is no watermark that it could hold back."""

    def process_latency_marker(self, latency_marker: LatencyMarker) -> None:
        self._inputs.forward_latency_marker(latency_marker)
