"""Sources of tasks, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from flinkcore._internal.python.working_directory import WorkingDirectory
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.datastream.connectors.collection import CollectionSplit
from flinkcore.datastream.functions import CheckpointedFunction
from flinkcore.datastream.graph.element_transformations import (
    LegacySourceTransformation,
    SideOutputTransformation,
)
from flinkcore.datastream.graph.transformations import Transformation
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.elements.arrivals.element_arrivals import Origin, SplitArrivals, arrival_times, end_input
from flinkcore.elements.arrivals.restored_sources import (
    FIRST_PLACE,
    RestoredFunction,
    RestoredSource,
    SourcePlace,
)
from flinkcore.elements.tasks.stream_task import StreamTask
from flinkcore.elements.tasks.task_output import ElementCall

if TYPE_CHECKING:
    from flinkcore.elements.arrivals.aligned_splits import AlignedSplits
    from flinkcore.elements.arrivals.function_arrivals import FunctionArrivals
    from flinkcore.elements.arrivals.split_watermarks import SplitWatermarks
    from flinkcore.elements.sources.source_contexts import LockedSourceContext
    from flinkcore.elements.sources.watermark_alignment import SourceCoordinator
    from flinkcore.operators.state import OperatorStateSnapshot


class TaskSource(Protocol):
    """Source of a task; picklable.

    Attributes
    ----------
    origin : int
        Number in the job of the origin that it is.
    """

    @property
    def origin(self) -> int: ...

    def origins(self, task: StreamTask) -> list[Origin]:
        """Return what arrives at the task, which is open, and whose clock shows the start of the job.

        The last of it ends the task.
        """

    def last_arrival_ms(self, opened: Callable[[], StreamTask]) -> int | None:
        """Return the arrival of its last element, or None without elements.

        Parameters
        ----------
        opened : callable
            Function that opens a task for the source alone, if it must run to know.
        """


@dataclass(frozen=True)
class TaskElements:
    """A collection, or the result of a job over columns, that a task reads, which is one origin.

    Elements have no timestamps, but for those of a collection in ingestion time.

    Attributes
    ----------
    origin : int
        Its number in the job.
    split : SourceSplit
    converted_to : TypeInformation or None
        Type to which elements are converted, unless the source does so.
    configuration : ExecutionConfig
    start_ms : int
        When the job starts.
    is_in_ingestion_time : bool
        Whether timestamps and watermarks are those of the job's clock.
    position : int
        Number of elements that earlier runs emitted, from whose checkpoint this one resumes.
    left_out : int
        Number of elements of the collection that are not in the split, as they were emitted before.
    restored_context : tuple or None
        State of the context of ingestion time from which this one resumes, or None at its beginning.
    """

    origin: int
    split: SourceSplit
    converted_to: TypeInformation | None
    configuration: ExecutionConfig
    start_ms: int
    is_in_ingestion_time: bool = False
    position: int = 0
    left_out: int = 0
    restored_context: tuple[int | None, ...] | None = None

    def origins(self, task: StreamTask) -> list[Origin]:
        """Return the elements."""
        output = task.source_output
        task.emit_latency_markers()
        collect: ElementCall = output.collect
        context = self._ingestion_context(task) if self.is_in_ingestion_time else None
        if context is not None:
            collect = _values_to(context)

        def finish() -> None:
            if context is not None:
                context.close()
            end_input(output)
            task.end_source()

        conversion = None if self.converted_to is None else self.converted_to.conversion()
        rate = self.configuration.get_arrival_rate()
        return [
            SplitArrivals(
                self.origin,
                self.split,
                conversion,
                rate,
                self.start_ms,
                collect,
                finish,
                self.position,
                self.left_out,
                context,
            )
        ]

    def last_arrival_ms(self, opened: Callable[[], StreamTask]) -> int | None:
        """Return the arrival of the last element of a collection, or None without elements."""
        assert isinstance(self.split, CollectionSplit)
        position = self.position + len(self.split.collection)
        arrival_ms = arrival_times(self.configuration.get_arrival_rate(), self.start_ms)
        return arrival_ms(position) if self.split.collection else None

    def _ingestion_context(self, task: StreamTask) -> LockedSourceContext[Any]:
        """Return the context of a source function in ingestion time, which gives timestamps and watermarks."""
        from flinkcore.elements.sources.source_contexts import get_source_context

        context = get_source_context(
            TimeCharacteristic.IngestionTime,
            task.clock,
            nullcontext(),
            task.source_output,
            watermark_interval_ms=self.configuration.get_auto_watermark_interval(),
            emit_progressive_watermarks=not self.configuration.is_batch(),
        )
        if self.restored_context is not None:
            context.restore_state(self.restored_context, task.downtime_ms)
        return context


def _values_to(context: LockedSourceContext[Any]) -> ElementCall:
    return lambda record: context.collect(record.value)


@dataclass(frozen=True)
class TaskSplits:
    """Splits of a source that a task reads, which are one origin.

    Attributes
    ----------
    origin : int
        Its number in the job.
    splits : tuple of SourceSplit
    created_for : int
        The number of subtasks that the splits were created for.
    source : Source or None
        Source that creates the reader, or None if splits return their elements by themselves.
    is_bounded : bool
    converted_to : TypeInformation or None
        Type to which elements are converted, unless the source does so.
    strategy : WatermarkStrategy
    configuration : ExecutionConfig
    start_ms : int
        When the job starts.
    holds_end : bool
        Whether the end of the source is held back, as it may have more in another run.
    restored : RestoredSource or None
        State from which the subtask resumes, or None at its beginning.
    """

    origin: int
    splits: tuple[SourceSplit, ...]
    created_for: int
    source: Source | None
    is_bounded: bool
    converted_to: TypeInformation | None
    strategy: WatermarkStrategy
    configuration: ExecutionConfig
    start_ms: int
    holds_end: bool = False
    restored: RestoredSource | None = None

    def origins(self, task: StreamTask) -> list[Origin]:
        """Open the operator of the source, and return its polls."""
        from flinkcore.datastream.connectors.iterator_source_reader import IteratorSourceReader
        from flinkcore.elements.arrivals.source_arrivals import SourceArrivals
        from flinkcore.elements.sources.source_operator import SourceOperator

        configuration, coordinator = self.configuration, self._coordinator(task)
        wake = None if task.mailbox is None else task.mailbox.wake
        restored, place = self.restored, self._place()
        turn = place.turn
        operator: SourceOperator[Any] = SourceOperator(
            (lambda context: IteratorSourceReader(wake, turn, self.holds_end))
            if self.source is None
            else self.source.create_reader,
            self.strategy,
            task.source_output,
            task.clock,
            configuration.get_auto_watermark_interval(),
            emit_progressive_watermarks=not configuration.is_batch(),
            report_watermark=None if coordinator is None else coordinator.reporter(task.index),
            allow_unaligned_source_splits=configuration.allows_unaligned_source_splits(),
            watermark_buffer_size=configuration.get_watermark_alignment_buffer_size(),
            subtask_index=task.index,
            parallelism=task.vertex.parallelism,
            conversion=None if self.converted_to is None else self.converted_to.conversion(),
            operator_id=task.source_id,
            latency_tracking_interval_ms=max(0, configuration.get_latency_tracking_interval()),
            holds_end=self.holds_end,
            downtime_ms=task.downtime_ms,
        )
        if restored is None:
            operator.open(self.splits)
        else:
            operator.open(self.splits, restored.watermarks, restored.next_tick_ms)
        operator.register_metrics(task.source_metric_group)
        operator.notify_no_more_splits()
        if coordinator is not None:
            coordinator.subtask_ready(task.index, operator)
        arrivals = SourceArrivals(
            self.origin,
            operator,
            configuration.get_arrival_rate(),
            self.start_ms,
            self.is_bounded,
            task.end_source,
            index=task.index,
            holds_end=self.holds_end,
            serializer=None if self.source is None else self.source.split_serializer(),
            created_for=self.created_for,
            place=place,
            end_ms=self._end_ms(),
        )
        arrivals.had_ended = restored is not None and restored.place.created_for > 0 and not self.splits
        return [arrivals]

    def last_arrival_ms(self, opened: Callable[[], StreamTask]) -> int | None:
        """Return the arrival of the last element, or None without elements. The splits are read for it."""
        position = self._place().position
        if self.source is not None or len(self.splits) > 1:
            return self._last_poll_ms(opened())
        n_elements = sum(1 for split in self.splits for _ in split.elements())
        return self._arrival_ms(position + n_elements) if n_elements else None

    def _place(self) -> SourcePlace:
        if self.restored is None:
            return FIRST_PLACE
        return self.restored.place.not_before(self.restored.last, self._arrival_ms, self.origin)

    def _end_ms(self) -> int | None:
        """Return when the end comes if there is nothing more: when it would have, or with the last arrival."""
        if self.restored is None or self.restored.last is None:
            return None
        return max(self._arrival_ms(self.restored.place.position) + 1, self.restored.last[0])

    @property
    def _arrival_ms(self) -> Callable[[int], int]:
        return arrival_times(self.configuration.get_arrival_rate(), self.start_ms)

    def _last_poll_ms(self, task: StreamTask) -> int | None:
        (arrivals,) = self.origins(task)
        last_ms = None
        with closing(arrivals):
            while not arrivals.at_end:
                last_ms = arrivals.next_arrival_ms
                arrivals.emit()
        return last_ms

    def _coordinator(self, task: StreamTask) -> SourceCoordinator | None:
        parameters = self.strategy.alignment_parameters
        if parameters is None:
            return None
        return task.source_coordinators.of_source(str(task.vertex.first_task), parameters)


@dataclass(frozen=True)
class TaskLog:
    """An event log that a task reads, which is one origin.

    Attributes
    ----------
    origin : int
        Its number in the job.
    reading : LogReading
    end_ms : int
        When all logs of the job end.
    is_batch : bool
        Whether there is no watermark before the last.
    restored : RestoredSplits or None
        State from which the watermarks of its splits resume, or None at their beginning.
    """

    origin: int
    reading: Any
    end_ms: int
    is_batch: bool
    restored: Any = None

    def origins(self, task: StreamTask) -> list[Origin]:
        """Return the log."""
        from flinkcore.elements.arrivals.log_arrivals import LogArrivals  # loads pyarrow

        def align(watermarks: SplitWatermarks, n_splits: int) -> AlignedSplits | None:
            parameters = self.reading.strategy.alignment_parameters
            if parameters is None:
                return None
            from flinkcore.elements.arrivals.aligned_splits import AlignedSplits

            group = task.source_coordinators.group(parameters.watermark_group)
            samples = self.reading.watermark_buffer_size
            return AlignedSplits(
                str(task.vertex.first_task), parameters, group, watermarks, n_splits, task.clock, samples
            )

        task.emit_latency_markers()
        return [
            LogArrivals(
                self.origin,
                self.reading,
                task.source_output,
                task.clock,
                self.end_ms,
                task.end_source,
                self.is_batch,
                self.restored,
                align,
            )
        ]

    def last_arrival_ms(self, opened: Callable[[], StreamTask]) -> int | None:
        """Return the arrival of the last event, or None without events."""
        found = self.reading.arrival_range
        return None if found is None else found[1]


@dataclass(frozen=True)
class TaskFunction:
    """A source function that a task runs, which is one origin.

    Attributes
    ----------
    origin : int
        Its number in the job.
    step : LegacySourceTransformation
    time_characteristic : TimeCharacteristic
        Time characteristic of the job.
    configuration : ExecutionConfig
    start_ms : int
        When the job starts.
    restored : RestoredFunction or None
        State from which the function resumes, or None at its beginning.
    """

    origin: int
    step: LegacySourceTransformation
    time_characteristic: TimeCharacteristic
    configuration: ExecutionConfig
    start_ms: int
    restored: RestoredFunction | None = None

    def last_arrival_ms(self, opened: Callable[[], StreamTask]) -> int | None:
        """Return the arrival of the last emission, or None without one. A copy of the function runs for it."""
        with closing(self._arrivals(opened())) as arrivals:
            return arrivals.run_through()

    def origins(self, task: StreamTask) -> list[Origin]:
        """Open the task's copy of the function, and return what it emits."""
        task.emit_latency_markers()
        return [self._arrivals(task)]

    def _arrivals(self, task: StreamTask) -> FunctionArrivals:
        from flinkcore.elements.arrivals.function_arrivals import FunctionArrivals
        from flinkcore.elements.sources.stream_source import StreamSource

        restored = self.restored
        function = task.opened_source_function(self.step.function, restored and restored.states)
        source = StreamSource(
            function,
            task.source_output,
            task.clock,
            self.step.element_type,
            time_characteristic=self.time_characteristic,
            auto_watermark_interval_ms=self.configuration.get_auto_watermark_interval(),
            idle_timeout_ms=self.step.idle_timeout_ms,
            emit_progressive_watermarks=not self.configuration.is_batch(),
            wake=None if task.mailbox is None else task.mailbox.wake,
            restored_context=restored and restored.context,
            downtime_ms=task.downtime_ms,
        )
        rate = self.configuration.get_arrival_rate()
        states: Callable[[], Mapping[str, OperatorStateSnapshot]] | None = None
        if isinstance(function, CheckpointedFunction):
            states = partial(task.source_states, function)
        return FunctionArrivals(
            self.origin, source, rate, self.start_ms, task.end_source, task.index, states, restored
        )


@dataclass(frozen=True)
class ColumnarJob(SourceSplit):
    """The rows of the result of a job over columns, or of a side output, without timestamps.

    Attributes
    ----------
    result : Transformation
        The last step of that job, or the side output.
    configuration : ExecutionConfig
    directory : WorkingDirectory
        Working directory of its functions.
    """

    split_id: str
    result: Transformation
    configuration: ExecutionConfig
    directory: WorkingDirectory

    def elements(self) -> Iterator[Any]:
        """Run the job, and yield its rows."""
        from flinkcore.columnar.local.embedded_replay import embedded_result
        from flinkcore.datastream.graph.transformations import StreamGraph
        from flinkcore.operators.keys.element_rows import element_rows

        side = self.result if isinstance(self.result, SideOutputTransformation) else None
        graph = StreamGraph(self.result if side is None else side.input)
        result: Any = embedded_result(graph, self.configuration, self.directory)
        for batch in (result if side is None else result.get_side_output(side.output_tag)).to_batches():
            yield from element_rows(batch)
