"""Harnesses of sources: of those with splits, and of source functions."""

from collections.abc import Sequence
from typing import Any, TypeVar

from flinkcore.common.execution_config import checked_auto_watermark_interval
from flinkcore.common.time import Interval, timeout_ms
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.base import InputStatus, Source, SourceSplit
from flinkcore.datastream.functions import CheckpointedFunction, SourceFunction
from flinkcore.datastream.graph.declared_type import declared_type
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.datastream.timestamps import StrategyOrAssigner, as_watermark_strategy
from flinkcore.elements.sources.source_operator import SourceOperator
from flinkcore.elements.sources.stream_source import StreamSource, initialize_states
from flinkcore.errors import ConfigurationError, LifecycleError
from flinkcore.operators.records.copies import copied_function
from flinkcore.operators.state import OperatorStateBackend
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.testing.abstract_stream_operator_test_harness import (
    TASK,
    ClockedTestHarness,
    checked_timestamp,
)

OUT = TypeVar("OUT")


class SourceOperatorTestHarness(ClockedTestHarness[OUT]):
    """Runs the reader of one subtask of a source, poll by poll.

    Parameters
    ----------
    source : Source
    watermark_strategy : WatermarkStrategy
    type_info : TypeInformation, optional
        Type of the elements; that of the source by default.
    auto_watermark_interval_ms : int, default 200
        0: no periodic watermarks.
    emit_progressive_watermarks : bool, default True
        False, as for batch execution: only the last watermark is emitted.
    allow_unaligned_source_splits : bool, default False
        The setting ``pipeline.watermark-alignment.allow-unaligned-source-splits``.
    watermark_buffer_size : int, default 3
        The setting ``pipeline.watermark-alignment.buffer-size``.
    task : TaskInfo, optional
        The subtask; by default the only one.

    Raises
    ------
    ConfigurationError
        If it is not a source, or a setting is invalid.

    Notes
    -----
    Stands where Flink's tests have ``SourceOperatorTestContext``.
    """

    def __init__(
        self,
        source: Source,
        watermark_strategy: StrategyOrAssigner,
        type_info: TypeInformation | None = None,
        *,
        auto_watermark_interval_ms: int = 200,
        emit_progressive_watermarks: bool = True,
        allow_unaligned_source_splits: bool = False,
        watermark_buffer_size: int = 3,
        task: TaskInfo = TASK,
    ) -> None:
        super().__init__(task)
        if not isinstance(source, Source):
            raise ConfigurationError(f"this harness takes a Source, not {source!r}")
        strategy: WatermarkStrategy = as_watermark_strategy(watermark_strategy)
        self._source = source
        self._reported: list[int] = []
        self._restored: Sequence[SourceSplit] | None = None
        self._operator: SourceOperator[Any] = SourceOperator(
            source.create_reader,
            strategy,
            self._output,
            self._clock,
            auto_watermark_interval_ms,
            emit_progressive_watermarks=emit_progressive_watermarks,
            report_watermark=None if strategy.alignment_parameters is None else self._reported.append,
            allow_unaligned_source_splits=allow_unaligned_source_splits,
            watermark_buffer_size=watermark_buffer_size,
            subtask_index=task.index,
            parallelism=task.parallelism,
            conversion=None if type_info is None else declared_type(type_info, "type_info").conversion(),
        )

    def initialize_state(self, splits: Sequence[SourceSplit]) -> None:
        """Read these splits, such as those of a `snapshot`, instead of the subtask's share of all; before `open`.

        Raises
        ------
        LifecycleError
            If the harness was opened, or state was restored before.
        """
        self._refuse_closed("initialize_state")
        if self._opened or self._restored is not None:
            raise LifecycleError("state is restored once, before the harness is opened")
        self._restored = list(splits)

    def _open_subtask(self) -> None:
        self._operator.open(self._restored or ())
        if self._restored is None:
            splits = self._source.create_splits(self._task.parallelism)
            self._operator.add_splits(splits[self._task.index :: self._task.parallelism])
        self._operator.notify_no_more_splits()

    def _close_subtask(self, finish: bool) -> None:
        self._operator.close()

    def get_operator(self) -> SourceOperator[Any]:
        """Return the operator, with the metrics of its splits."""
        return self._operator

    def emit_next(self, polls: int = 1) -> InputStatus:
        """Poll the reader, but not beyond its end.

        Parameters
        ----------
        polls : int, default 1

        Returns
        -------
        InputStatus
            Status of the last poll; ``NOTHING_AVAILABLE`` also while the source waits for others.

        Raises
        ------
        Exception
            Whatever the reader, the timestamp assigner or the generator raises.
        """
        status = InputStatus.NOTHING_AVAILABLE

        def poll(count: int) -> None:
            nonlocal status
            for _ in range(count):
                status = self._operator.emit_next()
                if status is InputStatus.END_OF_INPUT:
                    break

        self._call("emit_next", poll, polls)
        return status

    def emit_available(self) -> InputStatus:
        """Poll the reader until it has nothing, or has ended; return the status of the last poll."""
        while (status := self.emit_next()) is InputStatus.MORE_AVAILABLE:
            pass
        return status

    def snapshot(self) -> list[SourceSplit]:
        """Return the splits at their current positions, for `initialize_state` of another harness."""
        self._refuse_in_call("snapshot")
        self._refuse_unless_open("snapshot")
        return list(self._operator.snapshot_state(1))

    def update_max_desired_watermark(self, watermark_ms: int) -> None:
        """Let the source read no further than a watermark, in ms since the epoch, as its coordinator does."""
        checked = checked_timestamp(watermark_ms, "the maximum desired watermark")
        self._call("update_max_desired_watermark", self._operator.update_max_desired_watermark, checked)

    def get_reported_watermarks(self) -> list[int]:
        """Return the watermarks that were reported for alignment, in ms since the epoch; 2**63 - 1 while idle."""
        return self._reported


