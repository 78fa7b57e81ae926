"""Jobs that run by themselves, in this process, on a thread of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from contextvars import copy_context
from functools import partial
from threading import Condition, Lock, Thread
from typing import Any, Final

from flinkcore.common.completable_future import CompletableFuture
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.common.job_id import JobID
from flinkcore.common.job_status import JobStatus
from flinkcore.datastream.pipeline_executor import ElementJob
from flinkcore.errors import ConfigurationError, JobCancelledError
from flinkcore.replay.elements.element_run import MOST_COLLECTED, RunningTasks
from flinkcore.replay.elements.system_clock import SystemJobClock
from flinkcore.replay.embedded.replay_threads import CANCEL_SECONDS, ReplayStoppedError, ReplayThreads
from flinkcore.runtime.function_exits import exits_as_errors
from flinkcore.runtime.working_directory import WorkingDirectory

INTERRUPT_SECONDS: Final = 5
"""So long Ctrl-C waits for the functions of a job to return."""


class BackgroundRun:
    """A run of a job that goes on while its program does something else.

    One thread opens, calls and closes all functions. What it collects is held until the program takes it; while there
    are too many elements, the job waits.

    Parameters
    ----------
    job : ElementJob
    configuration : ExecutionConfig
    directory : WorkingDirectory
        Of its functions.

    Raises
    ------
    ConfigurationError
        If the job has no meaning, or its functions have a working directory of their own.
    """

    def __init__(self, job: ElementJob, configuration: ExecutionConfig, directory: WorkingDirectory) -> None:
        if directory.folder is not None:
            raise ConfigurationError(
                "functions of a job that runs while its program goes on have no working directory of their own: leave "
                "add_python_archive out, or run the job on the arrival clock by execute()"
            )
        self._thread = _JobThread(job, configuration, directory)
        self._elements = self._thread.collected()
        self._thread.start()

    def __iter__(self) -> Iterator[Any]:
        """Yield the collected elements as they come; at their end the job has come to its own."""
        return self._elements

    @property
    def job_id(self) -> JobID:
        """The unique id of the job."""
        return self._thread.job_id

    @property
    def status(self) -> JobStatus:
        """What has become of the job."""
        return self._thread.status

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job unless it has ended; the future is done when it has."""
        future = CompletableFuture[None]()
        self._thread.when_ended(lambda: future.complete(None))
        self._thread.cancel()
        return future

    def result(self) -> CompletableFuture[JobExecutionResult]:
        """Return the result of the job, or its error; of a job that was cancelled, a JobCancelledError."""
        future, thread = CompletableFuture[JobExecutionResult](), self._thread

        def complete() -> None:
            if isinstance(thread.outcome, JobExecutionResult):
                future.complete(thread.outcome)
            else:
                future.complete_exceptionally(thread.outcome)

        thread.when_ended(complete)
        return future

    def run_to_end(self) -> JobExecutionResult:
        """Wait until the job has ended; its collected elements are dropped."""
        for _ in self._elements:
            pass
        assert isinstance(self._thread.outcome, JobExecutionResult)
        return self._thread.outcome

    def close(self) -> None:
        """Cancel the job unless it has ended, and wait until it has; may be called again."""
        self._elements.close()
        self._thread.stop()


class _JobThread:
    """The thread of a job, and what it has collected for the program."""

    def __init__(self, job: ElementJob, configuration: ExecutionConfig, directory: WorkingDirectory) -> None:
        self.job_id = JobID.generate()
        self.status = JobStatus.CREATED
        self.outcome: JobExecutionResult | BaseException = JobCancelledError(
            f"the job {job.name!r} was cancelled"
        )
        self._name = job.name
        self._started_ns = time.monotonic_ns()
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._elements: list[Any] = []
        self._ended: list[Callable[[], object]] = []
        self._threads = ReplayThreads()
        self._threads.wake(self._lock, self._changed)
        clock: SystemJobClock | None = None
        if configuration.get_clock() == "system":
            clock = SystemJobClock(self._check)
            self._threads.wake(clock.mailbox.lock, clock.mailbox.changed)
        self._tasks = RunningTasks(
            job, configuration, directory, collect=self._collect, system_clock=clock, check=self._check
        )

    def start(self) -> None:
        """Start the job."""
        self.status = JobStatus.RUNNING
        self._threads.start("job", partial(copy_context().run, self._work))

    def _work(self) -> None:
        try:
            with exits_as_errors(), closing(self._tasks):
                self._tasks.open()
                with closing(self._tasks.steps()) as steps:
                    for _ in steps:
                        self._check()
            runtime_ms = (time.monotonic_ns() - self._started_ns) // 1_000_000
            self.outcome = JobExecutionResult(runtime_ms, self._name, self._tasks.metrics(), self.job_id)
            self._end(JobStatus.FINISHED)
        except (ReplayStoppedError, KeyboardInterrupt):
            self._end(JobStatus.CANCELED)
            raise
        except BaseException as failure:  # raised in the thread that waits for the job
            self.outcome = failure
            self._end(JobStatus.FAILED)

    def _check(self) -> None:
        """Raise a ReplayStoppedError if the job is to stop."""
        if self.status is JobStatus.CANCELLING:
            raise ReplayStoppedError

    def _end(self, status: JobStatus) -> None:
        with self._lock:
            self.status = status
            ended, self._ended = self._ended, []
            self._changed.notify_all()
        for call in ended:
            call()

    def when_ended(self, call: Callable[[], object]) -> None:
        """Call when the job has ended, in its thread; at once if it has."""
        with self._lock:
            if not self.status.is_terminal_state():
                self._ended.append(call)
                return
        call()

    def _collect(self, element: Any) -> None:
        with self._lock:
            while len(self._elements) >= MOST_COLLECTED:
                self._changed.wait()
                self._check()
            self._elements.append(element)
            if len(self._elements) == 1:
                self._changed.notify_all()

    def collected(self) -> Generator[Any, None, None]:
        """Yield the collected elements as they come; the job is cancelled if they are not taken to their end.

        Raises
        ------
        BaseException
            What the job raised; a JobCancelledError if it was cancelled.
        """
        try:
            while taken := self._take():
                yield from taken
        except KeyboardInterrupt:
            self.stop(INTERRUPT_SECONDS)
            raise
        except BaseException:
            self.stop()
            raise
        if isinstance(self.outcome, BaseException):
            raise self.outcome

    def _take(self) -> list[Any]:
        """Return what has been collected, and wait for it if there is nothing; nothing when the job has ended."""
        with self._lock:
            while not (self._elements or self.status.is_terminal_state()):
                self._changed.wait()
            taken, self._elements = self._elements, []
            self._changed.notify_all()
            return taken

    def cancel(self) -> None:
        """Cancel the job unless it has ended, without waiting for that."""
        if self._begin_to_stop():
            Thread(target=self._stop, name="flinkcore-cancel", daemon=True).start()

    def stop(self, patience: float = CANCEL_SECONDS) -> None:
        """Cancel the job unless it has ended, and wait for that for so many seconds before it is interrupted."""
        if self._begin_to_stop():
            self._stop(patience)
        elif self.status is JobStatus.CANCELLING:
            self._threads.stop(patience)

    def _begin_to_stop(self) -> bool:
        with self._lock:
            is_running = self.status is JobStatus.RUNNING
            if is_running:
                self.status = JobStatus.CANCELLING
            return is_running

    def _stop(self, patience: float = CANCEL_SECONDS) -> None:
        self._tasks.cancel_sources()
        self._threads.stop(patience)
