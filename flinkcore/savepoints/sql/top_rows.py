"""Rows that Flink's ranks keep: the highest ones of each key."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.columnar.operator_plans.row_ranking import ranking_of
from flinkcore.columnar.relational.row_changes import identities_of
from flinkcore.columnar.stages.order_of_rows import sort_columns
from flinkcore.errors import UnsupportedOperationError
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.serializers.composite import ListSerializer, TupleSerializer
from flinkcore.savepoints.serializers.row_data import RowDataSerializer, row_data
from flinkcore.savepoints.serializers.sorted_maps import (
    SortedField,
    SortedMapSerializer,
    written_comparator,
)
from flinkcore.savepoints.sql.names import (
    RANKED_ROWS,
    SORTED_MAP,
    TIMERS,
    TOP_OF_INSERTS,
    TOP_OF_UPDATES,
    TOP_ROW,
    WINDOW_ROW,
    WINDOW_TIMERS,
    WINDOW_TOP,
)
from flinkcore.savepoints.sql.row_layout import (
    Entries,
    PartTables,
    Restored,
    RowLayout,
    SavepointTables,
    exploded,
    fields_of,
    grouped,
    key_columns,
    place_ids,
)
from flinkcore.sql.plan.flink_state import FlinkState
from flinkcore.sql.types.logical_types import FLOATS

_TOP = "top"


class TopRow(RowLayout):
    """The highest row of each key.

    Notes
    -----
    Flink's ``FastTop1Function``.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        return {TOP_ROW: self.types("VALUE", self.inputs[0])}

    def written(self, name: str, tables: PartTables) -> Entries | None:
        top = tables.read(_TOP)
        return None if top is None else {"key": tables.keys(top), "value": tables.rows(top)}

    def restored(self, found: SavepointTables) -> Restored:
        entries = found.read(TOP_ROW)
        return {_TOP: [] if entries is None else [_top(found, entries, entries.column("value"))]}


class InsertedTopRows(RowLayout):
    """The highest rows of each key, none of which changes, by what orders them.

    Notes
    -----
    Flink's ``AppendOnlyTopNFunction``. It also keeps some rows of lower ranks, which never come up.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        return {TOP_OF_INSERTS: self.types("MAP", ListSerializer((self.inputs[0],)), self._sort_key)}

    @cached_property
    def _sort_key(self) -> RowDataSerializer:
        (columns,) = self.state.inputs
        return row_data([columns[number][1] for number, *_ in self.state.order], is_key=True)

    def written(self, name: str, tables: PartTables) -> Entries | None:
        top = tables.read(_TOP)
        return None if top is None else self._lists(tables, top, {})

    def _lists(self, tables: PartTables, top: pa.RecordBatch, windows: Mapping[str, pa.Array]) -> Entries:
        rows = tables.rows(top, ends=windows.get("namespace"))
        sort_keys = fields_of(rows, [number for number, *_ in self.state.order])
        return grouped({"key": tables.keys(top), **windows, "map_key": sort_keys}, rows)

    def restored(self, found: SavepointTables) -> Restored:
        return {_TOP: self._restored_lists(found, TOP_OF_INSERTS)}

    def _restored_lists(self, found: SavepointTables, name: str) -> list[dict[str, pa.Array]]:
        entries = found.read(name)
        if entries is None:
            return []
        entries, rows = exploded(entries)
        order = _best_first(found, entries, rows)
        return [_top(found, entries.take(order), rows.take(order))]


class WindowTopRows(InsertedTopRows):
    """The highest rows of each window of a key, by what orders them.

    Notes
    -----
    Flink's ``WindowRankProcessor``.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        rows = ListSerializer((self.inputs[0],))
        return {
            WINDOW_TOP: self.types("MAP", rows, self._sort_key, basic.LONG),
            WINDOW_TIMERS: self.types("TIMERS", namespace=basic.LONG),
        }

    def written(self, name: str, tables: PartTables) -> Entries | None:
        if name == WINDOW_TIMERS:
            return _written_timers(tables)
        top = tables.read(_TOP)
        return None if top is None else self._lists(tables, top, {"namespace": top.column("end")})

    def restored(self, found: SavepointTables) -> Restored:
        return {_TOP: self._restored_lists(found, WINDOW_TOP), TIMERS: _restored_timers(found)}


