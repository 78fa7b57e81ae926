"""Form in which an operator of Flink SQL keeps rows: what one has, both directions, and the tables on both sides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore.checkpoint.state_origin import JobOperator
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import times
from flinkcore.savepoints.serializers.row_data import RowDataSerializer, row_data
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.sql.accumulators import rows_of_columns
from flinkcore.savepoints.sql.window_names import starts_of_windows
from flinkcore.sql.nodes.aggregate_calls import Argument
from flinkcore.sql.plan.flink_state import Columns, FlinkState, StateWindows
from flinkcore.sql.types.logical_types import LogicalType, Root

Entries = dict[str, pa.Array]
"""Entries of a state by column: ``key``, and those that reading the state returns."""

PREFIXES = ("row", "right_row")
"""Beginnings of the names of columns of each input's rows in a checkpoint."""


@dataclass(frozen=True)
class PartTables:
    """Tables that one partition of an operator has in a checkpoint.

    Attributes
    ----------
    state : FlinkState
    read : callable
        Returns the rows of the table of a name, or None if it has none.
    """

    state: FlinkState
    read: Callable[[str], pa.RecordBatch | None]

    def keys(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the keys of rows of a table."""
        return _rows(self.state.keys, batch, "key")

    def rows(self, batch: pa.RecordBatch, number: int = 0, ends: pa.Array | None = None) -> pa.Array:
        """Return the kept rows of an input, whose windows have these ends in ms."""
        columns, given = self.state.inputs[number], {}
        if ends is not None and self.state.windows is not None:
            of_windows = _bounds(self.state.windows, ends.to_numpy())
            for place, bound in self.state.bounds[number]:
                name, kind = columns[place]
                times = of_windows[bound].cast(pa.timestamp("ms", getattr(kind.arrow, "tz", None)))
                given[name] = times.cast(kind.arrow)
        return _rows(columns, batch, PREFIXES[number], given)


def _bounds(windows: StateWindows, ends: Int64s) -> dict[str, pa.Array]:
    starts = starts_of_windows(windows, ends)
    return {"window_start": pa.array(starts), "window_end": pa.array(ends), "window_time": pa.array(ends - 1)}


def _rows(
    columns: Columns, batch: pa.RecordBatch, prefix: str, given: Mapping[str, pa.Array] = MappingProxyType({})
) -> pa.Array:
    n = batch.num_rows
    values = [
        given[name]
        if name in given
        # Flink keeps no processing time in its rows.
        else pa.nulls(n, kind.arrow)
        if kind.time_attribute == "PROCTIME"
        else batch.column(f"{prefix}.{name}")
        for name, kind in columns
    ]
    return rows_of_columns(row_data([kind for _, kind in columns]), values, n)


@dataclass(frozen=True)
class SavepointTables:
    """Entries of the states of an operator in a savepoint, of some key groups.

    Attributes
    ----------
    state : FlinkState
    operator : JobOperator
    read : callable
        Returns the entries of the state of a name, with their keys as columns of a checkpoint, or None without
        any.
    """

    state: FlinkState
    operator: JobOperator
    read: Callable[[str], pa.RecordBatch | None]

    def row_columns(self, rows: pa.Array | None, n: int, number: int = 0) -> dict[str, pa.Array]:
        """Return the columns of rows in a checkpoint, or of `n` rows that are missing."""
        prefix, is_there = PREFIXES[number], rows is not None
        columns = {f"has_{prefix}": pa.repeat(pa.scalar(is_there), n)}
        if rows is None:
            kinds = enumerate(kind for _, kind in self.state.inputs[number])
            rows = pa.nulls(n, pa.struct([(f"f{place}", kind.arrow) for place, kind in kinds]))
        places = {name: (place, kind) for place, (name, kind) in enumerate(self.state.inputs[number])}
        computed = {name: (number, form) for name, number, form in self.state.computed}
        constants = dict(self.state.constants)
        for name in self.operator.row_names[number]:
            if name == ROW_KIND:
                continue
            if name in computed:
                column = self._computed(rows, *computed[name])
            elif name in constants:
                column = pa.nulls(n, constants[name].arrow)
            elif name in places:
                place, kind = places[name]
                column = rows.field(place).cast(kind.arrow)
            else:  # a constant that the node has beside its columns
                column = pa.array(np.zeros(n, np.int64))
            columns[f"{prefix}.{name}"] = column
        return columns

    def _computed(self, rows: pa.Array, number: int, form: str) -> pa.Array:
        """Return an argument of an aggregate."""
        if number < 0:
            return Argument(None, LogicalType(Root.TINYINT)).evaluate(pa.RecordBatch.from_struct_array(rows))
        name, kind = self.state.inputs[0][number]
        batch = pa.RecordBatch.from_arrays([rows.field(number).cast(kind.arrow)], [name])
        return Argument(name, kind, form=form).evaluate(batch)

    def rowtimes(self, rows: pa.Array, number: int = 0) -> pa.Array:
        """Return the time attribute of rows in ms, or 0 if they have none."""
        if not self.state.rowtimes:
            return pa.array(np.zeros(len(rows), np.int64))
        rowtime = rows.field(self.state.rowtimes[number])
        return rowtime.cast(pa.timestamp("ms", rowtime.type.tz)).cast(pa.int64())


Restored = dict[str, list[dict[str, pa.Array]]]
"""Columns of the tables of an operator, by name; of some tables in several parts."""


class RowLayout(ABC):
    """Form in which an operator of Flink keeps rows.

    Parameters
    ----------
    state : FlinkState

    Raises
    ------
    UnsupportedOperationError
        If a column of the rows is of a type that cannot be written or restored.
    """

    def __init__(self, state: FlinkState) -> None:
        self.state = state
        self.key = row_data([kind for _, kind in state.keys], is_key=True)
        self.inputs: list[RowDataSerializer] = [
            row_data([kind for _, kind in columns]) for columns in state.inputs
        ]

    @abstractmethod
    def states(self) -> Mapping[str, KeyedTypes]:
        """Return the types of states and timers by name."""

    @abstractmethod
    def written(self, name: str, tables: PartTables) -> Entries | None:
        """Return the entries of a state, or None without any."""

    @abstractmethod
    def restored(self, found: SavepointTables) -> Restored:
        """Return the tables of a checkpoint."""

    def types(
        self,
        kind: str,
        value: StateSerializer | None = None,
        map_key: StateSerializer | None = None,
        namespace: StateSerializer = times.VOID_NAMESPACE,
    ) -> KeyedTypes:
        """Return the types of a state of this key."""
        return KeyedTypes(kind, self.key, namespace, map_key, value, False)


def key_columns(found: pa.RecordBatch) -> dict[str, pa.Array]:
    """Return the columns of keys of entries."""
    return {
        name: found.column(name)
        for name in found.schema.names
        if name == "key_group" or name.startswith("key.")
    }


def rows_of(columns: Mapping[str, pa.Array], number: int = 0) -> pa.RecordBatch:
    """Return rows whose columns in a checkpoint are given, with the names of the operator's columns."""
    prefix = f"{PREFIXES[number]}."
    own = {name.removeprefix(prefix): each for name, each in columns.items() if name.startswith(prefix)}
    return pa.RecordBatch.from_arrays(list(own.values()), list(own))


def fields_of(rows: pa.Array, numbers: Sequence[int]) -> pa.Array:
    """Return rows of some fields of rows."""
    names = [*(f"f{number}" for number in range(len(numbers))), "row_kind"]
    return pa.StructArray.from_arrays(
        [*(rows.field(number) for number in numbers), rows.field("row_kind")], names
    )


def grouped(columns: Mapping[str, pa.Array], values: pa.Array) -> Entries:
    """Return entries whose values are lists: of the values of rows that are equal in some columns, in their order."""
    ids, first = place_ids(*columns.values())
    order = np.argsort(ids, kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(ids)))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.take(pa.array(order)))
    firsts = pa.array(first)
    return {**{name: column.take(firsts) for name, column in columns.items()}, "value": lists}


