"""Owners of staging folders: which process writes, and whether it still does; a killed one leaves the folder."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from threading import Event, Thread
from typing import Any, Final

OWNER: Final = "_owner"
"""File in a staging folder that names its process, which writes it again as long as it lives."""

_PROBE: Final = "_probe"
_BEAT_SECONDS: Final = 30
SILENT_SECONDS: Final = 600
"""After so long without a sign of life, a process of another machine counts as ended."""

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
    """

    run: str
    machine: str
    host: str
    process: int
    started: str

    @classmethod
    def of_this_process(cls) -> StagingOwner:
        """Return the owner that a new write of this process is."""
        process = os.getpid()
        return cls(uuid.uuid4().hex, _machine(), socket.gethostname(), process, _started(process))

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
    # Times of one file system are compared: clocks of machines differ.
    probe = f"{staging}/{_PROBE}-{uuid.uuid4().hex}"
    filesystem.open_output_stream(probe).close()
    now, last = (info.mtime_ns for info in filesystem.get_file_info([probe, f"{staging}/{OWNER}"]))
    filesystem.delete_file(probe)
    return now is not None and last is not None and now - last > SILENT_SECONDS * 10**9


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
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _is_running(process: int, started: str) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return _started(process) == started
