"""Owners of staging folders: which process writes, and whether it still does; a killed one leaves the folder."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from threading import Event, Thread
from typing import Any, Final

from pyarrow.fs import FileSelector, LocalFileSystem

OWNER: Final = "_owner"
"""File in a staging folder that names its process, which writes it again as long as it lives."""

_PROBE: Final = "_probe"
_BEAT_SECONDS: Final = 30
SILENT_SECONDS: Final = 600
"""After so long without a sign of life, a process of another machine counts as ended."""

UNKNOWN_SECONDS: Final = 3600
"""After so long without a change, so does what writes into a folder that names no owner, as Spark's do."""

_LIVE: Final[set[str]] = set()


@dataclass(frozen=True)
class StagingOwner:
    """A process that writes results.

    Attributes
    ----------
    run : str
        Identifier of the write; each write of a process has its own.
    machine : str
        Where numbers of processes mean the same, since it was started.
    host : str
    process : int
    started : str
        When the process was started, as the system counts; empty if it does not say.
    since_ms : int
        When the write began, in ms since the epoch, by the clock of its machine.
    """

    run: str
    machine: str
    host: str
    process: int
    started: str
    since_ms: int

    @classmethod
    def of_this_process(cls) -> StagingOwner:
        """Return the owner that a new write of this process is."""
        process = os.getpid()
        run, since_ms = uuid.uuid4().hex, int(time.time() * 1000)
        return cls(run, _machine(), socket.gethostname(), process, _started(process), since_ms)

    def claim(self, filesystem: Any, staging: str) -> bool:
        """Name the owner in a staging folder that has just been made; False if another one was faster.

        In an object store, both of two that begin at once may have claimed it.
        """
        if isinstance(filesystem, LocalFileSystem):
            try:
                os.close(os.open(f"{staging}/{OWNER}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return False
        self.write(filesystem, staging)
        return True

    def write(self, filesystem: Any, staging: str) -> None:
        """Name the owner in a staging folder."""
        with filesystem.open_output_stream(f"{staging}/{OWNER}") as file:
            file.write(json.dumps(asdict(self)).encode())

    @contextmanager
    def live(self) -> Iterator[None]:
        """Mark this write as running for other writes of this process, until the block ends."""
        _LIVE.add(self.run)
        try:
            yield
        finally:
            _LIVE.discard(self.run)

    @contextmanager
    def beating(self, staging_folders: list[tuple[Any, str]]) -> Iterator[None]:
        """Show other machines, in file systems and their folders, that the write is running, until the block ends."""
        ended = Event()

        def beat() -> None:
            while not ended.wait(_BEAT_SECONDS):
                for filesystem, staging in staging_folders:
                    with suppress(OSError):  # the write itself reports what fails
                        self.write(filesystem, staging)

        thread = Thread(target=beat, name="flinkcore-staging-owner", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def owner_of(filesystem: Any, staging: str) -> StagingOwner | None:
    """Return the owner of a staging folder; None if it does not name one."""
    try:
        with filesystem.open_input_stream(f"{staging}/{OWNER}") as file:
            return StagingOwner(**json.loads(file.read()))
    except (OSError, ValueError, TypeError):
        return None


def has_ended(owner: StagingOwner, filesystem: Any, staging: str) -> bool:
    """Return whether the process that owns a staging folder no longer writes into it."""
    if owner.machine and owner.machine == _machine():
        if owner.process == os.getpid() and owner.started == _started(owner.process):
            return owner.run not in _LIVE
        return not _is_running(owner.process, owner.started)
    return _is_silent(filesystem, staging, filesystem.get_file_info([f"{staging}/{OWNER}"]), SILENT_SECONDS)


def is_abandoned(filesystem: Any, staging: str) -> bool:
    """Return whether nothing has changed for long in a staging folder that names no owner."""
    found = filesystem.get_file_info(FileSelector(staging, recursive=True))
    return _is_silent(filesystem, staging, [*found, filesystem.get_file_info(staging)], UNKNOWN_SECONDS)


def _is_silent(filesystem: Any, staging: str, found: Iterable[Any], seconds: int) -> bool:
    """Return whether these files and folders have not changed for so long, as far as that is known."""
    times = [info.mtime_ns for info in found if info.mtime_ns is not None]
    # Times of one file system are compared: clocks of machines differ.
    probe = f"{staging}{_PROBE}-{uuid.uuid4().hex}"  # not in the folder, whose time would change
    filesystem.open_output_stream(probe).close()
    now = filesystem.get_file_info(probe).mtime_ns
    filesystem.delete_file(probe)
    return now is not None and bool(times) and now - max(times) > seconds * 10**9


def _machine() -> str:
    """Return the start of the machine, and the namespace of processes; empty if the system does not show them."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(process: int) -> str:
    try:
        with open(f"/proc/{process}/stat") as file:
            # The name of the program comes second, in parentheses, and may hold anything.
            state, *values = file.read().rpartition(")")[2].split()
        # A process that has ended stays in the list until its parent asks for it, in a container perhaps for ever.
        return "ended" if state in "ZX" else values[18]
    except (OSError, ValueError, IndexError):
        return ""


def _is_running(process: int, started: str) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return _started(process) == started
