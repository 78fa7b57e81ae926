"""What all states with a time to live have in common."""

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from flinkcore.datastream.state import State, StateTtlConfig
from flinkcore.runtime.state.heap_state import HeapState
from flinkcore.runtime.state.stamped_values import Stamped

S = TypeVar("S", bound=HeapState)


class TtlLife:
    """When values expire, and what can be seen of them.

    Parameters
    ----------
    config : StateTtlConfig
    now : callable
        Returns the current time in ms, of the kind that the configuration names.

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
        """Return whether a value can be seen if nothing removes it."""
        return self.return_expired or stamped[1] + self.ttl_ms > self.now()

    def read(
        self, stamped: Stamped | None, update: Callable[[Stamped], None], remove: Callable[[], None]
    ) -> Stamped | None:
        """Return a value that is read, if it can be seen; prolong its life or end it.

        Parameters
        ----------
        stamped : Stamped, optional
        update : callable
            Sets the value, called where its life is prolonged.
        remove : callable
            Removes it, called where it has expired.
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


class TtlState(State, Generic[S]):
    """A state whose values expire, around one on the heap that holds them with their stamps.

    Parameters
    ----------
    original : HeapState
    life : TtlLife
    on_access : callable
        Called at each use.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.AbstractTtlState``.
    """

    def __init__(self, original: S, life: TtlLife, on_access: Callable[[], None]) -> None:
        self._original = original
        self._life = life
        self._on_access = on_access

    def set_current_namespace(self, namespace: Hashable) -> None:
        """Show what belongs to a namespace (a window); None is the void namespace."""
        self._original.set_current_namespace(namespace)

    def _read_value(self) -> Stamped | None:
        # What is held under the current key and namespace, if it can be seen.
        self._on_access()
        original = self._original
        return self._life.read(original.get_internal(), original.update_internal, original.clear)

    def clear(self) -> None:
        """Remove what is held under the current key and namespace."""
        self._original.clear()
        self._on_access()
