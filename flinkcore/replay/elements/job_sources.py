"""The sources of a job that runs element by element, from what they read to when it arrives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.typeinfo.type_information import Conversion
from flinkcore.datastream.connectors.base import SourceSplit
from flinkcore.datastream.element_transformations import SideOutputTransformation, SourceTransformation
from flinkcore.datastream.transformations import Transformation
from flinkcore.replay.elements.element_arrivals import (
    Arrivals,
    OrderedArrivals,
    Origin,
    SplitArrivals,
    end_input,
)
from flinkcore.replay.time_plane.replay_clock import ReplayClock
from flinkcore.replay.time_plane.split_watermarks import SplitWatermarks
from flinkcore.replay.time_plane.tick_clock import TickClock
from flinkcore.runtime.tasks.job_tasks import JobTasks
from flinkcore.runtime.tasks.stream_graph import StreamNode, is_of_log
from flinkcore.runtime.tasks.task_output import TaskOutput


class JobSources:
    """What a job reads, in the order of arrivals.

    Collections, files and the like begin to arrive when the job's clock starts: at 0; or, if there are logs, as in a
    replay of them, an auto-watermark interval before the first tick that sees an event.

    Parameters
    ----------
    nodes : sequence of StreamNode
        Of the sources.
    configuration : ExecutionConfig

    Attributes
    ----------
    start_ms : int
        What the job's clock shows at first.

    Raises
    ------
    ConfigurationError, SchemaError, SourceError, DataError
        If a log cannot be read.
    """

    def __init__(self, nodes: Sequence[StreamNode], configuration: ExecutionConfig) -> None:
        self._nodes = nodes
        self._configuration = configuration
        self._readings: dict[StreamNode, Any] = {
            node: self._reading(node.transformation) for node in nodes if is_of_log(node.transformation)
        }
        ranges = [
            found for reading in self._readings.values() if (found := reading.arrival_range) is not None
        ]
        self.start_ms = 0
        self._end_of_logs_ms = 0
        if ranges:
            first, last = min(first for first, _ in ranges), max(last for _, last in ranges)
            self.start_ms = TickClock(configuration.get_auto_watermark_interval(), first, last).opened_ms
            self._end_of_logs_ms = last + 1
        self._open: list[SplitWatermarks] = []

    def _reading(self, step: Transformation) -> Any:
        from flinkcore.replay.elements.log_arrivals import LogReading  # loads pyarrow

        return LogReading.of(step, self._configuration)

    def arrivals(self, tasks: JobTasks, clock: ReplayClock) -> Arrivals:
        """Return all that arrives, on its way to the operators that read the sources; these are open."""
        arrivals: list[Origin] = []
        for node in self._nodes:
            if node in self._readings:
                arrivals.append(self._of_log(node, tasks.source_output(node, 0), clock))
                continue
            step = node.transformation
            splits = self._splits(step, node.parallelism)
            for index in range(node.parallelism):
                output = tasks.source_output(node, index)
                arrivals += self._of_subtask(step, splits[index :: node.parallelism], output, clock)
        return arrivals[0] if len(arrivals) == 1 else OrderedArrivals(arrivals)

    def _of_log(self, node: StreamNode, output: TaskOutput, clock: ReplayClock) -> Origin:
        from flinkcore.replay.elements.log_arrivals import LogArrivals

        return LogArrivals(
            self._readings[node], output, clock, self._end_of_logs_ms, self._configuration.is_batch()
        )

    def _splits(self, step: Transformation, parallelism: int) -> list[SourceSplit]:
        if isinstance(step, SourceTransformation):
            return list(step.source.create_splits(parallelism))
        return [ColumnarJob("job", step, self._configuration)]

    def _of_subtask(
        self, step: Transformation, splits: list[SourceSplit], output: TaskOutput, clock: ReplayClock
    ) -> list[Origin]:
        if not splits:
            end_input(output)
            return []
        rate = self._configuration.get_arrival_rate()
        conversion = _conversion(step)
        strategy = step.strategy if isinstance(step, SourceTransformation) else None
        if strategy is None:
            left = [len(splits)]

            def finish() -> None:
                left[0] -= 1
                if left[0] == 0:
                    end_input(output)

            return [
                SplitArrivals(split, conversion, rate, self.start_ms, output.collect, finish)
                for split in splits
            ]
        interval_ms = self._configuration.get_auto_watermark_interval()
        names: list[str | None] = [split.split_id for split in splits]
        watermarks = SplitWatermarks(
            strategy, names, output, clock, interval_ms, is_batch=self._configuration.is_batch()
        )
        self._open.append(watermarks)
        return [
            SplitArrivals(
                split,
                conversion,
                rate,
                self.start_ms,
                watermarks.process(number),
                partial(watermarks.finish, number),
            )
            for number, split in enumerate(splits)
        ]

    def close(self) -> None:
        """Cancel what is scheduled."""
        for watermarks in self._open:
            watermarks.close()
        self._open = []


def _conversion(step: Transformation) -> Conversion | None:
    """What makes elements be of their declared type, unless the source has seen to that."""
    if isinstance(step, SourceTransformation) and step.source.produced_type() is step.type_info:
        return None
    return step.element_type.conversion()


@dataclass(frozen=True)
class ColumnarJob(SourceSplit):
    """The rows of the result of a job over columns, or of a side output, without timestamps.

    Attributes
    ----------
    result : Transformation
        The last step of that job, or the side output.
    configuration : ExecutionConfig
    """

    split_id: str
    result: Transformation
    configuration: ExecutionConfig

    def elements(self) -> Iterator[Any]:
        """Run the job, and yield its rows."""
        from flinkcore.datastream.transformations import StreamGraph
        from flinkcore.replay.embedded import EmbeddedExecutor
        from flinkcore.replay.stages.element_rows import element_rows

        side = self.result if isinstance(self.result, SideOutputTransformation) else None
        graph = StreamGraph(self.result if side is None else side.input)
        result: Any = EmbeddedExecutor().execute(graph, self.configuration)
        for batch in (result if side is None else result.get_side_output(side.output_tag)).to_batches():
            yield from element_rows(batch)
