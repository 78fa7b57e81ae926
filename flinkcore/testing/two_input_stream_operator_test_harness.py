"""Harnesses of operators with two inputs, the second of which may be broadcast."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Generic, TypeVar

from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.state import BroadcastState, MapStateDescriptor
from flinkcore.elements.tasks.subtask_state import COMBINED, own_state, restore_combined
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.stream_operator import TwoInputStreamOperator
from flinkcore.operators.streaming_runtime_context import TaskInfo
from flinkcore.testing.abstract_stream_operator_test_harness import (
    ARGUMENT,
    TASK,
    AbstractStreamOperatorTestHarness,
    K,
    KeyedTestHarness,
    StreamOperatorParameters,
    checked_key_selector,
    checked_record,
    checked_status,
    checked_watermark,
)
from flinkcore.testing.operator_subtask_state import OperatorSubtaskState

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
STATE_KEY = TypeVar("STATE_KEY")
STATE_VALUE = TypeVar("STATE_VALUE")

TwoInputFactory = Callable[[StreamOperatorParameters], TwoInputStreamOperator]


class AbstractTwoInputTestHarness(AbstractStreamOperatorTestHarness[OUT]):
    """Base of the harnesses of operators with two inputs."""

    _operator: TwoInputStreamOperator

    def __init__(self, operator_factory: TwoInputFactory, *, task: TaskInfo = TASK) -> None:
        super().__init__(operator_factory, TwoInputStreamOperator, task)

    def get_operator(self) -> TwoInputStreamOperator:
        """Return the operator."""
        return self._operator

    def _restore_watermark(self, state: OperatorSubtaskState) -> None:
        super()._restore_watermark(state)
        by_subtask = state.elements_by_subtask(COMBINED)
        is_own = len(by_subtask) < state.parallelism
        index, parallelism = (0, 1) if is_own else (self._task.index, self._task.parallelism)
        restore_combined(self._operator, by_subtask, index, parallelism)

    def _operator_snapshot(self) -> OperatorSnapshot:
        snapshot = super()._operator_snapshot()
        *inputs, _ = self._operator.watermarks()
        combined = own_state(self._task.index, (*inputs, self._watermark_ms))
        return replace(snapshot, operator_state={**snapshot.operator_state, COMBINED: combined})

    def process_both_watermarks(self, watermark: int | Watermark) -> None:
        """Process a watermark of the first input, then of the second.

        Parameters and errors are those of `OneInputStreamOperatorTestHarness.process_watermark`.
        """
        self._process_watermark("process_both_watermarks", self._operator.process_watermark1, watermark)
        self._process_watermark("process_both_watermarks", self._operator.process_watermark2, watermark)

    def _process_watermark(
        self, name: str, method: Callable[[Watermark], object], watermark: int | Watermark
    ) -> None:
        self._call(name, self._then_combine(method), checked_watermark(watermark))

    def _process_status(
        self, name: str, method: Callable[[WatermarkStatus], object], status: WatermarkStatus
    ) -> None:
        self._call(name, self._then_combine(method), checked_status(status))

    def _then_combine(self, method: Callable[[ARGUMENT], object]) -> Callable[[ARGUMENT], None]:
        def process(argument: ARGUMENT) -> None:
            try:
                method(argument)
            finally:
                self._watermark_ms = max(self._watermark_ms, self._operator.combined_watermark)

        return process


class TwoInputStreamOperatorTestHarness(AbstractTwoInputTestHarness[OUT], Generic[IN1, IN2, OUT]):
    """Runs an operator with two inputs, whose watermark is the lesser of theirs.

    Parameters
    ----------
    operator_factory, task
        As of :class:`OneInputStreamOperatorTestHarness`.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.util.TwoInputStreamOperatorTestHarness``.
    """

    def process_element1(self, value: IN1 | StreamRecord[IN1], timestamp: int | None = None) -> None:
        """Process an element of the first input; as `OneInputStreamOperatorTestHarness.process_element`."""
        self._call("process_element1", self._operator.process_element1, checked_record(value, timestamp))

    def process_element2(self, value: IN2 | StreamRecord[IN2], timestamp: int | None = None) -> None:
        """Process an element of the second input; as `process_element1`."""
        self._call("process_element2", self._operator.process_element2, checked_record(value, timestamp))

    def process_elements1(self, records: Iterable[StreamRecord[IN1]]) -> None:
        """Process records of the first input one by one."""
        for record in records:
            self.process_element1(record)

    def process_elements2(self, records: Iterable[StreamRecord[IN2]]) -> None:
        """Process records of the second input one by one."""
        for record in records:
            self.process_element2(record)

    def process_watermark1(self, watermark: int | Watermark) -> None:
        """Process a watermark of the first input; timers fire up to the lesser watermark of both."""
        self._process_watermark("process_watermark1", self._operator.process_watermark1, watermark)

    def process_watermark2(self, watermark: int | Watermark) -> None:
        """Process a watermark of the second input; timers fire up to the lesser watermark of both."""
        self._process_watermark("process_watermark2", self._operator.process_watermark2, watermark)

    def process_watermark_status1(self, status: WatermarkStatus) -> None:
        """Process a status of the first input: idle, so that it holds no watermark back, or active again."""
        self._process_status("process_watermark_status1", self._operator.process_watermark_status1, status)

    def process_watermark_status2(self, status: WatermarkStatus) -> None:
        """Process a status of the second input: idle, so that it holds no watermark back, or active again."""
        self._process_status("process_watermark_status2", self._operator.process_watermark_status2, status)


class KeyedTwoInputStreamOperatorTestHarness(
    TwoInputStreamOperatorTestHarness[IN1, IN2, OUT], KeyedTestHarness[K], Generic[K, IN1, IN2, OUT]
):
    """Runs an operator with two keyed inputs.

    Parameters
    ----------
    key_selector1, key_selector2 : callable
        From an element of either input to its key.
    operator_factory, key_type, task
        As of :class:`KeyedOneInputStreamOperatorTestHarness`.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.util.KeyedTwoInputStreamOperatorTestHarness``.
    """

    def __init__(
        self,
        operator_factory: TwoInputFactory,
        key_selector1: Callable[[IN1], K],
        key_selector2: Callable[[IN2], K],
        key_type: Any = None,
        *,
        task: TaskInfo = TASK,
    ) -> None:
        first = checked_key_selector(key_selector1, "key_selector1")
        second = checked_key_selector(key_selector2, "key_selector2")
        AbstractStreamOperatorTestHarness.__init__(
            self, operator_factory, TwoInputStreamOperator, task, (first, second), key_type
        )


class BroadcastOperatorTestHarness(AbstractTwoInputTestHarness[OUT], Generic[IN1, IN2, OUT]):
    """Runs an operator with a broadcast second input, whose watermark is the lesser of both.

    Parameters
    ----------
    operator_factory, task
        As of :class:`OneInputStreamOperatorTestHarness`.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.util.BroadcastOperatorTestHarness``.
    """

    def process_element(self, value: IN1 | StreamRecord[IN1], timestamp: int | None = None) -> None:
        """Process an element of the stream that is not broadcast; as that of the one-input harness."""
        self._call("process_element", self._operator.process_element1, checked_record(value, timestamp))

    def process_broadcast_element(self, value: IN2 | StreamRecord[IN2], timestamp: int | None = None) -> None:
        """Process an element of the broadcast stream; as `process_element`."""
        self._call(
            "process_broadcast_element", self._operator.process_element2, checked_record(value, timestamp)
        )

    def process_watermark(self, watermark: int | Watermark) -> None:
        """Process a watermark of the stream that is not broadcast; timers fire up to the lesser watermark of both."""
        self._process_watermark("process_watermark", self._operator.process_watermark1, watermark)

    def process_broadcast_watermark(self, watermark: int | Watermark) -> None:
        """Process a watermark of the broadcast stream; timers fire up to the lesser watermark of both."""
        self._process_watermark("process_broadcast_watermark", self._operator.process_watermark2, watermark)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Process a status of the stream that is not broadcast: idle, or active again."""
        self._process_status("process_watermark_status", self._operator.process_watermark_status1, status)

    def process_broadcast_watermark_status(self, status: WatermarkStatus) -> None:
        """Process a status of the broadcast stream: idle, so that it holds no watermark back, or active again."""
        self._process_status(
            "process_broadcast_watermark_status", self._operator.process_watermark_status2, status
        )

    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor[STATE_KEY, STATE_VALUE]
    ) -> BroadcastState[STATE_KEY, STATE_VALUE]:
        """Return a broadcast state, to be read or set up.

        Raises
        ------
        ConfigurationError
            If the operator has none of this name.
        """
        return self._operator_state.declared_broadcast_state(state_descriptor)


class KeyedBroadcastOperatorTestHarness(
    BroadcastOperatorTestHarness[IN1, IN2, OUT], KeyedTestHarness[K], Generic[K, IN1, IN2, OUT]
):
    """Runs an operator with a keyed first input and a broadcast second one.

    Parameters
    ----------
    key_selector : callable
        From an element of the first input to its key.
    operator_factory, key_type, task
        As of :class:`KeyedOneInputStreamOperatorTestHarness`.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.util.KeyedBroadcastOperatorTestHarness``.
    """

    def __init__(
        self,
        operator_factory: TwoInputFactory,
        key_selector: Callable[[IN1], K],
        key_type: Any = None,
        *,
        task: TaskInfo = TASK,
    ) -> None:
        selectors = (checked_key_selector(key_selector),)
        AbstractStreamOperatorTestHarness.__init__(
            self, operator_factory, TwoInputStreamOperator, task, selectors, key_type
        )
