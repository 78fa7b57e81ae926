"""The default executor, which runs jobs in this process."""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from flinkcore._internal.python.working_directory import WorkingDirectory
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream.graph.pipeline_executor import (
    NO_CHECKPOINTS,
    CheckpointSettings,
    ElementJob,
    ProgressChoice,
)
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.errors import ConfigurationError, FlinkcoreError

if TYPE_CHECKING:
    from pathlib import Path

    from flinkcore.columnar.planned_job import EmbeddedPlannedJob
    from flinkcore.columnar.results.result import EmbeddedResult
    from flinkcore.datastream.graph.python_dependencies import PythonArchive
    from flinkcore.elements.background_run import BackgroundRun
    from flinkcore.elements.element_run import ElementRun


class LocalExecutor:
    """Runs columnar jobs and jobs that run element by element; loads only what the job needs.

    Notes
    -----
    Follows Flink's ``LocalExecutor``.
    """

    name = "embedded"
    makes_dataframes = False
    stores = None

    def __init__(self) -> None:
        self._directory = WorkingDirectory()
        self._targets: set[str] = set()

    def execute(
        self,
        graph: StreamGraph,
        configuration: ExecutionConfig,
        progress: ProgressChoice = "off",
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> EmbeddedResult:
        """Plan a columnar job; parameters as of :func:`flinkcore.columnar.local.embedded_replay.embedded_result`."""
        from flinkcore.columnar.local.embedded_replay import embedded_result
        from flinkcore.columnar.planned_job import EmbeddedPlannedJob

        configuration.require_arrival_clock(
            "a columnar job", "it is a replay of a log, whose arrivals are the processing time"
        )
        return embedded_result(
            graph, configuration, self._directory, progress, checkpoints, EmbeddedPlannedJob
        )

    def planned(
        self,
        graph: StreamGraph,
        configuration: ExecutionConfig,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> EmbeddedPlannedJob:
        """Plan a columnar job for an analysis of its logs; parameters as of `execute`."""
        from flinkcore.columnar.checkpoint.job_checkpoint import JobCheckpoints
        from flinkcore.columnar.local.embedded_replay import default_parallelism
        from flinkcore.columnar.planned_job import EmbeddedPlannedJob
        from flinkcore.columnar.plans.job_plan import make_plan

        job = JobCheckpoints.of(make_plan(graph, configuration, checkpoints), checkpoints)
        return EmbeddedPlannedJob(job.plan, default_parallelism(configuration), job)

    def explain_execution(self, graph: StreamGraph, configuration: ExecutionConfig) -> list[str]:
        """Return how paths split logs, and which versions of tables are read; else a job runs as its steps say."""
        from flinkcore.columnar.plans.job_plan import make_plan
        from flinkcore.log.tables.lake_files import shown_tables

        log_facts: list[str] = []
        if not graph.needs_rows:
            with suppress(FlinkcoreError):  # a job that is refused does not run
                log_facts = make_plan(graph, configuration).log_facts
        return [*log_facts, *shown_tables(graph)]

    def execution_plan(self, job: ElementJob, configuration: ExecutionConfig) -> str:
        """Return the operators of a job that runs element by element as JSON."""
        from flinkcore.elements.tasks.execution_plan import execution_plan

        return execution_plan(job, configuration)

    def start(
        self,
        job: ElementJob,
        configuration: ExecutionConfig,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> ElementRun | BackgroundRun:
        """Plan a job that runs element by element.

        On the arrival clock it is opened, and advances as its elements are requested; on the system clock it runs by
        itself when it is iterated over, since time passes.

        Parameters
        ----------
        job
            Its sinks, and what the program collects.
        configuration
            Parallelism (subtasks in one thread; one by default), number of key groups, auto-watermark interval,
            arrival rate.
        checkpoints
            Checkpoint from which the job resumes, and the one with which it stops.
        """
        if configuration.get_clock() == "system":
            return self._in_background(job, configuration, checkpoints, may_stop=False)
        from flinkcore.elements.element_run import ElementRun

        return ElementRun(job, configuration, self._directory, checkpoints)

    def start_in_background(
        self,
        job: ElementJob,
        configuration: ExecutionConfig,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> BackgroundRun:
        """Plan a job that runs element by element, and start it on a thread of its own; parameters as of `start`."""
        run = self._in_background(job, configuration, checkpoints, may_stop=True)
        run.start()
        return run

    def _in_background(
        self, job: ElementJob, configuration: ExecutionConfig, checkpoints: CheckpointSettings, may_stop: bool
    ) -> BackgroundRun:
        from flinkcore.elements.background_run import BackgroundRun

        return BackgroundRun(job, configuration, self._directory, checkpoints, may_stop)

    def add_python_file(self, path: Path) -> None:
        """Put a folder on the path of this process: that of a module, a given one, or that of an unpacked archive."""
        folder = path if path.is_dir() else path.parent
        if not path.is_dir() and path.suffix != ".py":
            from flinkcore.datastream.graph.python_dependencies import temporary_folder, unpack

            # Compiled modules cannot be imported from within an archive.
            folder = temporary_folder("modules")
            unpack(path, folder)
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        importlib.invalidate_caches()

    def add_python_archive(self, archive: PythonArchive) -> None:
        """Unpack an archive in the working directory of the functions of later jobs."""
        from flinkcore.datastream.graph.python_dependencies import check_target, temporary_folder, unpack

        check_target(archive.target_dir, self._targets)
        unpacked = temporary_folder("archive")
        unpack(archive.path, unpacked)
        if self._directory.folder is None:
            self._directory.folder = temporary_folder("directory")
        target = self._directory.folder / archive.target_dir
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.symlink_to(unpacked)
        self._targets.add(archive.target_dir)

    def check_python_executable(self, python_exec: str) -> None:
        """Raise ConfigurationError unless this process runs the interpreter."""
        from flinkcore.datastream.graph.python_dependencies import is_this_interpreter

        if not is_this_interpreter(python_exec):
            raise ConfigurationError(
                f"functions run in this process, whose interpreter is {sys.executable}: start the program by "
                f"{python_exec} instead of set_python_executable"
            )
