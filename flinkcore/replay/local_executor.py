"""What runs jobs in this process, unless another executor is asked for."""

from __future__ import annotations

import atexit
import importlib
import sys
from pathlib import Path
from shutil import unpack_archive
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream.pipeline_executor import (
    NO_CHECKPOINTS,
    CheckpointSettings,
    ElementJob,
    ProgressListener,
)
from flinkcore.datastream.python_files import ARCHIVES
from flinkcore.datastream.transformations import StreamGraph

if TYPE_CHECKING:
    from flinkcore.replay.elements.element_run import ElementRun
    from flinkcore.replay.results.result import EmbeddedResult


class LocalExecutor:
    """Runs columnar jobs and jobs that run element by element; loads only what the job at hand needs.

    Notes
    -----
    Follows Flink's ``LocalExecutor``.
    """

    name = "embedded"
    makes_dataframes = False

    def execute(
        self,
        graph: StreamGraph,
        configuration: ExecutionConfig,
        progress: ProgressListener | None = None,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> EmbeddedResult:
        """Plan a columnar job; parameters as of :func:`flinkcore.replay.embedded.embedded_replay.embedded_result`."""
        from flinkcore.replay.embedded.embedded_replay import embedded_result

        return embedded_result(graph, configuration, progress, checkpoints)

    def start(self, job: ElementJob, configuration: ExecutionConfig) -> ElementRun:
        """Plan and open a job that runs element by element; it goes on as its elements are asked for.

        Parameters
        ----------
        job
            Its sinks, and what the program collects.
        configuration
            Parallelism (subtasks in one thread; one by default), number of key groups, auto-watermark interval,
            arrival rate.
        """
        from flinkcore.replay.elements.element_run import ElementRun

        return ElementRun(job, configuration)

    def add_python_file(self, path: Path) -> None:
        """Put a folder on the path of this process: that of a module, a given one, or that of an unpacked archive."""
        folder = path if path.is_dir() else path.parent
        if path.suffix in ARCHIVES and not path.is_dir():
            # Compiled modules cannot be imported from within an archive.
            unpacked = TemporaryDirectory(prefix="flinkcore-python-")
            atexit.register(unpacked.cleanup)
            folder = Path(unpacked.name)
            unpack_archive(path, folder, "zip")
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
