"""Operators, and what all of them do with watermarks, statuses and latency markers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, Protocol

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import RuntimeContext
from flinkcore.errors import LifecycleError
from flinkcore.operators.combined_watermark_status import IndexedCombinedWatermarkStatus
from flinkcore.operators.late_records import LateRecords
from flinkcore.operators.metrics.latency import LatencyStats
from flinkcore.operators.metrics.task_metrics import TaskMetricGroup
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.operators.timers import InternalTimeServiceManager

ElementCall = Callable[[StreamRecord[Any]], None]
"""Processes a record."""


class Input(Protocol):
    """The upstream side of an operator with one input, or of one input of two.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.Input``.
    """

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Process a record."""

    def process_watermark(self, watermark: Watermark) -> None:
        """Process a watermark: of several channels, the combined one."""

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Process that the input turns idle, or active again."""

    def process_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Measure a latency marker, and forward it."""


class AbstractStreamOperator:
    """Forwards watermarks, statuses and latency markers, and measures the markers.

    Parameters
    ----------
    output : Output

    Attributes
    ----------
    latency_stats : LatencyStats or None
        Measures the latency markers that pass, which a `SourceOperator` with a latency tracking interval emits. With
        None, the default, markers are only forwarded.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.AbstractStreamOperator``.
    """

    latency_stats: LatencyStats | None = None

    def __init__(self, output: Output) -> None:
        self._output = output

    @property
    def time_service_manager(self) -> InternalTimeServiceManager | None:
        """The operator's timers, to be restored before `open`; None for an operator without timers."""
        return None

    def register_metrics(self, group: TaskMetricGroup) -> None:
        """Register what only this kind of operator counts, by Flink's names."""

    @property
    def late_records(self) -> LateRecords | None:
        """The late records so far; None for an operator that drops no records."""
        return None

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the operator and its function, once its state is restored and before anything is processed."""

    def finish(self) -> None:
        """Emit what is still held back, at the end of the input."""

    def close(self) -> None:
        """Release what `open` acquired, and close the function."""

    def end_key(self) -> None:
        """Fire the timers of a key at the end of its records, in the execution mode BATCH."""
        if self.time_service_manager is not None:
            self.time_service_manager.end_key()

    def process_watermark(self, watermark: Watermark) -> None:
        """Fire the event-time timers that are due, and forward the watermark."""
        self._output.emit_watermark(watermark)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Forward a status."""
        self._output.emit_watermark_status(status)

    def announce_idleness(self) -> None:
        """Let what reads the output know that it is idle, as that of a restored operator may be."""
        self._output.emit_watermark_status(WatermarkStatus.IDLE)

    def process_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Measure a latency marker, and forward it."""
        if self.latency_stats is not None:
            self.latency_stats.report_latency(latency_marker)
        self._output.emit_latency_marker(latency_marker)


class OneInputStreamOperator(AbstractStreamOperator, ABC):
    """An operator with one input; an :class:`Input`.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.OneInputStreamOperator``.
    """

    @abstractmethod
    def process_element(self, record: StreamRecord[Any]) -> None:
        """Process a record, with its key as the current key if the input is keyed.

        Raises
        ------
        UserCodeError
            If a function, or the key selector, raises, or a function gives what cannot be iterated over.
        DataError
            If the key has no key group, or one of another subtask, or a result is not of the declared type.
        """

    @property
    def element_call(self) -> ElementCall:
        """Return what processes a record as `process_element` does, in fewer calls; valid once the operator is open."""
        return self.process_element


class TwoInputStreamOperator(AbstractStreamOperator, ABC):
    """An operator with two inputs, whose watermark is the lesser of theirs.

    An idle input does not hold the watermark back. The operator is idle while both inputs are; when the second one
    turns idle, the greater watermark of both is forwarded before the status.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.TwoInputStreamOperator``, with what
    ``AbstractStreamOperator`` does for two inputs.
    """

    def __init__(self, output: Output) -> None:
        super().__init__(output)
        self._combined = IndexedCombinedWatermarkStatus(2)

    @property
    def combined_watermark(self) -> int:
        """The lesser watermark of the inputs that are not idle, in ms since the epoch; -2**63 before the first."""
        return self._combined.combined_watermark

    def watermarks(self) -> tuple[int, int, bool, bool, int]:
        """Return the watermarks of both inputs, whether they are idle, and the combined watermark."""
        (first_ms, second_ms), (is_first_idle, is_second_idle) = self._combined.inputs()
        return first_ms, second_ms, is_first_idle, is_second_idle, self._combined.combined_watermark

    def restore_watermarks(
        self, watermarks_ms: tuple[int, int], idle: Sequence[bool], combined_ms: int
    ) -> None:
        """Take watermarks and statuses of the inputs, and the combined watermark, of a snapshot; before `open`."""
        self._combined.restore(watermarks_ms, idle, combined_ms)

    @abstractmethod
    def process_element1(self, record: StreamRecord[Any]) -> None:
        """Process a record of the first input; see :meth:`OneInputStreamOperator.process_element`."""

    @abstractmethod
    def process_element2(self, record: StreamRecord[Any]) -> None:
        """Process a record of the second input; see :meth:`OneInputStreamOperator.process_element`."""

    def process_watermark1(self, watermark: Watermark) -> None:
        """Take a watermark of the first input; process the combined one if it advances."""
        self._process_watermark_of(0, watermark)

    def process_watermark2(self, watermark: Watermark) -> None:
        """Take a watermark of the second input; process the combined one if it advances."""
        self._process_watermark_of(1, watermark)

    def process_watermark_status1(self, status: WatermarkStatus) -> None:
        """Take the status of the first input; forward the combined one if it changes."""
        self._process_status_of(0, status)

    def process_watermark_status2(self, status: WatermarkStatus) -> None:
        """Take the status of the second input; forward the combined one if it changes."""
        self._process_status_of(1, status)

    def _process_watermark_of(self, index: int, watermark: Watermark) -> None:
        if self._combined.update_watermark(index, watermark.timestamp):
            self.process_watermark(Watermark(self._combined.combined_watermark))

    def _process_status_of(self, index: int, status: WatermarkStatus) -> None:
        was_idle = self._combined.is_idle
        if self._combined.update_status(index, status is WatermarkStatus.IDLE):
            self.process_watermark(Watermark(self._combined.combined_watermark))
        if was_idle != self._combined.is_idle:
            self._output.emit_watermark_status(status)


class OneOfTwoInputs:
    """The first or the second input of an operator with two; an :class:`Input`."""

    def __init__(self, operator: TwoInputStreamOperator, number: Literal[1, 2]) -> None:
        is_first = number == 1
        self.process_element = operator.process_element1 if is_first else operator.process_element2
        self.process_watermark = operator.process_watermark1 if is_first else operator.process_watermark2
        self.process_watermark_status = (
            operator.process_watermark_status1 if is_first else operator.process_watermark_status2
        )
        self.process_latency_marker = operator.process_latency_marker


def refuse_before_open(record: StreamRecord[Any]) -> NoReturn:
    """Raise a LifecycleError: the operator is not open."""
    raise LifecycleError(f"the element {record.value!r} comes before the operator was opened")
