"""What a task of a source reads, as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.base import SourceSplit
from flinkcore.datastream.element_transformations import LegacySourceTransformation, SideOutputTransformation
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.datastream.transformations import Transformation
from flinkcore.replay.elements.element_arrivals import NoArrivals, Origin, SplitArrivals, end_input
from flinkcore.replay.time_plane.split_watermarks import SplitWatermarks
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.tasks.stream_task import StreamTask
from flinkcore.runtime.tasks.task_output import TaskOutput
from flinkcore.runtime.working_directory import WorkingDirectory


class TaskSource(Protocol):
    """What a task of a source reads; picklable."""

    def origins(self, task: StreamTask) -> list[Origin]:
        """Return what arrives, on its way into the task, which is open, and whose clock shows the start of the job.

        The last of it ends the task.
        """


@dataclass(frozen=True)
class TaskSplits:
    """Splits that a task reads, each of them an origin.

    Attributes
    ----------
    first_origin : int
        Number of the first of its origins in the job.
    splits : tuple of SourceSplit
    converted_to : TypeInformation or None
        What elements are made to be, unless the source has seen to that.
    strategy : WatermarkStrategy or None
        For each split; None: no timestamps, and no watermark before the end.
    configuration : ExecutionConfig
    start_ms : int
        When the job starts.
    """

    first_origin: int
    splits: tuple[SourceSplit, ...]
    converted_to: TypeInformation | None
    strategy: WatermarkStrategy | None
    configuration: ExecutionConfig
    start_ms: int

    def origins(self, task: StreamTask) -> list[Origin]:
        """Return the splits, or what ends at once if there is none."""
        output, clock, finish = task.source_output, task.clock, task.end_source
        if not self.splits:

            def end() -> None:
                end_input(output)
                finish()

            return [NoArrivals(self.first_origin, self.start_ms, end)]
        watermarks = self._watermarks(output, clock)
        left = [len(self.splits)]

        def finish_split(number: int) -> None:
            left[0] -= 1
            if watermarks is not None:
                watermarks.finish(number)
            elif left[0] == 0:
                end_input(output)
            if left[0] == 0:
                finish()

        conversion = None if self.converted_to is None else self.converted_to.conversion()
        return [
            SplitArrivals(
                self.first_origin + number,
                split,
                conversion,
                self.configuration.get_arrival_rate(),
                self.start_ms,
                output.collect if watermarks is None else watermarks.process(number),
                partial(finish_split, number),
            )
            for number, split in enumerate(self.splits)
        ]

    def _watermarks(self, output: TaskOutput, clock: ProcessingTimeService) -> SplitWatermarks | None:
        if self.strategy is None:
            return None
        return SplitWatermarks(
            self.strategy,
            [split.split_id for split in self.splits],
            output,
            clock,
            self.configuration.get_auto_watermark_interval(),
            is_batch=self.configuration.is_batch(),
        )


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
    """

    origin: int
    reading: Any
    end_ms: int
    is_batch: bool

    def origins(self, task: StreamTask) -> list[Origin]:
        """Return the log."""
        from flinkcore.replay.elements.log_arrivals import LogArrivals  # loads pyarrow

        return [
            LogArrivals(
                self.origin,
                self.reading,
                task.source_output,
                task.clock,
                self.end_ms,
                task.end_source,
                self.is_batch,
            )
        ]


@dataclass(frozen=True)
class TaskFunction:
    """A source function that a task runs, which is one origin.

    Attributes
    ----------
    origin : int
        Its number in the job.
    step : LegacySourceTransformation
    time_characteristic : TimeCharacteristic
        Of the job.
    configuration : ExecutionConfig
    start_ms : int
        When the job starts.
    """

    origin: int
    step: LegacySourceTransformation
    time_characteristic: TimeCharacteristic
    configuration: ExecutionConfig
    start_ms: int

    def origins(self, task: StreamTask) -> list[Origin]:
        """Open the task's copy of the function, and return what it emits."""
        from flinkcore.replay.elements.function_arrivals import FunctionArrivals
        from flinkcore.runtime.sources.stream_source import StreamSource

        source = StreamSource(
            task.opened_source_function(self.step.function),
            task.source_output,
            task.clock,
            self.step.element_type,
            time_characteristic=self.time_characteristic,
            auto_watermark_interval_ms=self.configuration.get_auto_watermark_interval(),
            idle_timeout_ms=self.step.idle_timeout_ms,
            emit_progressive_watermarks=not self.configuration.is_batch(),
        )
        rate = self.configuration.get_arrival_rate()
        return [FunctionArrivals(self.origin, source, rate, self.start_ms, task.end_source)]


@dataclass(frozen=True)
class ColumnarJob(SourceSplit):
    """The rows of the result of a job over columns, or of a side output, without timestamps.

    Attributes
    ----------
    result : Transformation
        The last step of that job, or the side output.
    configuration : ExecutionConfig
    directory : WorkingDirectory
        Of its functions.
    """

    split_id: str
    result: Transformation
    configuration: ExecutionConfig
    directory: WorkingDirectory

    def elements(self) -> Iterator[Any]:
        """Run the job, and yield its rows."""
        from flinkcore.datastream.transformations import StreamGraph
        from flinkcore.replay.embedded.embedded_replay import embedded_result
        from flinkcore.runtime.element_rows import element_rows

        side = self.result if isinstance(self.result, SideOutputTransformation) else None
        graph = StreamGraph(self.result if side is None else side.input)
        result: Any = embedded_result(graph, self.configuration, self.directory)
        for batch in (result if side is None else result.get_side_output(side.output_tag)).to_batches():
            yield from element_rows(batch)
