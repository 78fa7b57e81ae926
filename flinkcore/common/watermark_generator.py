"""What a user implements to make watermarks: a generator, and the output it is given."""

from abc import ABC, abstractmethod
from typing import Any, Generic, Protocol, TypeVar

from flinkcore.common.watermark import Watermark
from flinkcore.errors import UnsupportedOperationError

T = TypeVar("T", contravariant=True)


class WatermarkOutput(Protocol):
    """Where a generator puts watermarks and its idleness.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.WatermarkOutput``.
    """

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark; one that does not advance is not news. Marks the output active, implicitly."""

    def mark_idle(self) -> None:
        """State that nothing will come for a while, so that nobody waits for this output's watermark."""

    def mark_active(self) -> None:
        """State that watermarks are to be waited for again."""


class WatermarkGenerator(ABC, Generic[T]):
    """Makes watermarks from the events of one split, at each event or periodically.

    In a replay a generator is called for every event, with None in place of the event: the time plane reads no
    column but the times. It is called at every tick of the replay clock, too, from the first tick of the log to
    the last, also where there is no event for months. What it emits must depend on nothing but these calls.

    A job that stops with a checkpoint asks the generator of each split for what it holds, and one that goes on from
    there gives it to a new one: `snapshot_state` and `restore_state`, which other jobs do not need.

    Attributes
    ----------
    changes_at_events_only : bool, default False
        A class may declare, by setting this to True, that a periodic call changes nothing and emits no news
        where there was no event since the periodic call before. A replay then leaves such calls out, so that
        long gaps cost nothing; else a year of ticks at 200 ms takes about half a minute for each split. A
        subclass that overrides `on_periodic_emit` declares it anew.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.WatermarkGenerator``. Deliberate difference: Flink's have no state,
    and start anew after a restore.

    Examples
    --------
    A punctuated generator:

    >>> from flinkcore.common import Watermark, WatermarkStrategy
    >>> class EvenTimestamps(WatermarkGenerator):
    ...     changes_at_events_only = True
    ...
    ...     def on_event(self, event, event_timestamp, output):
    ...         if event_timestamp % 2 == 0:
    ...             output.emit_watermark(Watermark(event_timestamp))
    ...
    ...     def on_periodic_emit(self, output):
    ...         pass
    >>> str(WatermarkStrategy.for_generator(EvenTimestamps))
    'watermarks by EvenTimestamps'
    """

    changes_at_events_only: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "on_periodic_emit" in vars(cls) and "changes_at_events_only" not in vars(cls):
            cls.changes_at_events_only = False

    @abstractmethod
    def on_event(self, event: T, event_timestamp: int, output: WatermarkOutput) -> None:
        """See an event, and emit a watermark if the generator is punctuated.

        Parameters
        ----------
        event : object
            None in a replay.
        event_timestamp : int
            Event time in ms since the epoch.
        output : WatermarkOutput
        """

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called once per auto-watermark interval of the (replay) clock; the place to emit if periodic.

        Parameters
        ----------
        output : WatermarkOutput
        """

    def snapshot_state(self) -> Any:
        """Return what this generator holds, for a checkpoint; None if that is nothing.

        A subclass that holds more than its base class overrides this and `restore_state`.

        Returns
        -------
        object
            What a state can hold, too: numbers, text, bytes, times, None, and lists, tuples and dicts of them.

        Raises
        ------
        UnsupportedOperationError
            If the class does not override this.
        """
        raise UnsupportedOperationError(f"{type(self).__qualname__} does not define snapshot_state")

    def restore_state(self, state: Any) -> None:
        """Go on from what another generator of this class has returned; called before all else.

        Parameters
        ----------
        state : object
            Equal to what `snapshot_state` has returned.

        Raises
        ------
        UnsupportedOperationError
            If the class does not override this.
        """
        raise UnsupportedOperationError(f"{type(self).__qualname__} does not define restore_state")
