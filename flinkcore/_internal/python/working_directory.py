"""The working directory of the functions of a job in this process."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

Step = TypeVar("Step")

_ENTERED: Final = Lock()
"""Held by who is in such a directory, since a process has one working directory."""

_HOLDS: Final[ContextVar[bool]] = ContextVar("_HOLDS", default=False)
"""True where the holder of the directory runs, be it in a thread that it waits for."""


class WorkingDirectory:
    """A directory that functions run in, once it has something in it; before, they run in that of the program.

    Attributes
    ----------
    folder : pathlib.Path or None
        None as long as there is nothing in it.
    """

    def __init__(self) -> None:
        self.folder: Path | None = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Make it the working directory of this process within the block."""
        if self.folder is None:
            yield
            return
        with nullcontext() if _HOLDS.get() else _ENTERED:
            before = os.getcwd()
            os.chdir(self.folder)
            holds = _HOLDS.set(True)
            try:
                yield
            finally:
                _HOLDS.reset(holds)
                os.chdir(before)

    def steps(self, steps: Generator[Step, None, None]) -> Generator[Step, None, None]:
        """Take the steps of a job in it; whoever takes them on from here is in the directory of the program."""
        return steps if self.folder is None else self._entered_steps(steps)

    def _entered_steps(self, steps: Generator[Step, None, None]) -> Generator[Step, None, None]:
        try:
            while True:
                with self.entered():
                    try:
                        step = next(steps)
                    except StopIteration:
                        return
                yield step
        finally:
            with self.entered():
                steps.close()
