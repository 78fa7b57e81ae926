"""A job that is planned and not run: what analyses of its logs ask of the executor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Final, Protocol

from flinkcore.columnar.checkpoint.job_checkpoint import JobCheckpoints
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.results.progress import FilesMeter, ProgressListener, files_read
from flinkcore.log.sources.chunks import Chunk, ChunkTask
from flinkcore.time_plane.kept_times import KeptChunk, KeptTimes
from flinkcore.time_plane.time_pass import time_planes_of
from flinkcore.time_plane.timeline import TimePlane

CHUNK_BYTES: Final = 4 << 20
"""Chunks of files are about so large, as far as files can be cut: what has none of the rows asked for is left out."""

KEPT_BYTES: Final = 256 << 20
"""Most that kept times take: of some 60 to 90 million events, at 3 to 4 bytes each in a log that is about in order."""


class TimesTask(Protocol):
    """Task on the times of a chunk; picklable."""

    def __call__(self, chunk: Chunk) -> Iterable[bytes]:
        """Read them."""

    def of_kept(self, index: int, kept: KeptChunk) -> Iterable[bytes]:
        """Take those of the chunk of an index as they have been kept; the same comes of them."""


class PlannedJob(Protocol):
    """A job over columns, its logs, and their times."""

    @property
    def plan(self) -> JobPlan:
        """The job."""

    @property
    def checkpoints(self) -> JobCheckpoints:
        """The one that it is restored from."""

    @property
    def time_planes(self) -> Sequence[TimePlane]:
        """The time plane of each log; the first pass runs when they are first asked for."""

    def on_chunks(self, log: int, task: ChunkTask) -> Iterator[bytes]:
        """Run a task on each chunk of log `log`, and yield its results, chunk by chunk in log order."""

    def keep_times(self) -> None:
        """Let the first pass keep the times of the only log for `on_times`, as far as that spares a second reading."""

    def on_times(self, task: TimesTask) -> Iterator[bytes]:
        """Run a task on the times of each chunk of the only log, as `on_chunks` does."""


class EmbeddedPlannedJob:
    """A planned job in this process.

    Parameters
    ----------
    plan
        The job.
    parallelism
        Number of chunks that are read at once.
    checkpoints
        The one that it is restored from, and the one with which it stops.
    chunks
        Chunks of each log, as others read them, too, or None for a cut that suits this process.
    """

    def __init__(
        self,
        plan: JobPlan,
        parallelism: int,
        checkpoints: JobCheckpoints,
        chunks: Sequence[Sequence[Chunk]] | None = None,
    ) -> None:
        self.plan = plan
        self.checkpoints = checkpoints
        self._parallelism = parallelism
        self._given_chunks = chunks
        self._kept: KeptTimes | None = None
        self._listener: ProgressListener | None = None

    def show_progress(self, listener: ProgressListener | None) -> None:
        """Let the first pass report its progress."""
        self._listener = listener

    @cached_property
    def _chunks(self) -> Sequence[Sequence[Chunk]]:
        if self._given_chunks is not None:
            return self._given_chunks
        logs = [log.log for log in self.plan.logs]
        return [log.chunks(max(self._parallelism, log.size_bytes // CHUNK_BYTES)) for log in logs]

    @cached_property
    def time_planes(self) -> list[TimePlane]:
        """The time plane of each log."""
        plan, restored = self.plan, self.checkpoints
        return time_planes_of(
            plan.logs,
            self._chunks,
            self._parallelism,
            ways=plan.ways,
            cuts=restored.cuts,
            waiting=restored.waiting,
            stops=restored.stops,
            kept=self._kept,
            read=FilesMeter(files_read(plan, self._chunks), self._listener).advance,
        )

    def on_chunks(self, log: int, task: ChunkTask) -> Iterator[bytes]:
        """Run a task on each chunk of log `log`, and yield its results, chunk by chunk in log order."""
        chunks = [*self.checkpoints.waiting_of(log), *self._chunks[log]]
        if self._parallelism == 1 or len(chunks) == 1:
            for chunk in chunks:
                yield from task(chunk)
            return
        with ThreadPoolExecutor(self._parallelism) as pool:
            for given in pool.map(lambda chunk: list(task(chunk)), chunks):
                yield from given

    def keep_times(self) -> None:
        """Let the first pass keep the times of the only log, if it is files, and the times alone say what counts."""
        (plan,), (chunks,) = self.plan.logs, self._chunks
        if plan.takes_all_events and all(chunk.is_checked for chunk in chunks):
            self._kept = KeptTimes(KEPT_BYTES)

    def on_times(self, task: TimesTask) -> Iterator[bytes]:
        """Run a task on the times of each chunk of the only log, as `on_chunks` does."""

        def run(chunk: Chunk) -> Iterable[bytes]:
            kept = None if self._kept is None else self._kept.chunk(chunk.index)
            return task(chunk) if kept is None else task.of_kept(chunk.index, kept)

        return self.on_chunks(0, run)
