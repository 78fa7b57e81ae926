"""Executors: what they are asked to run, and how they are found by name, so that the API does not import them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from flinkcore.common.boundedness import Boundedness
from flinkcore.common.execution_config import ExecutionConfig, ProgressMode
from flinkcore.common.job_client import RunningJob
from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.time import Duration, Interval
from flinkcore.datastream.graph.element_transformations import (
    LegacySourceTransformation,
    SinkTransformation,
    SourceTransformation,
)
from flinkcore.datastream.graph.transformations import EventLogSource, StreamGraph, Transformation
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from flinkcore._internal.io.stores import Stores
    from flinkcore.datastream.graph.python_dependencies import PythonArchive
    from flinkcore.datastream.window import WindowAssigner


RunTasks: TypeAlias = Callable[[Callable[[int], str], int], Sequence[str]]
"""Calls a task with each number below another one, wherever that may be, and returns the texts in order."""


class SavepointStop(Protocol):
    """A savepoint of Flink with which a job stops: `flinkcore.savepoints.SavepointTarget`."""

    @property
    def checkpoint_path(self) -> str:
        """Directory for the checkpoint from which it is made."""

    def check(self, stores: Stores) -> None:
        """Check before the job runs that nothing is in the place of the savepoint."""

    def complete(
        self, checkpoint: str | PathLike[str], stores: Stores, run_tasks: RunTasks | None = None
    ) -> None:
        """Write the savepoint of a checkpoint, in this process unless it is given where tasks run."""


def savepoint_stop(target: Any) -> SavepointStop | None:
    """Return the savepoint that a program names by a path or describes by a target.

    Raises
    ------
    ConfigurationError
        If it is neither.
    """
    if target is None:
        return None
    if isinstance(target, str | PathLike):
        # By its name, as executors are found, so that the API does not import what reads and writes savepoints.
        found = importlib.import_module("flinkcore.savepoints").SavepointTarget(target)
        return cast("SavepointStop", found)
    if not hasattr(target, "checkpoint_path"):
        raise ArgumentTypeError(
            f"stop_with_savepoint takes a path or a savepoints.SavepointTarget, not {target!r}"
        )
    return cast("SavepointStop", target)


class SavepointStart(Protocol):
    """A savepoint of Flink with which a job begins: `flinkcore.savepoints.SavepointSource`."""

    def origin(self, operators: Sequence[Any], stores: Stores) -> Any:
        """Return the state of a job's operators, a `StateOrigin`, checked as far as it can be unread."""


RestoreFrom: TypeAlias = str | PathLike[str] | SavepointStart
"""Path of a checkpoint of flinkcore or of a savepoint of Flink, or a `flinkcore.savepoints.SavepointSource`."""


@dataclass(frozen=True)
class CheckpointSettings:
    """The checkpoints of a job's run.

    Parameters
    ----------
    restore_from : path or SavepointStart, optional
        Checkpoint of a job over an earlier log, or savepoint of Flink, which this one restores.
    stop_with_checkpoint : path, optional
        Directory for a checkpoint with which the job stops: the end of its log then fires nothing.
    stores : Stores, optional
        Settings of stores, or None for those of the environment.
    savepoint : SavepointStop, optional
        Savepoint of Flink that is made of the checkpoint with which the job stops.

    Raises
    ------
    ConfigurationError
        If one is not a path.

    Notes
    -----
    Flink's ``SavepointRestoreSettings``, and stop-with-savepoint without ``--drain``.
    """

    restore_from: RestoreFrom | None = None
    stop_with_checkpoint: str | PathLike[str] | None = None
    stores: Stores | None = field(default=None, compare=False, repr=False)
    savepoint: SavepointStop | None = None

    def __post_init__(self) -> None:
        for setting in ("restore_from", "stop_with_checkpoint"):
            path = getattr(self, setting)
            if setting == "restore_from" and hasattr(path, "origin"):
                continue
            if path is not None and not isinstance(path, str | PathLike):
                raise ArgumentTypeError(
                    f"{setting} takes the directory of a checkpoint, such as 'checkpoints/monday', not {path!r}"
                )


NO_CHECKPOINTS: Final = CheckpointSettings()


