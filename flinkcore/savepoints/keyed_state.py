"""Keyed states and timers of an operator, over all its key groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._native.arrow import RecordBatch
from flinkcore._native.state_columns import EntryError
from flinkcore._native.state_entries import EntryBlocks, EntryTable
from flinkcore.errors import SavepointError, UnsupportedSavepointError
from flinkcore.savepoints.key_groups import KeyGroupsFile, read_entries, read_heap_group
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers.serializer import OpaqueSerializer, StateSerializer
from flinkcore.savepoints.state import SavepointState, batch_of
from flinkcore.savepoints.state_headers import KeyedHeader
from flinkcore.savepoints.state_streams import StateStream

_NO_LIMIT: Final = 1 << 62


@dataclass(frozen=True)
class KeyedState(SavepointState):
    """A keyed state, or timers, of an operator.

    A row is an entry: a key and a namespace with the value, the list, one entry of the map, or the time of the timer.
    """

    max_parallelism: int
    keyed_types: KeyedTypes
    files: tuple[KeyGroupsFile, ...]

    @property
    def types(self) -> dict[str, StateSerializer]:
        return self.keyed_types.by_column

    @property
    def schema(self) -> pa.Schema:
        return batch_of(self._table().take()).schema

    def batches(self, key_groups: range | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches; the memory that is needed is that of a batch and a block.

        A checkpoint of the heap backend needs memory for a whole key group.

        Parameters
        ----------
        key_groups : range or None
            Only these key groups, so that several processes can share the work.

        Raises
        ------
        SavepointError
            If a file is damaged or missing, or a value has no place in its column.
        UnsupportedSavepointError
            If the entries of the state cannot be told apart without Java.
        """
        for _, batch in batches_of_states([self], key_groups):
            yield batch

    def batches_of_keys(
        self, choose: Callable[[pa.Array], npt.NDArray[np.int64]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some keys; values of the others are not decoded.

        Parameters
        ----------
        choose : callable
            Takes a column of keys, and returns the numbers of the rows to yield.

        Raises
        ------
        SavepointError, UnsupportedSavepointError
            As of `batches`.
        """
        value = self.keyed_types.value
        # Other kinds of entries have more than a value after the key, and a heap's checkpoint has no sizes.
        has_sizes = all(file.handle.is_canonical for file in self.files)
        if value is None or value.unknown or self.kind in ("LIST", "MAP") or not has_sizes:
            value = None
        source = self
        if value is not None:
            source = replace(self, keyed_types=replace(self.keyed_types, value=OpaqueSerializer("kept")))
        for batch in source.batches():
            taken = batch.take(pa.array(choose(batch.column("key"))))
            yield taken if value is None else self._decoded(taken, value)

    def _decoded(self, batch: pa.RecordBatch, value: StateSerializer) -> pa.RecordBatch:
        """Return rows whose values are bytes with the values that these stand for."""
        column, number = value.column(self.settings.exact), batch.schema.get_field_index("value")
        try:
            column.read_values(RecordBatch(batch, any_type=True), number, self.settings.max_values_per_entry)
        except EntryError as failure:
            key, name = batch.column("key")[failure.at], self.directory.place.name
            damaged = " is damaged" if failure.is_damage else ""
            raise SavepointError(
                f"{name}{damaged}: state {self.name!r}, key {key}: {failure}", file=name
            ) from None
        return batch.set_column(number, "value", pa.array(column.array()))

    def received(self, entries: Sequence[pa.RecordBatch]) -> ReceivedState:
        """Return the state in a task that has received the entries of its keys."""
        return ReceivedState(
            *(self.directory, self.settings, self.name, self.kind),
            *(self.max_parallelism, self.keyed_types, self.files, entries),
        )

    def count(self) -> int:
        return counts(self)[self.name]

    def _table(self, types: KeyedTypes | None = None) -> EntryTable:
        settings = self.settings
        used = self.keyed_types if types is None else types
        return used.table(self.max_parallelism, settings.exact, settings.max_values_per_entry)

    def _parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for begin in range(0, batch.num_rows, self.settings.batch_rows):
            yield batch.slice(begin, self.settings.batch_rows)

    def _heap_groups(
        self,
        stream: StateStream,
        header: KeyedHeader,
        groups: Sequence[tuple[int, int, int]],
        table: EntryTable,
    ) -> Iterator[None]:
        number = next(i for i, state in enumerate(header.states) if state.name == self.name)
        tables: list[EntryTable] = []
        for i, state in enumerate(header.states):
            types = self.keyed_types if i == number else KeyedTypes.of(header.key, state)
            if any(each.unknown for each in types.by_column.values()):
                break
            tables.append(table if i == number else self._table(types))
        for group in groups:
            read_heap_group(stream, header, group, tables, number, self.name)
            yield


def batches_of_states(
    states: Sequence[KeyedState], key_groups: range | None = None
) -> Iterator[tuple[KeyedState, pa.RecordBatch]]:
    """Yield the rows of states of one operator in batches, each with its state; each file is read once.

    Parameters
    ----------
    states : sequence of KeyedState
        States with the same settings.
    key_groups : range or None
        Only these key groups.

    Raises
    ------
    SavepointError, UnsupportedSavepointError
        As of `KeyedState.batches`.
    """
    for state in states:
        if state.keyed_types.obstacle is not None:
            raise UnsupportedSavepointError(
                f"state {state.name!r} cannot be read: {state.keyed_types.obstacle}"
            )
    tables = {state.name: state._table() for state in states}
    files = {id(file): file for state in states for file in state.files}
    for file in files.values():
        wanted = [each for each in file.ranges if key_groups is None or each[0] in key_groups]
        if not wanted:
            continue
        names = [each.name for each in file.header.states]
        own = [state for state in states if state.name in names]
        settings, end = own[0].settings, max(each[2] for each in wanted)
        with own[0].directory.open(file.handle.stream, settings.block_bytes, end) as stream:
            if file.handle.is_canonical:
                of_file = [tables.get(name) for name in names]
                of_file += [None] * (file.header.n_states - len(names))
                steps = _canonical_groups(
                    stream, file.header, wanted, of_file, settings.batch_rows, own[0].name
                )
            else:
                steps = chain.from_iterable(
                    state._heap_groups(stream, file.header, wanted, tables[state.name]) for state in own
                )
            for _ in steps:
                for state in own:
                    table = tables[state.name]
                    if table.n_rows >= settings.batch_rows or table.size_bytes >= settings.batch_bytes:
                        yield from ((state, part) for part in state._parts(batch_of(table.take())))
    for state in states:
        if tables[state.name].n_rows:
            yield from ((state, part) for part in state._parts(batch_of(tables[state.name].take())))


def _canonical_groups(
    stream: StateStream,
    header: KeyedHeader,
    groups: Sequence[tuple[int, int, int]],
    tables: list[EntryTable | None],
    most_rows: int,
    name: str,
) -> Iterator[None]:
    for group, begin, end in groups:
        entries = EntryBlocks(tables, group)
        yield from read_entries(stream, header, group, begin, end, entries, most_rows, name)


@dataclass(frozen=True)
class ReceivedState(KeyedState):
    """A keyed state whose entries a task has received, instead of reading them, and releases once it has taken them."""

    entries: Sequence[pa.RecordBatch]

    def batches(self, key_groups: range | None = None) -> Iterator[pa.RecordBatch]:
        """Yield what was received, all of which is for the task."""
        yield from self.entries

    def batches_of_keys(
        self, choose: Callable[[pa.Array], npt.NDArray[np.int64]]
    ) -> Iterator[pa.RecordBatch]:
        for batch in self.entries:
            yield batch.take(pa.array(choose(batch.column("key"))))


def counts(state: KeyedState) -> dict[str, int]:
    """Return the number of entries of a state and of all that lie in the same files, from one reading."""
    found: dict[str, int] = {}
    for file in state.files:
        with state.directory.open(file.handle.stream, state.settings.block_bytes) as stream:
            names = [each.name for each in file.header.states]
            if not file.handle.is_canonical:
                for name in names:
                    found.setdefault(name, 0)
                continue
            for group, begin, end in file.ranges:
                entries = EntryBlocks([None] * file.header.n_states, group)
                for _ in read_entries(stream, file.header, group, begin, end, entries, _NO_LIMIT, state.name):
                    pass
                for name, count in zip(names, islice(entries.counts, len(names)), strict=True):
                    found[name] = found.get(name, 0) + count
    if any(not file.handle.is_canonical for file in state.files):
        found[state.name] = sum(batch.num_rows for batch in state.batches())
    return found