class WindowRow(RowLayout):
    """One row of each window of a key.

    Notes
    -----
    Flink's ``RowTimeWindowDeduplicateProcessor``.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        return {
            WINDOW_ROW: self.types("VALUE", self.inputs[0], namespace=basic.LONG),
            WINDOW_TIMERS: self.types("TIMERS", namespace=basic.LONG),
        }

    def written(self, name: str, tables: PartTables) -> Entries | None:
        if name == WINDOW_TIMERS:
            return _written_timers(tables)
        top = tables.read(_TOP)
        if top is None:
            return None
        ends = top.column("end")
        return {"key": tables.keys(top), "namespace": ends, "value": tables.rows(top, ends=ends)}

    def restored(self, found: SavepointTables) -> Restored:
        entries = found.read(WINDOW_ROW)
        if entries is None:
            return {_TOP: [], TIMERS: []}
        return {_TOP: [_top(found, entries, entries.column("value"))], TIMERS: _restored_timers(found)}


def _written_timers(tables: PartTables) -> Entries | None:
    due = tables.read(TIMERS)
    if due is None:
        return None
    columns = {name: due.column(name) for name in ("namespace", "timestamp_ms")}
    return {"key": tables.keys(due), **columns}


def _restored_timers(found: SavepointTables) -> list[dict[str, pa.Array]]:
    due = found.read(WINDOW_TIMERS)
    if due is None:
        return []
    return [{**key_columns(due), **{name: due.column(name) for name in ("timestamp_ms", "namespace")}}]


class ChangingTopRows(RowLayout):
    """The highest rows of each key by their unique key, with the place of each among those that are ordered alike.

    Notes
    -----
    Flink's ``UpdatableTopNFunction``.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        (columns,), (numbers,) = self.state.inputs, self.state.unique_keys
        unique = row_data([columns[number][1] for number in numbers or ()], is_key=True)
        value = TupleSerializer((self.inputs[0], basic.INT))
        return {TOP_OF_UPDATES: self.types("MAP", value, unique)}

    def written(self, name: str, tables: PartTables) -> Entries | None:
        top = tables.read(_TOP)
        if top is None:
            return None
        keys, rows = tables.keys(top), tables.rows(top)
        alike, _ = place_ids(keys, fields_of(rows, [number for number, *_ in self.state.order]))
        places = pa.array(1 + _number_within(alike), pa.int32())
        value = pa.StructArray.from_arrays([rows, places], ["f0", "f1"])
        (unique,) = self.state.unique_keys
        return {"key": keys, "map_key": fields_of(rows, unique or ()), "value": value}

    def restored(self, found: SavepointTables) -> Restored:
        entries = found.read(TOP_OF_UPDATES)
        if entries is None:
            return {_TOP: []}
        value = entries.column("value")
        order = np.argsort(value.field(1).to_numpy(), kind="stable")
        entries, rows = entries.take(pa.array(order)), value.field(0).take(pa.array(order))
        best = _best_first(found, entries, rows)
        (unique,) = self.state.unique_keys
        return {_TOP: [_top(found, entries.take(best), rows.take(best), unique)]}


