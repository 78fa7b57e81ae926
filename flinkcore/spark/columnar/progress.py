"""Progress of the tasks of a replay, reported to the driver while they run.

Spark reports tasks only when they end, and its status alone says too little. There are as many reduce tasks as the
session has cores, unless the program sets a parallelism: all of them run from the middle of a replay to its end, and
progress would stand still at a half meanwhile. Spark does not know the event time reached either. So tasks send the
driver a datagram every half second, which costs nothing if nobody receives it. A datagram has fixed fields and a random
token; all others are ignored. Where none gets through, as with Spark Connect, whose executors cannot reach the client,
progress is the share of tasks that Spark reports as done.
"""

from __future__ import annotations

import secrets
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread, get_ident
from typing import Any

from flinkcore.columnar.results.progress import Progress, ProgressListener
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.spark.sessions.session import is_classic, setting, spark_context
from flinkcore.spark.sessions.spark_jobs import GROUP

INTERVAL_SECONDS = 0.5
POLL_SECONDS = 0.2

_TOKEN_BYTES = 16
_DATAGRAM = struct.Struct(f"!{_TOKEN_BYTES}s?qqqq")


@dataclass(frozen=True)
class ProgressAddress:
    """Address to which tasks send their progress; picklable."""

    host: str
    port: int
    token: bytes

    def tell(self, is_reduce: bool, number: int, done: int, total: int, watermark_ms: int) -> None:
        """Send one datagram, without waiting for an answer."""
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                datagram = _DATAGRAM.pack(self.token, is_reduce, number, done, total, watermark_ms)
                sender.sendto(datagram, (self.host, self.port))
        except OSError:
            return


@dataclass
class TaskProgress:
    """Progress of one chunk on the map side, or of one partition on the reduce side.

    Attributes
    ----------
    address : ProgressAddress or None
        None if nobody listens.
    is_reduce : bool
    number : int
        Number of the chunk or partition.
    total : int
        Events that the task will read; 0 if it does not know.
    """

    address: ProgressAddress | None
    is_reduce: bool
    number: int
    total: int = 0
    _done: int = 0
    _told: float = field(default_factory=time.monotonic)

    def advance(self, events: int, watermark_ms: int = MIN_TIMESTAMP, *, at_end: bool = False) -> None:
        """Count events; send progress at most every half second, and at the end."""
        self._done += events
        now = time.monotonic()
        if self.address is not None and (at_end or now - self._told >= INTERVAL_SECONDS):
            self._told = now
            self.address.tell(self.is_reduce, self.number, self._done, self.total, watermark_ms)


class ProgressReceiver:
    """Receives the progress of tasks, and calls a listener.

    The map side counts as half of the work, and the reduce side as the other half. The watermark is the lowest of the
    partitions that still run.

    Parameters
    ----------
    events : int
        Rows of the log.
    partitions : int
        Number of reduce tasks.
    listener : callable
        Called in a thread of its own, since the caller's waits for Spark, and at the end in the caller's. What it
        raises is raised again in the caller's thread.
    share_of_tasks : callable, optional
        Returns how much of the work Spark reports as done, from 0 to 1.
    """

    def __init__(
        self,
        events: int,
        partitions: int,
        listener: ProgressListener,
        share_of_tasks: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._events = events
        self._partitions = partitions
        self._listener = listener
        self._share_of_tasks = share_of_tasks
        self._token = secrets.token_bytes(_TOKEN_BYTES)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("", 0))
        self._socket.settimeout(POLL_SECONDS)
        self._started = time.monotonic()
        self._mapped: dict[int, int] = {}
        self._reduced: dict[int, tuple[float, int]] = {}
        self._failure: BaseException | None = None
        self._stopped = Event()
        self._thread = Thread(target=self._receive, name="flinkcore-progress", daemon=True)

    def address(self, host: str) -> ProgressAddress:
        """Return the address of this receiver."""
        return ProgressAddress(host, self._socket.getsockname()[1], self._token)

    def start(self) -> None:
        """Start to receive."""
        self._thread.start()

    def stop(self, *, complete: bool) -> None:
        """Stop receiving. If the replay is complete, call the listener a last time, or raise what it has raised."""
        self._stopped.set()
        self._thread.join()
        self._socket.close()
        if complete and self._failure is not None:
            raise self._failure
        if complete:
            seconds = time.monotonic() - self._started
            self._listener(Progress(self._events, self._events, MAX_TIMESTAMP, seconds))

    def _receive(self) -> None:
        reported, share = self._started, 0.0
        while not self._stopped.is_set():
            try:
                heard = self._take(self._socket.recv(_DATAGRAM.size + 1))
            except TimeoutError:
                heard = False
            now = time.monotonic()
            if now - reported < INTERVAL_SECONDS:
                continue
            share_before = share
            with suppress(Exception):  # the session is being stopped, or keeps its status to itself
                share = max(share, min(1.0, self._share_of_tasks()))
            if not heard and share == share_before:
                continue
            reported = now
            try:
                self._listener(self._progress(now - self._started, share))
            except BaseException as error:  # raised again where the replay ends
                self._failure = error
                return

    def _take(self, datagram: bytes) -> bool:
        if len(datagram) != _DATAGRAM.size:
            return False
        token, is_reduce, number, done, total, watermark_ms = _DATAGRAM.unpack(datagram)
        if not secrets.compare_digest(token, self._token):
            return False
        if is_reduce:
            self._reduced[number] = (done / total if total else 1.0, watermark_ms)
        else:
            self._mapped[number] = done
        return True

    def _progress(self, seconds: float, share_of_tasks: float) -> Progress:
        mapped = sum(self._mapped.values()) / max(1, self._events)
        reduced = sum(share for share, _ in self._reduced.values()) / self._partitions
        running = [watermark_ms for share, watermark_ms in self._reduced.values() if share < 1]
        share = max(share_of_tasks, (mapped + reduced) / 2)
        done = min(self._events - 1, int(self._events * share))
        return Progress(max(0, done), self._events, min(running, default=MIN_TIMESTAMP), seconds)


