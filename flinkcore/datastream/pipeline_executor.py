"""From which checkpoint a job goes on, and with which it stops."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, cast

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.element_transformations import SinkTransformation
from flinkcore.datastream.transformations import StreamGraph, Transformation
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class CheckpointSettings:
    """What a call that runs a job says about checkpoints.

    Parameters
    ----------
    restore_from : path, optional
        Checkpoint of a job over an earlier log, from which this one goes on.
    stop_with_checkpoint : path, optional
        Directory for a checkpoint with which the job stops: the end of its log then fires nothing.

    Raises
    ------
    ConfigurationError
        If one is no path.

    Notes
    -----
    Flink's ``SavepointRestoreSettings``, and stop-with-savepoint without ``--drain``.
    """

    restore_from: str | PathLike[str] | None = None
    stop_with_checkpoint: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        for setting in ("restore_from", "stop_with_checkpoint"):
            path = getattr(self, setting)
            if path is not None and not isinstance(path, str | PathLike):
                raise ConfigurationError(
                    f"{setting} takes the directory of a checkpoint, such as 'checkpoints/monday', not {path!r}"
                )


NO_CHECKPOINTS: Final = CheckpointSettings()


@dataclass(frozen=True)
class ElementJob:
    """All that an environment is asked to run at once.

    Attributes
    ----------
    name : str
    sinks : tuple of SinkTransformation
        In the order in which the program has named them.
    collected : Transformation or None
        Step whose elements the program wants itself.
    """

    name: str
    sinks: tuple[SinkTransformation, ...]
    collected: Transformation | None = None

    def ends(self) -> tuple[Transformation, ...]:
        """Return the steps that all others lead to."""
        return self.sinks if self.collected is None else (*self.sinks, self.collected)

    def transformations(self) -> tuple[Transformation, ...]:
        """Return all steps, each once, inputs first."""
        steps: dict[int, Transformation] = {}
        for end in self.ends():
            for step in end.in_order():
                steps.setdefault(id(step), step)
        return tuple(steps.values())


class ElementJobRun(Protocol):
    """A job that has been started, and goes on as its elements are asked for."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the collected elements; at their end the job has come to its own."""

    def run_to_end(self) -> JobExecutionResult:
        """Run what is left of the job; its collected elements are dropped."""

    def close(self) -> None:
        """Cancel the job if it has not come to its end; may be called again."""


ProgressListener: TypeAlias = Callable[[Any], None]
"""Called now and then with a state of progress, of the executor's own type."""


class OutputStream(Protocol):
    """Rows that an executor made: of the result or of a side output."""

    def to_arrow(self) -> Any:
        """Return all rows as a ``pyarrow.Table``."""

    def to_batches(self) -> Iterator[Any]:
        """Yield the rows as ``pyarrow.RecordBatch``."""

    def to_dataframe(self) -> Any:
        """Return the rows as a Spark DataFrame; executors without Spark raise ConfigurationError."""


class ReplayResult(OutputStream, Protocol):
    """What a job gives: its rows, its side outputs and its report."""

    @property
    def report(self) -> Any:
        """Counts of what became of every event: a :class:`flinkcore.replay.results.report.ReplayReport`."""

    def write_parquet(
        self,
        path: str | PathLike[str],
        side_outputs: Mapping[OutputTag, str | PathLike[str]] | None = None,
    ) -> Any:
        """Let the workers write the rows as Parquet files, and return the report."""

    def get_side_output(self, output_tag: OutputTag) -> OutputStream:
        """Return the rows of a side output of the job."""


class PipelineExecutor(Protocol):
    """Runs jobs.

    Notes
    -----
    Follows Flink's ``PipelineExecutor``.
    """

    @property
    def name(self) -> str:
        """Name as ``explain`` shows it: ``embedded``, ``spark``, ..."""

    @property
    def makes_dataframes(self) -> bool:
        """True exactly if results have a ``to_dataframe`` that works."""

    def execute(
        self,
        graph: StreamGraph,
        configuration: ExecutionConfig,
        progress: ProgressListener | None = None,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> ReplayResult:
        """Plan a job and return its result, which runs it at the latest when rows are asked for."""

    def start(self, job: ElementJob, configuration: ExecutionConfig) -> ElementJobRun:
        """Plan and open a job that runs element by element; one that cannot run raises ConfigurationError."""

    def add_python_file(self, path: Path) -> None:
        """Let the functions of later jobs import a module, or what a folder or an archive holds; the path exists."""


EXECUTORS: Final[Mapping[str, str]] = {"embedded": "flinkcore.replay.local_executor:LocalExecutor"}


def load_executor(name: str) -> PipelineExecutor:
    """Return a new executor by its name.

    Parameters
    ----------
    name : str
        A key of :data:`EXECUTORS`.

    Raises
    ------
    ConfigurationError
        If there is no such executor.

    Notes
    -----
    Follows Flink's ``PipelineExecutorServiceLoader``.
    """
    try:
        module, _, class_name = EXECUTORS[name].partition(":")
    except KeyError:
        raise ConfigurationError(
            f"no executor is named {name!r}; there is {', '.join(sorted(EXECUTORS))}"
        ) from None
    return cast(PipelineExecutor, getattr(importlib.import_module(module), class_name)())
