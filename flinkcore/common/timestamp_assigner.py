"""What a user implements to give elements their event time, and what serves where nobody does."""

from abc import ABC, abstractmethod
from typing import Any, Final

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import DataError, FlinkcoreError, UserCodeError

NO_TIMESTAMP: Final = MIN_TIMESTAMP
"""What an assigner is passed for a record without a timestamp (Flink's ``TimestampAssigner.NO_TIMESTAMP``)."""


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
            The timestamp that it had until now, in ms since the epoch; -2**63 if none.

        Returns
        -------
        int
            Milliseconds since the epoch, from -2**63 to 2**63 - 1.
        """


class RecordTimestampAssigner(TimestampAssigner):
    """Keeps the timestamp that the record has, be it none: -2**63 then becomes its timestamp.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.RecordTimestampAssigner``, the default of a strategy.
    """

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return `record_timestamp`."""
        return record_timestamp


class CheckedTimestampAssigner(TimestampAssigner):
    """Calls a user's assigner, and says where it failed if it does.

    Parameters
    ----------
    assigner : TimestampAssigner
    split : str or None
        Named in error messages.
    """

    def __init__(self, assigner: TimestampAssigner, split: str | None = None) -> None:
        self._assigner = assigner
        self._where = "" if split is None else f" of split {split!r}"

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the user's timestamp.

        Raises
        ------
        UserCodeError
            If the assigner raises; errors of flinkcore's own assigners stay what they are.
        DataError
            If it does not give an integer of 64 bits.
        """
        try:
            timestamp = self._assigner.extract_timestamp(value, record_timestamp)
        except FlinkcoreError:
            raise
        except Exception as failure:
            raise UserCodeError(
                f"{type(self._assigner).__name__}.extract_timestamp{self._where} failed at the element "
                f"{value!r} (record timestamp {record_timestamp}): {type(failure).__name__}: {failure}"
            ) from failure
        if type(timestamp) is int and MIN_TIMESTAMP <= timestamp <= MAX_TIMESTAMP:
            return timestamp
        converted = as_timestamp(timestamp)
        if converted is None:
            raise DataError(
                f"{type(self._assigner).__name__}.extract_timestamp{self._where} gave {timestamp!r} for the "
                f"element {value!r}: an event time is an int of 64 bits, in milliseconds since the epoch"
            )
        return converted


def as_timestamp(value: object) -> int | None:
    """Return an integer of any type as an int; None for one beyond 64 bits, and for what is no integer."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    timestamp = int(value.__index__())
    return timestamp if MIN_TIMESTAMP <= timestamp <= MAX_TIMESTAMP else None