@dataclass(frozen=True)
class ElementJob:
    """A job that runs element by element.

    Attributes
    ----------
    name : str
    sinks : tuple of SinkTransformation
        In the order in which the program added them.
    collected : Transformation or None
        Step whose elements are returned to the program.
    time_characteristic : TimeCharacteristic
        The time that source functions run on.
    without_sinks : tuple of Transformation
        Further steps to run, in the order of the program.
    """

    name: str
    sinks: tuple[SinkTransformation, ...]
    collected: Transformation | None = None
    time_characteristic: TimeCharacteristic = TimeCharacteristic.EventTime
    without_sinks: tuple[Transformation, ...] = ()

    def ends(self) -> tuple[Transformation, ...]:
        """Return the last steps of the job."""
        ends = *self.sinks, *self.without_sinks
        return ends if self.collected is None else (*ends, self.collected)

    @property
    def is_bounded(self) -> bool:
        """Return whether all sources end by themselves; an event log is the record of a stream, which does not."""
        return all(
            step.boundedness is Boundedness.BOUNDED
            for step in self.transformations()
            if isinstance(step, EventLogSource | SourceTransformation | LegacySourceTransformation)
        )

    def transformations(self) -> tuple[Transformation, ...]:
        """Return all steps, each once, inputs first."""
        steps: dict[int, Transformation] = {}
        for end in self.ends():
            for step in end.in_order():
                steps.setdefault(id(step), step)
        return tuple(steps.values())


class ElementJobRun(Protocol):
    """A job that was started, and runs as its elements are asked for."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the collected elements; the job has ended when there are no more."""

    def run_to_end(self) -> JobExecutionResult:
        """Run the job to its end; its collected elements are dropped."""

    def close(self) -> None:
        """Cancel the job unless it has ended; may be called again."""


ProgressListener: TypeAlias = Callable[[Any], None]
"""Called from time to time with the progress of a job, of the executor's own type."""

ProgressChoice: TypeAlias = ProgressListener | ProgressMode
"""Receiver of the progress of a job: a listener, or a display for people."""


class OutputStream(Protocol):
    """The rows of a job's result, or of a side output."""

    def to_arrow(self) -> Any:
        """Return all rows as a ``pyarrow.Table``."""

    def to_batches(self) -> Iterator[Any]:
        """Yield the rows as ``pyarrow.RecordBatch``."""

    def to_pandas(self) -> Any:
        """Return all rows as a ``pandas.DataFrame``."""

    def to_polars(self) -> Any:
        """Return all rows as a ``polars.DataFrame``."""

    def show(self, rows: int = 20) -> None:
        """Print the first rows."""

    def to_dataframe(self) -> Any:
        """Return the rows as a Spark DataFrame; executors without Spark raise ConfigurationError."""


class ReplayResult(OutputStream, Protocol):
    """The result of a columnar job: its rows, its side outputs and its report."""

    @property
    def report(self) -> Any:
        """Counts of what happened to every event: a :class:`flinkcore.ReplayReport`."""

    def write_parquet(
        self,
        path: str | PathLike[str],
        side_outputs: Mapping[OutputTag, str | PathLike[str]] | None = None,
        mode: str = "error",
    ) -> Any:
        """Let the workers write the rows as Parquet files, and return the report."""

    def write_delta(
        self,
        path: str | PathLike[str],
        mode: str = "error",
        partition_by: str | Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
        filesystem: Any = None,
    ) -> Any:
        """Let the workers write the rows into a Delta table, and return the report."""

    def write_iceberg(self, table: Any, mode: str = "append") -> Any:
        """Let the workers write the rows into an Iceberg table, and return the report."""

    def discard(self) -> None:
        """Declare that the results are not needed, as the job was only to be checked."""

    def get_side_output(self, output_tag: OutputTag) -> OutputStream:
        """Return the rows of a side output of the job."""


class LatenessFigures(Protocol):
    """Loss of events and delay of results for every bound of out-of-orderness."""

    @property
    def own_bound_ms(self) -> int:
        """The bound of the stream's strategy."""

    @property
    def largest_disorder_ms(self) -> int:
        """The least bound under which no event is late for the watermark."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """Return doubts about the times: what looks wrong, and would make the figures wrong."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Return name and version or snapshot of the lake's table that the log is; empty if it is not a table."""

    def to_arrow(self) -> Any:
        """Return the figures at some 300 bounds as a ``pyarrow.Table``."""

    def at(self, *bounds: Interval) -> Any:
        """Return the figures at given bounds as a ``pyarrow.Table``."""

    def by_split(self, bound: Interval | None = None) -> Any:
        """Return as a ``pyarrow.Table`` which splits bring the late events, and which hold the watermark back."""

    def bound_that_loses(
        self,
        share: float,
        window: WindowAssigner[Any, Any] | None = None,
        allowed_lateness: Interval | None = None,
    ) -> Duration:
        """Return the least bound under which at most the given share of the events is lost."""

    def bound_that_delays(
        self,
        delay: Interval,
        window: WindowAssigner[Any, Any] | None = None,
        at_most_share: float = 0.99,
    ) -> Duration:
        """Return the greatest bound under which results wait no longer than the given delay."""

    def sentence(self, share: float = 0.001) -> str:
        """Return in words which bound loses a share of the events, its delay, and the figures of the own bound."""

    def shown_splits(self, rows: int = 20) -> str:
        """Return the first rows of `by_split` for people."""

    def sentence_for_splits(self) -> str | None:
        """Return in words which split holds the watermark back most, or None if none does."""

    def sentence_for_delay(self, delay: Interval) -> str:
        """Return in words which bound a delay of results allows, and what it loses."""

    def to_html(self, path: str | PathLike[str], title: str | None = None) -> None:
        """Write a page with pictures; needs ``flinkcore[report]``."""