def place_ids(*columns: pa.Array) -> tuple[Int64s, Int64s]:
    """Return a number for each row, equal where these columns are, and the first row of each number."""
    flat: list[pa.Array] = []
    for column in columns:
        flat += column.flatten() if pa.types.is_struct(column.type) else [column]
    names = [f"{number}" for number in range(len(flat))]
    batch = pa.RecordBatch.from_arrays(flat, names)
    ids = KeyDictionary(batch.schema, names, 1, True).ids(batch).astype(np.int64)
    _, first = np.unique(ids, return_index=True)
    return ids, first


def places_among(columns: Sequence[pa.Array], others: Sequence[pa.Array]) -> Int64s:
    """Return the first of other rows that is equal to each row in these columns; -1 without one."""
    n = len(others[0])
    ids, firsts = place_ids(*(pa.concat_arrays(pair) for pair in zip(others, columns, strict=True)))
    places = firsts[ids[n:]]
    places[places >= n] = -1
    return places


def exploded(found: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
    """Return entries whose values are lists as one for each element, and the elements."""
    lists = found.column("value")
    n_elements = np.diff(lists.offsets.to_numpy())
    each = pa.array(np.repeat(np.arange(found.num_rows), n_elements))
    return found.drop_columns(["value"]).take(each), lists.flatten()
