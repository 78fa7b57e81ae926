"""One value per key, on the heap."""

from typing import TypeVar

from flinkcore.datastream.state import ValueState
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.state.heap_state import HeapState
from flinkcore.runtime.state.state_table import StateTable
from flinkcore.runtime.state.value_check import ValueCheck

T = TypeVar("T")


class HeapValueState(HeapState, ValueState[T]):
    """A :class:`ValueState` on a table.

    Parameters
    ----------
    name, key_context, table
        As of :class:`HeapState`.
    check : ValueCheck, optional
        Of the values.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.HeapValueState``.
    """

    def __init__(
        self, name: str, key_context: KeyContext, table: StateTable, check: ValueCheck | None = None
    ) -> None:
        super().__init__(name, key_context, table)
        self._check = check

    def value(self) -> T | None:
        """Return the value; None where there is none."""
        # Spelled out, as in `update`, what `get_internal` does: a call costs more than all of it.
        key_id = self._key_context.current_key_id
        if key_id < 0:
            raise self._no_current_key()
        try:
            value: T | None = self._values[key_id]
        except IndexError:
            return None
        return value

    def update(self, value: T | None) -> None:
        """Set the value; None removes it."""
        if value is None:
            self.clear()
            return
        if self._check is not None:
            self._check(value)
        key_id = self._key_context.current_key_id
        if key_id < 0:
            raise self._no_current_key()
        try:
            self._values[key_id] = value
        except IndexError:
            self._table.put(self._namespace, key_id, value)
