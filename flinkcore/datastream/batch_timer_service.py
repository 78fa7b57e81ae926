"""Timers as columns, as functions over batches see them."""

from abc import ABC, abstractmethod
from typing import Any


class BatchTimerService(ABC):
    """Registers and deletes timers of the keys in the batch at hand.

    A timer is registered once per key and time, and fires once; times are as for
    :class:`~flinkcore.datastream.TimerService`. Columns are what numpy makes an array of integers of, or Arrow arrays
    without nulls; a time may be one number for all keys.
    """

    @abstractmethod
    def register_event_time_timers(self, key_ids: Any, timestamps: Any) -> None:
        """Register timers that fire when the watermark reaches their time.

        Parameters
        ----------
        key_ids : int array (n_rows,)
            Dense ids of keys that have a part in the batch.
        timestamps : int array (n_rows,) or int
            Ms since the epoch.

        Raises
        ------
        DataError
            If an id is none of the batch, a time is no integer of 64 bits or earlier than the function has declared,
            or the columns are not equally long. Nothing is registered then.
        """

    @abstractmethod
    def register_processing_time_timers(self, key_ids: Any, timestamps: Any) -> None:
        """Register timers that fire when processing time reaches their time; as for those of event time."""

    @abstractmethod
    def delete_event_time_timers(self, key_ids: Any, timestamps: Any = None) -> None:
        """Delete timers where there are such.

        Parameters
        ----------
        key_ids : int array (n_rows,)
            Dense ids of keys that have a part in the batch.
        timestamps : int array (n_rows,) or int, optional
            When the timers are due, in ms since the epoch; None: all timers of these keys.

        Raises
        ------
        DataError
            As for registering.
        """

    @abstractmethod
    def delete_processing_time_timers(self, key_ids: Any, timestamps: Any = None) -> None:
        """Delete timers where there are such; as for those of event time."""
