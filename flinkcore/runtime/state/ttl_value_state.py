"""One value per key that expires."""

from collections.abc import Callable
from typing import TypeVar

from flinkcore.datastream.state import ValueState
from flinkcore.runtime.state.heap_value_state import HeapValueState
from flinkcore.runtime.state.stamped_values import Stamped
from flinkcore.runtime.state.ttl_state import TtlLife, TtlState
from flinkcore.runtime.state.value_check import ValueCheck

T = TypeVar("T")


class TtlValueState(TtlState[HeapValueState[Stamped]], ValueState[T]):
    """A :class:`ValueState` with a time to live.

    Parameters
    ----------
    original, life, on_access
        As of :class:`TtlState`.
    check : ValueCheck, optional
        Of the values.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlValueState``.
    """

    def __init__(
        self,
        original: HeapValueState[Stamped],
        life: TtlLife,
        on_access: Callable[[], None],
        check: ValueCheck | None,
    ) -> None:
        super().__init__(original, life, on_access)
        self._check = check

    def value(self) -> T | None:
        """Return the value; None where there is none, or none that can be seen."""
        stamped = self._read_value()
        return None if stamped is None else stamped[0]

    def update(self, value: T | None) -> None:
        """Set the value; None removes it."""
        self._on_access()
        if self._check is not None:
            self._check(value)
        self._original.update(None if value is None else self._life.stamp(value))
