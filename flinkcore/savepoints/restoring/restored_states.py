"""Keyed states, timers and operator states of a savepoint, as an operator of flinkcore is restored from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._native.keys import canonical_key, dictionary_key
from flinkcore._native.timers import TimerColumns
from flinkcore.checkpoint.state_origin import JobOperator
from flinkcore.datastream.state import StateDescriptor, StateTtlConfig
from flinkcore.operators.state import DistributionMode, KeyedStateSnapshot, OperatorStateSnapshot
from flinkcore.operators.timers.internal_timers_snapshot import InternalTimersSnapshot
from flinkcore.savepoints.flink_operators import FlinkOperator
from flinkcore.savepoints.keyed_state import KeyedState
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.operator_state import OperatorState
from flinkcore.savepoints.pyflink_coders import PREFIX
from flinkcore.savepoints.restoring.pyflink_values import PyFlinkStates
from flinkcore.savepoints.restoring.python_values import Names, names_of, obstacle, python_values
from flinkcore.savepoints.restoring.restored_keys import RestoredKeys
from flinkcore.savepoints.savepoint import SavepointOperator
from flinkcore.savepoints.serializers import times
from flinkcore.savepoints.serializers.composite import BufferEntrySerializer
from flinkcore.savepoints.serializers.serializer import StateSerializer

TIMERS: Final = "_timer_state/"
CONTENTS: Final = "window-contents"
MERGING_WINDOW_SET: Final = "merging-window-set"
WINDOW_TIMERS: Final = "window-timers"
_BUFFERS: Final = ("LEFT_BUFFER", "RIGHT_BUFFER")
_MODES: Final = {
    "SPLIT_DISTRIBUTE": DistributionMode.SPLIT_DISTRIBUTE,
    "UNION": DistributionMode.UNION,
    "BROADCAST": DistributionMode.BROADCAST,
}
_PROCESSING_TIME: Final = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime


@dataclass(frozen=True)
class RestoredOperatorStates:
    """State of an operator of Flink with which an operator of flinkcore begins; picklable.

    Attributes
    ----------
    found : SavepointOperator
        Operator of the savepoint.
    target : FlinkOperator
        Declaration of Flink's operator.
    operator : JobOperator
        Operator of flinkcore's job.
    pyflink : PyFlinkStates
        Reads what PyFlink has written.
    """

    found: SavepointOperator
    target: FlinkOperator
    operator: JobOperator
    pyflink: PyFlinkStates

    def keyed_states(self) -> Iterator[tuple[str, KeyedState]]:
        """Yield keyed states with the names that flinkcore's descriptors have, timers left out."""
        for name, state in self.found.states.items():
            if isinstance(state, KeyedState) and state.kind != "TIMERS":
                yield self.own_name(name), state

    def timers(self) -> Iterator[tuple[str, bool, KeyedState]]:
        """Yield timers with the name of their service, and whether they are of event time."""
        for name, state in self.found.states.items():
            if isinstance(state, KeyedState) and state.kind == "TIMERS":
                domain, _, service = name.removeprefix(TIMERS).partition("_")
                if self.is_of_process_mode and state.keyed_types.namespace.name == times.TIME_WINDOW.name:
                    service = WINDOW_TIMERS  # PyFlink has one service for both
                yield self.own_name(service), domain == "event", state

    def operator_states(self) -> Iterator[tuple[str, OperatorState]]:
        """Yield operator and broadcast states with the names that flinkcore's descriptors have."""
        for name, state in self.found.states.items():
            if isinstance(state, OperatorState):
                yield self.own_name(name.removesuffix(" (operator state)")), state

    def own_name(self, name: str) -> str:
        """Return the name that a state of Flink's operator has in flinkcore's."""
        name = name.removeprefix(PREFIX)
        return next((own for own, flinks in self.target.names.items() if flinks == name), name)

    @cached_property
    def is_of_process_mode(self) -> bool:
        """Return whether a PyFlink program has written the state in process mode."""
        return any(name.startswith(PREFIX) for name in self.found.states)

    @cached_property
    def keys(self) -> RestoredKeys | None:
        """Converter of the keys, or None if the operator has no keyed state."""
        states = [state for _, state in self.keyed_states()] + [state for *_, state in self.timers()]
        if not states:
            return None
        return RestoredKeys(self.operator, states[0].keyed_types.key, self.pyflink.unpickled)

    def __getstate__(self) -> dict[str, Any]:
        # Tasks read the headers of files again: serializers made there are those that they compare with.
        names = "found", "target", "operator", "pyflink"
        return {name: getattr(self, name) for name in names}

    def key_groups(self, first: int, last: int) -> range | None:
        """Return the key groups of the savepoint to read for some of the job's, or None for all of them."""
        if self.keys is not None and self.keys.has_groups_of_flink(self.found.max_parallelism):
            return range(first, last + 1)
        return None

    def dealt_states(self) -> list[KeyedState]:
        """Return the states that tasks need for their keys."""
        return [state for state in self.found.states.values() if isinstance(state, KeyedState)]

    def key_groups_of(self, keys: pa.Array) -> npt.NDArray[np.int32]:
        """Return the key groups that keys of the savepoint have in the job."""
        assert self.keys is not None
        return self.keys.groups(keys)[0]

    def first_timers(self, key_groups: range) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield nothing: timers belong to keys."""
        yield from ()

    def names_of_values(self, name: str) -> Names:
        """Return the names of the fields of rows in a state, or None if its values have none."""
        of_rows = self.operator.row_names
        if name == CONTENTS and len(of_rows) == 1:
            return of_rows[0]
        if name in _BUFFERS and len(of_rows) == 2:
            return of_rows[_BUFFERS.index(name)]
        declared = self.target.states.get(name)
        return names_of(declared[1] if isinstance(declared, tuple) else declared)

    # ---- what can be restored ----

    def obstacles(self) -> Iterator[tuple[str, str]]:
        """Yield names of states that cannot be restored, and why."""
        if self.is_of_process_mode:
            for name, _ in self.keyed_states():
                reason = None if name == MERGING_WINDOW_SET else self.pyflink.obstacle(name)
                if reason is not None:
                    yield name, reason
        for name, state in self.found.states.items():
            for column, serializer in state.types.items():
                reason = obstacle(_element(serializer))
                if reason is not None:
                    what = "values" if column == "value" else column.replace("_", " ") + "s"
                    yield name, f"Python has no objects for its {what}: {reason}"
                    break

    # ---- keyed state ----

    def snapshots(
        self, first: int, last: int
    ) -> tuple[dict[str, InternalTimersSnapshot], dict[str, KeyedStateSnapshot]]:
        """Return timers and keyed states of a range of key groups, both ends included.

        Raises
        ------
        SavepointError
            If a file is damaged or missing.
        DataError
            If a key or a value has no place in Python or in the key columns.
        """
        states = {name: self._keyed(name, state, first, last) for name, state in self.keyed_states()}
        decoded = self.pyflink.of_process_mode if self.is_of_process_mode else self.pyflink.of_thread_mode
        states = {name: decoded(name, state) for name, state in states.items()}
        services: dict[str, list[tuple[bool, KeyedState]]] = {}
        for name, is_event_time, timers in self.timers():
            services.setdefault(name, []).append((is_event_time, timers))
        return {name: self._timers(found, first, last) for name, found in services.items()}, states

    def rows(
        self, state: KeyedState, first: int, last: int
    ) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.int32], list[Any]]]:
        """Yield the rows of a range of key groups in batches, each with the key groups and the keys of its rows."""
        assert self.keys is not None
        for batch in state.batches(self.key_groups(first, last)):
            groups, keys_of = self.keys.groups(batch.column("key"))
            rows = np.flatnonzero((groups >= first) & (groups <= last))
            if len(rows):
                yield batch.take(pa.array(rows)), groups[rows], keys_of(rows)

    def _keyed(self, name: str, state: KeyedState, first: int, last: int) -> KeyedStateSnapshot:
        types = state.keyed_types
        keys: list[Any] = []
        groups: list[npt.NDArray[np.int32]] = []
        namespaces: list[Any] = []
        values: list[Any] = []
        maps: dict[Any, dict[Any, Any]] = {}
        for batch, of_batch, batch_keys in self.rows(state, first, last):
            own_namespaces = _namespaces(batch, types)
            own_values = self._values(name, batch, types)
            if types.kind != "MAP":
                keys += batch_keys
                namespaces += own_namespaces
                values += own_values
                groups.append(of_batch)
                continue
            new: list[int] = []
            for row, (key, namespace, entry) in enumerate(
                zip(batch_keys, own_namespaces, own_values, strict=True)
            ):
                place = canonical_key(key), namespace
                if place not in maps:
                    maps[place] = {}
                    new.append(row)
                    keys.append(key)
                    namespaces.append(namespace)
                    values.append(maps[place])
                maps[place][entry[0]] = entry[1]
            groups.append(of_batch[np.array(new, np.int64)])
        is_merging = name == MERGING_WINDOW_SET and types.kind == "LIST"
        if is_merging:
            values = [dict(pairs) for pairs in values]
        found = np.concatenate(groups).astype(np.int64) if groups else np.empty(0, np.int64)
        kind = StateDescriptor.Type[types.kind if not is_merging else "VALUE"]
        return KeyedStateSnapshot(
            kind, _PROCESSING_TIME if types.has_ttl else None, keys, found, namespaces, values
        )

    def _values(self, name: str, batch: pa.RecordBatch, types: KeyedTypes) -> list[Any]:
        """Return what each row has: a value, a list, or an entry of a map; with times of last access, pairs."""
        assert types.value is not None
        names = self.names_of_values(name)
        column = batch.column("value")
        access = batch.column("last_access_ms") if types.has_ttl else None
        if name in _BUFFERS:
            entries = python_values(column.flatten().field(1), _element(types.value), names)
            keys = batch.column("map_key").to_pylist()
            return list(zip(keys, _split(entries, column), strict=True))
        if types.kind == "LIST":
            elements = python_values(column.flatten(), types.value, names)
            if access is not None:
                elements = list(zip(elements, access.flatten().to_pylist(), strict=True))
            return _split(elements, column)
        found = python_values(column, types.value, names)
        if access is not None:
            stamps = access.to_pylist()
            found = [
                None if types.kind == "MAP" and stamp is None else (value, stamp)
                for value, stamp in zip(found, stamps, strict=True)
            ]
        if types.kind == "MAP":
            assert types.map_key is not None
            map_keys = map(dictionary_key, python_values(batch.column("map_key"), types.map_key))
            return list(zip(map_keys, found, strict=True))
        return found

    def _timers(
        self, states: Sequence[tuple[bool, KeyedState]], first: int, last: int
    ) -> InternalTimersSnapshot:
        keys: list[Any] = []
        numbers: dict[Any, int] = {}
        namespaces: dict[Any, int] = {}
        columns: dict[bool, list[TimerColumns]] = {True: [], False: []}
        for is_event_time, state in states:
            for batch, groups, batch_keys in self.rows(state, first, last):
                of_keys = np.empty(len(batch_keys), np.int64)
                for row, key in enumerate(batch_keys):
                    number = numbers.setdefault(canonical_key(key), len(keys))
                    if number == len(keys):
                        keys.append(key)
                    of_keys[row] = number
                own = _namespaces(batch, state.keyed_types)
                of_namespaces = [namespaces.setdefault(each, len(namespaces)) for each in own]
                times_ms = batch.column("timestamp_ms").to_numpy().astype(np.int64)
                columns[is_event_time].append(
                    TimerColumns(
                        times_ms, of_keys, groups.astype(np.int32), np.array(of_namespaces, np.int64)
                    )
                )
        event_time, processing_time = (_joined(columns[each]) for each in (True, False))
        return InternalTimersSnapshot(keys, list(namespaces), event_time, processing_time)

    # ---- operator state ----

    def operator_snapshots(self) -> dict[str, OperatorStateSnapshot]:
        """Return operator and broadcast states, of all subtasks together.

        Raises
        ------
        SavepointError
            If a file is damaged or missing.
        DataError
            If a value has no place in Python.
        """
        found = {}
        for name, state in self.operator_states():
            names = self.names_of_values(name)
            elements: list[Any] = []
            for batch in state.batches():
                values = python_values(batch.column("value"), state.value, names)
                if state.key is not None:
                    values = list(zip(python_values(batch.column("key"), state.key), values, strict=True))
                elements += values
            found[name] = OperatorStateSnapshot(_MODES[state.kind], elements)
        return found


def _element(serializer: StateSerializer) -> StateSerializer:
    """Return the serializer of the elements that an interval join buffers; of other values, their own."""
    nested = serializer.parts[0] if serializer.parts else serializer
    return nested.parts[0] if isinstance(nested, BufferEntrySerializer) else serializer


def _split(elements: list[Any], lists: pa.Array) -> list[list[Any]]:
    """Return the elements of each list of a column."""
    offsets = lists.offsets.to_pylist()
    return [elements[begin - offsets[0] : end - offsets[0]] for begin, end in pairwise(offsets)]


def _namespaces(batch: pa.RecordBatch, types: KeyedTypes) -> list[Any]:
    if "namespace" in batch.schema.names:
        return python_values(batch.column("namespace"), types.namespace)
    return python_values(pa.nulls(batch.num_rows), types.namespace)


def _joined(parts: Sequence[TimerColumns]) -> TimerColumns:
    if not parts:
        return TimerColumns(
            np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64)
        )
    return TimerColumns(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
