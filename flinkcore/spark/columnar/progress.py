"""Progress of the tasks of a replay, sent to the driver while they run.

Spark reports tasks only when they end. So tasks send the driver a datagram every half second: that costs nothing if
nobody receives it, and if none gets through, no progress is shown. A datagram has fixed fields and a random token; all
others are ignored. With Spark Connect, where executors cannot reach the client, none are sent.
"""

from __future__ import annotations

import secrets
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.replay.results.progress import Progress, ProgressListener
from flinkcore.spark.sessions.session import is_classic, setting

INTERVAL_SECONDS = 0.5
POLL_SECONDS = 0.2

_TOKEN_BYTES = 16
_DATAGRAM = struct.Struct(f"!{_TOKEN_BYTES}s?qqqq")


@dataclass(frozen=True)
class ProgressAddress:
    """Where tasks send their progress; picklable."""

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
    """

    def __init__(self, events: int, partitions: int, listener: ProgressListener) -> None:
        self._events = events
        self._partitions = partitions
        self._listener = listener
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
        told = self._started
        while not self._stopped.is_set():
            try:
                datagram = self._socket.recv(_DATAGRAM.size + 1)
            except TimeoutError:
                continue
            if not self._take(datagram):
                continue
            now = time.monotonic()
            if now - told >= INTERVAL_SECONDS:
                told = now
                try:
                    self._listener(self._progress(now - self._started))
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

    def _progress(self, seconds: float) -> Progress:
        mapped = sum(self._mapped.values()) / max(1, self._events)
        reduced = sum(share for share, _ in self._reduced.values()) / self._partitions
        running = [watermark_ms for share, watermark_ms in self._reduced.values() if share < 1]
        done = min(self._events - 1, int(self._events * (mapped + reduced) / 2))
        return Progress(max(0, done), self._events, min(running, default=MIN_TIMESTAMP), seconds)


@contextmanager
def progress_of(
    spark: Any, events: int, partitions: int, listener: ProgressListener | None
) -> Iterator[ProgressAddress | None]:
    """Give the address for tasks; None if nobody listens, or if tasks cannot reach the driver."""
    host = setting(spark, "spark.driver.host") if is_classic(spark) else None
    if listener is None or host is None:
        yield None
        return
    receiver = ProgressReceiver(events, partitions, listener)
    receiver.start()
    complete = False
    try:
        yield receiver.address(host)
        complete = True
    finally:
        receiver.stop(complete=complete)
