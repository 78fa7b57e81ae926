"""Timestamp assigners: how elements get their event time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from flinkcore._internal.show.times import dated
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.element_calls import ExtractedTimestamps
from flinkcore.errors import DataError, FlinkcoreError, UserCodeError, in_words

NO_TIMESTAMP: Final = MIN_TIMESTAMP
"""The timestamp of a record without one, as assigners see it (Flink's ``TimestampAssigner.NO_TIMESTAMP``)."""


class TimestampAssigner(ABC):
    """Assigns event time to elements, one at a time.

    Notes
    -----
    ``pyflink.common.watermark_strategy.TimestampAssigner``.
    """

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the event time of an element.

        Parameters
        ----------
        value : object
            The element.
        record_timestamp : int
            Its timestamp before this call, in ms since the epoch; -2**63 if it has none.

        Returns
        -------
        int
            Milliseconds since the epoch, from -2**63 to 2**63 - 1.
        """


class ClockedTimestampAssigner(TimestampAssigner):
    """An assigner that depends on the time of the job that it runs in."""

    @abstractmethod
    def set_clock(self, clock: Callable[[], int]) -> None:
        """Take the time from a job's clock; called once, before any element.

        Parameters
        ----------
        clock : callable
            Returns the processing time in ms since the epoch.
        """


class RecordTimestampAssigner(TimestampAssigner):
    """Keeps the timestamp of the record; without one, the event time is -2**63.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.RecordTimestampAssigner``, the default of a strategy.
    """

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return record_timestamp


class CheckedTimestampAssigner(ExtractedTimestamps, TimestampAssigner):
    """Calls a user's assigner; any failure is an error that names the split and the element.

    Parameters
    ----------
    assigner : TimestampAssigner
    split : str or None
        Named in error messages.
    """

    def __new__(cls, assigner: TimestampAssigner, split: str | None = None) -> CheckedTimestampAssigner:
        return super().__new__(cls, assigner.extract_timestamp)

    def __init__(self, assigner: TimestampAssigner, split: str | None = None) -> None:
        self._name = f"{type(assigner).__name__}.extract_timestamp"
        if split is not None:
            self._name += f" of split {split!r}"

    def failed(self, value: Any, record_timestamp: int, failure: Exception) -> UserCodeError:
        """Return the error to raise from an exception of the assigner; one of flinkcore's own is raised as it is."""
        if isinstance(failure, FlinkcoreError):
            raise failure
        return UserCodeError(
            f"{self._name} failed at the element {value!r} (record timestamp {dated(record_timestamp)}): "
            f"{in_words(failure)}"
        )

    def converted(self, timestamp: object, value: Any, record_timestamp: int) -> int:
        """Return a timestamp of another integer type as an int; raise a DataError for anything else."""
        converted = as_timestamp(timestamp)
        if converted is None:
            raise DataError(
                f"{self._name} gave {timestamp!r} for the element {value!r}: an event time is an int of 64 bits, in "
                "milliseconds since the epoch"
            )
        return converted


def as_timestamp(value: object) -> int | None:
    """Return an integer of any integer type as an int; None if it is beyond 64 bits, or no integer."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    timestamp = int(value.__index__())
    return timestamp if MIN_TIMESTAMP <= timestamp <= MAX_TIMESTAMP else None
