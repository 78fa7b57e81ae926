"""Arrow data in memory as the data of an event log: it is imported once, for some gives its rows only once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from flinkcore.errors import DataError

T = TypeVar("T")


class ArrowData:
    """Data that exports itself as Arrow, as the program gives it; nothing of it has been read.

    Every job over its stream sees the same rows, those of the first import. Two logs of one iterator, such as a
    ``pyarrow.RecordBatchReader``, have them in common.

    Parameters
    ----------
    data : Any
        With ``__arrow_c_stream__`` or ``__arrow_c_array__``.
    """

    def __init__(self, data: Any) -> None:
        self._data = data
        self._import: _Import[Any] = _Import()
        with suppress(TypeError):  # of what cannot be referred to weakly, or hashed
            if hasattr(data, "__next__"):
                self._import = _OF_ITERATORS.setdefault(data, self._import)

    def imported(self, take: Callable[[Any], T]) -> T:
        """Return what the data is imported as.

        Parameters
        ----------
        take : callable
            Imports the data; it is not called again when that is done.

        Raises
        ------
        Exception
            Any error of the import. That of an iterator is raised each time, for its first rows may be gone; other data
            is imported again.
        DataError
            If the import of an iterator was interrupted.
        """
        imported: T = self._import.of(self._data, take)
        return imported

    def __str__(self) -> str:
        return f"{type(self._data).__name__} in memory"


class _Import(Generic[T]):
    """Result of an import of data, or the reason why it failed if a second attempt would miss the first rows."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._imported: T | None = None
        self._failure: Exception | None = None

    def of(self, data: Any, take: Callable[[Any], T]) -> T:
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._imported is None:
                try:
                    self._imported = take(data)
                except BaseException as failure:
                    if hasattr(data, "__next__"):
                        self._failure = failure if isinstance(failure, Exception) else _interrupted(data)
                    raise
            return self._imported


_OF_ITERATORS: WeakKeyDictionary[Any, _Import[Any]] = WeakKeyDictionary()


def _interrupted(data: Any) -> DataError:
    return DataError(
        f"the reading of the {type(data).__name__} that is the log was interrupted, and it may not return its first "
        "rows again. Pass from_event_log the data again"
    )
