"""Differences of two savepoints, entry by entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from flinkcore.savepoints.keyed_state import KeyedState
from flinkcore.savepoints.savepoint import Savepoint, SavepointOperator
from flinkcore.savepoints.serializers.composite import MapSerializer, SetSerializer
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.state import SavepointState

_NAMES: Final = ("key", "namespace", "map_key", "timestamp_ms")
"""Columns that name an entry; the others are its value."""


@dataclass
class StateDifferences:
    """Differences of a state.

    Attributes
    ----------
    operator : str
        Uid of the operator, or its id.
    state : str or None
        Name of the state, or None if it is the operator that only one savepoint has.
    only_in : str or None
        ``"first"`` or ``"second"`` if only that savepoint has the state or the operator.
    incomparable : str or None
        Reason why entries were not compared.
    n_only_in_first, n_only_in_second, n_changed, n_equal : int
        Numbers of entries.
    examples : list of (object, object, object)
        Name, first and second value of some entries that differ; None where an entry does not exist.
    """

    operator: str
    state: str | None
    only_in: str | None = None
    incomparable: str | None = None
    n_only_in_first: int = 0
    n_only_in_second: int = 0
    n_changed: int = 0
    n_equal: int = 0
    examples: list[tuple[Any, Any, Any]] = field(default_factory=list)

    @property
    def differ(self) -> bool:
        """Return whether there is any difference."""
        counts = self.n_only_in_first or self.n_only_in_second or self.n_changed
        return bool(self.only_in or self.incomparable or counts)


def differences(
    first: Savepoint, second: Savepoint, *, parts: int = 16, most_examples: int = 3
) -> Iterator[StateDifferences]:
    """Compare two savepoints, and yield the differences of each state of each operator.

    Parallelisms, files and formats may differ. Keyed states are compared a part of the key groups at a time.

    Parameters
    ----------
    first, second : Savepoint
        Opened with the same settings.
    parts : int
        Number of parts that keyed states are divided into; the memory is that of a part of both.
    most_examples : int
        Entries of each state that are named.

    Raises
    ------
    SavepointError
        If a file is damaged or missing, or a value has no place in its column.
    """
    operators = ({each.operator_id: each for each in savepoint.operators} for savepoint in (first, second))
    ours, theirs = operators
    for operator_id in dict.fromkeys([*ours, *theirs]):
        one, two = ours.get(operator_id), theirs.get(operator_id)
        states = [{} if operator is None else operator.states for operator in (one, two)]
        present = one or two
        if present is None:
            continue
        name = present.uid or present.operator_id
        if one is None or two is None:
            if any(states):  # operators without state may be left out
                yield StateDifferences(name, None, "second" if one is None else "first")
            continue
        for state in dict.fromkeys([*states[0], *states[1]]):
            found = StateDifferences(name, state)
            if state not in states[0] or state not in states[1]:
                found.only_in = "first" if state in states[0] else "second"
            else:
                _compare_states(found, states[0][state], states[1][state], (one, two), parts, most_examples)
            yield found


def _compare_states(
    found: StateDifferences,
    first: SavepointState,
    second: SavepointState,
    operators: tuple[SavepointOperator, SavepointOperator],
    parts: int,
    most_examples: int,
) -> None:
    if first.kind != second.kind:
        found.incomparable = f"the kinds differ: {first.kind} and {second.kind}"
        return
    types = [{name: each.name for name, each in state.types.items()} for state in (first, second)]
    if types[0] != types[1]:
        found.incomparable = f"the types differ: {types[0]} and {types[1]}"
        return
    for mine, theirs in _parts(first, second, operators, parts):
        for name in dict.fromkeys([*mine, *theirs]):
            one, two = mine.get(name, []), theirs.get(name, [])
            if one == two:
                found.n_equal += len(one)
                continue
            # Elements of lists have no names: only their numbers differ.
            only_first, only_second = (
                list((Counter(one) - Counter(two)).elements()),
                list((Counter(two) - Counter(one)).elements()),
            )
            changed = min(len(only_first), len(only_second)) if first.kind != "TIMERS" else 0
            found.n_changed += changed
            found.n_only_in_first += len(only_first) - changed
            found.n_only_in_second += len(only_second) - changed
            found.n_equal += len(one) - len(only_first)
            for i in range(max(len(only_first), len(only_second))):
                if len(found.examples) < most_examples:
                    found.examples.append(
                        (
                            name,
                            only_first[i] if i < len(only_first) else None,
                            only_second[i] if i < len(only_second) else None,
                        )
                    )


def _parts(
    first: SavepointState,
    second: SavepointState,
    operators: tuple[SavepointOperator, SavepointOperator],
    parts: int,
) -> Iterator[tuple[dict[str, list[str]], dict[str, list[str]]]]:
    same_groups = operators[0].max_parallelism == operators[1].max_parallelism
    if not isinstance(first, KeyedState) or not isinstance(second, KeyedState) or not same_groups:
        yield _entries(first, first.batches()), _entries(second, second.batches())
        return
    groups = operators[0].max_parallelism
    for i in range(parts):
        part = range(groups * i // parts, groups * (i + 1) // parts)
        if part:
            yield _entries(first, first.batches(part)), _entries(second, second.batches(part))


def _entries(state: SavepointState, batches: Iterator[pa.RecordBatch]) -> dict[str, list[str]]:
    """Return the texts of values by the texts of the names of their entries."""
    found: dict[str, list[str]] = {}
    for batch in batches:
        names = [name for name in batch.schema.names if name in _NAMES]
        values = [
            name for name in batch.schema.names if name not in _NAMES and name not in ("key_group", "subtask")
        ]
        rows = [
            [_canonical(value, state.types.get(name), state) for value in batch[name].to_pylist()]
            for name in (*names, *values)
        ]
        for row in zip(*rows, strict=True):
            name = ", ".join(map(repr, row[: len(names)]))
            found.setdefault(name, []).append(", ".join(map(repr, row[len(names) :])))
    return found


def _canonical(value: Any, serializer: StateSerializer | None, state: SavepointState) -> Any:
    """Return a value whose maps and sets are in one order, which Java does not define."""
    if (
        serializer is None
        or value is None
        or not any(isinstance(each, MapSerializer | SetSerializer) for each in serializer.walk())
    ):
        return value
    return _ordered(value)


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _ordered(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted((_ordered(each) for each in value), key=repr)
    return value
