"""Results of an embedded replay: batches, a table, or Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import pyarrow as pa

from flinkcore.common import OutputTag
from flinkcore.errors import ConfigurationError, LifecycleError
from flinkcore.replay.plans.job_plan import JobPlan
from flinkcore.replay.results.parquet_outputs import ParquetOutputs, PartNames
from flinkcore.replay.results.report import ReplayReport
from flinkcore.replay.stages.stage_output import StageOutput

if TYPE_CHECKING:  # it describes plans, which know what outputs are
    from flinkcore.replay.results.job_checkpoint import StoppingJob


class Replay(Protocol):
    """One run of a plan."""

    report: ReplayReport
    stopping: StoppingJob

    def run(self) -> Iterator[StageOutput]:
        """Run; the report is complete when the outputs are."""


class TakenBatches(Iterator[pa.RecordBatch]):
    """Batches that a replay makes as they are taken; `close` ends a replay of which nobody wants more.

    Parameters
    ----------
    batches
        Runs the replay.

    Raises
    ------
    LifecycleError
        If two threads take batches at once.
    """

    def __init__(self, batches: Generator[pa.RecordBatch, None, None]) -> None:
        self._batches = batches
        self._lock = Lock()

    def __next__(self) -> pa.RecordBatch:
        with self._alone():
            return next(self._batches)

    def close(self) -> None:
        """End the replay; it may have ended already."""
        with self._alone():
            self._batches.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise LifecycleError(
                "another thread is taking a batch of the same to_batches(): let one thread take all and hand them on"
            )
        try:
            yield
        finally:
            self._lock.release()


class EmbeddedResult:
    """What a job gives: results and side outputs, in whichever form is asked for.

    Nothing runs before a form is asked for. `to_arrow` runs the replay once and keeps all outputs; `to_batches` and
    `write_parquet` stream, and keep nothing. Where the job stops with a checkpoint, that is complete when the rows are.
    """

    def __init__(self, plan: JobPlan, start: Callable[[], Replay]) -> None:
        self._plan = plan
        self._start = start
        self._collected: dict[str | None, pa.Table] | None = None
        self._report: ReplayReport | None = None

    @property
    def report(self) -> ReplayReport:
        """Counts of the last replay that ran to its end; runs one if there was none."""
        if self._report is None:
            self._collect()
        assert self._report is not None
        return self._report

    def _run(self) -> Iterator[StageOutput]:
        with self._started() as replay:
            yield from replay.run()
            replay.stopping.commit()

    @contextmanager
    def _started(self) -> Iterator[Replay]:
        replay = self._start()
        with replay.stopping:
            yield replay
        self._report = replay.report

    def _collect(self) -> dict[str | None, pa.Table]:
        if self._collected is None:
            batches: dict[str | None, list[pa.RecordBatch]] = {None: []}
            batches |= {tag.tag_id: [] for tag in self._plan.side_outputs()}
            for output in self._run():
                batches[output.tag_id] += output.batches
            schemas: dict[str | None, pa.Schema] = {
                tag.tag_id: self._plan.side_output_schema(tag) for tag in self._plan.side_outputs()
            }
            self._collected = {
                tag_id: pa.Table.from_batches(found, schemas.get(tag_id) or found[0].schema)
                for tag_id, found in batches.items()
            }
        return self._collected

    def to_arrow(self) -> pa.Table:
        """All results as a table, in the order in which they fired within each thread."""
        return self._collect()[None]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The results as batches, as the replay makes them; the first may be empty, for the schema.

        They are taken by one thread at a time: LifecycleError if another one is taking the next.
        """
        return TakenBatches(self._batches())

    def _batches(self) -> Generator[pa.RecordBatch, None, None]:
        if self._collected is not None:
            yield from self._collected[None].to_batches()
            return
        for output in self._run():
            if output.tag is None:
                yield from output.batches

    def to_dataframe(self) -> NoReturn:
        """Raise ConfigurationError: DataFrames are made on Spark only."""
        raise ConfigurationError(
            "to_dataframe() needs Spark: build the job on flinkcore.spark.SparkExecutionEnvironment, or take to_arrow()"
        )

    def write_parquet(
        self,
        path: str | PathLike[str],
        side_outputs: Mapping[OutputTag, str | PathLike[str]] | None = None,
    ) -> ReplayReport:
        """Write the results as a directory of Parquet files, in bounded memory; all files appear at the end, or none.

        Parameters
        ----------
        path
            Directory that does not exist or is empty; a local path or a URI of pyarrow.fs.
        side_outputs
            A directory for each side output that is wanted.

        Returns
        -------
        ReplayReport
            What became of every event.

        Raises
        ------
        ConfigurationError
            If a directory is not empty or within that of another output, or a tag is unknown.
        """
        outputs = ParquetOutputs.of(self._plan, path, side_outputs)
        with self._started() as replay:
            outputs.write(
                lambda: self._write_parts(outputs, replay),
                lambda: replay.stopping.commit(outputs.paths),
            )
        assert self._report is not None
        return self._report

    def _write_parts(self, outputs: ParquetOutputs, replay: Replay) -> PartNames:
        with outputs.open_parts(0) as parts:
            parts.open_all(
                {tag.tag_id: self._plan.side_output_schema(tag) for tag in self._plan.side_outputs()}
            )
            for output in replay.run():
                parts.write(output.tag_id, output.batches)
        return {tag_id: [name] for tag_id, name in parts.names.items()}

    def get_side_output(self, output_tag: OutputTag) -> EmbeddedSideOutput:
        """Rows of a side output.

        Raises
        ------
        ConfigurationError
            If the job has no side output with this tag.
        """
        self._plan.side_output_schema(output_tag)
        return EmbeddedSideOutput(self, output_tag)


class EmbeddedSideOutput:
    """Rows of one side output of an embedded replay."""

    def __init__(self, result: EmbeddedResult, tag: OutputTag) -> None:
        self._result = result
        self._tag = tag

    def to_arrow(self) -> pa.Table:
        """All rows as a table."""
        return self._result._collect()[self._tag.tag_id]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as batches."""
        yield from self.to_arrow().to_batches()

    def to_dataframe(self) -> Any:
        """Raise ConfigurationError: DataFrames are made on Spark only."""
        return self._result.to_dataframe()
