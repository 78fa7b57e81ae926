"""Harnesses of operators with a broadcast second input."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.state import BroadcastState, MapStateDescriptor
from flinkcore.runtime.elements import StreamRecord, WatermarkStatus
from flinkcore.runtime.operators import TwoInputStreamOperator
from flinkcore.runtime.streaming_runtime_context import TaskInfo
from flinkcore.testing.abstract_stream_operator_test_harness import (
    TASK,
    AbstractStreamOperatorTestHarness,
    checked_record,
)
from flinkcore.testing.keyed_test_harness import K, KeyedTestHarness
from flinkcore.testing.stream_operator_parameters import checked_key_selector
from flinkcore.testing.two_input_stream_operator_test_harness import (
    AbstractTwoInputTestHarness,
    TwoInputFactory,
)

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
STATE_KEY = TypeVar("STATE_KEY")
STATE_VALUE = TypeVar("STATE_VALUE")


class BroadcastOperatorTestHarness(AbstractTwoInputTestHarness[OUT], Generic[IN1, IN2, OUT]):
    """Runs an operator with a broadcast second input, whose watermark is the lesser of both.

    Parameters
    ----------
    operator_factory : callable
        From :class:`StreamOperatorParameters` to the operator.
    task : TaskInfo, optional
        Which subtask it is; by default the only one.

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
        """Process a watermark of the stream that is not broadcast: nothing fires before the other got as far."""
        self._process_watermark("process_watermark", self._operator.process_watermark1, watermark)

    def process_broadcast_watermark(self, watermark: int | Watermark) -> None:
        """Process a watermark of the broadcast stream: nothing fires before the other stream got as far."""
        self._process_watermark("process_broadcast_watermark", self._operator.process_watermark2, watermark)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Process that the stream that is not broadcast turns idle, or active again."""
        self._process_status("process_watermark_status", self._operator.process_watermark_status1, status)

    def process_broadcast_watermark_status(self, status: WatermarkStatus) -> None:
        """Process that the broadcast stream turns idle, and does not hold the watermark back, or active again."""
        self._process_status(
            "process_broadcast_watermark_status", self._operator.process_watermark_status2, status
        )

    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor[STATE_KEY, STATE_VALUE]
    ) -> BroadcastState[STATE_KEY, STATE_VALUE]:
        """Return a broadcast state, to be read, or set up.

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
    operator_factory : callable
        From :class:`StreamOperatorParameters`, which have the key selector and keyed state, to the operator.
    key_selector : callable
        From an element of the first input to its key.
    key_type : pyarrow.DataType, optional
        As of :class:`KeyedOneInputStreamOperatorTestHarness`.
    task : TaskInfo, optional
        Which subtask it is; by default the only one.

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
