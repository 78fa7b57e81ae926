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
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.serializers.composite import ListSerializer, TupleSerializer
from flinkcore.savepoints.serializers.row_data import RowDataSerializer, row_data
from flinkcore.savepoints.serializers.serializer import OpaqueSerializer
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
        return row_data([columns[number][1] for number, *_ in self.state.order])

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
        unique = row_data([columns[number][1] for number in numbers or ()])
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
    """All rows of each key by what orders them, which may be withdrawn.

    Notes
    -----
    Flink's ``RetractableTopNFunction``. Beside the rows it keeps their numbers in a map that is sorted by code which
    its planner has made, so that the state is not written.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        numbers = OpaqueSerializer(f"SortedMap<{self._sort_key.name}, Long>")
        return {
            RANKED_ROWS: self.types("MAP", ListSerializer((self.inputs[0],)), self._sort_key),
            SORTED_MAP: self.types("VALUE", numbers),
        }

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
    state = found.state
    columns = state.inputs[0]
    schema = pa.schema([pa.field(name, kind.arrow, kind.nullable) for name, kind in columns])
    batch = pa.RecordBatch.from_arrays(
        [rows.field(number).cast(kind.arrow) for number, (_, kind) in enumerate(columns)], schema=schema
    )
    names = [columns[number][0] for number, *_ in state.order]
    ranking = ranking_of(
        names, [down for _, down, _ in state.order], [last for *_, last in state.order], schema
    )
    windows = [entries.column("namespace")] if "namespace" in entries.schema.names else []
    ids, _ = place_ids(*key_columns(entries).values(), *windows)
    order = np.lexsort((*sort_columns(ranking.of(batch)), ids)) if names else np.argsort(ids, kind="stable")
    return pa.array(order if every else order[_number_within(ids[order]) < state.last_rank])


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
