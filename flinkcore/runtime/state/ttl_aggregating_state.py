"""One aggregate per key that expires."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from flinkcore.datastream.functions import AggregateFunction
from flinkcore.datastream.state import AggregatingState
from flinkcore.runtime.state.heap_aggregating_state import HeapAggregatingState
from flinkcore.runtime.state.stamped_values import Stamped
from flinkcore.runtime.state.ttl_state import TtlLife, TtlState
from flinkcore.runtime.state.value_check import ValueCheck

IN = TypeVar("IN")
ACC = TypeVar("ACC")
OUT = TypeVar("OUT")


class TtlAggregateFunction(AggregateFunction[IN, Stamped | None, OUT], Generic[IN, ACC, OUT]):
    """Aggregates with stamped accumulators, of which those that cannot be seen count for nothing.

    Parameters
    ----------
    function : AggregateFunction
    life : TtlLife
    check : ValueCheck, optional
        Of the accumulators.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlAggregateFunction``.
    """

    def __init__(
        self, function: AggregateFunction[IN, ACC, OUT], life: TtlLife, check: ValueCheck | None
    ) -> None:
        self._function = function
        self._life = life
        self._check = check

    def create_accumulator(self) -> Stamped | None:
        """Return a new accumulator, with the current time."""
        return self._life.stamp(self._function.create_accumulator())

    def add(self, value: IN, accumulator: Stamped | None) -> Stamped | None:
        """Add to an accumulator, or to a new one where it cannot be seen; with the current time."""
        if accumulator is None or not self._life.is_visible(accumulator):
            accumulator = self.create_accumulator()
        assert accumulator is not None
        return self._stamped(self._function.add(value, accumulator[0]))

    def get_result(self, accumulator: Stamped | None) -> OUT:
        """Return the result of an accumulator: whether it can be seen, the state decides."""
        assert accumulator is not None
        return self._function.get_result(accumulator[0])

    def merge(self, acc_a: Stamped | None, acc_b: Stamped | None) -> Stamped | None:
        """Return what two are together, with the current time; None where neither can be seen."""
        visible: list[ACC] = [
            acc[0] for acc in (acc_a, acc_b) if acc is not None and self._life.is_visible(acc)
        ]
        if not visible:
            return None
        return self._stamped(visible[0] if len(visible) == 1 else self._function.merge(*visible))

    def _stamped(self, accumulator: ACC) -> Stamped | None:
        if self._check is not None:
            self._check(accumulator)
        return None if accumulator is None else self._life.stamp(accumulator)


class TtlAggregatingState(
    TtlState[HeapAggregatingState[IN, Stamped | None, OUT]], AggregatingState[IN, OUT], Generic[IN, OUT]
):
    """An :class:`AggregatingState` with a time to live.

    Parameters
    ----------
    original : HeapAggregatingState
        Aggregates by `function`.
    life, on_access
        As of :class:`TtlState`.
    function : TtlAggregateFunction

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlAggregatingState``.
    """

    def __init__(
        self,
        original: HeapAggregatingState[IN, Stamped | None, OUT],
        life: TtlLife,
        on_access: Callable[[], None],
        function: TtlAggregateFunction[IN, Any, OUT],
    ) -> None:
        super().__init__(original, life, on_access)
        self._function = function

    def get(self) -> OUT | None:
        """Return the result so far; None where there is none that can be seen."""
        stamped = self._read_value()
        return None if stamped is None else self._function.get_result(stamped)

    def add(self, value: IN | None) -> None:
        """Aggregate one more value, and prolong the life of all; None clears."""
        self._on_access()
        self._original.add(value)

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        """Move what the current key has in some namespaces into another one, merging."""
        self._original.merge_namespaces(target, sources)
        self._on_access()
