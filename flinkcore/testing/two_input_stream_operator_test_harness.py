"""Harnesses of operators with two inputs."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from flinkcore.common.watermark import Watermark
from flinkcore.runtime.elements import StreamRecord, WatermarkStatus
from flinkcore.runtime.operators import TwoInputStreamOperator
from flinkcore.runtime.streaming_runtime_context import TaskInfo
from flinkcore.testing.abstract_stream_operator_test_harness import (
    ARGUMENT,
    TASK,
    AbstractStreamOperatorTestHarness,
    checked_record,
    checked_status,
    checked_watermark,
)
from flinkcore.testing.keyed_test_harness import K, KeyedTestHarness
from flinkcore.testing.stream_operator_parameters import StreamOperatorParameters, checked_key_selector

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")

TwoInputFactory = Callable[[StreamOperatorParameters], TwoInputStreamOperator]


class AbstractTwoInputTestHarness(AbstractStreamOperatorTestHarness[OUT]):
    """What harnesses of operators with two inputs have in common, however they call the second one."""

    _operator: TwoInputStreamOperator

    def __init__(self, operator_factory: TwoInputFactory, *, task: TaskInfo = TASK) -> None:
        super().__init__(operator_factory, TwoInputStreamOperator, task)

    def get_operator(self) -> TwoInputStreamOperator:
        """Return the operator."""
        return self._operator

    def process_both_watermarks(self, watermark: int | Watermark) -> None:
        """Process a watermark of both inputs, of the first one before.

        Parameters
        ----------
        watermark : int or Watermark
            In ms since the epoch; ``Watermark.MAX_WATERMARK`` says that the inputs have ended.

        Raises
        ------
        UserCodeError
            If a timer fails.
        DataError
            If it is no watermark.
        LifecycleError
            If the harness is not open, or the call comes from within a callback.
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
    operator_factory : callable
        From :class:`StreamOperatorParameters` to the operator.
    task : TaskInfo, optional
        Which subtask it is; by default the only one.

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
        """Process a watermark of the first input: nothing fires before the second one has got as far."""
        self._process_watermark("process_watermark1", self._operator.process_watermark1, watermark)

    def process_watermark2(self, watermark: int | Watermark) -> None:
        """Process a watermark of the second input: nothing fires before the first one has got as far."""
        self._process_watermark("process_watermark2", self._operator.process_watermark2, watermark)

    def process_watermark_status1(self, status: WatermarkStatus) -> None:
        """Process that the first input turns idle, and does not hold the watermark back, or active again."""
        self._process_status("process_watermark_status1", self._operator.process_watermark_status1, status)

    def process_watermark_status2(self, status: WatermarkStatus) -> None:
        """Process that the second input turns idle, and does not hold the watermark back, or active again."""
        self._process_status("process_watermark_status2", self._operator.process_watermark_status2, status)


class KeyedTwoInputStreamOperatorTestHarness(
    TwoInputStreamOperatorTestHarness[IN1, IN2, OUT], KeyedTestHarness[K], Generic[K, IN1, IN2, OUT]
):
    """Runs an operator with two keyed inputs.

    Parameters
    ----------
    operator_factory : callable
        From :class:`StreamOperatorParameters`, which have the key selectors and keyed state, to the operator.
    key_selector1, key_selector2 : callable
        From an element of either input to its key.
    key_type : pyarrow.DataType, optional
        As of :class:`KeyedOneInputStreamOperatorTestHarness`.
    task : TaskInfo, optional
        Which subtask it is; by default the only one.

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
        selectors = (
            checked_key_selector(key_selector1, "key_selector1"),
            checked_key_selector(key_selector2, "key_selector2"),
        )
        AbstractStreamOperatorTestHarness.__init__(
            self, operator_factory, TwoInputStreamOperator, task, selectors, key_type
        )