class SourceFunctionTestHarness(ClockedTestHarness[OUT]):
    """Runs one subtask of a source function, emission by emission.

    The clock moves when the test moves it, and, timer by timer as in a job, when the function sleeps by its context.

    Parameters
    ----------
    function : SourceFunction
        Copied.
    type_info : TypeInformation, optional
        Type of the elements; any Python object by default.
    time_characteristic : TimeCharacteristic, default EventTime
    auto_watermark_interval_ms : int, default 200
    idle_timeout : Time, Duration, datetime.timedelta or int (ms), optional
        As of ``add_source``.
    emit_progressive_watermarks : bool, default True
        False, as for batch execution: only the last watermark is emitted.
    task : TaskInfo, optional
        The subtask; by default the only one.

    Raises
    ------
    ConfigurationError
        If it is not a source function, or a setting is invalid.

    Notes
    -----
    Stands where Flink's tests have ``StreamSource`` in an ``AbstractStreamOperatorTestHarness``.
    """

    def __init__(
        self,
        function: SourceFunction,
        type_info: TypeInformation | None = None,
        *,
        time_characteristic: TimeCharacteristic = TimeCharacteristic.EventTime,
        auto_watermark_interval_ms: int = 200,
        idle_timeout: Interval | None = None,
        emit_progressive_watermarks: bool = True,
        task: TaskInfo = TASK,
    ) -> None:
        super().__init__(task)
        if not isinstance(function, SourceFunction):
            raise ConfigurationError(f"this harness takes a SourceFunction, not {function!r}")
        self._function: SourceFunction = copied_function(function)
        self._slept_ms = 0
        self._source = StreamSource(
            self._function,
            self._output,
            self._clock,
            declared_type(type_info, "type_info"),
            time_characteristic=time_characteristic,
            auto_watermark_interval_ms=checked_auto_watermark_interval(auto_watermark_interval_ms),
            idle_timeout_ms=None if idle_timeout is None else timeout_ms(idle_timeout, "idle_timeout"),
            emit_progressive_watermarks=emit_progressive_watermarks,
        )
        self._ended = False

    def _open_subtask(self) -> None:
        if isinstance(self._function, CheckpointedFunction):
            initialize_states(self._function, OperatorStateBackend())
        self._function.open(StreamingRuntimeContext(self._task, None))

    def _close_subtask(self, finish: bool) -> None:
        try:
            self._source.close()
        finally:
            self._function.close()

    def get_function(self) -> SourceFunction:
        """Return the harness's copy of the function."""
        return self._function

    def emit_next(self, emissions: int = 1) -> bool:
        """Wait for emissions of the function, and emit them, each after as long as the function slept before it.

        All that the function emits while it holds the checkpoint lock is one emission. After the last one, the last
        watermark is emitted.

        Parameters
        ----------
        emissions : int, default 1

        Returns
        -------
        bool
            Whether the function has not ended yet.

        Raises
        ------
        UserCodeError
            If the function fails.
        """
        self._call("emit_next", self._emit, emissions)
        return not self._ended

    def emit_all(self) -> None:
        """Emit all emissions, for a function that ends by itself."""
        while self.emit_next():
            pass

    def _emit(self, emissions: int) -> None:
        for _ in range(emissions):
            if self._ended:
                return
            emission = self._source.next_emission()
            slept_ms = self._source.slept_ms if emission is None else emission.slept_ms
            self._let_pass(slept_ms - self._slept_ms)
            self._slept_ms = slept_ms
            if emission is None:
                self._ended = True
                self._source.finish()
                return
            for method, arguments in emission.calls:
                method(*arguments)

    def _let_pass(self, interval_ms: int) -> None:
        """Move the clock as that of a job: timers that are due before fire, each at its own time."""
        clock, end_ms = self._clock, self._clock.now_ms + interval_ms
        while (due_ms := clock.next_timestamp()) is not None and due_ms < end_ms:
            clock.advance_to(max(due_ms, clock.now_ms))
        clock.now_ms = end_ms