class RankedRows(InsertedTopRows):
    """All rows of each key by what orders them, which may be withdrawn, and in order how many are ordered alike.

    Notes
    -----
    Flink's ``RetractableTopNFunction``.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        (columns,) = self.state.inputs
        order = [SortedField(columns[number][1], down, last) for number, down, last in self.state.order]
        numbers = SortedMapSerializer((self._sort_key, basic.LONG), written_comparator(order))
        return {
            RANKED_ROWS: self.types("MAP", ListSerializer((self.inputs[0],)), self._sort_key),
            SORTED_MAP: self.types("VALUE", numbers),
        }

    def written(self, name: str, tables: PartTables) -> Entries | None:
        top = tables.read(_TOP)
        if top is None or name == RANKED_ROWS:
            return None if top is None else self._lists(tables, top, {})
        keys, rows = tables.keys(top), tables.rows(top)
        sort_keys = fields_of(rows, [number for number, *_ in self.state.order])
        self._check_floats(sort_keys)
        of_keys, _ = place_ids(keys)
        order = _order_of(self.state, rows, of_keys)
        alike, _ = place_ids(keys, sort_keys)
        firsts = np.flatnonzero(np.diff(alike[order], prepend=-1))
        numbers = pa.array(np.diff(firsts, append=len(order)))
        sort_keys = sort_keys.take(pa.array(order[firsts]))
        first_of_keys = np.flatnonzero(np.diff(of_keys[order[firsts]], prepend=-1))
        offsets = pa.array(np.append(first_of_keys, len(firsts)), pa.int32())
        of_first = pa.array(order[firsts[first_of_keys]])
        return {"key": keys.take(of_first), "value": pa.MapArray.from_arrays(offsets, sort_keys, numbers)}

    def _check_floats(self, sort_keys: pa.Array) -> None:
        """Check that the map has no keys that its comparator takes for equal: -0.0 and 0.0, NaN and any number."""
        for place, (number, *_) in enumerate(self.state.order):
            name, kind = self.state.inputs[0][number]
            if kind.root in FLOATS:
                found = sort_keys.field(place).drop_null().to_numpy()
                if (np.isnan(found) | ((found == 0) & np.signbit(found))).any():
                    raise UnsupportedOperationError(
                        f"rows are ordered by {name}, which has NaN or -0.0, and Flink's map of ranks confuses these "
                        "with other numbers"
                    )

    def restored(self, found: SavepointTables) -> Restored:
        entries = found.read(RANKED_ROWS)
        if entries is None:
            return {_TOP: []}
        entries, rows = exploded(entries)
        order = _best_first(found, entries, rows, every=True)
        unique = tuple(range(len(self.state.inputs[0])))
        return {_TOP: [_top(found, entries.take(order), rows.take(order), unique)]}


def _number_within(ids: Int64s) -> Int64s:
    """Return for each row how many rows before it have its id."""
    order = np.argsort(ids, kind="stable")
    is_first = np.ones(len(ids), np.bool_)
    is_first[1:] = ids[order][1:] != ids[order][:-1]
    numbers = np.arange(len(ids))
    found = np.empty(len(ids), np.int64)
    found[order] = numbers - np.maximum.accumulate(np.where(is_first, numbers, 0))
    return found


def _best_first(
    found: SavepointTables, entries: pa.RecordBatch, rows: pa.Array, *, every: bool = False
) -> pa.Array:
    """Return the order of the rows of each key; those of too low a rank are left out, unless `every` row is needed."""
    windows = [entries.column("namespace")] if "namespace" in entries.schema.names else []
    ids, _ = place_ids(*key_columns(entries).values(), *windows)
    order = _order_of(found.state, rows, ids)
    return pa.array(order if every else order[_number_within(ids[order]) < found.state.last_rank])


def _order_of(state: FlinkState, rows: pa.Array, ids: Int64s) -> Int64s:
    """Return the order of rows: by id, then by rank, then as they are."""
    columns = state.inputs[0]
    if not state.order:
        return np.argsort(ids, kind="stable")
    schema = pa.schema([pa.field(name, kind.arrow, kind.nullable) for name, kind in columns])
    batch = pa.RecordBatch.from_arrays(
        [rows.field(number).cast(kind.arrow) for number, (_, kind) in enumerate(columns)], schema=schema
    )
    names = [columns[number][0] for number, *_ in state.order]
    down, last = [down for _, down, _ in state.order], [last for *_, last in state.order]
    return np.lexsort((*sort_columns(ranking_of(names, down, last, schema).of(batch)), ids))


def _top(
    found: SavepointTables, entries: pa.RecordBatch, rows: pa.Array, unique: tuple[int, ...] | None = None
) -> dict[str, pa.Array]:
    n = entries.num_rows
    columns = {**key_columns(entries), **found.row_columns(rows, n), "timestamp": found.rowtimes(rows)}
    if unique is None:
        of_window = "namespace" in entries.schema.names
        ends = entries.column("namespace") if of_window else pa.array(np.zeros(n, np.int64))
        return {**columns, "end": ends}
    names = [found.state.inputs[0][number][0] for number in unique]
    batch = pa.RecordBatch.from_arrays([columns[f"row.{name}"] for name in names], names)
    low, high = identities_of(batch, names).view(np.int64).T
    return {**columns, "low": pa.array(low), "high": pa.array(high)}
