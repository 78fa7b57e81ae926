"""The time to live of values: stamps of their last access, the clocks they are compared with, expiry and clean-up."""

from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Any

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream.state import StateDescriptor, StateTtlConfig
from flinkcore.operators.state.state_table import VOID_NAMESPACE, StateTable
from flinkcore.operators.timers.processing_time import ProcessingTimeService

Stamped = tuple[Any, int]
"""A value and the time of its last access, in ms since the epoch, of processing time or of event time."""


def map_values(type: StateDescriptor.Type, held: Any, function: Callable[[Any], Any]) -> Any:
    """Return what a state holds for a key with every single value replaced.

    Parameters
    ----------
    type : StateDescriptor.Type
    held : object
        By the type of the state a value, a list of elements, or a dictionary.
    function : callable
        Not called for values of a map that are None.
    """
    if type is StateDescriptor.Type.LIST:
        return [function(element) for element in held]
    if type is StateDescriptor.Type.MAP:
        return {key: None if value is None else function(value) for key, value in held.items()}
    return function(held)


def unexpired_or_none(type: StateDescriptor.Type, held: Any, oldest_ms: int) -> Any:
    """Return what has not expired of what a state holds for a key.

    Parameters
    ----------
    type : StateDescriptor.Type
    held : object
        A :data:`Stamped`, or a list or a dictionary of them.
    oldest_ms : int
        A value whose last access was at or before this time, in ms since the epoch, has expired.

    Returns
    -------
    object
        The same object if nothing has expired, None if everything has.
    """
    if type is StateDescriptor.Type.LIST:
        elements = [stamped for stamped in held if stamped[1] > oldest_ms]
        return held if len(elements) == len(held) else elements or None
    if type is StateDescriptor.Type.MAP:
        entries = {key: stamped for key, stamped in held.items() if stamped is None or stamped[1] > oldest_ms}
        return held if len(entries) == len(held) else entries or None
    return held if held[1] > oldest_ms else None


class TtlClocks:
    """Processing time from a clock, event time from the watermarks.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlTimeProvider``, which knows processing time only.
    """

    def __init__(self, processing_time_service: ProcessingTimeService) -> None:
        self._processing_time_service = processing_time_service
        self.watermark_ms = MIN_TIMESTAMP

    def advance_watermark(self, watermark_ms: int) -> bool:
        """Take a watermark; return whether it is the first one.

        One that goes back is ignored, and so is the maximum: it marks the end of the input, and is not a time.
        """
        if watermark_ms <= self.watermark_ms or watermark_ms == MAX_TIMESTAMP:
            return False
        is_first = self.watermark_ms == MIN_TIMESTAMP
        self.watermark_ms = watermark_ms
        return is_first

    def clock_of(self, ttl_time: StateTtlConfig.TtlTimeCharacteristic) -> Callable[[], int]:
        """Return a function that returns the current time in ms since the epoch."""
        if ttl_time is StateTtlConfig.TtlTimeCharacteristic.EventTime:
            return lambda: self.watermark_ms
        return self._processing_time_service.current_processing_time


class TtlLife:
    """Time to live of a state: when values expire, and which of them are visible.

    Parameters
    ----------
    config : StateTtlConfig
    now : callable
        Returns the current time in ms since the epoch, of the kind that the configuration names.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.AbstractTtlDecorator``.
    """

    __slots__ = ("now", "return_expired", "ttl_ms", "update_on_read")

    def __init__(self, config: StateTtlConfig, now: Callable[[], int]) -> None:
        self.now = now
        self.ttl_ms = config.ttl_ms
        self.update_on_read = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        self.return_expired = (
            config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        )

    def stamp(self, value: Any) -> Stamped:
        """Return a value with the current time."""
        return value, self.now()

    def is_visible(self, stamped: Stamped) -> bool:
        """Return whether a value can be read as long as it is not removed."""
        return self.return_expired or stamped[1] + self.ttl_ms > self.now()

    def read(
        self, stamped: Stamped | None, update: Callable[[Stamped], None], remove: Callable[[], None]
    ) -> Stamped | None:
        """Return a value if it is visible; renew its stamp, or remove it if it has expired.

        Parameters
        ----------
        stamped : Stamped or None
        update : callable
            Sets the value with a new stamp.
        remove : callable
            Removes the value.
        """
        if stamped is None:
            return None
        now_ms = self.now()
        if stamped[1] + self.ttl_ms <= now_ms:
            remove()
            return stamped if self.return_expired else None
        if self.update_on_read:
            update((stamped[0], now_ms))
        return stamped


class IncrementalCleanup:
    """Removes expired values: each call looks at the next few places of a table, and starts over at its end.

    Parameters
    ----------
    table : StateTable
        Table of a state with a time to live.
    cleanup_size : int
        Number of places that a call looks at.
    life : TtlLife

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlIncrementalCleanup``; places of keys without a value count, too,
    so that a call takes no longer in a state that few keys use.
    """

    __slots__ = ("_cleanup_size", "_in_windows", "_life", "_next_key_id", "_one_value", "_table")

    def __init__(self, table: StateTable, cleanup_size: int, life: TtlLife) -> None:
        self._table = table
        self._one_value = table.type not in (StateDescriptor.Type.LIST, StateDescriptor.Type.MAP)
        self._cleanup_size = cleanup_size
        self._life = life
        self._next_key_id = 0
        self._in_windows: Iterator[tuple[Hashable, int]] = iter(())

    def __call__(self) -> None:
        """Look at the next places, and remove what has expired there."""
        oldest_ms = self._life.now() - self._life.ttl_ms
        first = self._next_key_id
        some = self._table.void_values[first : first + self._cleanup_size]
        if not some:
            self._clean_windows(oldest_ms)
            return
        self._next_key_id = first + len(some)
        one_value = self._one_value
        for key_id, held in enumerate(some, first):
            # Most places hold nothing, or one value that has not expired: these must cost next to nothing.
            if held is not None and not (one_value and held[1] > oldest_ms):
                self._clean(VOID_NAMESPACE, key_id, held, oldest_ms)

    def _clean_windows(self, oldest_ms: int) -> None:
        table = self._table
        places = list(islice(self._in_windows, self._cleanup_size))
        for namespace, key_id in places:
            held = table.get(namespace, key_id)
            if held is not None:
                self._clean(namespace, key_id, held, oldest_ms)
        if not places:
            self._next_key_id = 0
            self._in_windows = table.places_in_windows()

    def _clean(self, namespace: Hashable, key_id: int, held: Any, oldest_ms: int) -> None:
        alive = unexpired_or_none(self._table.type, held, oldest_ms)
        if alive is None:
            self._table.remove(namespace, key_id)
        elif alive is not held:
            self._table.put(namespace, key_id, alive)
