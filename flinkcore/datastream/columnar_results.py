"""What a stream that is the end of a columnar job gives, and how its job runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.checkpoint_settings import CheckpointSettings
from flinkcore.datastream.columnar_windows import why_not_columnar
from flinkcore.datastream.pipeline_executor import ProgressListener, ReplayResult
from flinkcore.datastream.transformations import (
    ProcessTransformation,
    StreamGraph,
    Transformation,
    WindowTransformation,
)
from flinkcore.datastream.two_input_transformations import TwoInputTransformation
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.data_stream import DataStream
    from flinkcore.datastream.side_output_stream import SideOutputStream
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment


class ColumnarResults:
    """The part of :class:`DataStream` that runs columnar jobs and shows how a job runs."""

    _environment: StreamExecutionEnvironment
    _transformation: Transformation

    @abstractmethod
    def _then(self, transformation: Transformation) -> DataStream:
        """Return the stream of a further step."""

    def get_execution_config(self) -> ExecutionConfig:
        """Return the settings of the environment."""
        return self._environment.get_config()

    def execute(
        self,
        progress: ProgressListener | None = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> ReplayResult:
        """Return the result of the job that leads to this stream: rows, side outputs and report.

        Nothing runs, and no checkpoint is written, before ``to_arrow()``, ``to_batches()``, ``write_parquet()`` or
        ``report`` of the result is asked for.

        A job over yesterday's log that stops with a checkpoint, and one over today's log that goes on from it, give the
        rows that one job over both logs gives, at any parallelism of each. Today's events must not precede
        yesterday's last one in the total order (arrival, split, position). A split that only today's log has is one
        that is discovered at the cut: from there on it holds the watermark back until it has caught up or is idle. A
        split that today's log lacks goes on as one without events: name an idleness where files are splits.

        A job of several logs stops after the last event of them all, and its logs are cut there: no log's events of
        today may precede that one, and at the same arrival those of earlier logs of the job come first. Nothing is
        left between operators. Watermark generators of one's own need `WatermarkGenerator.snapshot_state`. Splits that
        are aligned (`with_watermark_alignment`) have no checkpoints, nor have jobs in which an operator behind the
        first one takes a log, or the results of several operators.

        Parameters
        ----------
        progress : callable, optional
            Called now and then with how far the job has come: embedded, in the thread that takes the rows; on
            Spark, in a thread of its own while that one waits. An error that it raises fails the job.
        restore_from : str or os.PathLike, optional
            Checkpoint from which the job goes on: of the same job over an earlier log. The settings that its state
            depends on must be the same: watermarks, keys, windows, aggregates, number of key groups. A state that a
            function does not ask for any more stays, and is in the next checkpoint, as in Flink.
        stop_with_checkpoint : str or os.PathLike, optional
            Directory for a checkpoint, complete once the rows are: a new one, or one with an older checkpoint, which is
            replaced then. The job stops, and the end of its log fires nothing: open windows and timers are in the
            checkpoint.

        Returns
        -------
        ReplayResult
            With ``to_arrow``, ``to_batches``, ``to_dataframe``, ``write_parquet``, ``get_side_output(tag)`` and
            ``report``: a :class:`flinkcore.replay.results.result.EmbeddedResult` or
            :class:`flinkcore.spark.result.SparkResult`.

        Raises
        ------
        ConfigurationError
            If the job has no meaning, before anything is read.
        SchemaError
            If a column is missing or of an unsupported type.
        DataError, SourceError
            If a row or a file cannot be read.
        """
        graph = StreamGraph(self._transformation)
        if graph.needs_rows:
            by = next(step for step in graph.transformations() if step.needs_rows)
            raise ConfigurationError(
                f"the job runs element by element, because of the step {str(by)!r}: its results are Python objects. "
                "Take them by execute_and_collect(), or give them to a sink and call the environment's execute()"
            )
        checkpoints = CheckpointSettings(restore_from, stop_with_checkpoint)
        return self._environment.executor.execute(
            graph, self._environment.get_config(), progress, checkpoints
        )

    def to_arrow(self) -> Any:
        """Run the job and return its rows as a ``pyarrow.Table``."""
        return self.execute().to_arrow()

    def to_batches(self) -> Iterator[Any]:
        """Run the job and yield its rows as ``pyarrow.RecordBatch``, as they are made."""
        return self.execute().to_batches()

    def to_dataframe(self) -> Any:
        """Run the job and return its rows as a Spark DataFrame.

        Raises
        ------
        ConfigurationError
            If this environment does not run on Spark.
        """
        self._require_dataframes()
        return self.execute().to_dataframe()

    def write_parquet(
        self,
        path: str | PathLike[str],
        side_outputs: Mapping[OutputTag, str | PathLike[str]] | None = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> Any:
        """Run the job and let the workers write its rows as Parquet files.

        The files of all directories appear at the end, or none do. Only a process that is killed just then can
        leave some: a directory that holds a folder ``_temporary`` is unfinished. A checkpoint is completed when all
        files are there, and before ``_temporary`` goes: until then it is the one before that counts, and the
        directories are to be emptied for another run from that.

        Parameters
        ----------
        path : str or os.PathLike
            Directory for the rows of this stream: a new one, or an empty one.
        side_outputs : mapping of OutputTag to path, optional
            Directories for side outputs of the job, new or empty too.
        restore_from, stop_with_checkpoint
            As for :meth:`execute`.

        Returns
        -------
        ReplayReport
            What became of every event (:class:`flinkcore.replay.results.report.ReplayReport`).

        Raises
        ------
        ConfigurationError
            If a tag is not one of the job's, or a directory is not empty or within that of another output.
        SourceError
            If a directory cannot be made.
        """
        side_outputs = {} if side_outputs is None else side_outputs
        result = self._with_side_outputs(side_outputs).execute(
            restore_from=restore_from, stop_with_checkpoint=stop_with_checkpoint
        )
        return result.write_parquet(path, side_outputs)

    def get_side_output(self, output_tag: OutputTag) -> SideOutputStream:
        """Return a side output of the job that leads to this stream: late rows, rejected ones, or a function's own.

        Of a job that runs element by element, it is a stream of what the last step emits to the side output.

        Parameters
        ----------
        output_tag : OutputTag
            The tag given to ``side_output_late_data`` or ``from_event_log``; or one that a process function emits
            to, with a schema. Matched by its id.

        Raises
        ------
        ConfigurationError
            If no operator of a columnar job has this tag (Flink gives an empty stream).
        """
        if not isinstance(output_tag, OutputTag):
            raise ConfigurationError(f"a side output is named by an OutputTag, not {output_tag!r}")
        from flinkcore.datastream.side_output_stream import SideOutputStream  # a DataStream

        main = self._then(self._transformation)
        if not StreamGraph(self._transformation).needs_rows:
            main = self._with_side_outputs((output_tag,))
        steps = [step for step in main._transformation.in_order() if output_tag in step.side_outputs()]
        return SideOutputStream(main, (steps or [main._transformation])[-1], output_tag)

    def explain(self) -> str:
        """Return the steps of the job as text, one per line, each with its path, or with why it is refused."""
        config = self._environment.get_config()
        parallelism = config.get_parallelism()
        needs_rows = StreamGraph(self._transformation).needs_rows
        head = (
            f"{self._environment.executor.name} {'job, element by element' if needs_rows else 'replay'}, "
            f"parallelism {'of the executor' if parallelism == config.PARALLELISM_DEFAULT else parallelism}, "
            f"{config.get_max_parallelism()} key groups, "
            f"watermarks every {config.get_auto_watermark_interval()} ms"
        )
        steps = list(self._transformation.in_order())
        return "\n".join(
            [
                head,
                *(f"{number:>3}. [{_path(step, needs_rows)}] {step}" for number, step in enumerate(steps, 1)),
            ]
        )

    def _with_side_outputs(self, output_tags: Iterable[OutputTag]) -> DataStream:
        """Return this stream, of a job that has these side outputs; a process function can have any with a schema."""
        transformation = self._transformation
        for output_tag in output_tags:
            if not isinstance(output_tag, OutputTag):
                raise ConfigurationError(f"a side output is named by an OutputTag, not {output_tag!r}")
            tags = [tag for step in transformation.in_order() for tag in step.side_outputs()]
            if output_tag in tags:
                continue
            if isinstance(transformation, ProcessTransformation | TwoInputTransformation):
                transformation = replace(transformation, tags=(*transformation.tags, output_tag))
                continue
            known = ", ".join(tag.tag_id for tag in tags) or "none"
            raise ConfigurationError(
                f"no side output is named {output_tag.tag_id!r}; this job has: {known}. Name one with "
                "side_output_late_data(tag), or from_event_log(..., on_bad_row=tag)"
            )
        return self._then(transformation)

    def _require_dataframes(self) -> None:
        executor = self._environment.executor
        if not executor.makes_dataframes:
            raise ConfigurationError(
                f"to_dataframe needs Spark, but this job runs {executor.name}: start from a "
                "SparkExecutionEnvironment (flinkcore.spark), or take to_arrow() or write_parquet(path)"
            )


def _path(step: Transformation, needs_rows: bool) -> str:
    """How a step runs, and why, where its own way is another one."""
    if isinstance(step, WindowTransformation):
        refusal = why_not_columnar(step.assigner, step.trigger, step.evictor)
        if refusal is not None:
            return f"refused: {refusal}"
    if step.needs_rows or not needs_rows or step.path == "rows":
        return step.path
    return "rows, as other steps of the job call functions"