def for_source(
    source: Source,
    watermark_strategy: StrategyOrAssigner,
    type_info: TypeInformation | None = None,
    *,
    restore_from: Sequence[SourceSplit] | None = None,
    **settings: Any,
) -> SourceOperatorTestHarness[Any]:
    """Return an open harness of a source; parameters as of :class:`SourceOperatorTestHarness`.

    Parameters
    ----------
    restore_from : sequence of SourceSplit, optional
        Splits from a `snapshot`.

    Examples
    --------
    >>> from flinkcore.common import WatermarkStrategy
    >>> from flinkcore.datastream.connectors import NumberSequenceSource
    >>> with for_source(NumberSequenceSource(1, 2), WatermarkStrategy.no_watermarks()) as harness:
    ...     status = harness.emit_available()
    ...     harness.extract_output_values()
    [1, 2]
    """
    harness: SourceOperatorTestHarness[Any] = SourceOperatorTestHarness(
        source, watermark_strategy, type_info, **settings
    )
    if restore_from is not None:
        harness.initialize_state(restore_from)
    harness.open()
    return harness


def for_source_function(
    function: SourceFunction, type_info: TypeInformation | None = None, **settings: Any
) -> SourceFunctionTestHarness[Any]:
    """Return an open harness of a source function; parameters as of :class:`SourceFunctionTestHarness`.

    Examples
    --------
    >>> class Hello(SourceFunction):
    ...     def run(self, ctx):
    ...         ctx.collect_with_timestamp("hello", 7)
    ...
    ...     def cancel(self):
    ...         pass
    >>> with for_source_function(Hello()) as harness:
    ...     harness.emit_all()
    ...     harness.extract_output_stream_records()
    [StreamRecord(value='hello', timestamp=7)]
    """
    harness: SourceFunctionTestHarness[Any] = SourceFunctionTestHarness(function, type_info, **settings)
    harness.open()
    return harness
