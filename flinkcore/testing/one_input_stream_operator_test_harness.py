"""Harnesses of operators with one input."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from flinkcore.common.watermark import Watermark
from flinkcore.operators.function_calls import KeySelector
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.stream_operator import OneInputStreamOperator
from flinkcore.operators.streaming_runtime_context import TaskInfo
from flinkcore.testing.abstract_stream_operator_test_harness import (
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

IN = TypeVar("IN")
OUT = TypeVar("OUT")

OneInputFactory = Callable[[StreamOperatorParameters], OneInputStreamOperator]


class OneInputStreamOperatorTestHarness(AbstractStreamOperatorTestHarness[OUT], Generic[IN, OUT]):
    """Runs an operator with one input.

    Parameters
    ----------
    operator_factory : callable
        From :class:`StreamOperatorParameters` to the operator.
    task : TaskInfo, optional
        The subtask; by default the only one.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness``.

    Examples
    --------
    >>> from flinkcore.operators.process_operators import ProcessOperator
    >>> from flinkcore.datastream import ProcessFunction
    >>> class Double(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield 2 * value
    >>> with OneInputStreamOperatorTestHarness(
    ...     lambda parameters: ProcessOperator(Double(), parameters.output, parameters.processing_time_service)
    ... ) as harness:
    ...     harness.process_element(4, timestamp=10)
    ...     harness.get_output()
    [StreamRecord(value=8, timestamp=10)]
    """

    _operator: OneInputStreamOperator

    def __init__(self, operator_factory: OneInputFactory, *, task: TaskInfo = TASK) -> None:
        super().__init__(operator_factory, OneInputStreamOperator, task)

    def get_operator(self) -> OneInputStreamOperator:
        """Return the operator."""
        return self._operator

    def process_element(self, value: IN | StreamRecord[IN], timestamp: int | None = None) -> None:
        """Process an element.

        Parameters
        ----------
        value : object
            Or a StreamRecord with its timestamp.
        timestamp : int, optional
            Event time in ms since the epoch; by default the record has none.

        Raises
        ------
        UserCodeError
            If the function or the key selector raises; the cause is their exception.
        DataError
            If the timestamp is invalid, or the key belongs to another subtask.
        LifecycleError
            If the harness is not open, or a callback makes the call.
        """
        self._call("process_element", self._operator.process_element, checked_record(value, timestamp))

    def process_elements(self, records: Iterable[StreamRecord[IN]]) -> None:
        """Process records one by one."""
        for record in records:
            self.process_element(record)

    def process_watermark(self, watermark: int | Watermark) -> None:
        """Process a watermark: event-time timers at or before it fire, then it is forwarded.

        As in Flink's harness it is not compared with the previous one. In a job, inputs drop a watermark that goes
        back.

        Parameters
        ----------
        watermark : int or Watermark
            In ms since the epoch; ``Watermark.MAX_WATERMARK`` says that the input has ended.

        Raises
        ------
        UserCodeError
            If a timer fails.
        DataError
            If it is invalid.
        LifecycleError
            As of `process_element`.
        """
        self._call("process_watermark", self._process_watermark, checked_watermark(watermark))

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Process a status of the input: idle, or active again; errors as of `process_watermark`."""
        self._call(
            "process_watermark_status", self._operator.process_watermark_status, checked_status(status)
        )

    def _process_watermark(self, watermark: Watermark) -> None:
        self._watermark_ms = watermark.timestamp
        self._operator.process_watermark(watermark)


class KeyedOneInputStreamOperatorTestHarness(
    OneInputStreamOperatorTestHarness[IN, OUT], KeyedTestHarness[K], Generic[K, IN, OUT]
):
    """Runs an operator with one keyed input.

    Parameters
    ----------
    operator_factory : callable
        From :class:`StreamOperatorParameters`, which have the key selector and keyed state, to the operator.
    key_selector : callable
        From an element to its key.
    key_type : pyarrow.DataType, optional
        Type of the keys, if it is narrower than their Python type, such as ``pyarrow.int32()`` for Java's Integer; it
        determines key groups.
    task : TaskInfo, optional
        The subtask; by default the only one.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness``.
    """

    def __init__(
        self,
        operator_factory: OneInputFactory,
        key_selector: Callable[[IN], K],
        key_type: Any = None,
        *,
        task: TaskInfo = TASK,
    ) -> None:
        selector: KeySelector = checked_key_selector(key_selector)
        AbstractStreamOperatorTestHarness.__init__(
            self, operator_factory, OneInputStreamOperator, task, (selector,), key_type
        )