@contextmanager
def progress_of(
    spark: Any, events: int, partitions: int, stages: int, listener: ProgressListener | None
) -> Iterator[ProgressAddress | None]:
    """Report the progress of the jobs of the block to a listener.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    events : int
        Rows of the log.
    partitions : int
        Number of reduce tasks of the last operator.
    stages : int
        Number of stages of the jobs.
    listener : callable or None

    Yields
    ------
    ProgressAddress or None
        The address for tasks; None if nobody listens, or if tasks cannot reach the driver.
    """
    if listener is None:
        yield None
        return
    with _share_of_stages(spark, stages) as share_of_tasks:
        receiver = ProgressReceiver(events, partitions, listener, share_of_tasks)
        receiver.start()
        complete = False
        try:
            host = setting(spark, "spark.driver.host") if is_classic(spark) else None
            yield None if host is None else receiver.address(host)
            complete = True
        finally:
            receiver.stop(complete=complete)


@contextmanager
def progress_of_times(spark: Any, files: int, listener: ProgressListener | None) -> Iterator[None]:
    """Report the progress of the jobs of the block, which read the times of files, by the tasks that are done.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    files : int
        Number of files; nothing is reported if it is 0, as for DataFrames.
    listener : callable or None
    """
    if listener is None or files == 0:
        yield
        return
    with _share_of_stages(spark, None) as share_of_tasks:
        reporter = _TimesReporter(files, listener, share_of_tasks)
        reporter.start()
        try:
            yield
        finally:
            reporter.stop()
    reporter.raise_failure()


class _TimesReporter(Thread):
    """Asks every half second how much is done, and calls a listener if it is more."""

    def __init__(self, files: int, listener: ProgressListener, share_of_tasks: Callable[[], float]) -> None:
        super().__init__(name="flinkcore-times", daemon=True)
        self._files = files
        self._listener = listener
        self._share_of_tasks = share_of_tasks
        self._stopped = Event()
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Report until it is stopped, or the listener fails."""
        started, reported = time.monotonic(), 0
        while not self._stopped.wait(INTERVAL_SECONDS):
            share = 0.0
            with suppress(Exception):  # the session is being stopped, or keeps its status to itself
                share = min(1.0, self._share_of_tasks())
            done = int(self._files * share)
            if done <= reported:
                continue
            reported = done
            seconds = time.monotonic() - started
            try:
                self._listener(Progress(0, 0, MIN_TIMESTAMP, seconds, done, self._files))
            except BaseException as error:  # raised again where the jobs end
                self._failure = error
                return

    def stop(self) -> None:
        """Stop asking."""
        self._stopped.set()
        self.join()

    def raise_failure(self) -> None:
        """Raise the error of the listener, if it has failed."""
        if self._failure is not None:
            raise self._failure


@contextmanager
def _share_of_stages(spark: Any, stages: int | None) -> Iterator[Callable[[], float]]:
    """Yield a function that returns the finished share of the jobs that this thread runs in the block, in its group.

    The share is that of stages, of which so many follow each other, or that of tasks if the number is None.
    """
    if hasattr(spark, "registerProgressHandler") and not is_classic(spark):
        of_stages = _RemoteStages(stages)
        spark.registerProgressHandler(of_stages)
        try:
            yield of_stages.share
        finally:
            spark.removeProgressHandler(of_stages)
        return
    yield _share_of_jobs(spark, stages)


def _share_of_jobs(spark: Any, stages: int | None) -> Callable[[], float]:
    try:
        context = spark_context(spark)
        group = context.getLocalProperty(GROUP)
        tracker = context.statusTracker()
        before = set(tracker.getJobIdsForGroup(group))
    except Exception:  # there is no context, or a platform refuses its methods
        return lambda: 0.0

    def share() -> float:
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group) if job not in before]
        numbers = {number for job in jobs if job is not None for number in job.stageIds}
        found = [stage for stage in map(tracker.getStageInfo, numbers) if stage is not None]
        return _share(((stage.numCompletedTasks, stage.numTasks) for stage in found), stages)

    return share


class _RemoteStages:
    """A progress handler of Spark Connect, which calls it in the thread that waits for the job."""

    def __init__(self, stages: int | None) -> None:
        self._stages = stages
        self._thread = get_ident()
        self._share = 0.0

    def __call__(self, stages: Iterable[Any] | None, **_: Any) -> None:
        """Take the state of all stages of a job."""
        if get_ident() == self._thread:
            tasks = [(stage.num_completed_tasks, stage.num_tasks) for stage in stages or ()]
            self._share = _share(tasks, self._stages)

    def share(self) -> float:
        """Return how much is done, from 0 to 1."""
        return self._share


def _share(tasks: Iterable[tuple[int, int]], stages: int | None) -> float:
    """Return the share that is done, given how many of the tasks of each stage are: of stages, or else of tasks."""
    known = [(done, number) for done, number in tasks if number]
    if stages is None:
        return sum(done for done, _ in known) / max(1, sum(number for _, number in known))
    return sum(done / number for done, number in known) / stages
