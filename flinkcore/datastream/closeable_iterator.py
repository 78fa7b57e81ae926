"""The elements that a running job collects."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

from flinkcore.datastream.element_job import ElementJobRun


class CloseableIterator(Iterator[Any]):
    """Elements of a stream, as its job makes them: asking for the next one lets the job go on until there is one.

    Parameters
    ----------
    run : ElementJobRun

    Notes
    -----
    Follows ``pyflink.datastream.data_stream.CloseableIterator``. A job that is closed before its end is cancelled:
    its sinks make nothing visible.
    """

    def __init__(self, run: ElementJobRun) -> None:
        self._run = run
        self._elements = iter(run)

    def __next__(self) -> Any:
        return next(self._elements)

    def next(self) -> Any:
        """Return the next element; StopIteration if the job has come to its end."""
        return next(self._elements)

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the job if it has not come to its end."""
        self._run.close()
