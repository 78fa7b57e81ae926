"""What runs a job: found by name, so that the API does not import what executes it."""

import importlib
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, cast

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.checkpoint_settings import NO_CHECKPOINTS, CheckpointSettings
from flinkcore.datastream.element_job import ElementJob, ElementJobRun
from flinkcore.datastream.transformations import StreamGraph
from flinkcore.errors import ConfigurationError

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
