"""One reduced value per key that expires."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from flinkcore.datastream.functions import ReduceFunction
from flinkcore.datastream.state import ReducingState
from flinkcore.runtime.state.heap_reducing_state import HeapReducingState
from flinkcore.runtime.state.stamped_values import Stamped
from flinkcore.runtime.state.ttl_state import TtlLife, TtlState
from flinkcore.runtime.state.value_check import ValueCheck

T = TypeVar("T")


class TtlReduce:
    """Reduces stamped values, of which those that cannot be seen count for nothing.

    Parameters
    ----------
    function : ReduceFunction
    life : TtlLife
    check : ValueCheck, optional
        Of the reduced values.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlReduceFunction``.
    """

    def __init__(self, function: ReduceFunction[T], life: TtlLife, check: ValueCheck | None) -> None:
        self._function = function
        self._life = life
        self._check = check

    def __call__(self, first: Stamped, second: Stamped) -> Stamped | None:
        """Return what two are together, with the current time; None where neither can be seen."""
        life = self._life
        visible = [stamped[0] for stamped in (first, second) if life.is_visible(stamped)]
        if not visible:
            return None
        value = visible[0]
        if len(visible) == 2:
            value = self._function.reduce(value, visible[1])
            if self._check is not None:
                self._check(value)
        return None if value is None else life.stamp(value)


class TtlReducingState(TtlState[HeapReducingState[Stamped]], ReducingState[T]):
    """A :class:`ReducingState` with a time to live.

    Parameters
    ----------
    original : HeapReducingState
        Reduces by :class:`TtlReduce`.
    life, on_access
        As of :class:`TtlState`.
    check : ValueCheck, optional
        Of the values that are added.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlReducingState``.
    """

    def __init__(
        self,
        original: HeapReducingState[Stamped],
        life: TtlLife,
        on_access: Callable[[], None],
        check: ValueCheck | None,
    ) -> None:
        super().__init__(original, life, on_access)
        self._check = check

    def get(self) -> T | None:
        """Return the reduced value; None where there is none that can be seen."""
        stamped = self._read_value()
        return None if stamped is None else stamped[0]

    def add(self, value: T | None) -> None:
        """Reduce one more value, and prolong the life of all; None clears."""
        self._on_access()
        if self._check is not None:
            self._check(value)
        self._original.add(None if value is None else self._life.stamp(value))

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        """Move what the current key has in some namespaces into another one, merging."""
        self._original.merge_namespaces(target, sources)
        self._on_access()
