"""Jobs that run by themselves, in this process, on a thread of their own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from contextvars import copy_context
from functools import partial
from os import PathLike
from threading import Lock, Thread, current_thread, main_thread
from types import FrameType
from typing import Any, Final, NoReturn

from flinkcore._internal.python.function_exits import exits_as_errors
from flinkcore._internal.python.interruptible_condition import InterruptibleCondition
from flinkcore._internal.python.replay_threads import CANCEL_SECONDS, ReplayStoppedError, ReplayThreads
from flinkcore._internal.python.working_directory import WorkingDirectory
from flinkcore.common.completable_future import CompletableFuture
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.common.job_id import JobID
from flinkcore.common.job_status import JobStatus
from flinkcore.datastream.graph.pipeline_executor import NO_CHECKPOINTS, CheckpointSettings, ElementJob
from flinkcore.elements.element_run import MOST_COLLECTED, RunningTasks
from flinkcore.elements.late_warnings import warn_of_late_records
from flinkcore.elements.system_clock import SystemJobClock
from flinkcore.errors import ConfigurationError, FlinkcoreError, JobCancelledError, LifecycleError

INTERRUPT_SECONDS: Final = 5
"""So long Ctrl-C, or SIGTERM, waits for the functions of a job to return."""


class BackgroundRun:
    """Run of a job in the background of its program.

    One thread opens, calls and closes all functions. What it collects is held until the program takes it; while there
    are too many elements, the job waits.

    Parameters
    ----------
    job : ElementJob
    configuration : ExecutionConfig
    directory : WorkingDirectory
        Working directory of its functions.
    checkpoints : CheckpointSettings
        Checkpoint from which the job resumes, and the one with which it stops.
    may_stop : bool
        Whether `stop_with_savepoint` may be called.

    Raises
    ------
    ConfigurationError
        If the job has no meaning, or its functions have a working directory of their own.
    """

    def __init__(
        self,
        job: ElementJob,
        configuration: ExecutionConfig,
        directory: WorkingDirectory,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
        may_stop: bool = True,
    ) -> None:
        if directory.folder is not None:
            raise ConfigurationError(
                "functions of a job in the background of its program have no working directory of their own. Leave "
                "add_python_archive out, or run the job on the arrival clock by execute()"
            )
        self._thread = _JobThread(job, configuration, directory, checkpoints, may_stop)
        self._elements = self._thread.collected()

    def start(self) -> None:
        """Start the job; an interrupt meanwhile cancels it."""
        with self._thread.cancelled_on_error():
            self._thread.start()

    def __iter__(self) -> Iterator[Any]:
        """Start the job, and yield the collected elements as they come; at their end the job has come to its own."""
        self.start()
        return self._elements

    @property
    def job_id(self) -> JobID:
        """The unique id of the job."""
        return self._thread.job_id

    @property
    def status(self) -> JobStatus:
        """Return the status of the job."""
        return self._thread.status

    def stop_with_savepoint(self, path: str | PathLike[str], drains: bool = False) -> CompletableFuture[str]:
        """Stop the job with a checkpoint in a directory, whose path the future has when the job has ended.

        Parameters
        ----------
        path : path
        drains : bool
            Whether event time is advanced to its end before.
        """
        thread = self._thread
        return self._savepoint(
            CompletableFuture[str](), path, lambda: thread.stop_with_checkpoint(path, drains)
        )

    def trigger_savepoint(self, path: str | PathLike[str]) -> CompletableFuture[str]:
        """Write a checkpoint to a directory, whose path the future has when it is complete; the job continues."""
        future, thread = CompletableFuture[str](), self._thread

        def done(failure: FlinkcoreError | None) -> None:
            if failure is None:
                future.complete(os.fspath(path))
            else:
                future.complete_exceptionally(failure)

        return self._savepoint(future, path, lambda: thread.trigger_savepoint(path, done))

    def _savepoint(
        self, future: CompletableFuture[str], path: str | PathLike[str], request: Callable[[], object]
    ) -> CompletableFuture[str]:
        """Request a checkpoint, and return its future, which fails if the job refuses it or ends without it."""
        thread = self._thread

        def ended() -> None:
            if isinstance(thread.outcome, BaseException):
                future.complete_exceptionally(thread.outcome)
            elif thread.stopped_at == path:
                future.complete(os.fspath(path))
            else:
                future.complete_exceptionally(_ended_before(thread.name))

        try:
            request()
        except FlinkcoreError as failure:
            future.complete_exceptionally(failure)
        else:
            thread.when_ended(ended)
        return future

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
        """Start the job, and wait until it has ended; its collected elements are dropped."""
        with _terminated_as_exit():
            for _ in self._elements:
                pass
        assert isinstance(self._thread.outcome, JobExecutionResult)
        return self._thread.outcome

    def close(self) -> None:
        """Cancel the job unless it has ended, and wait until it has; may be called again."""
        self._elements.close()
        self._thread.stop()


@contextmanager
def _terminated_as_exit() -> Iterator[None]:
    """Let SIGTERM exit the program as it would, but so that its job can end first."""
    default = current_thread() is main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not default:
        yield
        return
    signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _ended_before(name: str) -> LifecycleError:
    return LifecycleError(f"the job {name!r} has come to its end, and has no savepoint any more")


class _JobThread:
    """The thread of a job, and what it has collected for the program."""

    def __init__(
        self,
        job: ElementJob,
        configuration: ExecutionConfig,
        directory: WorkingDirectory,
        checkpoints: CheckpointSettings,
        may_stop: bool,
    ) -> None:
        self.job_id = JobID.generate()
        self.status = JobStatus.CREATED
        self.outcome: JobExecutionResult | BaseException = JobCancelledError(
            f"the job {job.name!r} was cancelled"
        )
        self.name = job.name
        self.stopped_at: str | PathLike[str] | None = None
        self._stop_path: str | PathLike[str] | None = None
        self._own_path = checkpoints.stop_with_checkpoint
        self._is_cancelled = False
        self._late_share_warning = configuration.get_late_share_warning()
        self._started_ns = time.monotonic_ns()
        self._lock = Lock()
        self._changed = InterruptibleCondition(self._lock)
        self._elements: list[Any] = []
        self._taken: Iterator[Any] = iter(())
        self._all_taken = True
        self._ended: list[Callable[[], object]] = []
        self._threads = ReplayThreads()
        self._threads.wake(self._lock, self._changed)
        clock: SystemJobClock | None = None
        if configuration.get_clock() == "system":
            clock = SystemJobClock(self._check)
            self._threads.wake(clock.mailbox.lock, clock.mailbox.changed)
        self._tasks = RunningTasks(
            job,
            configuration,
            directory,
            collect=self._collect,
            system_clock=clock,
            checkpoints=checkpoints,
            check=self._check,
            may_stop=may_stop or checkpoints.stop_with_checkpoint is not None,
            when_taken=self._wait_until_taken,
        )

    def start(self) -> None:
        """Start the job, unless it was started."""
        if self.status is not JobStatus.CREATED:
            return
        self.status = JobStatus.RUNNING
        self._threads.start("job", partial(copy_context().run, self._work))

    def _work(self) -> None:
        try:
            with exits_as_errors(), closing(self._tasks):
                self._tasks.open()
                with closing(self._tasks.steps()) as steps:
                    for _ in steps:
                        self._check()
            warn_of_late_records(self._tasks.late_records, self._late_share_warning)
            runtime_ms = (time.monotonic_ns() - self._started_ns) // 1_000_000
            if self._tasks.has_stopped:
                self.stopped_at = self._stop_path
            if self._is_cancelled and self._tasks.has_stopped:
                self.outcome = JobCancelledError(
                    f"the job {self.name!r} was cancelled; its checkpoint is in {self.stopped_at}"
                )
                self._end(JobStatus.CANCELED)
            else:
                self.outcome = JobExecutionResult(runtime_ms, self.name, self._tasks.metrics(), self.job_id)
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
                self._all_taken = False
                self._changed.notify_all()

    def _wait_until_taken(self) -> None:
        """Wait until the program has asked for more than there is."""
        with self._lock:
            while not self._all_taken:
                self._check()
                self._changed.wait()

    def collected(self) -> Generator[Any, None, None]:
        """Yield the collected elements as they come; the job is cancelled if they are not taken to their end.

        The job is started if it was not: an interrupt may come before its thread is known to run.

        Raises
        ------
        BaseException
            Error of the job, a JobCancelledError if it was cancelled.
        """
        interrupt: KeyboardInterrupt | SystemExit | None = None
        with self.cancelled_on_error():
            self.start()
            while True:
                try:
                    yield from self._taken
                    if not self._take():
                        break
                except (KeyboardInterrupt, SystemExit) as interrupted:
                    if not self._stop_with_own_checkpoint():
                        raise
                    interrupt = interrupted
        if interrupt is not None and self.status is not JobStatus.FAILED:
            raise interrupt
        if isinstance(self.outcome, BaseException):
            raise self.outcome

    @contextmanager
    def cancelled_on_error(self) -> Iterator[None]:
        """Cancel the job if the block does not come to its end."""
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            self.stop(INTERRUPT_SECONDS)
            raise
        except BaseException:
            self.stop()
            raise

    def _take(self) -> bool:
        """Take what has been collected, and wait for it if there is nothing; return whether the job has more to give.

        An interrupt may come at any place: what was collected is then either still there, or taken.
        """
        with self._lock:
            while not (self._elements or self.status.is_terminal_state()):
                self._all_taken = True
                self._changed.notify_all()
                self._changed.wait()
            if not self._elements:
                return False
            self._taken, self._elements = iter(self._elements), []
            self._changed.notify_all()
            return True

    def stop_with_checkpoint(self, path: str | PathLike[str], drains: bool = False) -> None:
        """Let the job stop with a checkpoint in a directory, without waiting for that.

        Raises
        ------
        LifecycleError
            If it has ended, or stops already.
        ConfigurationError
            If something in it has no checkpoints, or none where it is; the job continues.
        """
        with self._lock:
            self._refuse_ending()
            self._tasks.stop(None if path is self._own_path else path, drains)
            self._stop_path = path

    def trigger_savepoint(
        self, path: str | PathLike[str], done: Callable[[FlinkcoreError | None], object]
    ) -> None:
        """Let the job write a checkpoint to a directory and go on; `done` gets the error, or None.

        Raises
        ------
        LifecycleError, ConfigurationError
            As of `stop_with_checkpoint`.
        """
        with self._lock:
            self._refuse_ending()
            self._tasks.trigger_savepoint(path, done)

    def _refuse_ending(self) -> None:
        if self.status is not JobStatus.RUNNING:
            raise _ended_before(self.name)
        if self._stop_path is not None:
            raise LifecycleError(
                f"the job {self.name!r} stops already, with a checkpoint in {self._stop_path}"
            )

    def _stop_with_own_checkpoint(self) -> bool:
        """Cancel the job with the checkpoint that it was started with; return whether it stops so now."""
        if self._own_path is None or self._is_cancelled:
            return False
        self._is_cancelled = True
        try:
            self.stop_with_checkpoint(self._own_path)
        except (LifecycleError, ConfigurationError):  # it ends, or stops, already; or cannot stop where it is
            return False
        return True

    def cancel(self) -> None:
        """Cancel the job unless it has ended, without waiting for that."""
        if self._stop_with_own_checkpoint():
            return
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
