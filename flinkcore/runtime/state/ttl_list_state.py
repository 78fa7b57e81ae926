"""One list per key whose elements expire."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from flinkcore.datastream.state import ListState
from flinkcore.runtime.state.element_check import ElementCheck
from flinkcore.runtime.state.heap_list_state import HeapListState
from flinkcore.runtime.state.stamped_values import Stamped
from flinkcore.runtime.state.ttl_state import TtlLife, TtlState

T = TypeVar("T")


class TtlListState(TtlState[HeapListState[Stamped]], ListState[T]):
    """A :class:`ListState` each of whose elements has a time to live.

    Parameters
    ----------
    original, life, on_access
        As of :class:`TtlState`.
    check : ElementCheck

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlListState``. Reading clears a list of which nothing is alive;
    expired elements beside living ones stay until they are cleaned up.
    """

    def __init__(
        self,
        original: HeapListState[Stamped],
        life: TtlLife,
        on_access: Callable[[], None],
        check: ElementCheck,
    ) -> None:
        super().__init__(original, life, on_access)
        self._check = check

    def get(self) -> list[T]:
        """Return the elements that can be seen, in order, as a list of the caller's own."""
        self._on_access()
        elements: list[Stamped] | None = self._original.get_internal()
        if elements is None:
            return []
        life = self._life
        now_ms = life.now()
        oldest_ms = now_ms - life.ttl_ms
        alive = [stamped for stamped in elements if stamped[1] > oldest_ms]
        if not alive:
            self._original.clear()
        elif life.update_on_read:
            self._original.update_internal([(value, now_ms) for value, _ in alive])
        return [value for value, _ in (elements if life.return_expired else alive)]

    def add(self, value: T) -> None:
        """Append an element."""
        self._on_access()
        self._check(value)
        self._original.add(self._life.stamp(value))

    def add_all(self, values: Iterable[T]) -> None:
        """Append elements: all of them, or none where one is refused."""
        self._on_access()
        self._original.add_all(self._stamped(values))

    def update(self, values: Iterable[T]) -> None:
        """Replace all elements; no values clear the list."""
        self._on_access()
        self._original.update(self._stamped(values))

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        """Move what the current key has in some namespaces into another one; nothing is prolonged."""
        self._original.merge_namespaces(target, sources)
        self._on_access()

    def _stamped(self, values: Iterable[T]) -> list[Stamped]:
        now_ms = self._life.now()
        return [(value, now_ms) for value in self._check.all(values)]