class StrategyComparison(Protocol):
    """Results of a job under its own watermark strategy and under others."""

    def to_arrow(self) -> Any:
        """Return how the strategies differ as a ``pyarrow.Table``, a row for each."""

    def differences(self, number: int) -> Any:
        """Return as a ``pyarrow.Table`` the results that differ under strategy `number`, counted from 1."""


class KeyStory(Protocol):
    """History of one key: its events, the fate of each, and the events of each result; `print` shows it."""

    @property
    def key(self) -> dict[str, Any]:
        """The columns of the key, and its values."""

    @property
    def events(self) -> Any:
        """A ``pyarrow.Table`` with a row for each row of the log that has the key."""

    @property
    def firings(self) -> Any:
        """A ``pyarrow.Table`` with a row for each firing of a window, or call of a function, that gave results."""

    @property
    def timers(self) -> Any:
        """A ``pyarrow.Table`` of what a process function did with timers."""

    @property
    def notes(self) -> list[str]:
        """Return what is unknown about the key, and why."""

    def to_html(self, path: str | PathLike[str], title: str | None = None) -> None:
        """Write the story as a page with a picture: one file that needs no network."""

    def at(self, window: Any) -> KeyStory:
        """Return the part of the story about the windows that a time falls into, or about one by its start and end."""


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
    def stores(self) -> Stores | None:
        """File systems of locations with the settings of a session, or None for those of the environment."""

    @property
    def makes_dataframes(self) -> bool:
        """Return whether results support ``to_dataframe``."""

    def execute(
        self,
        graph: StreamGraph,
        configuration: ExecutionConfig,
        progress: ProgressChoice = "off",
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> ReplayResult:
        """Plan a job and return its result, which runs the job at the latest when rows are asked for."""

    def planned(
        self,
        graph: StreamGraph,
        configuration: ExecutionConfig,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> Any:
        """Plan a columnar job and return it for an analysis: a :class:`flinkcore.columnar.planned_job.PlannedJob`."""

    def explain_execution(self, graph: StreamGraph, configuration: ExecutionConfig) -> list[str]:
        """Return how a job runs, as far as its steps do not say it: a line for each choice that the executor makes."""

    def execution_plan(self, job: ElementJob, configuration: ExecutionConfig) -> str:
        """Return the operators of a job that runs element by element as JSON; see `get_execution_plan`."""

    def start(
        self,
        job: ElementJob,
        configuration: ExecutionConfig,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> ElementJobRun:
        """Plan and open a job that runs element by element; raise ConfigurationError if it cannot run."""

    def start_in_background(
        self,
        job: ElementJob,
        configuration: ExecutionConfig,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> RunningJob:
        """Let a job that runs element by element run by itself; raise ConfigurationError if it cannot."""

    def add_python_file(self, path: Path) -> None:
        """Make a module, or the content of a folder or an archive, importable for later jobs; the path exists."""

    def add_python_archive(self, archive: PythonArchive) -> None:
        """Provide the files of an archive to functions of later jobs; ConfigurationError if its folder is taken."""

    def check_python_executable(self, python_exec: str) -> None:
        """Raise ConfigurationError unless functions are run by this interpreter."""


EXECUTORS: Final[Mapping[str, str]] = {"embedded": "flinkcore.elements.local_executor:LocalExecutor"}

ANALYSES: Final[Mapping[str, str]] = {
    "what_if": "flinkcore.analysis.what_if:what_if",
    "lateness": "flinkcore.analysis.lateness:lateness_of",
    "lateness_page": "flinkcore.analysis.page:write_lateness_page",
    "page": "flinkcore.analysis.page:write_page",
    "why": "flinkcore.analysis.key_history:key_history",
    "why_page": "flinkcore.analysis.page:write_key_page",
}
"""Analyses of planned jobs, and where each is: a stream finds them by name, as they lie above it."""


PLAN_SINKS: Final = "flinkcore.sql.program:plan_sinks"
SCRIPT_SINKS: Final = "flinkcore.sql.program:script_sinks"
"""Builders of streams from compiled plans and from scripts of Flink SQL, which lie above streams."""


def load_sql(place: str) -> Callable[..., Any]:
    """Return a builder of streams from SQL: `PLAN_SINKS` or `SCRIPT_SINKS`."""
    module, _, function = place.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def load_analysis(name: str) -> Callable[..., Any]:
    """Return the function that an analysis is, by its name: a key of :data:`ANALYSES`."""
    module, _, function = ANALYSES[name].partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


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
