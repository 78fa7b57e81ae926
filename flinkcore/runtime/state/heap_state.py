"""What all keyed states on the heap have in common."""

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any

from flinkcore.datastream.state import State
from flinkcore.errors import LifecycleError
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.state.state_table import VOID_NAMESPACE, StateTable


class HeapState(State):
    """A view on a table under the current key and namespace.

    An access finds the key's place by the key's id, which the key context found when the key was set.

    Parameters
    ----------
    name : str
    key_context : KeyContext
    table : StateTable

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.AbstractHeapState``.
    """

    def __init__(self, name: str, key_context: KeyContext, table: StateTable) -> None:
        self._name = name
        self._key_context = key_context
        self._table = table
        self._namespace: Hashable = VOID_NAMESPACE
        self._values = table.select(VOID_NAMESPACE)

    @property
    def table(self) -> StateTable:
        """What is held under all keys and namespaces."""
        return self._table

    def set_current_namespace(self, namespace: Hashable) -> None:
        """Show what belongs to a namespace (a window); None is the void namespace."""
        if namespace is not self._namespace:
            self._namespace = namespace
            self._values = self._table.select(namespace)

    def clear(self) -> None:
        """Remove what is held under the current key and namespace."""
        key_id = self._key_context.current_key_id
        if key_id < 0:
            raise self._no_current_key()
        self._table.remove(self._namespace, key_id)

    def get_internal(self) -> Any:
        """Return what is held under the current key and namespace, itself; None where there is nothing.

        Raises
        ------
        LifecycleError
            If there is no current key.
        """
        key_id = self._key_context.current_key_id
        if key_id < 0:
            raise self._no_current_key()
        try:
            return self._values[key_id]
        except IndexError:
            return None

    def update_internal(self, value: Any) -> None:
        """Hold something else, not None, under the current key and namespace.

        Raises
        ------
        LifecycleError
            If there is no current key.
        """
        key_id = self._key_context.current_key_id
        if key_id < 0:
            raise self._no_current_key()
        try:
            self._values[key_id] = value
        except IndexError:
            self._table.put(self._namespace, key_id, value)

    def _no_current_key(self) -> LifecycleError:
        return LifecycleError(
            f"the keyed state {self._name!r} was used without a current key; "
            "use it while an element or a timer is processed, not in open() or close()"
        )


class HeapMergingState(HeapState):
    """A state of which two can become one.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.AbstractHeapMergingState``.
    """

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        """Move what the current key has in some namespaces into another one, merging.

        Parameters
        ----------
        target : hashable
            Keeps what it has; that comes first.
        sources : iterable of hashable
            In order; nothing is left in them.

        Raises
        ------
        LifecycleError
            If there is no current key.
        """
        key_id = self._key_context.current_key_id
        if key_id < 0:
            raise self._no_current_key()
        merged = None
        for source in sources:
            merged = self._merged(merged, self._table.remove(source, key_id))
        if merged is not None:
            merged = self._merged(self._table.get(target, key_id), merged)
            if merged is None:
                self._table.remove(target, key_id)
            else:
                self._table.put(target, key_id, merged)

    def _merged(self, first: Any, second: Any) -> Any:
        if first is None or second is None:
            return second if first is None else first
        return self._merge(first, second)

    @abstractmethod
    def _merge(self, first: Any, second: Any) -> Any:
        """Return what two things held are together; None for nothing."""
